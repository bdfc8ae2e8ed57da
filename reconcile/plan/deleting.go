package plan

import (
	"slices"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/types"
)

// A deletion is over when the object is gone. Until then, the object stays in the inventory, and its step is a prune that sends
// nothing. Only the commit that removed the object can fail because of it, and only after the time limit.

// Lingers reports whether a prune waits for deletions that have begun, of objects that an earlier commit removed. It changes no
// verdict, and a pass does not wait for it.
func (s Step) Lingers() bool {
	return s.Action == Prune && s.Earlier && (s.Deleting || s.Waiting() && !slices.ContainsFunc(s.Waits, func(r Reason) bool {
		return r.Code != AwaitsDependant && r.Code != AwaitsGone && r.Code != AwaitsMore
	}))
}

// isLate reports whether the deletion of an object that this commit removed takes too long.
func (s Step) isLate(t Times) bool {
	return s.Deleting && !s.Earlier && t.Now.Sub(s.Since.Time) >= t.Limit.Duration
}

// withoutGone returns the pass after the newest plan is known: the deletion of an object is over if the plan has no step for it.
func (p Pass) withoutGone(now Plan) Pass {
	there := make(map[manifest.ID]types.UID, len(now.Steps))
	for _, s := range now.Steps {
		there[s.ID] = s.UID
	}
	for i, s := range p.Last.Steps {
		o, sent := p.Done[s.ID]
		switch {
		case there[s.ID] == s.UID:
		case sent:
			o.Deleting = Reason{}
			p.Done[s.ID] = o
		case s.Deleting:
			p.Last.Steps[i] = s.over()
			p.Done[s.ID] = Outcome{ID: s.ID, Action: Prune}
		}
	}
	return p
}

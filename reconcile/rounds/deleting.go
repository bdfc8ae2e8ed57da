package rounds

import (
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/types"
)

// isLate reports whether the deletion of an object that this commit removed takes too long.
func isLate(s plan.Step, t Times) bool {
	return s.Deleting && !s.Earlier && t.Now.Sub(s.Since.Time) >= t.Limit.Duration
}

// withoutGone returns the pass after the newest plan is known: the deletion of an object is over if the plan has no step for it.
func (p Pass) withoutGone(now plan.Plan) Pass {
	there := make(map[manifest.ID]types.UID, len(now.Steps))
	for _, s := range now.Steps {
		there[s.ID] = s.UID
	}
	for i, s := range p.Last.Steps {
		o, sent := p.Done[s.ID]
		switch {
		case there[s.ID] == s.UID:
		case sent:
			o.Deleting = reason.Reason{}
			p.Done[s.ID] = o
		case s.Deleting:
			p.Last.Steps[i] = s.Over()
			p.Done[s.ID] = plan.Outcome{ID: s.ID, Action: plan.Prune}
		}
	}
	return p
}

package rounds

import (
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// isLate reports whether the deletion of an object that this commit removed takes too long.
func isLate(s plan.Step, t Times) bool {
	return s.Deleting && !s.Earlier && t.Now.Sub(s.Since.Time) >= t.Limit.Duration
}

// withoutGone returns the pass after the newest plan is known: the deletion of an object is over if the plan has no step for it.
func (p Pass) withoutGone(newest map[manifest.ID]plan.Step) Pass {
	for i, s := range p.Last.Steps {
		o, sent := p.Done[s.ID]
		switch {
		case newest[s.ID].UID == s.UID:
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

// withAbsent returns the pass after its prunes: those of objects that disappeared without us count as made.
func (p Pass) withAbsent(absent []manifest.ID) Pass {
	last := where(p.First.Steps, comesLast)
	for _, id := range absent {
		if _, known := p.Done[id]; last[id] && !known {
			p.Done[id] = plan.Outcome{ID: id, Action: plan.Prune}
		}
	}
	return p
}

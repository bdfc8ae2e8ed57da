package rounds

import (
	"slices"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// overdue returns the plan after the time limit: late effects are broken, and steps that still wait for them have failed. So have
// late deletions.
func overdue(p plan.Plan, t Times, late map[manifest.ID]bool) plan.Plan {
	after := t.Limit.Duration.String()
	p.Steps, p.Effects = slices.Clone(p.Steps), slices.Clone(p.Effects)
	for i, s := range p.Steps {
		if s.Waiting() && s.Err == nil && late[s.ID] {
			code := reason.NotSentInTime
			if s.Action == plan.Prune {
				code = reason.NotDeletedInTime
			}
			p.Steps[i] = s.Failed(code.With(after, s.Waits))
		}
		if isLate(s, t) {
			p.Steps[i] = s.Failed(reason.NotGone.With(after, s.Reason))
		}
	}
	for i, e := range p.Effects {
		if e.State == plan.Pending && late[e.On] {
			p.Effects[i].State, p.Effects[i].Reason = plan.Broken, reason.PendingTooLong.With(after, e.Reason)
		}
	}
	return p
}

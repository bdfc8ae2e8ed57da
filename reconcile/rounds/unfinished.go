package rounds

import (
	"slices"

	"headgate.dev/headgate/reconcile/plan"
)

// holdPrunes returns a part of the pass's plan in which prunes are held while something is undone, unless a person approved them.
// shown is the whole plan, with the steps of that part.
func (p Pass) holdPrunes(part, shown plan.Plan) plan.Plan {
	free := part.Steps
	part = p.guarded(part, shown)
	all := replaced(shown, part, where(part.Steps, p.follows))
	all.Approval, all.Spent = nil, nil
	var lifted plan.Lifting
	if all.AskAgain != nil {
		lifted = all.AskAgain(&all)
	}
	approved := func(s plan.Step) bool {
		return s.IsUnfinished() && lifted.Covers(s.Ask(plan.Ruling{Judged: plan.Judged{Guard: plan.Unfinished}}))
	}
	part.Approval, part.Spent = all.Approval, slices.Concat(part.Spent, all.Spent)
	held := part.Select(func(s plan.Step) bool { return s.IsUnfinished() && !approved(s) })
	for i, s := range part.Steps {
		if approved(s) && !slices.ContainsFunc(held.Steps, func(o plan.Step) bool { return plan.IsInside(o.ID, s.ID) }) {
			part.Steps[i] = free[i].Past(append(free[i].Lifted, s.Holds()...))
		}
	}
	return part
}

// guarded returns a part of the pass's plan with the prunes that the requests of this pass do not let pass.
func (p Pass) guarded(part, shown plan.Plan) plan.Plan {
	undone, done, uids := shown.Undone(p.Done), p.outcomes(), p.appliedUIDs()
	part.Steps = slices.Clone(part.Steps)
	for i, s := range part.Steps {
		s = freed(shown, s, undone)
		wanted, twice := uids[s.UID]
		waits, fails := s.WaitsFor(undone), s.NotEmpty(done)
		switch {
		case twice && s.Action == plan.Prune:
			s, part.Stale = s.KeptAs(wanted), true
		case s.Err != nil: // it is not sent
		case !waits.None() && !p.follows(s):
			s = s.Ruled(plan.Ruling{Judged: plan.Judged{Guard: plan.Unfinished, Severity: plan.Block, Reason: waits}}, nil).Free()
		case !fails.None():
			s = s.Failed(fails)
		}
		part.Steps[i] = s
	}
	return part
}

// freed returns a step as a prune if only the guard Unfinished held it, because of what was known before the pass sent anything, and
// the API server has named it in a refusal since then. What depends on the object keeps it.
func freed(p plan.Plan, s plan.Step, undone []plan.Undone) plan.Step {
	if !s.IsUnfinished() || len(s.Also) > 0 || len(p.Dependants[s.ID]) > 0 {
		return s
	}
	if slices.ContainsFunc(undone, func(u plan.Undone) bool { return plan.IsIn(u.RefusedBy, s) }) {
		return s.Unheld()
	}
	return s
}

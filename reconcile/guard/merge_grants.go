package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/impact"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// grants asks to look at rights that a commit grants. Rights that it takes away need no look: see lessens.
func grants(s plan.Step, _ draft.Case) plan.Ruling {
	before, after, changes := contents(s)
	switch {
	case !changes || !applied(s):
		return allowed
	case impact.IsBinding(s.ID):
		if subjects := impact.NewSubjects(before, after); len(subjects) > 0 || before == nil {
			return looks(reason.GrantsRole.With(s.ID, impact.RoleOf(after), subjects))
		}
	case impact.IsRole(s.ID) && (before == nil || impact.GrantsMore(before, after)):
		return looks(reason.GrantsRules.With(s.ID))
	}
	return allowed
}

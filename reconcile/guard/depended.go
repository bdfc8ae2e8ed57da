package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// dependedOn refuses to prune an object while an object that stays depends on it.
func dependedOn(s plan.Step, c draft.Case) plan.Ruling {
	for _, by := range c.Dependants(s.ID) {
		switch {
		case by.Action == plan.Prune || by.LetsGo(): // the prune waits until it is deleted
		case by.Action == plan.Keep && by.Cause == plan.Retain && by.Origin.Path == "":
			return retained(reason.DependantKept.With(by.ID))
		default:
			return held(reason.DependantStays.With(by.ID))
		}
	}
	return allowed
}

// dependedOnOrUsed refuses to prune an object while an object that stays depends on it or would be deleted with it.
func dependedOnOrUsed(s plan.Step, c draft.Case) plan.Ruling {
	if r := dependedOn(s, c); r.Response() != plan.Allowed {
		return r
	}
	for _, by := range c.GoingWith(s) {
		if by.Action != plan.Prune {
			return held(reason.UserStays.With(by.ID))
		}
	}
	return allowed
}

package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// The codes of the guard depended on.
const (
	DependantKept  reason.Code = "DependantKept"  // the object that depends on it and is kept on purpose
	DependantStays reason.Code = "DependantStays" // the object that depends on it
	UserStays      reason.Code = "UserStays"      // the object that must be deleted before it
)

// dependedOn refuses to prune an object while an object that stays depends on it or would be deleted with it.
func dependedOn(s plan.Step, c draft.Case) plan.Ruling {
	for _, by := range c.Dependants(s.ID) {
		switch {
		case by.Action == plan.Prune || by.LetsGo(): // the prune waits until it is deleted
		case by.Action == plan.Keep && by.Cause == plan.Retain && by.Origin.Path == "":
			return retained(DependantKept.With(by.ID))
		default:
			return held(DependantStays.With(by.ID))
		}
	}
	for _, by := range c.GoingWith(s) {
		if by.Action != plan.Prune {
			return held(UserStays.With(by.ID))
		}
	}
	return allowed
}

package guard

import "headgate.dev/headgate/reconcile/plan"

// dependedOn refuses to prune an object while one that stays depends on it, or would go with it.
func dependedOn(s plan.Step, c plan.Case) plan.Ruling {
	for _, by := range c.Dependants(s.ID) {
		switch {
		case by.Action == plan.Prune || by.LetsGo(): // the prune waits for that
		case by.Action == plan.Keep && by.Cause == plan.Retain && by.Origin.Path == "":
			return retained("%s depends on it, and is kept", plan.The(by.ID))
		default:
			return held("%s depends on it, and stays; declare this again, or take out what says so there", plan.The(by.ID))
		}
	}
	for _, by := range c.GoingWith(s) {
		if by.Action != plan.Prune {
			return held("%s has to go first, and stays; see there why", plan.The(by.ID))
		}
	}
	return allowed
}

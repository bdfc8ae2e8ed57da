package guard

import "headgate.dev/headgate/reconcile/plan"

// observed reports what differs in an object that its management policy only looks at.
func observed(s plan.Step, c plan.Case) plan.Ruling {
	switch {
	case c.Seen.Looks || !s.Policy.Observes():
		return allowed
	case s.Err != nil:
		return reported(text("%s", s.Err))
	}
	return reported(text("it is not what the commit says; %s", plan.OnlyObserves(s.Policy)))
}

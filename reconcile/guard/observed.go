package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// observed reports the differences of an object whose management policy is observe-only.
func observed(s plan.Step, _ draft.Case) plan.Ruling {
	switch {
	case !s.Policy.Observes():
		return allowed
	case s.Err != nil:
		return reported(reason.ObservedRefused.With(reason.Of(s.Err)))
	}
	return reported(reason.ObservedDiffers.With(string(s.Policy)))
}

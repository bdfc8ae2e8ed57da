package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// The codes of the guard observed. Package plan has OnlyLookedAt.
const (
	ObservedRefused reason.Code = "ObservedRefused" // the error of an update that would make it as the commit wants
	ObservedDiffers reason.Code = "ObservedDiffers" // its management policy
)

// observed reports the differences of an object whose management policy is observe-only.
func observed(s plan.Step, _ draft.Case) plan.Ruling {
	switch {
	case !s.Policy.Observes():
		return allowed
	case s.Err != nil:
		return reported(ObservedRefused.With(reason.Of(s.Err)))
	}
	return reported(ObservedDiffers.With(string(s.Policy)))
}

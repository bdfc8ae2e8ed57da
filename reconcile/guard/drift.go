package guard

import (
	"headgate.dev/headgate/reconcile/plan"
)

// The codes of the guard drift.
const (
	DriftRefused  plan.Code = "DriftRefused"  // the error of the update that would correct the drift
	DriftReported plan.Code = "DriftReported" // the sync reports drift and does not correct it
)

// onlyReported keeps foreign changes if the sync only reports drift. If a field has only lost our field manager, for example
// because its value was restored by hand, it has not drifted, and the apply makes us its manager again.
func onlyReported(reports bool) func(plan.Step, plan.Case) plan.Ruling {
	return func(s plan.Step, _ plan.Case) plan.Ruling {
		switch {
		case !reports || s.Cause != plan.Drift, s.Action == plan.Update && s.Err == nil && len(s.Changes()) == 0:
			return allowed
		case s.Err != nil:
			return reported(DriftRefused.With(plan.ReasonOf(s.Err)))
		}
		return reported(DriftReported.With())
	}
}

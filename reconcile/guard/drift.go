package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// onlyReported keeps foreign changes if the sync only reports drift. If a field has only lost our field manager, for example
// because its value was restored by hand, it has not drifted, and the apply makes us its manager again.
func onlyReported(reports bool) func(plan.Step, draft.Case) plan.Ruling {
	return func(s plan.Step, _ draft.Case) plan.Ruling {
		switch {
		case !reports || s.Cause != plan.Drift, s.Action == plan.Update && s.Err == nil && len(s.Changes()) == 0:
			return allowed
		case s.Err != nil:
			return reported(reason.DriftRefused.With(reason.Of(s.Err)))
		}
		return reported(reason.DriftReported.With())
	}
}

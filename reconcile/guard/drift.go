package guard

import (
	"headgate.dev/headgate/reconcile/plan"
)

// onlyReported keeps what somebody changed as it is, where the sync reports drift. What only
// lost our name in its managed fields, as a value that was put back by hand, has not
// drifted: it gets the name back.
func onlyReported(reports bool) func(plan.Step, plan.Case) plan.Ruling {
	return func(s plan.Step, _ plan.Case) plan.Ruling {
		switch {
		case !reports || s.Cause != plan.Drift, s.Action == plan.Update && s.Err == nil && len(s.Changes()) == 0:
			return allowed
		case s.Err != nil:
			return reported("drift is reported, not corrected: %s", s.Err)
		}
		return reported("drift is reported, not corrected")
	}
}

package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
)

// unfinished holds prunes while a create or an update is known to fail, or is held. Package plan rules again once the outcomes of the
// pass are known.
func unfinished(c draft.Case) func(plan.Step) plan.Ruling {
	undone := c.Undone()
	return func(s plan.Step) plan.Ruling {
		if why := s.WaitsFor(undone); !why.None() {
			return held(why)
		}
		return allowed
	}
}

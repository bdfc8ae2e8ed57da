package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// many holds all prunes if there are more of them than expected of one commit.
func many(most int) func(plan.Step, draft.Case) plan.Ruling {
	return func(s plan.Step, c draft.Case) plan.Ruling {
		limit := most
		if limit == 0 {
			limit = min(max(len(c.Seen.Inventory.Entries)/5, 3), 20)
		}
		if c.Passing <= limit || !s.Counts() {
			return allowed
		}
		return held(reason.TooManyPrunes.With(c.Passing, limit))
	}
}

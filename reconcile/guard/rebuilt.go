package guard

import (
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// rebuilt holds prunes of objects whose marks alone show that the sync owns them: the inventory was lost, or a backup restored the object
// under another UID. A person checks the object, then approves the prune or releases the object. The approval is for this UID alone:
// another object of the same name with the same marks is asked about again. others is the ruling on other objects while the inventory is
// being rebuilt.
func rebuilt(others plan.Ruling) func(plan.Step, draft.Case) plan.Ruling {
	return func(s plan.Step, c draft.Case) plan.Ruling {
		have := c.Seen.Inventory
		switch {
		case have.Entries[s.ID].Rebuilt:
			return asks(approval.Object(s.UID), approval.Amount{}, reason.OnlyMarked.With())
		case c.Seen.Restored(s.ID, c.Live(s)):
			return asks(approval.Object(s.UID), approval.Amount{}, reason.AnotherUID.With())
		case have.Rebuilt:
			return others
		}
		return allowed
	}
}

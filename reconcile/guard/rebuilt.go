package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// rebuilt holds prunes of objects whose marks alone show that the sync owns them: the inventory was lost, or a backup restored the object
// under another UID. A person checks the object, then approves the prune or releases the object. others is the ruling on other objects
// while the inventory is being rebuilt.
func rebuilt(others plan.Ruling) func(plan.Step, draft.Case) plan.Ruling {
	return func(s plan.Step, c draft.Case) plan.Ruling {
		have := c.Seen.Inventory
		switch {
		case have.Entries[s.ID].Rebuilt:
			return held(reason.OnlyMarked.With())
		case c.Seen.Restored(s.ID, c.Live(s)):
			return held(reason.AnotherUID.With())
		case have.Rebuilt:
			return others
		}
		return allowed
	}
}

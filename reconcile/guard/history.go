package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
)

// history holds changes by a rewritten branch. It rules like the guards that count, so that a guard that holds a step for another problem
// is named first. Two kinds of steps are not held: those that restore an object
// to the form in which it was applied before, and deletions that were requested before.
func history(c draft.Case) func(plan.Step) plan.Ruling {
	why := c.Seen.Rewritten
	return func(s plan.Step) plan.Ruling {
		applied := c.Seen.Inventory.Entries[s.ID].Digest
		switch {
		case why.None(), s.Action == plan.Prune && s.Deleting:
			return allowed
		case s.Action != plan.Prune && applied != "" && s.Digest == applied:
			return allowed
		}
		return held(why)
	}
}

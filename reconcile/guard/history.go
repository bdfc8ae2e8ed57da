package guard

import "headgate.dev/headgate/reconcile/plan"

// history holds what a rewritten branch changes. It comes last, because an approval of a step passes every guard that can be
// approved: the guard that names another problem of the step has to name it first. What was applied before in the same
// form is put right all the same, and a deletion that was requested before goes on.
func history(c plan.Case) func(plan.Step) plan.Ruling {
	why := c.Seen.Rewritten()
	return func(s plan.Step) plan.Ruling {
		entry, owned := c.Seen.Inventory.Entries[s.ID]
		switch {
		case why.None(), s.Action == plan.Prune && s.Deleting:
			return allowed
		case s.Action != plan.Prune && owned && s.Digest != "" && s.Digest == entry.Digest:
			return allowed
		}
		return held(why)
	}
}

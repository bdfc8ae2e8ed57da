package guard

import (
	"headgate.dev/headgate/reconcile/plan"
)

// rebuilt holds what the sync is taken to own only because of the marks on it. A person looks at it
// and approves that it is pruned, or has Headgate release it.
func rebuilt(s plan.Step, c plan.Case) plan.Ruling {
	have := c.Seen.Inventory
	switch {
	case have.Entries[s.ID].Rebuilt:
		return held("the inventory was lost, and only the marks on the object tell that this sync applied it; approve the prune, or run 'headgate release --rebuilt' to keep such objects")
	case have.Rebuilt && c.Seen.Ends != plan.NoEnding:
		return held("a part of the inventory was lost and is being rebuilt; look at what is listed, and destroy once more")
	case have.Rebuilt:
		return retained("%s", "a part of the inventory was lost and is being rebuilt; the next pass decides")
	}
	return allowed
}

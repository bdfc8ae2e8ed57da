package record

import (
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
)

// IsOld reports whether a step keeps an object that an inventory has under the wanted identity, too. Then the old one is forgotten.
func IsOld(s plan.Step, have inventory.Inventory) bool {
	return s.Guard == plan.SameObject && have.Entries[s.SameAs].UID == s.UID
}

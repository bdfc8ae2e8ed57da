package record

import (
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// IsOld reports whether a step keeps an object that an inventory has under the wanted identity, too. Then the old one is forgotten.
func IsOld(s plan.Step, have inventory.Inventory) bool {
	return s.SameAs != (manifest.ID{}) && have.Entries[s.SameAs].UID == s.UID
}

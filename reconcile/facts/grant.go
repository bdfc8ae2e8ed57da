package facts

import (
	"headgate.dev/headgate/reconcile/inventory"
)

// IsLost reports whether a sync has applied objects but the inventory with its grants is gone. A pass stores the inventory before
// it applies anything.
func (o Observed) IsLost() bool {
	if o.Inventory.ResourceVersion != "" {
		return false
	}
	if o.Inventory.Rebuilt || len(o.Copies) > 0 {
		return true
	}
	for _, live := range o.Objects {
		if inventory.Ours(live, o.Inventory.Sync) {
			return true
		}
	}
	return false
}

// Package ownership tells from a live object which other tool owns it, applies it, or is asked to leave it alone.
package ownership

import (
	"headgate.dev/headgate/reconcile/inventory"
)

// IsApplier reports whether a field manager applies what others committed.
func IsApplier(manager string) bool {
	_, tool := managers[manager]
	_, ofCrossplane := crossplanes[manager]
	return tool || ofCrossplane || manager == inventory.Manager || manager == "helm"
}

package ownership

import (
	"headgate.dev/headgate/reconcile/inventory"
)

// isApplier says whether a field manager applies what others committed.
func IsApplier(manager string) bool {
	_, tool := managers[manager]
	_, crossplane := crossplanes[manager]
	return tool || crossplane || manager == inventory.Manager || manager == "helm"
}

// Package ownership determines from a live object which other tool owns or applies it, and whether a user asked
// Headgate to leave it alone.
package ownership

import (
	"headgate.dev/headgate/reconcile/inventory"
)

// IsApplier reports whether a field manager belongs to a GitOps tool, which applies what others committed.
func IsApplier(manager string) bool {
	switch manager {
	case inventory.Manager, "helm":
		return true
	}
	_, tool := managers[manager]
	_, ofCrossplane := crossplanes[manager]
	return tool || ofCrossplane
}

package facts

import (
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/crossplane"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ServesCrossplane reports whether the served kinds show that Crossplane is installed.
func ServesCrossplane(kinds map[schema.GroupKind]plan.Kind) bool {
	for gk := range kinds {
		if gk == crossplane.KindMRD || gk.Group == crossplane.Packages {
			return true
		}
	}
	return false
}

package baseline

import (
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// KindsOf returns the kinds whose scope is the same in every cluster: those of Kubernetes, and those of the
// definitions and CRDs of the commit.
func KindsOf(want render.Desired) map[schema.GroupKind]plan.Kind {
	kinds := facts.KubernetesKinds()
	for _, d := range want.Definitions {
		kinds[schema.GroupKind{Group: d.Group, Kind: d.Kind}] = plan.Kind{Resource: d.Plural, Namespaced: d.Scope != "Cluster"}
	}
	for _, o := range want.Objects {
		if !o.ID.IsCRD() || o.Definition != "" || crossplane.IsClusterScoped(o.Serves.Group) {
			continue
		}
		if content, err := o.Content(); err == nil {
			scope, _, _ := unstructured.NestedString(content.Object, "spec", "scope")
			kinds[o.Serves] = plan.Kind{Namespaced: scope == "Namespaced"}
		}
	}
	return kinds
}

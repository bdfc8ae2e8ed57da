package facts

import (
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// KubernetesKinds returns the built-in kinds of Kubernetes.
func KubernetesKinds() map[schema.GroupKind]plan.Kind {
	kinds := map[schema.GroupKind]plan.Kind{}
	for gk, namespaced := range render.KubernetesScopes() {
		kinds[gk] = plan.Kind{Namespaced: namespaced}
	}
	return kinds
}

// HomesOf returns what completes IDs with their namespaces in the place.
func HomesOf(seen Observed) render.Homes {
	h := render.Homes{Scope: seen.Scope, Commits: []render.Desired{seen.Want}, Space: seen.Space}
	if seen.Base != nil {
		h.Commits = append(h.Commits, *seen.Base)
	}
	if h.Scope == nil {
		h.Scope = seen.served
	}
	return h
}

// served reports whether a kind that the place serves is namespaced.
func (o Ground) served(gk schema.GroupKind) (namespaced, known bool) {
	k, known := o.Kinds[gk]
	return k.Namespaced, known
}

// Homes is Plan.Homes before there is a plan.
func (o Observed) Homes() func(manifest.ID) manifest.ID { return HomesOf(o).Complete() }

// Namespaces returns a function that returns the namespace of an object in the cluster, "" if the object is cluster-scoped. It
// returns false if no API and no commit shows the scope of the kind, and the ID has no namespace.
func (o Observed) Namespaces() func(manifest.ID) (namespace string, known bool) {
	h := HomesOf(o)
	complete, scopes := h.Complete(), map[schema.GroupKind]bool{}
	return func(id manifest.ID) (string, bool) {
		gk := id.GroupKind()
		known, looked := scopes[gk]
		if !looked {
			_, known = h.ScopeOf(gk)
			known = known || id.IsCRD() || crossplane.IsClusterScoped(id.Group)
			scopes[gk] = known
		}
		namespace := complete(id).Namespace
		return namespace, known || namespace != ""
	}
}

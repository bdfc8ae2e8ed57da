package plan

import (
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// KubernetesKinds returns the built-in kinds of Kubernetes.
func KubernetesKinds() map[schema.GroupKind]Kind {
	kinds := map[schema.GroupKind]Kind{}
	for gk, namespaced := range render.KubernetesScopes() {
		kinds[gk] = Kind{Namespaced: namespaced}
	}
	return kinds
}

// Homes holds the sources for the scope of a kind: the served kinds and the commits.
type Homes struct {
	Kinds   map[schema.GroupKind]Kind
	Commits []render.Desired
	Space   string // for namespaced objects without a namespace
}

func homesOf(seen Observed) Homes {
	h := Homes{Kinds: seen.Kinds, Commits: []render.Desired{seen.Want}, Space: seen.Space}
	if seen.Base != nil {
		h.Commits = append(h.Commits, *seen.Base)
	}
	if seen.Stance.In(OnCommit) {
		h.Kinds = KubernetesKinds()
	}
	return h
}

// Homes returns a function that completes an ID with the namespace that the object has in the cluster. It removes the namespace
// from the ID of a cluster-scoped object. It returns an ID of a kind with unknown scope unchanged.
func (p Plan) Homes() func(manifest.ID) manifest.ID { return p.Places.Complete() }

// Homes is Plan.Homes before there is a plan.
func (o Observed) Homes() func(manifest.ID) manifest.ID { return homesOf(o).Complete() }

// Namespaces returns a function that returns the namespace of an object in the cluster, "" if the object is cluster-scoped. It
// returns false if no API and no commit shows the scope of the kind, and the ID has no namespace.
func (o Observed) Namespaces() func(manifest.ID) (namespace string, known bool) {
	h := homesOf(o).Known()
	complete, scopes := h.Complete(), map[schema.GroupKind]bool{}
	return func(id manifest.ID) (string, bool) {
		gk := id.GroupKind()
		known, looked := scopes[gk]
		if !looked {
			_, known = h.ScopeOf(gk)
			known = known || id.IsCRD() || crossplane.IsClusterScoped(id.Group) || o.Stance.In(OnCommit) && render.HasNamespacedKinds(id.Group)
			scopes[gk] = known
		}
		namespace := complete(id).Namespace
		return namespace, known || namespace != ""
	}
}

// Complete returns a function that adds the namespace of an object to its ID.
func (h Homes) Complete() func(manifest.ID) manifest.ID { return h.Known().Complete() }

// Known returns what is known of the scopes of kinds.
func (h Homes) Known() render.Homes {
	scope := func(gk schema.GroupKind) (namespaced, known bool) {
		k, served := h.Kinds[gk]
		return k.Namespaced, served
	}
	return render.Homes{Scope: scope, Commits: h.Commits, Space: h.Space}
}

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

// homes holds the sources for the scope of a kind: the served kinds and the commits.
type homes struct {
	kinds   map[schema.GroupKind]Kind
	commits []render.Desired
	space   string // for namespaced objects without a namespace
}

func homesOf(seen Observed) homes {
	h := homes{kinds: seen.Kinds, commits: []render.Desired{seen.Want}, space: seen.Space}
	if seen.Base != nil {
		h.commits = append(h.commits, *seen.Base)
	}
	if seen.Offline {
		h.kinds = KubernetesKinds()
	}
	return h
}

// Homes returns a function that completes an ID with the namespace that the object has in the cluster. It removes the namespace
// from the ID of a cluster-scoped object. It returns an ID of a kind with unknown scope unchanged.
func (p Plan) Homes() func(manifest.ID) manifest.ID { return p.homes.complete() }

// Homes is Plan.Homes before there is a plan.
func (o Observed) Homes() func(manifest.ID) manifest.ID { return homesOf(o).complete() }

// Namespaces returns a function that returns the namespace of an object in the cluster, "" if the object is cluster-scoped. It
// returns false if no API and no commit shows the scope of the kind, and the ID has no namespace.
func (o Observed) Namespaces() func(manifest.ID) (namespace string, known bool) {
	h := homesOf(o).known()
	complete, scopes := h.Complete(), map[schema.GroupKind]bool{}
	return func(id manifest.ID) (string, bool) {
		gk := id.GroupKind()
		known, looked := scopes[gk]
		if !looked {
			_, known = h.ScopeOf(gk)
			known = known || id.IsCRD() || crossplane.IsClusterScoped(id.Group) || o.Offline && render.HasNamespacedKinds(id.Group)
			scopes[gk] = known
		}
		namespace := complete(id).Namespace
		return namespace, known || namespace != ""
	}
}

func (h homes) complete() func(manifest.ID) manifest.ID { return h.known().Complete() }

func (h homes) known() render.Homes {
	scope := func(gk schema.GroupKind) (namespaced, known bool) {
		k, served := h.kinds[gk]
		return k.Namespaced, served
	}
	return render.Homes{Scope: scope, Commits: h.commits, Space: h.space}
}

package plan

import (
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// KubernetesKinds returns the kinds of Kubernetes that are in namespaces wherever a commit is applied.
func KubernetesKinds() map[schema.GroupKind]Kind {
	kinds := map[schema.GroupKind]Kind{}
	for gk := range render.KubernetesNamespaced() {
		kinds[gk] = Kind{Namespaced: true}
	}
	return kinds
}

// homes is what tells the scope of a kind: the kinds that are served, and the commits.
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

// Homes returns what completes the identity of an object with the namespace that the object gets in the cluster. It takes
// the namespace from an object of a kind that has none. An identity of a kind with an unknown scope stays as it is.
func (p Plan) Homes() func(manifest.ID) manifest.ID { return p.homes.complete() }

// Homes returns what completes an identity before there is a plan. See Plan.Homes.
func (o Observed) Homes() func(manifest.ID) manifest.ID { return homesOf(o).complete() }

// Namespaces returns what tells the namespace that an object has in the cluster, "" if it has none. It reports false if no
// API and no commit tells whether the kind has namespaces, and the object names none.
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

package plan

import (
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Homes holds the sources for the scope of a kind: the served kinds and the commits.
type Homes struct {
	Kinds   map[schema.GroupKind]Kind
	Commits []render.Desired
	Space   string // for namespaced objects without a namespace
}

// Homes returns a function that completes an ID with the namespace that the object has in the cluster. It removes the namespace
// from the ID of a cluster-scoped object. It returns an ID of a kind with unknown scope unchanged.
func (p Plan) Homes() func(manifest.ID) manifest.ID { return p.Places.Complete() }

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

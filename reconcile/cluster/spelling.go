package cluster

import (
	"fmt"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A spelling knows how the commit writes the identity of an object and what it is in the
// cluster. They differ where a namespaced object names no namespace, and where a
// cluster-scoped one names one. Plans speak as the commit does, the stored inventory and
// every request as the cluster does; so writing the namespace out, later, is no change.
type spelling struct {
	surface          *surface
	defaultNamespace string
	coming           map[schema.GroupKind]bool       // kinds that the commit's CRDs will serve: namespaced or not
	written          map[manifest.ID]manifest.ID     // actual → as the commit writes it, where they differ
	wanted           map[manifest.ID]manifest.Origin // actual
}

func spellingOf(want render.Desired, s *surface, defaultNamespace string) (spelling, error) {
	sp := spelling{
		surface:          s,
		defaultNamespace: defaultNamespace,
		coming:           map[schema.GroupKind]bool{},
		written:          map[manifest.ID]manifest.ID{},
		wanted:           make(map[manifest.ID]manifest.Origin, len(want.Objects)),
	}
	if err := sp.readComing(want); err != nil {
		return spelling{}, err
	}
	for _, o := range want.Objects {
		actual := sp.actual(o.ID)
		if other, twice := sp.wanted[actual]; twice {
			return spelling{}, fmt.Errorf("%s: %s is the same object as the one at %s; keep one of them", o.Origin, actual, other)
		}
		sp.wanted[actual] = o.Origin
		if actual != o.ID {
			sp.written[actual] = o.ID
		}
	}
	return sp, nil
}

// readComing learns the scopes of the kinds that are wanted and only served once a CRD
// of the commit is applied.
func (sp *spelling) readComing(want render.Desired) error {
	missing := map[schema.GroupKind]bool{}
	for _, o := range want.Objects {
		if gk := groupKind(o.ID); sp.surface.kinds[gk].Resource == "" {
			missing[gk] = true
		}
	}
	for _, o := range want.Objects {
		if !o.ID.IsCRD() || !missing[o.Serves] {
			continue
		}
		content, err := o.Content()
		if err != nil {
			return err
		}
		spec, _ := content.Object["spec"].(map[string]any)
		sp.coming[o.Serves] = spec["scope"] == "Namespaced"
	}
	return nil
}

// actual is the identity in the cluster.
func (sp spelling) actual(id manifest.ID) manifest.ID {
	namespaced, known := sp.coming[groupKind(id)]
	if k, served := sp.surface.kinds[groupKind(id)]; served {
		namespaced, known = k.Namespaced, true
	}
	switch {
	case !known:
	case namespaced && id.Namespace == "":
		id.Namespace = sp.defaultNamespace
	case !namespaced:
		id.Namespace = ""
	}
	return id
}

// ofCommit is the identity as the commit writes it.
func (sp spelling) ofCommit(actual manifest.ID) manifest.ID {
	if id, differs := sp.written[actual]; differs {
		return id
	}
	return actual
}

// asCommit is an inventory in the commit's spelling, asCluster in the cluster's.
func (sp spelling) asCommit(inv inventory.Inventory) inventory.Inventory {
	return respelled(inv, func(id manifest.ID) manifest.ID { return sp.ofCommit(sp.actual(id)) })
}

func (sp spelling) asCluster(inv inventory.Inventory) inventory.Inventory {
	return respelled(inv, sp.actual)
}

func respelled(inv inventory.Inventory, spell func(manifest.ID) manifest.ID) inventory.Inventory {
	entries := make(map[manifest.ID]inventory.Entry, len(inv.Entries))
	for id, e := range inv.Entries {
		to := spell(id)
		if have, twice := entries[to]; twice && have.UID != "" {
			continue // the other spelling of an intent
		}
		entries[to] = e
	}
	inv.Entries = entries
	return inv
}

package cluster

import (
	"fmt"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A spelling translates between the identity of an object in the commit and in the cluster. They differ for a namespaced object
// without a namespace, and for a cluster-scoped object with one. Plans use the commit's spelling; the stored inventory and all
// requests use the cluster's. Therefore, adding the namespace to a document later changes nothing.
type spelling struct {
	surface          *surface
	defaultNamespace string
	coming           map[schema.GroupKind]bool       // whether the kinds that the commit's CRDs will serve are namespaced
	written          map[manifest.ID]manifest.ID     // the commit's spelling, by the cluster's, if they differ
	wanted           map[manifest.ID]manifest.Origin // by ID in the cluster's spelling
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

// readComing reads the scopes of the wanted kinds that are only served once a CRD of the commit is applied.
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

// actual returns the ID in the cluster's spelling.
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

// ofCommit returns the ID in the commit's spelling.
func (sp spelling) ofCommit(actual manifest.ID) manifest.ID {
	if id, differs := sp.written[actual]; differs {
		return id
	}
	return actual
}

// asCommit returns an inventory in the commit's spelling.
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
			continue // an intent that was recorded in the other spelling
		}
		entries[to] = e
	}
	inv.Entries = entries
	return inv
}

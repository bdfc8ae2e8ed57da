package api

import (
	"fmt"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Spelling translates between the identity of an object in the commit and in the cluster. They differ for a namespaced object
// without a namespace, and for a cluster-scoped object with one. Plans use the commit's spelling; the stored inventory and all
// requests use the cluster's. Therefore, adding the namespace to a document later changes nothing.
type Spelling struct {
	Surface          *Surface
	defaultNamespace string
	coming           map[schema.GroupKind]bool       // whether the kinds that the commit's CRDs will serve are namespaced
	Written          map[manifest.ID]manifest.ID     // the commit's spelling, by the cluster's, if they differ
	wanted           map[manifest.ID]manifest.Origin // by ID in the cluster's spelling
}

// SpellingOf returns the spelling for a commit.
func SpellingOf(want render.Desired, s *Surface, defaultNamespace string) (Spelling, error) {
	sp := Spelling{
		Surface:          s,
		defaultNamespace: defaultNamespace,
		coming:           map[schema.GroupKind]bool{},
		Written:          map[manifest.ID]manifest.ID{},
		wanted:           make(map[manifest.ID]manifest.Origin, len(want.Objects)),
	}
	if err := sp.readComing(want); err != nil {
		return Spelling{}, err
	}
	for _, o := range want.Objects {
		actual := sp.Actual(o.ID)
		if other, twice := sp.wanted[actual]; twice {
			return Spelling{}, fmt.Errorf("%s: %s is the same object as the one at %s; keep one of them", o.Origin, actual, other)
		}
		sp.wanted[actual] = o.Origin
		if actual != o.ID {
			sp.Written[actual] = o.ID
		}
	}
	return sp, nil
}

// readComing reads the scopes of the wanted kinds that are only served once a CRD of the commit is applied.
func (sp *Spelling) readComing(want render.Desired) error {
	missing := map[schema.GroupKind]bool{}
	for _, o := range want.Objects {
		if gk := GroupKind(o.ID); sp.Surface.Kinds[gk].Resource == "" {
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

// Actual returns the ID in the cluster's spelling.
func (sp Spelling) Actual(id manifest.ID) manifest.ID {
	namespaced, known := sp.coming[GroupKind(id)]
	if k, served := sp.Surface.Kinds[GroupKind(id)]; served {
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

// Actual returns the ID in the cluster's spelling, for an object of a commit whose CRDs are not known.
func (c *Client) Actual(id manifest.ID) manifest.ID {
	return Spelling{Surface: c.Surface, defaultNamespace: c.DefaultNamespace}.Actual(id)
}

// OfCommit returns the ID in the commit's spelling.
func (sp Spelling) OfCommit(actual manifest.ID) manifest.ID {
	if id, differs := sp.Written[actual]; differs {
		return id
	}
	return actual
}

// AsCommit returns an inventory in the commit's spelling.
func (sp Spelling) AsCommit(inv inventory.Inventory) inventory.Inventory {
	return respelled(inv, func(id manifest.ID) manifest.ID { return sp.OfCommit(sp.Actual(id)) })
}

// AsCluster returns an inventory in the cluster's spelling.
func (sp Spelling) AsCluster(inv inventory.Inventory) inventory.Inventory {
	return respelled(inv, sp.Actual)
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

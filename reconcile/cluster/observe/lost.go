package observe

import (
	"context"
	"maps"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// regained returns objects, and those that an inventory has lost. It adds these to the inventory, and to ids.
func (c *Reader) regained(ctx context.Context, inv *inventory.Inventory, ids map[manifest.ID]bool, objects []*metav1.PartialObjectMetadata) ([]*metav1.PartialObjectMetadata, error) {
	if !inv.Lost {
		lost, err := c.hasLost(ctx, *inv, ids, objects)
		if err != nil || !lost {
			return objects, err
		}
		inv.Lost, inv.Rebuilt = true, true
	}
	marked, err := c.Regain(ctx, inv)
	if err != nil {
		return nil, err
	}
	for _, o := range marked {
		if _, owned := inv.Entries[api.IDOf(o)]; owned {
			ids[api.IDOf(o)] = true
		}
	}
	return append(objects, marked...), nil
}

// hasLost reports whether an inventory lacks an object that Headgate applied for its sync. Headgate stores each object in the inventory before
// the write, and until the object is gone, so another client has removed the entry, or has restored an older inventory. Lists and the inventory
// were read at different times, so hasLost reads both again.
func (c *Reader) hasLost(ctx context.Context, inv inventory.Inventory, ids map[manifest.ID]bool, objects []*metav1.PartialObjectMetadata) (bool, error) {
	unlisted := c.unlisted(inv, ids, objects)
	if len(unlisted) == 0 {
		return false, nil
	}
	now, err := c.Another(c.Sync).Inventory(ctx)
	if err != nil {
		return false, err
	}
	if now.ResourceVersion != inv.ResourceVersion && !maps.Equal(now.Entries, inv.Entries) {
		return false, nil // the plan is old: Apply refuses it, and the next one is made from this inventory
	}
	for _, o := range unlisted {
		id := api.IDOf(o)
		live, err := c.named(ctx, api.GroupKind(id), []manifest.ID{id})
		switch {
		case api.IsRBAC(err):
			return true, nil // the list is all that may be read
		case err != nil:
			return false, err
		case len(c.unlisted(inv, ids, live)) > 0:
			return true, nil
		}
	}
	return false, nil
}

// unlisted returns the objects that Headgate applied for the sync and that are not in an inventory. An object may be served by two groups, so its UID
// counts, too. An object that is being deleted is left out: the inventory may have forgotten it.
func (c *Reader) unlisted(inv inventory.Inventory, ids map[manifest.ID]bool, objects []*metav1.PartialObjectMetadata) []*metav1.PartialObjectMetadata {
	known := make(map[types.UID]bool, len(inv.Entries))
	for _, e := range inv.Entries {
		known[e.UID] = true
	}
	var all []*metav1.PartialObjectMetadata
	for _, o := range objects {
		if !ids[api.IDOf(o)] && !known[o.UID] && o.DeletionTimestamp == nil && inventory.AppliedByUs(o, c.Sync) {
			all = append(all, o)
		}
	}
	return all
}

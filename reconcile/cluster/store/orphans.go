package store

import (
	"context"
	"maps"
	"slices"
	"sync"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/inventory"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	kindOfSyncs       = schema.GroupKind{Group: "headgate.dev", Kind: "Sync"}
	kindOfInventories = schema.GroupKind{Kind: "ConfigMap"}
)

// Orphaned returns the objects of all served kinds whose last sync is gone, sorted. It reads the syncs last, so that an object of a sync
// that is new is no orphan.
func (c *Store) Orphaned(ctx context.Context) (inventory.Orphans, error) {
	all := inventory.Orphans{Items: []inventory.Orphan{}}
	var err error
	if c.Surface, err = c.Discover(ctx); err != nil {
		return all, err
	}
	marked, unread, err := c.marked(ctx)
	if err != nil {
		return all, err
	}
	known, err := c.known(ctx)
	if err != nil {
		return all, err
	}
	for _, o := range marked {
		if orphan, is := known.Orphan(api.IDOf(o), o); is {
			all.Items = append(all.Items, orphan)
		}
	}
	slices.SortFunc(all.Items, func(a, b inventory.Orphan) int { return a.Object.Compare(b.Object) })
	all.Unread = slices.Sorted(maps.Keys(c.Surface.Broken))
	all.Unread = append(all.Unread, unread...)
	return all, nil
}

// marked returns the objects with the mark of any sync, and the kinds that may not be listed.
func (c *Store) marked(ctx context.Context) (all []*metav1.PartialObjectMetadata, unread []string, err error) {
	var mu sync.Mutex
	found, err := api.InParallel(ctx, c.Concurrency, c.Surface.Listable, func(ctx context.Context, gk schema.GroupKind) ([]*metav1.PartialObjectMetadata, error) {
		objects, err := c.List(ctx, c.Surface, gk, "", inventory.SyncLabel)
		switch {
		case apierrors.IsForbidden(err):
			mu.Lock()
			defer mu.Unlock()
			unread = append(unread, api.ResourceName(c.Surface, gk))
			return nil, nil
		case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err): // the kind is not served any more
			return nil, nil
		}
		return objects, c.Explain(err, "list", api.ResourceName(c.Surface, gk))
	})
	slices.Sort(unread)
	return slices.Concat(found...), unread, err
}

// known returns the syncs that the cluster knows. Without the CRD of a Sync, there are no Sync objects. An inventory whose record cannot be
// read may be that of a sync that lives.
func (c *Store) known(ctx context.Context) (inventory.Known, error) {
	known := inventory.Known{Sources: map[string]inventory.SourceRecord{}, Objects: map[string]types.UID{}}
	inventories, err := c.List(ctx, c.Surface, kindOfInventories, "", inventoryLabel)
	if err != nil {
		return known, c.Explain(err, "list", "the inventories, which are ConfigMaps of all namespaces")
	}
	for _, m := range inventories {
		if s, is := syncOf(m); is {
			record, _ := recordOf(m)
			known.Sources[s.Key()] = record.Source
		}
	}
	objects, err := c.Served(ctx, kindOfSyncs)
	if err != nil && !apierrors.IsNotFound(err) { // the CRD may go at this moment
		return known, c.Explain(err, "list", api.ResourceName(c.Surface, kindOfSyncs))
	}
	for _, o := range objects {
		known.Objects[inventory.Sync{Namespace: o.Namespace, Name: o.Name}.Key()] = o.UID
	}
	return known, nil
}

// Package store keeps what one sync remembers in its cluster: the inventory with its history, the key for the digests of Secrets, and the
// lease, without which nothing is written. It neither reads nor writes other objects, except to rebuild a lost inventory from their marks.
package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	inventoryLabel = render.InventoryLabel
	// ownerAnnotation records the owner of CRDs.
	ownerAnnotation = "headgate.dev/crd-owner"
	// recordAnnotation holds everything in the inventory besides its entries, as an inventory.Record.
	recordAnnotation = "headgate.dev/inventory"
	// mostBytes leaves room below the 1 MiB limit of a ConfigMap, also for the managed fields, which repeat every key. Larger
	// inventories use siblings.
	mostBytes = 700 << 10
)

// A Store reads and writes what one sync remembers in its cluster: the inventory and its history, the key for digests, and the lease. It
// may be used by one pass at a time.
type Store struct {
	*api.Client

	holder        string        // identity of this process in the lease
	leaseDuration time.Duration // how long after its last renewal a writer counts as dead
	watched       *watchedLease // the lease as the last passes saw it; nil before the first

	key      digestKey
	owned    *inventory.Inventory         // the inventory that the pass uses, in the cluster's spelling; nil before it is read
	stored   *corev1.ConfigMap            // the inventory as it was last read or written
	siblings map[string]map[string]string // the values of siblings of stored, by name
}

// New returns the Store of a Client's sync. A lease lasts for 60 seconds if no duration is given.
func New(client *api.Client, leaseDuration time.Duration, term Term) *Store {
	if leaseDuration <= 0 {
		leaseDuration = 60 * time.Second
	}
	return &Store{Client: client, holder: term.holder(identity()), leaseDuration: leaseDuration}
}

// Use sets the inventory that the pass uses, in the cluster's spelling.
func (c *Store) Use(inv inventory.Inventory) { c.owned = &inv }

// remember keeps the inventory for the next write, without its field managers: an update needs none, and they are the larger part of a small
// inventory, of each sync of a process.
func (c *Store) remember(m *corev1.ConfigMap) {
	m.ManagedFields = nil
	c.stored = m
}

// Inventory returns the sync's inventory. A missing one is not an error: its ResourceVersion is empty.
func (c *Store) Inventory(ctx context.Context) (inventory.Inventory, error) {
	inv := inventory.Inventory{Sync: c.Sync, Entries: map[manifest.ID]inventory.Entry{}}
	name := api.InventoryName(c.Sync)
	where := "the inventory ConfigMap " + c.Sync.Namespace + "/" + name
	for {
		m, err := c.Core.ConfigMaps(c.Sync.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			c.stored, c.siblings = nil, nil
			return inv, nil
		}
		if err != nil {
			return inv, c.Explain(err, "get", where)
		}
		if id := m.Labels[inventoryLabel]; id != "" && id != c.Sync.Key() {
			return inv, fmt.Errorf("%s belongs to the inventory %q, not to %q; rename the sync", where, id, c.Sync.Key())
		}
		if by := m.Labels[inventory.SyncLabel]; by != "" && m.Labels[inventoryLabel] == "" {
			return inv, fmt.Errorf("%s is an object of the sync %q, not an inventory; rename the sync %s, or remove the ConfigMap from that repository", where, by, c.Sync)
		}
		if inv.Record, err = recordOf(m); err != nil { // first, because the record shows whether the rest can be read
			return inv, fmt.Errorf("%s: %w", where, err)
		}
		held, err := c.ContentOf(ctx, m, c.siblings)
		if err != nil {
			return inv, err
		}
		if len(held.Entries) < inv.Record.Entries { // another client removed some
			held.Whole, held.lost = false, true
		}
		if !held.Whole && m.ResourceVersion != inv.ResourceVersion { // another process may have stored it again
			inv.ResourceVersion = m.ResourceVersion
			continue
		}
		if inv.Grants, err = c.grants(ctx, m); err != nil {
			return inv, fmt.Errorf("%s: %w", where, err)
		}
		c.remember(m)
		c.siblings = held.Siblings
		inv.Entries, inv.Rebuilt, inv.Lost = held.Entries, !held.Whole, held.lost
		if inv.Rebuilt {
			inv.Entries = rebuiltEntries(inv.Entries)
		}
		inv.ResourceVersion = m.ResourceVersion
		inv.Owner = render.Owner(m.Annotations[ownerAnnotation])
		inv.History, inv.Held, inv.Undone = historyOf(m), holdsOf(m), annotated[inventory.Undone](m, undoneAnnotation)
		inv.Failures = annotated[inventory.Failures](m, failuresAnnotation)
		return inv, nil
	}
}

// Reread reads the inventory again. It returns plan.ErrMoved unless it still is the one with the version that a plan was made from. If that
// was rebuilt, it is rebuilt again.
func (c *Store) Reread(ctx context.Context, version string, rebuilt bool) (inventory.Inventory, error) {
	planned := c.stored
	have, err := c.Inventory(ctx)
	if err != nil {
		return have, err
	}
	touched := planned != nil && c.stored != nil && planned.ResourceVersion == version && sameInventory(planned, c.stored)
	if have.ResourceVersion != version && !touched {
		return have, reason.ErrMoved
	}
	lost := have.Lost || c.owned != nil && c.owned.Lost
	if rebuilt && (have.ResourceVersion == "" || lost) {
		return c.adoptRebuilt(ctx, c.Surface, have)
	}
	return have, nil
}

// Syncs returns the syncs that have an inventory in the cluster, sorted by namespace and name. It leaves out inventories of other
// tools in the same format.
func (c *Store) Syncs(ctx context.Context) ([]inventory.Sync, error) {
	list, err := c.Core.ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: inventoryLabel})
	if err != nil {
		return nil, c.Explain(err, "list", "the inventories, which are ConfigMaps of all namespaces")
	}
	var syncs []inventory.Sync
	for i := range list.Items {
		if s, is := syncOf(&list.Items[i]); is {
			syncs = append(syncs, s)
		}
	}
	slices.SortFunc(syncs, inventory.Sync.Compare)
	return syncs, nil
}

// syncOf returns the sync of an inventory, and false for the inventory of another tool.
func syncOf(m metav1.Object) (inventory.Sync, bool) {
	name, ours := strings.CutPrefix(m.GetName(), render.BookPrefix)
	s := inventory.Sync{Namespace: m.GetNamespace(), Name: name}
	return s, ours && m.GetLabels()[inventoryLabel] == s.Key()
}

// rebuiltEntries returns the entries of an inventory that has lost values. An entry without a value no longer shows which object
// was applied or which actions are allowed.
func rebuiltEntries(entries map[manifest.ID]inventory.Entry) map[manifest.ID]inventory.Entry {
	all := maps.Clone(entries)
	for id, e := range all {
		if e == (inventory.Entry{}) {
			all[id] = inventory.Entry{Rebuilt: true}
		}
	}
	return all
}

// Holdings returns the inventory in the cluster's spelling: the one that the pass uses or, if the pass has read none, the stored
// one. It changes nothing in c, because questions are answered in parallel.
func (c *Store) Holdings(ctx context.Context) (inventory.Inventory, error) {
	if c.owned != nil {
		return *c.owned, nil
	}
	return c.Another(c.Sync).Inventory(ctx)
}

// Owned returns the objects in the inventory of another sync. It returns none without the right to read it.
func (c *Store) Owned(ctx context.Context, of inventory.Sync) ([]manifest.ID, error) {
	inv, err := c.Another(of).Inventory(ctx)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return slices.Collect(maps.Keys(inv.Entries)), err
}

// Another returns a reader for the inventory of a sync in this cluster. Reading it does not change c, which a pass may be using.
func (c *Store) Another(of inventory.Sync) *Store { return &Store{Client: c.Of(of)} }

// recordOf returns the record of a stored inventory. A format that this binary does not know is an error, whatever else the record
// holds.
func recordOf(m metav1.Object) (inventory.Record, error) {
	stored := m.GetAnnotations()[recordAnnotation]
	if stored == "" {
		return inventory.Record{}, nil
	}
	var by struct {
		Format int    `json:"format"`
		Writer string `json:"writer"`
	}
	if err := json.Unmarshal([]byte(stored), &by); err != nil {
		return inventory.Record{}, fmt.Errorf("the annotation %s cannot be read: %w", recordAnnotation, err)
	}
	if by.Format > inventory.Format {
		return inventory.Record{}, fmt.Errorf("the inventory has format %d, and this version of Headgate (%s) reads formats up to %d; use the version that wrote it (%s), or a newer one",
			by.Format, api.Version(), inventory.Format, cmp.Or(by.Writer, "not recorded"))
	}
	var r inventory.Record
	if err := json.Unmarshal([]byte(stored), &r); err != nil {
		return inventory.Record{}, fmt.Errorf("the annotation %s cannot be read: %w", recordAnnotation, err)
	}
	return r, nil
}

// Save creates the inventory if its ResourceVersion is empty, and otherwise replaces the stored one with this ResourceVersion. It
// returns the new ResourceVersion, or plan.ErrMoved if there was another writer in between.
func (c *Store) Save(ctx context.Context, inv inventory.Inventory) (string, error) {
	grants, err := c.proven(ctx, inv.Grants)
	if err != nil {
		return "", err
	}
	m, l, err := configMap(inv, grants)
	if err != nil {
		return "", err
	}
	if inv.ResourceVersion == "" {
		c.stored = nil
	}
	if err := c.storeSiblings(ctx, l); err != nil {
		return "", err
	}
	swept := len(l.siblings) > 0 || len(allSiblingsOf(c.stored)) > 0
	next := m
	if c.stored != nil && c.stored.ResourceVersion == inv.ResourceVersion {
		m = keeping(c.stored, next)
	}
	var stored *corev1.ConfigMap
	verb := "update"
	if inv.ResourceVersion == "" {
		verb = "create"
	}
	write := func() error {
		switch {
		case verb == "create":
			stored, err = c.Core.ConfigMaps(m.Namespace).Create(ctx, m, metav1.CreateOptions{FieldManager: inventory.Manager})
		case equality.Semantic.DeepEqual(m, c.stored): // a process that was killed stored it
			stored, err = c.stored, nil
		default:
			stored, err = c.Core.ConfigMaps(m.Namespace).Update(ctx, m, metav1.UpdateOptions{FieldManager: inventory.Manager})
		}
		return err
	}
	err = api.Retry(ctx, write)
	for again := 0; again < mostTouched && apierrors.IsConflict(err) && c.onlyTouched(ctx, inv.ResourceVersion); again++ {
		m = keeping(c.stored, next)
		inv.ResourceVersion = m.ResourceVersion
		err = api.Retry(ctx, write)
	}
	if apierrors.IsConflict(err) {
		if now := c.storedAnyway(ctx, m); now != nil {
			stored, err = now, nil
		}
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return "", fmt.Errorf("%w: %w", reason.ErrMoved, err)
	case err != nil && m.Immutable != nil && *m.Immutable:
		return "", fmt.Errorf("the inventory ConfigMap %s/%s is immutable, so Headgate cannot record what it applies, and applies nothing; replace it with a copy without 'immutable' "+
			"(kubectl get -o yaml, kubectl replace --force -f), or delete it: the next pass rebuilds it from the marks on objects", m.Namespace, m.Name)
	case err != nil:
		return "", c.Explain(err, verb, "the inventory ConfigMap "+m.Namespace+"/"+m.Name)
	}
	c.remember(stored)
	c.siblings = l.siblings
	if swept {
		c.sweep(ctx, l)
	}
	return stored.ResourceVersion, nil
}

// mostTouched is the maximum number of repeated writes of the inventory if another process keeps changing other parts of its
// ConfigMap.
const mostTouched = 10

// storedAnyway returns the ConfigMap if it holds the inventory although the answer to the update was lost; otherwise nil.
func (c *Store) storedAnyway(ctx context.Context, m *corev1.ConfigMap) *corev1.ConfigMap {
	now, err := c.Core.ConfigMaps(m.Namespace).Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil || !sameInventory(m, now) {
		return nil
	}
	return now
}

// onlyTouched reports whether the entries of the inventory are unchanged since a resourceVersion that c read or wrote last,
// although its ConfigMap has a newer one: a process recorded its history, or a user set a label. If so, it updates c.stored.
func (c *Store) onlyTouched(ctx context.Context, version string) bool {
	was := c.stored
	if was == nil || was.ResourceVersion != version {
		return false
	}
	var now *corev1.ConfigMap
	err := api.Retry(ctx, func() (err error) {
		now, err = c.Core.ConfigMaps(was.Namespace).Get(ctx, was.Name, metav1.GetOptions{})
		return err
	})
	if err != nil || !sameInventory(was, now) {
		return false
	}
	c.remember(now)
	return true
}

// sameInventory reports whether two versions of the ConfigMap hold the same inventory. The history does not count. Siblings are
// named by their content, so comparing the names is enough.
func sameInventory(a, b *corev1.ConfigMap) bool {
	for _, key := range []string{ownerAnnotation, recordAnnotation, grantsAnnotation, siblingsAnnotation, apartAnnotation} {
		if a.Annotations[key] != b.Annotations[key] {
			return false
		}
	}
	return a.UID == b.UID && a.Labels[inventoryLabel] == b.Labels[inventoryLabel] && b.DeletionTimestamp == nil && maps.Equal(a.Data, b.Data)
}

// keeping returns m with the other metadata of the stored ConfigMap, because an Update replaces all of it, and labels and owner
// references may belong to other tools.
func keeping(stored, m *corev1.ConfigMap) *corev1.ConfigMap {
	kept := stored.DeepCopy()
	kept.Data = m.Data
	kept.Labels = labels.Merge(kept.Labels, m.Labels)
	for _, ours := range []string{siblingsAnnotation, apartAnnotation, grantsAnnotation} {
		delete(kept.Annotations, ours)
	}
	kept.Annotations = labels.Merge(kept.Annotations, m.Annotations)
	return kept
}

func configMap(inv inventory.Inventory, grants withFormat) (*corev1.ConfigMap, layout, error) {
	data, err := inv.Data()
	if err != nil {
		return nil, layout{}, err
	}
	apart, err := inv.Apart()
	if err != nil {
		return nil, layout{}, err
	}
	l, err := layoutOf(inv.Sync, data, apart)
	if err != nil {
		return nil, l, err
	}
	m := &corev1.ConfigMap{Data: l.data}
	m.Namespace, m.Name = inv.Sync.Namespace, api.InventoryName(inv.Sync)
	m.ResourceVersion = inv.ResourceVersion
	m.Labels = map[string]string{inventoryLabel: inv.Sync.Key()}
	m.Annotations = map[string]string{}
	if inv.Owner != "" {
		m.Annotations[ownerAnnotation] = string(inv.Owner)
	}
	inv.Record.Format, inv.Record.Writer, inv.Record.Entries = inventory.Format, api.Version(), len(inv.Entries)
	annotate := func(name string, value any) error {
		text, err := json.Marshal(value)
		m.Annotations[name] = string(text)
		return err
	}
	if err := annotate(recordAnnotation, inv.Record); err != nil {
		return nil, l, err
	}
	if err := annotate(grantsAnnotation, grants); err != nil {
		return nil, l, err
	}
	for name, siblings := range map[string][]string{siblingsAnnotation: l.values, apartAnnotation: l.apart} {
		if len(siblings) > 0 {
			m.Annotations[name] = strings.Join(siblings, ",")
		}
	}
	return m, l, nil
}

// Rebuilt returns an inventory of the objects that carry our marks and were applied by our field manager, over all served kinds. It
// replaces a lost inventory. It also returns all objects that carry our marks: those that are not in the inventory are copies, or
// were restored without managed fields.
func (c *Store) Rebuilt(ctx context.Context, s *api.Surface) (inventory.Inventory, []*metav1.PartialObjectMetadata, error) {
	inv := inventory.Inventory{Sync: c.Sync, Entries: map[manifest.ID]inventory.Entry{}}
	found, err := api.InParallel(ctx, c.Concurrency, s.Listable, func(ctx context.Context, gk schema.GroupKind) ([]*metav1.PartialObjectMetadata, error) {
		objects, err := c.List(ctx, s, gk, "", c.Ours())
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			return nil, nil // without the right to read a kind, we cannot have applied its objects
		}
		return objects, err
	})
	if err != nil {
		return inv, nil, err
	}
	var marked []*metav1.PartialObjectMetadata
	for _, objects := range found {
		for _, o := range objects {
			if !inventory.Ours(o, c.Sync) {
				continue
			}
			marked = append(marked, o)
			if inventory.AppliedByUs(o, c.Sync) {
				inv.Entries[api.IDOf(o)] = inventory.Entry{UID: o.UID, Rebuilt: true, Strategy: "Apply", Actuation: "Succeeded", Reconcile: "Unknown"}
				inv.Rebuilt = true
			}
		}
	}
	return inv, marked, nil
}

// Regain adds the objects with our marks to an inventory that has lost entries.
func (c *Store) Regain(ctx context.Context, inv *inventory.Inventory) ([]*metav1.PartialObjectMetadata, error) {
	again, marked, err := c.Rebuilt(ctx, c.Surface)
	maps.Copy(again.Entries, inv.Entries)
	inv.Entries = again.Entries
	return marked, err
}

// adoptRebuilt restores the entries that a plan from a rebuilt inventory used.
func (c *Store) adoptRebuilt(ctx context.Context, s *api.Surface, inv inventory.Inventory) (inventory.Inventory, error) {
	again, _, err := c.Rebuilt(ctx, s)
	if err != nil {
		return inv, err
	}
	maps.Copy(again.Entries, inv.Entries)
	inv.Entries = again.Entries
	return inv, nil
}

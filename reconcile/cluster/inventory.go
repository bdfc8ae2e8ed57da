package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	inventoryLabel = render.InventoryLabel
	// ownerAnnotation records the owner of CRDs.
	ownerAnnotation = "headgate.dev/crd-owner"
	// recordAnnotation holds everything in the inventory besides its entries, as an inventory.Record.
	recordAnnotation = "headgate.dev/inventory"
	// grantsAnnotation records the approvals that were used.
	grantsAnnotation = "headgate.dev/approvals"
	// mostBytes leaves room below the 1 MiB limit of a ConfigMap, also for the managed fields, which repeat every key. Larger
	// inventories use siblings.
	mostBytes = 700 << 10
)

// inventoryName returns the name of the inventory and of the lease of a sync.
func inventoryName(s inventory.Sync) string { return render.BookPrefix + s.Name }

// Inventory returns the sync's inventory. A missing one is not an error: its ResourceVersion is empty.
func (c *Cluster) Inventory(ctx context.Context) (inventory.Inventory, error) {
	inv := inventory.Inventory{Sync: c.sync, Entries: map[manifest.ID]inventory.Entry{}}
	name := inventoryName(c.sync)
	where := "the inventory ConfigMap " + c.sync.Namespace + "/" + name
	for {
		m, err := c.core.ConfigMaps(c.sync.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			c.stored, c.siblings = nil, nil
			return inv, nil
		}
		if err != nil {
			return inv, c.explain(err, "get", where)
		}
		if id := m.Labels[inventoryLabel]; id != "" && id != c.sync.Key() {
			return inv, fmt.Errorf("%s belongs to the inventory %q, not to %q; rename the sync", where, id, c.sync.Key())
		}
		if by := m.Labels[inventory.SyncLabel]; by != "" && m.Labels[inventoryLabel] == "" {
			return inv, fmt.Errorf("%s is an object of the sync %q, not an inventory; rename the sync %s, or remove the ConfigMap from that repository", where, by, c.sync)
		}
		if inv.Record, err = recordOf(m); err != nil { // first, because the record shows whether the rest can be read
			return inv, fmt.Errorf("%s: %w", where, err)
		}
		held, err := c.contentOf(ctx, m, c.siblings)
		if err != nil {
			return inv, err
		}
		if len(held.entries) < inv.Record.Entries { // another client removed some
			held.whole, held.lost = false, true
		}
		if !held.whole && m.ResourceVersion != inv.ResourceVersion { // another process may have stored it again
			inv.ResourceVersion = m.ResourceVersion
			continue
		}
		if inv.Grants, err = grantsOf(m); err != nil {
			return inv, fmt.Errorf("%s: %w", where, err)
		}
		c.stored, c.siblings = m, held.siblings
		inv.Entries, inv.Rebuilt, inv.Lost = held.entries, !held.whole, held.lost
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

// Syncs returns the syncs that have an inventory in the cluster, sorted by namespace and name. It leaves out inventories of other
// tools in the same format.
func (c *Cluster) Syncs(ctx context.Context) ([]inventory.Sync, error) {
	list, err := c.core.ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: inventoryLabel})
	if err != nil {
		return nil, c.explain(err, "list", "the inventories, which are ConfigMaps of all namespaces")
	}
	var syncs []inventory.Sync
	for _, m := range list.Items {
		name, ours := strings.CutPrefix(m.Name, render.BookPrefix)
		s := inventory.Sync{Namespace: m.Namespace, Name: name}
		if ours && m.Labels[inventoryLabel] == s.Key() {
			syncs = append(syncs, s)
		}
	}
	slices.SortFunc(syncs, func(a, b inventory.Sync) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return syncs, nil
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

// holdings returns the inventory in the cluster's spelling: the one that the pass uses or, if the pass has read none, the stored
// one. It changes nothing in c, because questions are answered in parallel.
func (c *Cluster) holdings(ctx context.Context) (inventory.Inventory, error) {
	if c.owned != nil {
		return *c.owned, nil
	}
	return c.another(c.sync).Inventory(ctx)
}

// Owned returns the objects in the inventory of another sync. It returns none without the right to read it.
func (c *Cluster) Owned(ctx context.Context, of inventory.Sync) ([]manifest.ID, error) {
	inv, err := c.another(of).Inventory(ctx)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return slices.Collect(maps.Keys(inv.Entries)), err
}

// another returns a reader for the inventory of a sync in this cluster. Reading it does not change c, which a pass may be using.
func (c *Cluster) another(of inventory.Sync) *Cluster {
	return &Cluster{sync: of, core: c.core, config: c.config}
}

// recordOf returns the record of a stored inventory. A format that this binary does not know is an error, whatever else the record
// holds.
func recordOf(m *corev1.ConfigMap) (inventory.Record, error) {
	stored := m.Annotations[recordAnnotation]
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
			by.Format, version(), inventory.Format, cmp.Or(by.Writer, "not recorded"))
	}
	var r inventory.Record
	if err := json.Unmarshal([]byte(stored), &r); err != nil {
		return inventory.Record{}, fmt.Errorf("the annotation %s cannot be read: %w", recordAnnotation, err)
	}
	return r, nil
}

// withFormat is how grants are stored. A binary without inventory.Record expects a list there, and refuses the inventory if it finds
// something else.
type withFormat struct {
	Format int               `json:"format"`
	Grants []inventory.Grant `json:"grants,omitempty"`
}

// grantsOf returns the grants of a stored inventory.
func grantsOf(m *corev1.ConfigMap) ([]inventory.Grant, error) {
	stored := m.Annotations[grantsAnnotation]
	var grants []inventory.Grant
	var err error
	switch {
	case stored == "":
		return nil, nil
	case strings.HasPrefix(strings.TrimSpace(stored), "{"):
		var with withFormat
		err = json.Unmarshal([]byte(stored), &with)
		grants = with.Grants
	default:
		err = json.Unmarshal([]byte(stored), &grants)
	}
	if err != nil {
		return nil, fmt.Errorf("the annotation %s cannot be read: %w", grantsAnnotation, err)
	}
	return grants, nil
}

// left returns the objects with the mark of another sync whose inventory does not list them any more. It leaves out objects whose
// inventory cannot be read.
func (c *Cluster) left(ctx context.Context, seen facts.Live) ([]manifest.ID, error) {
	if c.options.Terms.Adoption != facts.AdoptAll {
		return nil, nil
	}
	of := map[inventory.Sync][]manifest.ID{}
	for id, o := range seen.Objects {
		if other, ok := inventory.SyncOf(ownership.Of(o, c.sync, "").Sync); ok {
			of[other] = append(of[other], id)
		}
	}
	var left []manifest.ID
	for other, ids := range of {
		inv, err := c.another(other).Inventory(ctx)
		switch {
		case apierrors.IsForbidden(err):
			continue
		case err != nil:
			return nil, err
		}
		for _, id := range ids {
			if _, holds := inv.Entries[id]; !holds {
				left = append(left, id)
			}
		}
	}
	return left, nil
}

// store creates the inventory if its ResourceVersion is empty, and otherwise replaces the stored one with this ResourceVersion. It
// returns the new ResourceVersion, or plan.ErrMoved if there was another writer in between.
func (c *Cluster) store(ctx context.Context, inv inventory.Inventory) (string, error) {
	m, l, err := configMap(inv)
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
		if verb == "create" {
			stored, err = c.core.ConfigMaps(m.Namespace).Create(ctx, m, metav1.CreateOptions{FieldManager: inventory.Manager})
		} else {
			stored, err = c.core.ConfigMaps(m.Namespace).Update(ctx, m, metav1.UpdateOptions{FieldManager: inventory.Manager})
		}
		return err
	}
	err = retry(ctx, write)
	for again := 0; again < mostTouched && apierrors.IsConflict(err) && c.onlyTouched(ctx, inv.ResourceVersion); again++ {
		m = keeping(c.stored, next)
		inv.ResourceVersion = m.ResourceVersion
		err = retry(ctx, write)
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
		return "", c.explain(err, verb, "the inventory ConfigMap "+m.Namespace+"/"+m.Name)
	}
	c.stored, c.siblings = stored, l.siblings
	if swept {
		c.sweep(ctx, l)
	}
	return stored.ResourceVersion, nil
}

// mostTouched is the maximum number of repeated writes of the inventory if another process keeps changing other parts of its
// ConfigMap.
const mostTouched = 10

// storedAnyway returns the ConfigMap if it holds the inventory although the answer to the update was lost; otherwise nil.
func (c *Cluster) storedAnyway(ctx context.Context, m *corev1.ConfigMap) *corev1.ConfigMap {
	now, err := c.core.ConfigMaps(m.Namespace).Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil || !sameInventory(m, now) {
		return nil
	}
	return now
}

// onlyTouched reports whether the entries of the inventory are unchanged since a resourceVersion that c read or wrote last,
// although its ConfigMap has a newer one: a process recorded its history, or a user set a label. If so, it updates c.stored.
func (c *Cluster) onlyTouched(ctx context.Context, version string) bool {
	was := c.stored
	if was == nil || was.ResourceVersion != version {
		return false
	}
	var now *corev1.ConfigMap
	err := retry(ctx, func() (err error) {
		now, err = c.core.ConfigMaps(was.Namespace).Get(ctx, was.Name, metav1.GetOptions{})
		return err
	})
	if err != nil || !sameInventory(was, now) {
		return false
	}
	c.stored = now
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

func configMap(inv inventory.Inventory) (*corev1.ConfigMap, layout, error) {
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
	m.Namespace, m.Name = inv.Sync.Namespace, inventoryName(inv.Sync)
	m.ResourceVersion = inv.ResourceVersion
	m.Labels = map[string]string{inventoryLabel: inv.Sync.Key()}
	m.Annotations = map[string]string{}
	if inv.Owner != "" {
		m.Annotations[ownerAnnotation] = string(inv.Owner)
	}
	inv.Record.Format, inv.Record.Writer, inv.Record.Entries = inventory.Format, version(), len(inv.Entries)
	annotate := func(name string, value any) error {
		text, err := json.Marshal(value)
		m.Annotations[name] = string(text)
		return err
	}
	if err := annotate(recordAnnotation, inv.Record); err != nil {
		return nil, l, err
	}
	if err := annotate(grantsAnnotation, withFormat{inventory.Format, inv.Grants}); err != nil {
		return nil, l, err
	}
	for name, siblings := range map[string][]string{siblingsAnnotation: l.values, apartAnnotation: l.apart} {
		if len(siblings) > 0 {
			m.Annotations[name] = strings.Join(siblings, ",")
		}
	}
	return m, l, nil
}

// rebuilt returns an inventory of the objects that carry our marks and were applied by our field manager, over all served kinds. It
// replaces a lost inventory. It also returns all objects that carry our marks: those that are not in the inventory are copies, or
// were restored without managed fields.
func (c *Cluster) rebuilt(ctx context.Context, s *surface) (inventory.Inventory, []*metav1.PartialObjectMetadata, error) {
	inv := inventory.Inventory{Sync: c.sync, Entries: map[manifest.ID]inventory.Entry{}}
	found, err := inParallel(ctx, c.options.Concurrency, s.listable, func(ctx context.Context, gk groupKindT) ([]*metav1.PartialObjectMetadata, error) {
		objects, err := c.list(ctx, s, gk, "", c.ours())
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
			if !inventory.Ours(o, c.sync) {
				continue
			}
			marked = append(marked, o)
			if inventory.AppliedByUs(o, c.sync) {
				inv.Entries[idOf(o)] = inventory.Entry{UID: o.UID, Rebuilt: true, Strategy: "Apply", Actuation: "Succeeded", Reconcile: "Unknown"}
				inv.Rebuilt = true
			}
		}
	}
	return inv, marked, nil
}

// regain adds the objects with our marks to an inventory that has lost entries.
func (c *Cluster) regain(ctx context.Context, inv *inventory.Inventory) ([]*metav1.PartialObjectMetadata, error) {
	again, marked, err := c.rebuilt(ctx, c.surface)
	maps.Copy(again.Entries, inv.Entries)
	inv.Entries = again.Entries
	return marked, err
}

// adoptRebuilt restores the entries that a plan from a rebuilt inventory used.
func (c *Cluster) adoptRebuilt(ctx context.Context, s *surface, inv inventory.Inventory) (inventory.Inventory, error) {
	again, _, err := c.rebuilt(ctx, s)
	if err != nil {
		return inv, err
	}
	maps.Copy(again.Entries, inv.Entries)
	inv.Entries = again.Entries
	return inv, nil
}

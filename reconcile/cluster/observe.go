package cluster

import (
	"context"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// few is the number of objects of a kind up to which they are read one by one and not with a list.
const few = 5

type groupKindT = schema.GroupKind

// Observe returns the live state of wanted and owned objects. If nothing changed, it costs a request for the inventory,
// two for discovery and one for every kind.
func (c *Cluster) Observe(ctx context.Context, want render.Desired) (facts.Observed, error) {
	inv, err := c.Inventory(ctx)
	if err != nil {
		return facts.Observed{}, err
	}
	if c.surface, err = c.discover(ctx); err != nil {
		return facts.Observed{}, err
	}
	sp, err := spellingOf(want, c.surface, c.options.DefaultNamespace)
	if err != nil {
		return facts.Observed{}, err
	}
	seen := facts.Observed{
		Ground: facts.Ground{
			Inventory: inv, // in the cluster's spelling until Found
			Kinds:     c.surface.kinds,
			Natural:   c.surface.natural(inv),
			Written:   sp.written,
			Space:     c.options.DefaultNamespace,
		},
		Live:  facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}, Trials: map[manifest.ID]facts.Trial{}},
		Given: facts.Given{Terms: c.options.Terms},
	}
	if seen.Sources, err = c.sources(ctx, seen, want, sp); err != nil {
		return facts.Observed{}, err
	}
	if seen, err = demand.Ask(seen, want); err != nil {
		return facts.Observed{}, err
	}
	if len(seen.Sources) > 0 { // references may have set names
		if sp, err = spellingOf(seen.Want, c.surface, c.options.DefaultNamespace); err != nil {
			return facts.Observed{}, err
		}
		seen.Written = sp.written
	}
	if seen.Upstream, err = c.upstream(ctx, seen.Want); err != nil {
		return facts.Observed{}, err
	}
	if seen.Key, err = c.keyFor(ctx, seen.Asked, inv); err != nil {
		return facts.Observed{}, err
	}
	if err := c.look(ctx, &seen, sp); err != nil {
		return facts.Observed{}, err
	}

	left, err := c.left(ctx, seen.Live)
	if err != nil {
		return facts.Observed{}, err
	}
	seen.Left = make(map[manifest.ID]bool, len(left))
	for _, id := range left {
		seen.Left[sp.ofCommit(id)] = true
	}
	objects := make(map[manifest.ID]*metav1.PartialObjectMetadata, len(seen.Objects))
	for id, o := range seen.Objects {
		objects[sp.ofCommit(id)] = o
	}
	if seen, err = demand.Found(seen, sp.asCommit(seen.Inventory), objects); err != nil {
		return facts.Observed{}, err
	}
	if seen.Reconciled, err = c.reconciled(ctx, seen, sp); err != nil {
		return facts.Observed{}, err
	}
	var owned []manifest.ID
	for _, a := range seen.Asked {
		if _, ours := seen.Inventory.Entries[a.ID]; ours {
			owned = append(owned, a.ID)
		}
	}
	due, done := c.checks.due(time.Now(), owned, len(seen.Doubtful(c.options.TryCreates)) > 0)
	seen.Due = due
	if err := c.try(ctx, &seen, sp); err != nil {
		return facts.Observed{}, err
	}
	done()
	seen.Effects, err = c.replaced(ctx, seen)
	return seen, err
}

// A search is a search for objects of one kind.
type search struct {
	kind  schema.GroupKind
	ids   []manifest.ID // sorted
	owned int           // how many of ids
}

// look fills in the objects of seen. If the inventory is missing or incomplete, it also rebuilds that.
func (c *Cluster) look(ctx context.Context, seen *facts.Observed, sp spelling) error {
	ids := make(map[manifest.ID]bool, len(seen.Asked)) // owned or not
	for _, a := range seen.Asked {
		ids[sp.actual(a.ID)] = false
	}
	for id := range seen.Inventory.Entries {
		ids[sp.actual(id)] = true
	}
	missing := seen.Inventory.ResourceVersion == ""
	var searches []search
	searches, seen.Unreadable = c.searches(ids, missing)
	seen.Hidden = c.hidden(ctx, ids)
	done := 0
	var mu sync.Mutex
	found, err := inParallel(ctx, c.options.Concurrency, searches, func(ctx context.Context, s search) ([]*metav1.PartialObjectMetadata, error) {
		objects, err := c.find(ctx, s, missing)
		switch {
		case err == nil:
			c.tellOf("observe", &done, len(searches), manifest.ID{Group: s.kind.Group, Kind: s.kind.Kind})
		case !c.stops(ctx, err): // only the state of this kind is unknown
			mu.Lock()
			seen.Unreadable[s.kind] = facts.Unreadable(s.kind, err)
			mu.Unlock()
			return nil, nil
		}
		return objects, err
	})
	if err != nil {
		return err
	}
	objects := slices.Concat(found...)
	if missing && slices.ContainsFunc(objects, func(o *metav1.PartialObjectMetadata) bool { return inventory.Ours(o, c.sync) }) {
		var marked []*metav1.PartialObjectMetadata
		if seen.Inventory, marked, err = c.rebuilt(ctx, c.surface); err != nil {
			return err
		}
		for _, o := range marked {
			_, wanted := ids[idOf(o)]
			if _, owned := seen.Inventory.Entries[idOf(o)]; owned {
				ids[idOf(o)] = true
			} else if !wanted {
				seen.Copies = append(seen.Copies, idOf(o))
			}
		}
		slices.SortFunc(seen.Copies, manifest.ID.Compare)
		objects = append(objects, marked...)
	}
	if seen.Inventory.Lost {
		marked, err := c.regain(ctx, &seen.Inventory)
		if err != nil {
			return err
		}
		for _, o := range marked {
			if _, owned := seen.Inventory.Entries[idOf(o)]; owned {
				ids[idOf(o)] = true
			}
		}
		objects = append(objects, marked...)
	}
	owned := seen.Inventory
	c.owned = &owned
	for _, o := range objects {
		if _, ok := ids[idOf(o)]; ok {
			seen.Objects[idOf(o)] = o
		}
	}
	return nil
}

// searches returns one search for every served kind of ids. If the inventory is missing, it also searches common kinds
// for marks. It also returns the kinds that may or may not be served, because discovery failed.
func (c *Cluster) searches(ids map[manifest.ID]bool, missing bool) ([]search, map[schema.GroupKind]error) {
	byKind := map[schema.GroupKind]*search{}
	at := func(gk schema.GroupKind) *search {
		if byKind[gk] == nil {
			byKind[gk] = &search{kind: gk}
		}
		return byKind[gk]
	}
	if missing {
		at(schema.GroupKind{Kind: "Namespace"})
		at(groupKind(plan.CRD("")))
	}
	for id, owned := range ids {
		s := at(groupKind(id))
		s.ids = append(s.ids, id)
		if owned {
			s.owned++
		}
	}
	var searches []search
	unreadable := map[schema.GroupKind]error{}
	for gk, s := range byKind {
		if err := c.surface.known(gk); err != nil {
			unreadable[gk] = facts.Unreadable(gk, err)
		}
		if _, served := c.surface.kinds[gk]; served {
			slices.SortFunc(s.ids, manifest.ID.Compare)
			searches = append(searches, *s)
		}
	}
	slices.SortFunc(searches, func(a, b search) int { return compareKinds(a.kind, b.kind) })
	return searches, unreadable
}

// find reads the objects of a search: by our label if most of them carry it, otherwise all objects of the kind, and a few remaining
// ones by name. It may find other objects, too. Without a right in the whole cluster, it reads the namespace that all of them are in.
func (c *Cluster) find(ctx context.Context, s search, marks bool) ([]*metav1.PartialObjectMetadata, error) {
	var found []*metav1.PartialObjectMetadata
	var err error
	left := s.ids
	if len(s.ids)-s.owned <= few && (s.owned > 0 || marks) {
		if found, err = c.listWhere(ctx, s, c.ours()); err != nil {
			return nil, c.explain(err, "list", resourceName(c.surface, s.kind))
		}
		have := make(map[manifest.ID]bool, len(found))
		for _, o := range found {
			have[idOf(o)] = true
		}
		left = slices.DeleteFunc(slices.Clone(s.ids), func(id manifest.ID) bool { return have[id] })
	}
	if len(left) > few {
		found, err = c.listWhere(ctx, s, "")
		return found, c.explain(err, "list", resourceName(c.surface, s.kind))
	}
	others, err := c.named(ctx, s.kind, left)
	return append(found, others...), err
}

// listWhere lists the kind of a search in the whole cluster or, if that is forbidden, in the one namespace of all its objects.
func (c *Cluster) listWhere(ctx context.Context, s search, selector string) ([]*metav1.PartialObjectMetadata, error) {
	found, err := c.list(ctx, c.surface, s.kind, "", selector)
	if apierrors.IsForbidden(err) && spaceOf(s.ids) != "" {
		return c.list(ctx, c.surface, s.kind, spaceOf(s.ids), selector)
	}
	return found, err
}

// named reads objects of a kind by name. It leaves out missing ones.
func (c *Cluster) named(ctx context.Context, kind schema.GroupKind, ids []manifest.ID) ([]*metav1.PartialObjectMetadata, error) {
	var found []*metav1.PartialObjectMetadata
	for _, id := range ids {
		o, err := c.get(ctx, c.surface, id)
		// An unknown kind went away since the discovery, but the object may still exist.
		if apierrors.IsNotFound(err) && !isUnknownKind(err) {
			continue
		}
		if err != nil {
			return nil, c.explain(err, "get", resourceName(c.surface, kind)+" "+id.Name)
		}
		found = append(found, o)
	}
	return found, nil
}

// ours returns a selector for our label.
func (c *Cluster) ours() string { return labels.Set{inventory.SyncLabel: c.sync.Key()}.String() }

// list returns the current metadata of the objects of a kind.
func (c *Cluster) list(ctx context.Context, s *surface, gk schema.GroupKind, namespace, selector string) ([]*metav1.PartialObjectMetadata, error) {
	var objects []*metav1.PartialObjectMetadata
	err := c.reading(ctx, s, gk, func(gvr schema.GroupVersionResource) error {
		l, err := c.metadata.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return err
		}
		objects = make([]*metav1.PartialObjectMetadata, len(l.Items))
		for i := range l.Items {
			objects[i] = typed(&l.Items[i], gvr.GroupVersion(), gk.Kind)
		}
		return nil
	})
	return objects, err
}

// get reads the metadata of an object.
func (c *Cluster) get(ctx context.Context, s *surface, id manifest.ID) (*metav1.PartialObjectMetadata, error) {
	if err := unnameable(id); err != nil {
		return nil, err
	}
	var found *metav1.PartialObjectMetadata
	err := c.reading(ctx, s, groupKind(id), func(gvr schema.GroupVersionResource) error {
		o, err := c.at(gvr, id).Get(ctx, id.Name, metav1.GetOptions{})
		if err == nil {
			found = typed(o, gvr.GroupVersion(), id.Kind)
		}
		return err
	})
	return found, err
}

// unnameable returns the error that an object with such a name was not found. The metadata client does not check names, so a request
// for "../x" would be about something else. Older versions recorded such names in inventories.
func unnameable(id manifest.ID) error {
	if key, _ := id.Unnameable(); key == "" {
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: id.Group, Resource: id.Kind}, id.Name)
}

func (c *Cluster) at(gvr schema.GroupVersionResource, id manifest.ID) metadata.ResourceInterface {
	return c.metadata.Resource(gvr).Namespace(id.Namespace)
}

// typed sets the kind of the object on its metadata.
func typed(o *metav1.PartialObjectMetadata, gv schema.GroupVersion, kind string) *metav1.PartialObjectMetadata {
	o.TypeMeta = metav1.TypeMeta{APIVersion: gv.String(), Kind: kind}
	return o
}

func idOf(o *metav1.PartialObjectMetadata) manifest.ID {
	gk := o.GroupVersionKind().GroupKind()
	return manifest.ID{Group: gk.Group, Kind: gk.Kind, Namespace: o.Namespace, Name: o.Name}
}

// resourceName returns the name of a kind in RBAC rules: "customresourcedefinitions.apiextensions.k8s.io".
func resourceName(s *surface, gk schema.GroupKind) string {
	k, served := s.kinds[gk]
	if !served {
		return gk.String()
	}
	return schema.GroupResource{Group: gk.Group, Resource: k.Resource}.String()
}

// inParallel calls do for every item, up to limit at a time, and returns the results in the order of the items. The first error
// ends it.
func inParallel[T, R any](ctx context.Context, limit int, items []T, do func(context.Context, T) (R, error)) ([]R, error) {
	results := make([]R, len(items))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(limit)
	for i, item := range items {
		g.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			results[i], err = do(ctx, item)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return results, nil
}

// tellOf counts one more object and reports progress.
func (c *Cluster) tellOf(phase string, done *int, total int, of manifest.ID) {
	c.progress.Lock()
	defer c.progress.Unlock()
	*done++
	if c.options.Progress != nil {
		c.options.Progress(Event{Phase: phase, Done: *done, Total: total, Object: of})
	}
}

func compareKinds(a, b schema.GroupKind) int {
	return manifest.ID{Group: a.Group, Kind: a.Kind}.Compare(manifest.ID{Group: b.Group, Kind: b.Kind})
}

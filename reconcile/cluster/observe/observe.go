// Package observe reads the live state of the objects that a commit wants or a sync owns, and finds what an apply would change, with dry
// runs of those that may have moved. It changes nothing.
//
//	inventory ─► discovery ─► metadata lists ─► dry runs of what may have moved
package observe

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/cluster/count"
	"headgate.dev/headgate/reconcile/cluster/store"
	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// few is the number of objects of a kind up to which they are read one by one and not with a list.
const few = 5

// Options configures a Reader. The zero value is ready to use.
type Options struct {
	Terms      facts.Terms   // which fields and objects to take from other tools, and which to leave to them
	TryCreates bool          // also dry-run missing objects, for a diff
	FullCheck  time.Duration // interval within which every object is dry-run, even if it looks unchanged; 0 means never
}

// A Reader observes a cluster for one sync. It may be used by one pass at a time.
type Reader struct {
	*store.Store

	count   *count.Counter
	options Options

	checks   schedule                   // schedule of checks for objects that look unchanged
	packages map[manifest.ID]comparison // planned updates of packages, with the definitions that they replace
}

// New returns a Reader that asks a Counter what is counted.
func New(store *store.Store, count *count.Counter, options Options) *Reader {
	return &Reader{Store: store, count: count, options: options, checks: schedule{every: options.FullCheck}}
}

// Observe returns the live state of wanted and owned objects. If nothing changed, it costs a request for the inventory,
// two for discovery and one for every kind.
func (c *Reader) Observe(ctx context.Context, want render.Desired) (facts.Observed, error) {
	inv, err := c.Inventory(ctx)
	if err != nil {
		return facts.Observed{}, err
	}
	if c.Surface, err = c.Discover(ctx); err != nil {
		return facts.Observed{}, err
	}
	sp, err := api.SpellingOf(want, c.Surface, c.DefaultNamespace)
	if err != nil {
		return facts.Observed{}, err
	}
	seen := facts.Observed{
		Ground: facts.Ground{
			Inventory: inv, // in the cluster's spelling until Found
			Kinds:     c.Surface.Kinds,
			Natural:   natural(c.Surface, inv),
			Written:   sp.Written,
			Space:     c.DefaultNamespace,
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
		if sp, err = api.SpellingOf(seen.Want, c.Surface, c.DefaultNamespace); err != nil {
			return facts.Observed{}, err
		}
		seen.Written = sp.Written
	}
	if seen.Upstream, err = c.upstream(ctx, seen.Want); err != nil {
		return facts.Observed{}, err
	}
	if seen.Key, err = c.KeyFor(ctx, seen.Asked, inv); err != nil {
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
		seen.Left[sp.OfCommit(id)] = true
	}
	objects := make(map[manifest.ID]*metav1.PartialObjectMetadata, len(seen.Objects))
	for id, o := range seen.Objects {
		objects[sp.OfCommit(id)] = o
	}
	if seen, err = demand.Found(seen, sp.AsCommit(seen.Inventory), objects); err != nil {
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

// left returns the objects with the mark of another sync whose inventory does not list them any more. It leaves out objects whose
// inventory cannot be read.
func (c *Reader) left(ctx context.Context, seen facts.Live) ([]manifest.ID, error) {
	if c.options.Terms.Adoption != facts.AdoptAll {
		return nil, nil
	}
	of := map[inventory.Sync][]manifest.ID{}
	for id, o := range seen.Objects {
		if other, ok := inventory.SyncOf(ownership.Of(o, c.Sync, "").Sync); ok {
			of[other] = append(of[other], id)
		}
	}
	var left []manifest.ID
	for other, ids := range of {
		inv, err := c.Another(other).Inventory(ctx)
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

// A search is a search for objects of one kind.
type search struct {
	kind  schema.GroupKind
	ids   []manifest.ID // sorted
	owned int           // how many of ids
}

// look fills in the objects of seen. If the inventory is missing or incomplete, it also rebuilds that.
func (c *Reader) look(ctx context.Context, seen *facts.Observed, sp api.Spelling) error {
	ids := make(map[manifest.ID]bool, len(seen.Asked)) // owned or not
	for _, a := range seen.Asked {
		ids[sp.Actual(a.ID)] = false
	}
	for id := range seen.Inventory.Entries {
		ids[sp.Actual(id)] = true
	}
	missing := seen.Inventory.ResourceVersion == ""
	var searches []search
	searches, seen.Unreadable = c.searches(ids, missing)
	seen.Hidden = c.hidden(ctx, ids)
	seen.Denied = map[manifest.ID]error{}
	done := 0
	var mu sync.Mutex
	found, err := api.InParallel(ctx, c.Concurrency, searches, func(ctx context.Context, s search) ([]*metav1.PartialObjectMetadata, error) {
		objects, denied, err := c.find(ctx, s, missing)
		mu.Lock()
		for id, why := range denied {
			seen.Denied[sp.OfCommit(id)] = facts.Denied(why)
		}
		mu.Unlock()
		switch {
		case err == nil:
			c.TellOf("observe", &done, len(searches), manifest.ID{Group: s.kind.Group, Kind: s.kind.Kind})
		case !c.Stops(ctx, err): // only the state of this kind is unknown
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
	if missing && slices.ContainsFunc(objects, func(o *metav1.PartialObjectMetadata) bool { return inventory.Ours(o, c.Sync) }) {
		var marked []*metav1.PartialObjectMetadata
		if seen.Inventory, marked, err = c.Rebuilt(ctx, c.Surface); err != nil {
			return err
		}
		for _, o := range marked {
			_, wanted := ids[api.IDOf(o)]
			if _, owned := seen.Inventory.Entries[api.IDOf(o)]; owned {
				ids[api.IDOf(o)] = true
			} else if !wanted {
				seen.Copies = append(seen.Copies, api.IDOf(o))
			}
		}
		slices.SortFunc(seen.Copies, manifest.ID.Compare)
		objects = append(objects, marked...)
	}
	if !missing {
		if objects, err = c.regained(ctx, &seen.Inventory, ids, objects); err != nil {
			return err
		}
	}
	c.Use(seen.Inventory)
	for _, o := range objects {
		if _, ok := ids[api.IDOf(o)]; ok {
			seen.Objects[api.IDOf(o)] = o
		}
	}
	return nil
}

// searches returns one search for every served kind of ids. If the inventory is missing, it also searches common kinds
// for marks. It also returns the kinds that may or may not be served, because discovery failed.
func (c *Reader) searches(ids map[manifest.ID]bool, missing bool) ([]search, map[schema.GroupKind]error) {
	byKind := map[schema.GroupKind]*search{}
	at := func(gk schema.GroupKind) *search {
		if byKind[gk] == nil {
			byKind[gk] = &search{kind: gk}
		}
		return byKind[gk]
	}
	if missing {
		at(schema.GroupKind{Kind: "Namespace"})
		at(api.GroupKind(plan.CRD("")))
	}
	for id, owned := range ids {
		s := at(api.GroupKind(id))
		s.ids = append(s.ids, id)
		if owned {
			s.owned++
		}
	}
	var searches []search
	unreadable := map[schema.GroupKind]error{}
	for gk, s := range byKind {
		if err := c.Surface.Known(gk); err != nil {
			unreadable[gk] = facts.Unreadable(gk, err)
		}
		if _, served := c.Surface.Kinds[gk]; served {
			slices.SortFunc(s.ids, manifest.ID.Compare)
			searches = append(searches, *s)
		}
	}
	slices.SortFunc(searches, func(a, b search) int { return compareKinds(a.kind, b.kind) })
	return searches, unreadable
}

// find reads the objects of a search: by our label if most of them carry it, otherwise all objects of the kind. It reads by name the few that
// remain, and those that may not be listed. It may find other objects, too. It returns the objects that may not be read, each with the error.
func (c *Reader) find(ctx context.Context, s search, marks bool) (found []*metav1.PartialObjectMetadata, denied map[manifest.ID]error, err error) {
	left, unlisted := s.ids, []manifest.ID(nil)
	if len(s.ids)-s.owned <= few && (s.owned > 0 || marks) {
		if found, unlisted, err = c.listWhere(ctx, s, c.Ours()); err != nil {
			return nil, nil, err
		}
		have := make(map[manifest.ID]bool, len(found))
		for _, o := range found {
			have[api.IDOf(o)] = true
		}
		left = slices.DeleteFunc(slices.Clone(s.ids), func(id manifest.ID) bool { return have[id] || slices.Contains(unlisted, id) })
	}
	if len(left) > few {
		if found, unlisted, err = c.listWhere(ctx, s, ""); err != nil {
			return nil, nil, err
		}
		left = nil
	}
	type answer struct {
		found  []*metav1.PartialObjectMetadata
		denied error
	}
	names := slices.Concat(left, unlisted)
	answers, err := api.InParallel(ctx, c.Concurrency, names, func(ctx context.Context, id manifest.ID) (answer, error) {
		one, err := c.named(ctx, s.kind, []manifest.ID{id})
		if api.IsRBAC(err) {
			return answer{denied: err}, nil
		}
		return answer{found: one}, err
	})
	if err != nil {
		return nil, nil, err
	}
	denied = map[manifest.ID]error{}
	for i, a := range answers {
		if found = append(found, a.found...); a.denied != nil {
			denied[names[i]] = a.denied
		}
	}
	return found, denied, nil
}

// listWhere lists the kind of a search in the whole cluster or, if that is forbidden, in each namespace of its objects. It also returns the
// objects that are in none of the lists, because those are forbidden.
func (c *Reader) listWhere(ctx context.Context, s search, selector string) (found []*metav1.PartialObjectMetadata, unlisted []manifest.ID, err error) {
	what := api.ResourceName(c.Surface, s.kind)
	found, err = c.List(ctx, c.Surface, s.kind, "", selector)
	if !api.IsRBAC(err) || len(s.ids) == 0 {
		return found, nil, c.Explain(err, "list", what)
	}
	in := map[string][]manifest.ID{}
	for _, id := range s.ids {
		in[id.Namespace] = append(in[id.Namespace], id)
	}
	for _, namespace := range slices.Sorted(maps.Keys(in)) {
		var some []*metav1.PartialObjectMetadata
		if namespace != "" {
			some, err = c.List(ctx, c.Surface, s.kind, namespace, selector)
		}
		switch {
		case api.IsRBAC(err):
			unlisted = append(unlisted, in[namespace]...)
		case err != nil:
			return nil, nil, c.Explain(err, "list", what+" in the namespace "+namespace)
		}
		found = append(found, some...)
	}
	return found, unlisted, nil
}

// named reads objects of a kind by name. It leaves out missing ones.
func (c *Reader) named(ctx context.Context, kind schema.GroupKind, ids []manifest.ID) ([]*metav1.PartialObjectMetadata, error) {
	var found []*metav1.PartialObjectMetadata
	for _, id := range ids {
		o, err := c.Get(ctx, c.Surface, id)
		// An unknown kind went away since the discovery, but the object may still exist.
		if apierrors.IsNotFound(err) && !api.IsUnknownKind(err) {
			continue
		}
		if err != nil {
			return nil, c.Explain(err, "get", api.ResourceName(c.Surface, kind)+" "+id.Name)
		}
		found = append(found, o)
	}
	return found, nil
}

func compareKinds(a, b schema.GroupKind) int {
	return manifest.ID{Group: a.Group, Kind: a.Kind}.Compare(manifest.ID{Group: b.Group, Kind: b.Kind})
}

// Package watch reports which objects of a sync changed since our last write. Syncs of one process that use the same configuration have
// their watches together: one for each kind, and one for the inventories of each namespace.
package watch

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/cluster/store"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	quietTime  = 200 * time.Millisecond // changes are reported once there has been none for this time
	mostNews   = time.Second            // changes are reported after this time even if there are more
	firstRetry = 500 * time.Millisecond
	mostRetry  = 10 * time.Second
	wider      = 10 * time.Minute // after this time, a watch of one namespace tries the whole cluster again
	pageSize   = 500
)

// A Watcher watches the objects of one sync.
type Watcher struct {
	*store.Store

	shared *Shared // with other Clusters of the same configuration; nil if it shares nothing
}

// New returns a Watcher. One that shares nothing can only watch everything.
func New(store *store.Store, with *Shared) *Watcher { return &Watcher{Store: store, shared: with} }

// Watch reports the objects of the inventory that changed since our last write, with their current marks, and again after every
// change, until ctx is done. It leaves out objects that a pass is writing, and those whose status alone changed. It calls trouble
// once for each kind that cannot be watched, and without an error once it is watched again. It watches all others. Passes may run at the same
// time. Watch returns at once, and wait returns once nothing of it goes on.
//
// It watches the inventory and, for every kind in it, the metadata of objects with our label. It keeps only the mark of an object.
// Clusters with the same Options.Shares have these watches together.
func (c *Watcher) Watch(ctx context.Context, tell func(moved map[manifest.ID]string), trouble func(what string, err error)) (wait func()) {
	w := c.watching(tell, trouble)
	w.join = func() { w.joinKinds(ctx) }
	leave := w.followInventory(ctx)
	return w.until(ctx, func() {
		leave()
		w.leaveKinds()
	})
}

// until ends the watch with ctx. wait returns when it has ended.
func (w *watching) until(ctx context.Context, leave func()) (wait func()) {
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(ended)
		w.news.end()
		leave()
		w.alone.Wait()
	})
	return func() { <-ended }
}

// Everything watches objects without our label, too: those that marks returns, with the marks that they are expected to have, or "" if they
// should not exist. It asks again after each of the news.
func (c *Watcher) Everything(ctx context.Context, news <-chan struct{}, marks func() map[manifest.ID]string, tell func(moved map[manifest.ID]string), trouble func(what string, err error)) (wait func()) {
	w := c.watching(tell, trouble)
	w.everything = true
	w.alone.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-news:
				owned := marks()
				for id, mark := range owned {
					owned[id] = cmp.Or(mark, absent)
				}
				w.setOwned(owned)
			}
		}
	})
	w.alone.Go(func() { w.followKinds(ctx) })
	return w.until(ctx, func() {})
}

// watching is the state of a watch.
type watching struct {
	cluster    *Watcher
	everything bool // also objects without our label
	tell       func(moved map[manifest.ID]string)
	trouble    func(what string, err error)
	join       func()         // follows the kinds of the objects; nil if a goroutine does that
	news       settling       // a field below changed
	kindsMoved chan struct{}  // the kinds to follow may have changed
	alone      sync.WaitGroup // the goroutines of feeds that are not shared

	told    map[manifest.ID]string // what was told last
	limited string                 // the namespace beyond which nothing is watched, as it was told last; "" if there is none

	mu    sync.Mutex
	owned map[manifest.ID]string // the mark that we left each object with, or absent; nil if not known yet
	lost  string                 // the last resourceVersion of the inventory if it was deleted; otherwise ""
	kinds map[schema.GroupKind]*kindMarks
}

// kindMarks holds the marks of the watched objects of one kind.
type kindMarks struct {
	*watching
	space  string                 // the namespace of all of them; "" if there are several
	within string                 // the only namespace whose objects are known; "" for all
	marks  map[manifest.ID]string // nil until they are listed
	gone   map[manifest.ID]string // deleted objects
	stop   context.CancelFunc
}

func (c *Watcher) watching(tell func(map[manifest.ID]string), trouble func(what string, err error)) *watching {
	w := &watching{
		cluster: c, tell: tell, trouble: trouble, kindsMoved: make(chan struct{}, 1),
		kinds: map[schema.GroupKind]*kindMarks{}, told: map[manifest.ID]string{},
	}
	w.news = settling{do: w.report, trouble: w.panicked, quiet: quietTime, most: mostNews}
	return w
}

// panicked reports a panic while changes were reported.
func (w *watching) panicked(err error) { w.trouble("changes", err) }

// absent is used as the mark of an object that does not exist.
const absent = "absent"

// setOwned sets the marks of the objects to watch.
func (w *watching) setOwned(owned map[manifest.ID]string) {
	w.mu.Lock()
	w.owned, w.lost = owned, ""
	w.mu.Unlock()
	signal(w.kindsMoved)
	w.news.soon()
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// report reports the changed objects, and follows their kinds.
func (w *watching) report() {
	if w.join != nil {
		select {
		case <-w.kindsMoved:
			w.join()
		default:
		}
	}
	if moved := w.moved(); !maps.Equal(moved, w.told) {
		w.told = moved
		w.tell(maps.Clone(moved))
	}
	w.tellLimit()
}

// tellLimit reports whether objects are owned where the rights let nothing be watched.
func (w *watching) tellLimit() {
	limit := w.limit()
	if limit == w.limited {
		return
	}
	var why error
	if limit != "" {
		why = errors.New("the rights let it watch that namespace only")
	}
	w.trouble("objects outside of "+cmp.Or(limit, w.limited), why)
	w.limited = limit
}

// limit returns the only namespace that is watched if objects of others are owned; otherwise "".
func (w *watching) limit() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.owned {
		if kind := w.kinds[api.GroupKind(id)]; kind != nil && kind.beyond(id) {
			return kind.within
		}
	}
	return ""
}

// beyond reports whether an object is in a namespace that is not watched.
func (k *kindMarks) beyond(id manifest.ID) bool { return k.within != "" && id.Namespace != k.within }

// moved returns the objects whose marks differ from the inventory, with their current marks.
func (w *watching) moved() map[manifest.ID]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	moved := map[manifest.ID]string{}
	if w.lost != "" {
		moved[w.inventoryID()] = "gone at " + w.lost
	}
	for id, left := range w.owned {
		kind := w.kinds[api.GroupKind(id)]
		if kind == nil || kind.marks == nil || left == "" || kind.beyond(id) {
			continue // not known, or not written completely
		}
		now, exists := kind.marks[id]
		switch {
		case !exists && left == absent:
		case !exists:
			moved[id] = "gone at " + kind.gone[id]
		case now != left:
			moved[id] = now
		}
	}
	return moved
}

func (w *watching) inventoryID() manifest.ID {
	return manifest.ID{Kind: "ConfigMap", Namespace: w.cluster.Sync.Namespace, Name: api.InventoryName(w.cluster.Sync)}
}

// A feed is a list of objects and a watch that continues from it.
type feed struct {
	what  string // for error messages
	list  func(ctx context.Context, options metav1.ListOptions) ([]metav1.Object, metav1.ListInterface, error)
	watch func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)

	unserved  func() // called if the API server does not serve the kind any more, which ends the feed; nil if it always does
	forbidden func() // called if the API server forbids it, which ends the feed; nil to try again

	fresh func()                // called when a list begins
	put   func(o metav1.Object) // called for each object of the list and the watch
	gone  func(o metav1.Object) // called for objects that were deleted or are not ours any more
	whole func()                // called when the list is complete
}

// follow keeps a feed up to date: it lists, then watches. It resumes a watch that ended, and lists again if the API server has
// dropped that part of the history.
func (w *watching) follow(ctx context.Context, f feed) {
	from, failures, logged := "", 0, ""
	for ctx.Err() == nil {
		err := engine.Caught("watch", func() (err error) {
			if from == "" {
				from, err = f.relist(ctx)
			}
			if err == nil {
				from, err = f.keepUp(ctx, from, func() {
					if logged != "" {
						w.trouble(f.what, nil)
					}
					failures, logged = 0, ""
				})
			}
			return err
		})
		if err == nil {
			continue // the API server ends every watch after some time
		}
		expired := apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
		switch {
		case expired, errors.As(err, new(engine.DefectError)): // nothing is known of what it had read
			from = ""
		case apierrors.IsNotFound(err) && f.unserved != nil:
			f.unserved()
			return
		case apierrors.IsForbidden(err) && f.forbidden != nil:
			f.forbidden()
			return
		}
		if why := w.cluster.Explain(err, "watch", f.what).Error(); ctx.Err() == nil && why != logged && !expired && !api.IsTransient(err) && (failures > 0 || !errors.Is(err, errShort)) {
			logged = why
			w.trouble(f.what, cmp.Or(defectIn(err), errors.New(why)))
		}
		pause := min(firstRetry<<min(failures, 10), mostRetry)
		failures++
		api.Sleep(ctx, pause/2+rand.N(pause)) //nolint:gosec // it needs no secrecy
	}
}

// defectIn returns the defect in an error, with its stack; nil if there is none.
func defectIn(err error) error {
	if defect, ok := errors.AsType[engine.DefectError](err); ok {
		return defect
	}
	return nil
}

// relist lists all objects and returns the resourceVersion from which to watch.
func (f feed) relist(ctx context.Context) (string, error) {
	f.fresh()
	options := metav1.ListOptions{Limit: pageSize}
	for {
		objects, page, err := f.list(ctx, options)
		if err != nil {
			return "", err
		}
		for _, o := range objects {
			f.put(o)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			f.whole()
			return page.GetResourceVersion(), nil
		}
	}
}

// keepUp watches until the watch ends, and returns the last resourceVersion that it saw. It calls works once that has worked for a while.
func (f feed) keepUp(ctx context.Context, from string, works func()) (string, error) {
	timeout := int64(300 + rand.IntN(300)) //nolint:gosec // it only keeps watches from ending together
	events, err := f.watch(ctx, metav1.ListOptions{ResourceVersion: from, AllowWatchBookmarks: true, TimeoutSeconds: &timeout})
	if err != nil {
		return from, err
	}
	defer events.Stop()
	begun, steady := time.Now(), time.After(mostRetry)
	for {
		var e watch.Event
		var open bool
		select {
		case <-steady:
			works()
			continue
		case e, open = <-events.ResultChan():
		}
		switch o, is := e.Object.(metav1.Object); {
		case !open && time.Since(begun) < time.Second: // a proxy that cannot watch: do not spin
			return from, errShort
		case !open:
			return from, nil
		case e.Type == watch.Error:
			return from, apierrors.FromObject(e.Object)
		case !is:
			continue
		case e.Type == watch.Deleted:
			f.gone(o)
			from = o.GetResourceVersion()
		case e.Type == watch.Added, e.Type == watch.Modified:
			f.put(o)
			from = o.GetResourceVersion()
		default:
			from = o.GetResourceVersion() // a bookmark
		}
	}
}

var errShort = errors.New("the watch ended immediately")

// inventoryFeed follows the inventory of the sync.
func (w *watching) inventoryFeed(ctx context.Context) feed {
	maps, name := w.cluster.Core.ConfigMaps(w.cluster.Sync.Namespace), api.InventoryName(w.cluster.Sync)
	only := fields.OneTermEqualSelector("metadata.name", name).String()
	found := false
	var siblings map[string]map[string]string
	put := func(o metav1.Object) {
		m, _ := o.(*core.ConfigMap)
		held, err := w.cluster.ContentOf(ctx, m, siblings)
		if err != nil || !held.Whole {
			return // the next pass reports it
		}
		siblings = held.Siblings
		found = true
		w.setOwned(leftMarks(held.Entries))
	}
	gone := func(version string) {
		w.mu.Lock()
		if w.owned != nil {
			w.owned, w.lost = nil, version
		}
		w.mu.Unlock()
		w.news.soon()
	}
	return feed{
		what: "the inventory ConfigMap " + w.cluster.Sync.Namespace + "/" + name,
		list: func(ctx context.Context, options metav1.ListOptions) ([]metav1.Object, metav1.ListInterface, error) {
			options.FieldSelector = only
			l, err := maps.List(ctx, options)
			if err != nil {
				return nil, nil, err
			}
			return asObjects(l.Items), l, nil
		},
		watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return maps.Watch(ctx, options)
		},
		fresh: func() { found = false },
		put:   put,
		gone:  func(o metav1.Object) { gone(o.GetResourceVersion()) },
		whole: func() {
			if !found {
				gone("an unknown time")
			}
		},
	}
}

// leftMarks returns the marks with which the inventory remembers its objects: "" for an object that is being written, or that was
// never written.
func leftMarks(entries map[manifest.ID]inventory.Entry) map[manifest.ID]string {
	left := make(map[manifest.ID]string, len(entries))
	for id, e := range entries {
		if e.Actuation == "Pending" || e.UID == "" {
			e.Mark = ""
		}
		left[id] = e.Mark
	}
	return left
}

// followKinds follows every kind of the inventory as soon as it is served.
func (w *watching) followKinds(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	var again <-chan time.Time // nil if every kind is followed
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.kindsMoved:
		case <-again:
		}
		again = nil
		missing := w.unfollowed()
		if len(missing) == 0 {
			continue
		}
		s, err := w.cluster.Discover(ctx)
		if err != nil {
			again = time.After(mostRetry)
			continue // passes discover, too, and report the error
		}
		for gk, space := range missing {
			gvr, err := s.Resource(gk, "")
			if err != nil {
				again = time.After(mostRetry)
				continue
			}
			kind := &kindMarks{watching: w, space: space}
			following, stop := context.WithCancel(ctx)
			kind.stop = stop
			w.mu.Lock()
			w.kinds[gk] = kind
			w.mu.Unlock()
			group.Go(func() { w.follow(following, kind.feed(ctx, s, gk, gvr)) })
		}
	}
}

// joinKinds joins the shared watch of every kind of the inventory.
func (w *watching) joinKinds(ctx context.Context) {
	for gk := range w.unfollowed() {
		kind := &kindMarks{watching: w}
		kind.stop = w.cluster.shared.join(ctx, gk, kind)
		w.mu.Lock()
		w.kinds[gk] = kind
		w.mu.Unlock()
	}
	w.cluster.shared.lookAgain(w.unknown())
}

// leaveKinds leaves the shared watches of all kinds.
func (w *watching) leaveKinds() {
	w.setOwned(map[manifest.ID]string{})
	w.unfollowed()
}

// unknown returns the kinds whose objects are not listed.
func (w *watching) unknown() []schema.GroupKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []schema.GroupKind
	for gk, kind := range w.kinds {
		if kind.marks == nil {
			all = append(all, gk)
		}
	}
	return all
}

// unfollowed returns the kinds without a running watch, each with its namespace. It stops watches that are not needed any more.
func (w *watching) unfollowed() map[schema.GroupKind]string {
	var stops []context.CancelFunc
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := map[schema.GroupKind]string{}
	for id := range w.owned {
		gk := api.GroupKind(id)
		if space, more := wanted[gk]; w.everything && (!more || space == id.Namespace) {
			wanted[gk] = id.Namespace
		} else {
			wanted[gk] = ""
		}
	}
	for gk, kind := range w.kinds {
		if space, still := wanted[gk]; w.owned != nil && (!still || space != kind.space) {
			stops = append(stops, kind.stop) // without the lock
			delete(w.kinds, gk)
		}
	}
	maps.DeleteFunc(wanted, func(gk schema.GroupKind, _ string) bool { return w.kinds[gk] != nil })
	return wanted
}

// metadataFeed returns how the metadata of a kind is listed and watched.
func (c *Watcher) metadataFeed(s *api.Surface, gk schema.GroupKind, gvr schema.GroupVersionResource, space, selector string) feed {
	at := c.Metadata.Resource(gvr).Namespace(space)
	return feed{
		what: gvr.GroupResource().String(),
		list: func(ctx context.Context, options metav1.ListOptions) ([]metav1.Object, metav1.ListInterface, error) {
			options.LabelSelector = selector
			var l *metav1.PartialObjectMetadataList
			err := c.Reading(ctx, s, gk, func(gvr schema.GroupVersionResource) (err error) {
				at = c.Metadata.Resource(gvr).Namespace(space) // also for the watch
				l, err = at.List(ctx, options)
				return err
			})
			if err != nil {
				return nil, nil, err
			}
			return asObjects(l.Items), l, nil
		},
		watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return at.Watch(ctx, options)
		},
	}
}

// idOfKind returns the ID of an object of a kind.
func idOfKind(gk schema.GroupKind, o metav1.Object) manifest.ID {
	return manifest.ID{Group: gk.Group, Kind: gk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// feed returns the feed for the metadata of a kind.
func (k *kindMarks) feed(ctx context.Context, s *api.Surface, gk schema.GroupKind, gvr schema.GroupVersionResource) feed {
	selector := k.cluster.Ours()
	if k.everything {
		selector = ""
	}
	var listing map[manifest.ID]string // nil after the list is complete
	f := k.cluster.metadataFeed(s, gk, gvr, k.space, selector)
	f.unserved = func() {
		k.stop()
		k.mu.Lock()
		if k.kinds[gk] == k {
			delete(k.kinds, gk)
		}
		k.mu.Unlock()
		api.Sleep(ctx, firstRetry) // a CRD that is being replaced is back in a moment
		signal(k.kindsMoved)
	}
	f.fresh = func() { listing = map[manifest.ID]string{} }
	f.put = func(o metav1.Object) {
		id, mark := idOfKind(gk, o), inventory.Mark(o)
		if listing != nil {
			listing[id] = mark
			return
		}
		k.set(id, mark)
	}
	f.gone = func(o metav1.Object) { k.drop(idOfKind(gk, o), o.GetResourceVersion()) }
	f.whole = func() {
		k.setAll(listing, k.space)
		listing = nil
	}
	return f
}

// set records the mark of an object.
func (k *kindMarks) set(id manifest.ID, mark string) {
	k.change(func() {
		k.marks[id] = mark
		delete(k.gone, id)
	})
}

// change changes the marks, which are reported soon.
func (k *kindMarks) change(do func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	do()
	k.news.soon()
}

// drop records that an object was deleted.
func (k *kindMarks) drop(id manifest.ID, version string) {
	k.change(func() {
		delete(k.marks, id)
		if _, owned := k.owned[id]; owned && k.gone != nil {
			k.gone[id] = version
		}
	})
}

// setAll records the marks of all objects, or of all within a namespace.
func (k *kindMarks) setAll(marks map[manifest.ID]string, within string) {
	k.change(func() {
		k.within = within
		k.marks, k.gone = maps.Clone(marks), map[manifest.ID]string{}
		if k.marks == nil {
			k.marks = map[manifest.ID]string{}
		}
	})
}

// forget records that nothing is known about the objects.
func (k *kindMarks) forget() {
	k.change(func() { k.marks, k.gone = nil, nil })
}

// asObjects returns the items of a list as objects.
func asObjects[T any, P interface {
	*T
	metav1.Object
}](items []T) []metav1.Object {
	objects := make([]metav1.Object, len(items))
	for i := range items {
		objects[i] = P(&items[i])
	}
	return objects
}

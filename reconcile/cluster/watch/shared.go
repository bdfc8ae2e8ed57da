package watch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/cluster/established"
	"headgate.dev/headgate/reconcile/cluster/store"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Shares lets the syncs of one process share their watches: one for each kind, and one for the inventories of each namespace. Only
// Clusters of the same *rest.Config share, so tenants with different identities never do. The zero value is ready to use.
//
//	metadata of a kind, by our label ─► by the value of the label ─► the watch of that sync
//	inventories of a namespace       ─► by name                   ─► the watch of that sync
//	states of CRDs, while awaited    ─► by name                   ─► the passes that applied them
//
// Clusters with the same connection share how many requests are under way, and what the answers show about the API server, whatever users
// they impersonate.
type Shares struct {
	mu        sync.Mutex
	by        map[*rest.Config]*Shared
	throttles api.Throttles
}

// Limits returns the throttles of the API servers.
func (s *Shares) Limits() *api.Throttles { return &s.throttles }

// Enter adds a sync to what the Clusters of a configuration share, until leave is called, once.
func (s *Shares) Enter(config *rest.Config, of inventory.Sync, answerTime time.Duration) (all *Shared, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all = s.by[config]; all == nil {
		served := &api.Discovered{}
		client, err := api.Connect(config, inventory.Sync{}, api.Options{AnswerTime: answerTime, Throttles: s.Limits(), Discovered: served})
		if err != nil {
			return nil, nil, err
		}
		all = &Shared{
			Discovered: served, CRDs: established.New(client), reader: New(store.New(client, 0, store.Term{}), nil), syncs: map[string]int{}, spaces: map[string]int{},
			kinds: map[schema.GroupKind]*sharedKind{}, inventories: map[string]*sharedInventories{},
		}
		if s.by == nil {
			s.by = map[*rest.Config]*Shared{}
		}
		s.by[config] = all
	}
	all.add(of)
	return all, sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if all.remove(of) {
			delete(s.by, config)
		}
	}), nil
}

// Shared is what the syncs of one configuration share.
type Shared struct {
	Discovered *api.Discovered
	CRDs       *established.CRDs

	reader *Watcher // of no sync

	discovering sync.Mutex
	surface     *api.Surface // the last one; nil before the first
	discovered  time.Time

	// mu guards everything below, and the fields of shared kinds and inventories. It is acquired before the lock of a watching.
	mu          sync.Mutex
	syncs       map[string]int // the number of Clusters by the value of our label: a sync that is replaced has two for a moment
	spaces      map[string]int // the number of syncs by namespace
	kinds       map[schema.GroupKind]*sharedKind
	inventories map[string]*sharedInventories // by namespace
}

// add adds a sync. It must be added before it watches.
func (s *Shared) add(of inventory.Sync) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.syncs[of.Key()]++; s.syncs[of.Key()] > 1 {
		return
	}
	s.spaces[of.Namespace]++
	for _, kind := range s.kinds {
		kind.again() // the selector has changed
	}
}

// remove removes a sync that does not watch any more, and reports whether it was the last one.
func (s *Shared) remove(of inventory.Sync) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.syncs[of.Key()]--; s.syncs[of.Key()] > 0 {
		return false
	}
	delete(s.syncs, of.Key())
	if s.spaces[of.Namespace]--; s.spaces[of.Namespace] == 0 {
		delete(s.spaces, of.Namespace)
		if refused := s.inventories[of.Namespace]; refused != nil { // any other has ended with its last listener
			refused.stop()
			delete(s.inventories, of.Namespace)
		}
	}
	return len(s.syncs) == 0
}

// mostListed is the maximum number of syncs that a selector lists. With more, a watch gets all objects with our label.
const mostListed = 20

// has reports whether a sync with this value of our label is known.
func (s *Shared) has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.syncs[key] > 0
}

// selector selects the objects of all syncs.
func (s *Shared) selector() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.syncs) > mostListed {
		return inventory.SyncLabel
	}
	in, err := labels.NewRequirement(inventory.SyncLabel, selection.In, slices.Sorted(maps.Keys(s.syncs)))
	if err != nil {
		panic(err) // a key is a valid value of a label
	}
	return labels.NewSelector().Add(*in).String()
}

// discover returns which kinds are served. Kinds that are looked for at the same time share an answer.
func (s *Shared) discover(ctx context.Context) (*api.Surface, error) {
	s.discovering.Lock()
	defer s.discovering.Unlock()
	if s.surface != nil && time.Since(s.discovered) < firstRetry {
		return s.surface, nil
	}
	at := time.Now()
	found, err := s.reader.Discover(ctx)
	if err == nil {
		s.surface, s.discovered = found, at
	}
	return found, err
}

// A sharedKind watches the metadata of the objects of one kind, for all syncs that own some.
type sharedKind struct {
	*Shared

	kind  schema.GroupKind
	wake  chan struct{} // look now whether the kind is served
	stop  context.CancelFunc
	ended chan struct{}

	again     context.CancelFunc      // lists again
	listeners map[string][]*kindMarks // by the value of our label
	within    string                  // the only namespace that is watched, because the rights suffice for no more; "" for all
	objects   *markedObjects          // nil until they are listed
	what      string                  // is not watched
	trouble   error                   // why; nil if it is watched
}

// join makes a kind known to a listener until the returned function is called.
func (s *Shared) join(ctx context.Context, kind schema.GroupKind, l *kindMarks) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[kind]
	if k == nil {
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		k = &sharedKind{
			Shared: s, kind: kind, wake: make(chan struct{}, 1), stop: stop, ended: make(chan struct{}), again: func() {}, listeners: map[string][]*kindMarks{},
		}
		s.kinds[kind] = k
		go k.run(ctx)
	}
	key := l.cluster.Sync.Key()
	k.listeners[key] = append(k.listeners[key], l)
	if k.objects != nil {
		l.setAll(k.objects.marks[key], k.objects.within)
	}
	signal(k.wake)
	if k.trouble != nil {
		go l.watching.trouble(k.what, k.trouble)
	}
	return sync.OnceFunc(func() {
		what, trouble := k.leave(key, l)
		if trouble != nil && ctx.Err() == nil { // the sync has none of these objects any more
			l.watching.trouble(what, nil)
		}
	})
}

// lookAgain makes the watches of some kinds look now whether their kinds are served.
func (s *Shared) lookAgain(kinds []schema.GroupKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, gk := range kinds {
		if k := s.kinds[gk]; k != nil {
			signal(k.wake)
		}
	}
}

// leave removes a listener, and returns what it was told of trouble. The last one ends the watch.
func (k *sharedKind) leave(key string, l *kindMarks) (what string, trouble error) {
	k.mu.Lock()
	k.listeners[key] = slices.DeleteFunc(k.listeners[key], func(other *kindMarks) bool { return other == l })
	if len(k.listeners[key]) == 0 {
		delete(k.listeners, key)
	}
	last := len(k.listeners) == 0
	if last && k.Shared.kinds[k.kind] == k {
		delete(k.Shared.kinds, k.kind)
	}
	what, trouble = k.what, k.trouble
	k.mu.Unlock()
	if last {
		k.stop()
		<-k.ended
	}
	return what, trouble
}

// run watches the kind whenever it is served.
func (k *sharedKind) run(ctx context.Context) {
	defer close(k.ended)
	for ctx.Err() == nil {
		following, again := context.WithCancel(ctx)
		k.mu.Lock()
		k.again = again
		k.mu.Unlock()
		if f, err := k.feed(following); err == nil {
			wide := time.AfterFunc(wider, func() { k.widen(again) })
			w := &watching{cluster: k.reader, trouble: k.tell}
			w.follow(following, f)
			wide.Stop()
			again()
			continue
		}
		again()
		select { // passes discover, too, and report the error
		case <-ctx.Done():
		case <-k.wake:
		case <-time.After(mostRetry):
		}
	}
}

// widen watches the whole cluster again, if the rights suffice by now. again ends the watch of before.
func (k *sharedKind) widen(again context.CancelFunc) {
	k.mu.Lock()
	limited := k.within != ""
	k.within = ""
	k.mu.Unlock()
	if limited {
		again()
	}
}

// tell reports why the kind is not watched, or that it is watched again.
func (k *sharedKind) tell(what string, trouble error) {
	k.mu.Lock()
	k.what, k.trouble = what, trouble
	all := slices.Concat(slices.Collect(maps.Values(k.listeners))...)
	k.mu.Unlock()
	for _, l := range all {
		l.watching.trouble(what, trouble)
	}
}

// feed returns the feed of the kind, if it is served.
func (k *sharedKind) feed(ctx context.Context) (feed, error) {
	s, err := k.discover(ctx)
	if err != nil {
		return feed{}, err
	}
	gvr, err := s.Resource(k.kind, "")
	if err != nil {
		return feed{}, err
	}
	within, only := k.spaceOf(s)
	f := k.reader.metadataFeed(s, k.kind, gvr, within, k.selector())
	if only != within {
		f.forbidden = func() { k.change(func() { k.within = only }, func(*kindMarks) {}) }
	}
	var listing *markedObjects // nil after the list is complete
	f.unserved = func() {
		k.change(func() { k.objects = nil }, (*kindMarks).forget)
		api.Sleep(ctx, firstRetry) // a CRD that is being replaced is back in a moment
	}
	f.fresh = func() { listing = newMarkedObjects(within) }
	f.put = func(o metav1.Object) {
		id, key := idOfKind(k.kind, o), o.GetLabels()[inventory.SyncLabel]
		switch {
		case !k.has(key): // of another process
			k.gone(id, o.GetResourceVersion())
		case listing != nil:
			listing.put(id, key, inventory.Mark(o))
		default:
			k.put(id, key, inventory.Mark(o), o.GetResourceVersion())
		}
	}
	f.gone = func(o metav1.Object) { k.gone(idOfKind(k.kind, o), o.GetResourceVersion()) }
	f.whole = func() {
		k.change(func() { k.objects = listing }, func(l *kindMarks) { l.setAll(listing.marks[l.cluster.Sync.Key()], within) })
		listing = nil
	}
	return f, nil
}

// spaceOf returns the namespace to watch, "" for all, and the one to watch if that is forbidden: a Role of the namespace of the syncs may
// allow less than the whole cluster. Both are the same if there is no other.
func (k *sharedKind) spaceOf(s *api.Surface) (within, only string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.within != "" || len(k.spaces) != 1 || !s.Kinds[k.kind].Namespaced {
		return k.within, k.within
	}
	return "", slices.Collect(maps.Keys(k.spaces))[0]
}

// change changes the kind and tells all listeners.
func (k *sharedKind) change(do func(), tell func(*kindMarks)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	do()
	for _, listeners := range k.listeners {
		for _, l := range listeners {
			tell(l)
		}
	}
}

// put records the mark of an object.
func (k *sharedKind) put(id manifest.ID, key, mark, version string) {
	if k.syncOf(id) != key { // its label has changed
		k.gone(id, version)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.objects.put(id, key, mark)
	for _, l := range k.listeners[key] {
		l.set(id, mark)
	}
}

// syncOf returns the value of the label that an object had.
func (k *sharedKind) syncOf(id manifest.ID) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.objects.syncs[id]
}

// gone records that an object was deleted, or lost the label of the sync.
func (k *sharedKind) gone(id manifest.ID, version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.objects == nil {
		return
	}
	key, known := k.objects.syncs[id]
	if !known {
		return
	}
	k.objects.drop(id, key)
	for _, l := range k.listeners[key] {
		l.drop(id, version)
	}
}

// markedObjects holds the marks of objects by the value of our label.
type markedObjects struct {
	within string // the only namespace whose objects are known; "" for all
	marks  map[string]map[manifest.ID]string
	syncs  map[manifest.ID]string // the value of the label of each object
}

func newMarkedObjects(within string) *markedObjects {
	return &markedObjects{within: within, marks: map[string]map[manifest.ID]string{}, syncs: map[manifest.ID]string{}}
}

func (m *markedObjects) put(id manifest.ID, key, mark string) {
	if m.marks[key] == nil {
		m.marks[key] = map[manifest.ID]string{}
	}
	m.marks[key][id], m.syncs[id] = mark, key
}

func (m *markedObjects) drop(id manifest.ID, key string) {
	delete(m.syncs, id)
	if delete(m.marks[key], id); len(m.marks[key]) == 0 {
		delete(m.marks, key)
	}
}

// sharedInventories watches the inventories of one namespace. It keeps none of them.
type sharedInventories struct {
	*Shared

	namespace string
	stop      context.CancelFunc
	ended     chan struct{}

	listeners map[string][]*inventoryListener // by the name of the ConfigMap
	refused   bool                            // the rights do not suffice, so each sync watches its own inventory
}

// An inventoryListener receives the inventory of one sync.
type inventoryListener struct {
	news  settling
	leave func() // leaves the shared watch

	mu      sync.Mutex
	latest  *core.ConfigMap // not read yet; nil if there is none, or gone is set
	gone    string          // the resourceVersion at which the inventory was deleted
	version string          // of the newest one
	refused bool
}

// followInventory follows the inventory of the sync until leave is called: together with those of its namespace, unless it is the only one,
// or the shared watch cannot show it.
func (w *watching) followInventory(ctx context.Context) (leave func()) {
	alone := func() { w.alone.Go(func() { w.follow(ctx, w.inventoryFeed(ctx)) }) }
	if !w.cluster.shared.several(w.cluster.Sync.Namespace) {
		alone()
		return func() {}
	}
	return w.followShared(ctx, alone)
}

// several reports whether a namespace has several inventories.
func (s *Shared) several(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spaces[namespace] > 1
}

// followShared follows the inventory of the sync in a shared watch until leave is called. It calls alone if that cannot show it: the rights
// do not suffice, or the inventory lacks the label that the shared watch selects.
func (w *watching) followShared(ctx context.Context, alone func()) (leave func()) {
	at, name, f := w.cluster.Core.ConfigMaps(w.cluster.Sync.Namespace), api.InventoryName(w.cluster.Sync), w.inventoryFeed(ctx)
	l := &inventoryListener{news: settling{trouble: w.panicked}}
	began, over := false, false
	l.news.do = func() {
		if over {
			return
		}
		if !began { // the shared watch may have begun long ago
			if began = l.begin(at.Get(ctx, name, metav1.GetOptions{})); !began {
				l.news.within(mostRetry)
				return
			}
		}
		if over = !l.show(f, func() error { _, err := at.Get(ctx, name, metav1.GetOptions{}); return err }); over {
			l.leave()
			alone()
		}
	}
	w.cluster.shared.joinInventories(ctx, w.cluster.Sync.Namespace, name, l)
	return func() {
		l.news.end()
		l.leave()
	}
}

// show tells a feed what is new. It returns false if the shared watch does not show the inventory. read reads it.
func (l *inventoryListener) show(to feed, read func() error) bool {
	m, gone, refused := l.take()
	switch {
	case refused, m != nil && m.Labels[render.InventoryLabel] == "":
		return false
	case m != nil:
		to.put(m)
	case gone != "":
		if read() == nil {
			return false
		}
		to.gone(&metav1.ObjectMeta{ResourceVersion: gone})
	}
	return true
}

// begin records the inventory as it is at the beginning. It returns false if it is not known.
func (l *inventoryListener) begin(m *core.ConfigMap, err error) bool {
	switch {
	case apierrors.IsNotFound(err):
		l.put(nil, "")
	case err != nil:
		return false
	default:
		l.put(m, m.ResourceVersion)
	}
	return true
}

// put records an inventory, or that it is gone if m is nil, unless a newer one is known.
func (l *inventoryListener) put(m *core.ConfigMap, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if order, err := resourceversion.CompareResourceVersion(version, l.version); l.version != "" && (version == "" || err == nil && order <= 0) {
		return
	}
	l.latest, l.gone, l.version = m, "", version
	if m == nil {
		l.gone = version
		if version == "" {
			l.gone = "an unknown time"
		}
	}
	l.news.soon()
}

func (l *inventoryListener) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = true
	l.news.soon()
}

// take returns what is new.
func (l *inventoryListener) take() (m *core.ConfigMap, gone string, refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, gone, refused = l.latest, l.gone, l.refused
	l.latest, l.gone = nil, ""
	return m, gone, refused
}

// joinInventories sends an inventory to a listener until it leaves.
func (s *Shared) joinInventories(ctx context.Context, namespace, name string, l *inventoryListener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.inventories[namespace]
	if all == nil {
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		all = &sharedInventories{Shared: s, namespace: namespace, stop: stop, ended: make(chan struct{}), listeners: map[string][]*inventoryListener{}}
		s.inventories[namespace] = all
		go all.run(ctx)
	}
	l.leave = sync.OnceFunc(func() { all.leave(name, l) })
	all.listeners[name] = append(all.listeners[name], l)
	if all.refused {
		l.refuse()
	}
	l.news.soon()
}

func (i *sharedInventories) leave(name string, l *inventoryListener) {
	i.mu.Lock()
	i.listeners[name] = slices.DeleteFunc(i.listeners[name], func(other *inventoryListener) bool { return other == l })
	if len(i.listeners[name]) == 0 {
		delete(i.listeners, name)
	}
	last := len(i.listeners) == 0 && !i.refused // a refusal is remembered
	if last {
		delete(i.inventories, i.namespace)
	}
	i.mu.Unlock()
	if last {
		i.stop()
		<-i.ended
	}
}

// run watches the inventories of the namespace.
func (i *sharedInventories) run(ctx context.Context) {
	defer close(i.ended)
	at := i.reader.Core.ConfigMaps(i.namespace)
	listed, version := map[string]bool{}, ""
	w := &watching{cluster: i.reader, trouble: func(string, error) {}} // passes read inventories, too, and report the error
	w.follow(ctx, feed{
		what: "the inventory ConfigMaps of " + i.namespace,
		list: func(ctx context.Context, options metav1.ListOptions) ([]metav1.Object, metav1.ListInterface, error) {
			options.LabelSelector = render.InventoryLabel
			l, err := at.List(ctx, options)
			if err != nil {
				return nil, nil, err
			}
			version = l.ResourceVersion
			return asObjects(l.Items), l, nil
		},
		watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = render.InventoryLabel
			return at.Watch(ctx, options)
		},
		forbidden: func() {
			i.mu.Lock()
			i.refused = true
			i.mu.Unlock()
			i.each(func(_ string, l *inventoryListener) { l.refuse() })
		},
		fresh: func() { clear(listed) },
		put: func(o metav1.Object) {
			listed[o.GetName()] = true
			m, _ := o.(*core.ConfigMap)
			i.send(o.GetName(), m, o.GetResourceVersion())
		},
		gone: func(o metav1.Object) { i.send(o.GetName(), nil, o.GetResourceVersion()) },
		whole: func() {
			i.each(func(name string, l *inventoryListener) {
				if !listed[name] {
					l.put(nil, version)
				}
			})
		},
	})
}

// send sends an inventory to its listeners.
func (i *sharedInventories) send(name string, m *core.ConfigMap, version string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, l := range i.listeners[name] {
		l.put(m, version)
	}
}

// each calls do with every listener.
func (i *sharedInventories) each(do func(name string, l *inventoryListener)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for name, listeners := range i.listeners {
		for _, l := range listeners {
			do(name, l)
		}
	}
}

package controller

import (
	"cmp"
	"context"
	"log/slog"
	"sync"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/target"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// sources watches the sources of Flux that Syncs name, and wakes these Syncs. It watches as the controller, and only metadata: a Sync reads
// its source as its service account. While a kind cannot be watched, because it is not served or the controller lacks the rights, each try
// wakes the Syncs, so that they look themselves. client-go tries within 30 seconds.
type sources struct {
	metadata  metadata.Interface
	changed   func(v1alpha1.SourceRef)
	unwatched func(watchedKind)

	mu      sync.Mutex
	watched map[watchedKind]bool
}

// A watchedKind is a kind of source in a namespace; in all namespaces if that is "".
type watchedKind struct{ kind, namespace string }

// watch watches a kind until ctx is done, unless it is watched already. It returns what has to run for that; nil for nothing.
func (s *sources) watch(ctx context.Context, of watchedKind) (run func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched[of] {
		return nil
	}
	informer := metadatainformer.NewFilteredMetadataInformer(
		s.metadata, v1alpha1.SourceRef{Kind: of.kind}.Resource(), of.namespace, 0, cache.Indexers{}, nil).Informer()
	changed := func(object any) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err != nil {
			return
		}
		namespace, name, _ := cache.SplitMetaNamespaceKey(key) // it is the inverse
		s.changed(v1alpha1.SourceRef{Kind: of.kind, Namespace: namespace, Name: name})
	}
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // it fails only once the informer has stopped, and so do the next ones
		AddFunc: changed, UpdateFunc: func(_, object any) { changed(object) }, DeleteFunc: changed,
	})
	_ = informer.SetTransform(nameOnly)
	last := ""
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { // one goroutine calls it
		if last != err.Error() {
			slog.Warn("sources of Flux are not watched; their Syncs look at them every 30 seconds", "kind", of.kind, "error", err)
		}
		last = err.Error()
		s.unwatched(of)
	})
	if s.watched == nil {
		s.watched = map[watchedKind]bool{}
	}
	s.watched[of] = true
	return func() { informer.RunWithContext(ctx) }
}

// nameOnly keeps what tells objects apart, and their versions.
func nameOnly(object any) (any, error) {
	if o, is := object.(*metav1.PartialObjectMetadata); is {
		o.ObjectMeta = metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}
	}
	return object, nil
}

// sourceOf returns the source of Flux that a Sync names, with its namespace; the zero value if it names none.
func sourceOf(s *v1alpha1.Sync) v1alpha1.SourceRef {
	if s.Spec.Source.SourceRef == nil {
		return v1alpha1.SourceRef{}
	}
	ref := *s.Spec.Source.SourceRef
	ref.Namespace = cmp.Or(ref.Namespace, s.Namespace)
	return ref
}

// watchFor returns the watch that shows a source. A controller for one namespace may have no rights in the others.
func (c *controller) watchFor(source v1alpha1.SourceRef) watchedKind {
	if c.Namespace == "" {
		source.Namespace = ""
	}
	return watchedKind{source.Kind, source.Namespace}
}

// watchSource watches the source of Flux of a Sync, if it names one.
func (c *controller) watchSource(s *v1alpha1.Sync) {
	if s.Spec.Source.SourceRef == nil {
		return
	}
	if run := c.sources.watch(c.running, c.watchFor(sourceOf(s))); run != nil {
		c.fleet.Go(run)
	}
}

// sourceChanged makes the Syncs of a source look at it at once, even if their passes fail.
func (c *controller) sourceChanged(source v1alpha1.SourceRef) {
	c.fleet.Each(func(s *v1alpha1.Sync, as *target.Target) {
		if sourceOf(s) == source {
			as.Loop.Pushed.Send()
		}
	})
}

// sourceUnwatched makes the Syncs look at their sources that a watch does not show.
func (c *controller) sourceUnwatched(of watchedKind) {
	c.fleet.Each(func(s *v1alpha1.Sync, as *target.Target) {
		if c.watchFor(sourceOf(s)) == of {
			as.Loop.Pushed.Send()
		}
	})
}

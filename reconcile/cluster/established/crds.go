// Package established waits until CRDs are established. All passes of one configuration that wait share one watch of CRDs. It uses protobuf
// and skips schemas undecoded, because a provider has tens of megabytes of them.
//
//	one watch ─► by the name of the CRD ─► the passes that applied it
package established

import (
	"bufio"
	"context"
	"errors"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/inventory"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var crds = apiextensions.SchemeGroupVersion.WithResource("customresourcedefinitions")

// CRDs watches the CRDs with our label while a Waiter needs it.
type CRDs struct {
	client *api.Client // of no sync

	mu      sync.Mutex
	waiters map[*Waiter]bool
	stop    context.CancelFunc // nil without a watch
}

// New returns CRDs that are watched with a client. It sends no request.
func New(client *api.Client) *CRDs { return &CRDs{client: client, waiters: map[*Waiter]bool{}} }

// Join returns a Waiter for some CRDs, which has to leave. It hears of every write after Join has returned. The client is that of the pass.
func (c *CRDs) Join(ctx context.Context, client *api.Client, names []string) (*Waiter, error) {
	w := &Waiter{all: c, client: client, states: map[string]state{}, changed: make(chan struct{})}
	for _, name := range names {
		w.states[name] = state{}
	}
	if c.add(ctx, w, "") {
		return w, nil
	}
	now, err := client.Metadata.Resource(crds).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, client.Explain(err, "list", crds.GroupResource().String())
	}
	c.add(ctx, w, now.ResourceVersion)
	return w, nil
}

// add adds a waiter. If nothing is watched, it begins to watch from a resourceVersion, and fails without one.
func (c *CRDs) add(ctx context.Context, w *Waiter, from string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop == nil {
		if from == "" {
			return false
		}
		ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx)) // it may outlast the pass that begins it
		go c.run(ctx, from)
	}
	c.waiters[w] = true
	return true
}

// remove removes a waiter. The last one ends the watch.
func (c *CRDs) remove(w *Waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiters, w)
	if len(c.waiters) == 0 && c.stop != nil {
		c.stop()
		c.stop = nil
	}
}

// run keeps the watch open. If that is not possible, waiters read CRDs themselves, and the next one that joins begins another watch.
func (c *CRDs) run(ctx context.Context, from string) {
	for ctx.Err() == nil {
		err := engine.Caught("watch", func() error { return c.watch(ctx, &from) })
		if isFinal(err) {
			c.end(ctx)
			return
		}
		api.Sleep(ctx, time.Second)
	}
}

// isFinal reports whether a watch cannot continue where it ended.
func isFinal(err error) bool {
	return errors.As(err, new(engine.DefectError)) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsForbidden(err)
}

// end forgets a watch, unless it was stopped and another one may have begun.
func (c *CRDs) end(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	c.stop()
	c.stop = nil
	for w := range c.waiters {
		w.forget()
	}
}

// tell tells all waiters the state that a watch shows of a CRD, unless the watch was stopped.
func (c *CRDs) tell(ctx context.Context, crd string, now state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	for w := range c.waiters {
		w.hear(crd, now)
	}
}

// watch watches until the watch ends. It advances from to the last resourceVersion.
func (c *CRDs) watch(ctx context.Context, from *string) error {
	body, err := c.client.Core.RESTClient().Get().
		AbsPath("/apis", crds.Group, crds.Version, crds.Resource).
		Param("watch", "true").
		Param("labelSelector", inventory.SyncLabel).
		Param("resourceVersion", *from).
		Param("allowWatchBookmarks", "true"). // a bookmark is an event of a CRD without a name
		Param("timeoutSeconds", "600").
		SetHeader("Accept", runtime.ContentTypeProtobuf).
		Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	events := bufio.NewReaderSize(body, 1<<20)
	for {
		crd, now, err := readEvent(events)
		if err != nil {
			return err
		}
		*from = now.version
		c.tell(ctx, crd, now)
	}
}

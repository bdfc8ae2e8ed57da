package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// A queue holds passes that wait for CRDs. No CRD is established while another CRD has their short names.
type queue struct {
	*world

	crds   []string
	passes []chan []plan.Outcome
	cancel context.CancelFunc // of all passes
}

const blocker = "Blocker"

// queue starts passes of n syncs, each with a CRD that has to wait, and returns once all of them wait. The syncs have the configurations in turn.
func (w *world) queue(t *testing.T, n int, configs ...*rest.Config) *queue {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	taken := make([]any, n)
	for i := range taken {
		taken[i] = fmt.Sprint("w", i)
	}
	if _, err := w.at(crds, "").Create(t.Context(), w.short(blocker, taken), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		u, err := w.at(crds, "").Get(t.Context(), "blockers."+w.group, metav1.GetOptions{})
		accepted, _, _ := unstructured.NestedStringSlice(u.Object, "status", "acceptedNames", "shortNames")
		return err == nil && len(accepted) == n
	})
	q, shares := &queue{world: w, cancel: cancel}, &cluster.Shares{}
	var all []*cluster.Cluster
	for i := range n {
		s := inventory.Sync{Namespace: w.sync.Namespace, Name: fmt.Sprint("waits", i)}
		c, err := cluster.New(configs[i%len(configs)], s, cluster.Options{Shares: shares, Timeout: fixtures.Patience})
		if err != nil {
			t.Fatal(err)
		}
		crd := w.short(fmt.Sprint("Waiting", i), taken[i:i+1])
		p := planned(t, c, want(t, crd))
		ended := make(chan []plan.Outcome, 1)
		go func() {
			done, err := c.Apply(ctx, p)
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			ended <- done
		}()
		all, q.crds, q.passes = append(all, c), append(q.crds, crd.GetName()), append(q.passes, ended)
	}
	for i, c := range all {
		until(t, func() bool { return c.WaitsFor() == "CRDs that are not established: "+q.crds[i] })
	}
	return q
}

// short returns a CRD with short names.
func (w *world) short(kind string, short []any) *unstructured.Unstructured {
	crd := w.crd(kind, "Cluster")
	names := crd.Object["spec"].(map[string]any)["names"].(map[string]any)
	names["shortNames"] = short
	return crd
}

// freed lets the CRDs have their names.
func (q *queue) freed(t *testing.T) {
	t.Helper()
	if err := q.at(crds, "").Delete(t.Context(), "blockers."+q.group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// ready waits until a pass has ended, whose CRD must be established.
func (q *queue) ready(t *testing.T, i int) {
	t.Helper()
	for _, o := range <-q.passes[i] {
		if o.Err != nil || !o.NotReady.None() {
			t.Errorf("%s: %v %s", o.ID.Name, o.Err, o.NotReady)
		}
	}
}

// Each pass that waited for CRDs had a watch of its own, which the API server had to feed.
func TestPassesShareWatchOfCRDs(t *testing.T) {
	w := newWorld(t)
	const n = 20
	q := w.queue(t, n, w.counted())
	if got := w.requests.Counts()["WATCH"]; got != 1 {
		t.Errorf("%d watches, want one:\n%s", got, strings.Join(w.requests.Log(), "\n"))
	}
	q.freed(t)
	for i := range n {
		q.ready(t, i)
	}
}

// A watch that was started with the rights of one tenant must not show CRDs to another.
func TestTenantsWaitAlone(t *testing.T) {
	w := newWorld(t)
	q := w.queue(t, 4, w.counted(), w.counted())
	if got := w.requests.Counts()["WATCH"]; got != 2 {
		t.Errorf("%d watches, want one for each of two configurations:\n%s", got, strings.Join(w.requests.Log(), "\n"))
	}
	q.freed(t)
	for i := range 4 {
		q.ready(t, i)
	}
}

// A pass that ends must not end the watch of others, and the last one must. What happens to a CRD that is awaited concerns only its pass.
func TestWaitsForCRDsAreIndependent(t *testing.T) {
	w := newWorld(t)
	var watched atomic.Bool
	q := w.queue(t, 3, fixtures.Intercept(w.config, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.URL.Query().Has("watch") {
			watched.Store(true)
			context.AfterFunc(r.Context(), func() { watched.Store(false) })
		}
		return next.RoundTrip(r)
	}))
	w.patch(t, w.at(crds, ""), q.crds[0], `{"metadata":{"labels":{"`+inventory.SyncLabel+`":null}}}`)
	if err := w.at(crds, "").Delete(t.Context(), q.crds[1], metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	q.freed(t)
	q.ready(t, 0) // the watch does not show it any more
	q.ready(t, 2)
	q.cancel()
	<-q.passes[1]
	until(t, func() bool { return !watched.Load() })
}

// If the watch of CRDs is refused, or the API server has dropped the history, passes read their CRDs.
func TestCRDsAreReadWithoutWatch(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
	}{
		"Forbidden": {"The role of the sync may read CRDs, and may not watch them.", apierrors.NewForbidden(crds.GroupResource(), "", errors.New("no"))},
		"Expired":   {"The API server has dropped the history.", apierrors.NewResourceExpired("too old")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			q := w.queue(t, 2, fixtures.Intercept(w.config, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if r.URL.Query().Has("watch") {
					return nil, tc.err
				}
				return next.RoundTrip(r)
			}))
			q.freed(t)
			q.ready(t, 0)
			q.ready(t, 1)
		})
	}
}

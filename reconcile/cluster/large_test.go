package cluster_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A commit with large objects must not take the processors from the passes of all other syncs.
func TestLargeObjectsTakeTurns(t *testing.T) {
	w := newWorld(t)
	var now, most atomic.Int64
	c := clusterOf(t, fixtures.Intercept(w.config, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.ContentLength > 300<<10 {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
		}
		return next.RoundTrip(r)
	}), w, cluster.Options{})
	space := w.sync.Namespace
	for _, digit := range []string{"1", "2"} { // the second commit is tried before it is applied
		objects := []*unstructured.Unstructured{namespace(space), configMap(space, "small", digit)}
		for i := range 12 {
			objects = append(objects, configMap(space, fmt.Sprint("large-", i), strings.Repeat(digit, 400<<10)))
		}
		applied(t, c, want(t, objects...))
	}
	if got := most.Load(); got > 2 {
		t.Errorf("%d large objects were sent at the same time, want at most 2", got)
	}
}

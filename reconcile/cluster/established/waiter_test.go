package established

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/reason"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// An API server establishes CRDs one after another. Thousands of them take longer than the timeout, and none of them is late.
func TestTimeoutIsOfTheNextCRD(t *testing.T) {
	const timeout = 5 * time.Minute
	cases := map[string]struct {
		reason string
		served int           // of ten
		want   []string      // the CRDs that are late
		took   time.Duration // until Wait returns
	}{
		"Slow":  {"There is progress, so the pass waits.", 10, nil, 10 * 4 * time.Minute},
		"Stuck": {"Nothing becomes served any more, so the pass ends.", 3, []string{"crd-3", "crd-4", "crd-5", "crd-6", "crd-7", "crd-8", "crd-9"}, 3*4*time.Minute + timeout},
		"None":  {"The timeout counts from the write.", 0, []string{"crd-0", "crd-1", "crd-2", "crd-3", "crd-4", "crd-5", "crd-6", "crd-7", "crd-8", "crd-9"}, timeout},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, err := api.Connect(&rest.Config{Host: "http://127.0.0.1:1"}, inventory.Sync{}, api.Options{})
				if err != nil {
					t.Fatal(err)
				}
				w := &Waiter{all: New(client), client: client, states: map[string]state{}, changed: make(chan struct{})}
				applied := map[string]string{}
				for i := range 10 {
					name := fmt.Sprint("crd-", i)
					applied[name] = "1"
					w.states[name] = state{version: "1", reason: reason.ConditionNotReported.With("Established")}
				}
				var server sync.WaitGroup
				defer server.Wait()
				server.Go(func() {
					for i := range tc.served {
						time.Sleep(4 * time.Minute)
						w.hear(fmt.Sprint("crd-", i), state{version: "2"})
					}
					time.Sleep(time.Minute)
					w.hear("crd-9", state{version: "3", reason: reason.ConditionNotReported.With("Established")}) // which is no progress
				})
				begun, done := time.Now(), 0
				why := w.Wait(t.Context(), timeout, applied, func(string) { done++ })
				if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(why))); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
				if took := time.Since(begun); took != tc.took || done != tc.served {
					t.Errorf("%s want %d CRDs after %s, got %d after %s", tc.reason, tc.served, tc.took, done, took)
				}
			})
		})
	}
}

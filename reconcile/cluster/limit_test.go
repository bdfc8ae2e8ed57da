package cluster_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A pass that exceeds its timeout must end with an error that names the request. It must store its results in the inventory and
// release its lease, so that the next pass continues immediately.
func TestPassLimitOverAPIServer(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace
	commit := commitOf(t, namespace(space), configMap(space, "stuck", "1"), configMap(space, "other", "1"))
	var lost atomic.Value // "METHOD path fragment"
	lost.Store("")
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if method, part, ok := strings.Cut(lost.Load().(string), " "); ok && req.Method == method && strings.Contains(req.URL.Path, part) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		return next.RoundTrip(req)
	})
	r := func() reconcile.Reconciler {
		c := clusterOf(t, config, w, cluster.Options{Timeout: time.Second / 5, AnswerTime: time.Hour, LockTimeout: time.Second})
		r := reconcilerOf(c, w)
		r.Waiter, r.Timeout, r.Least = c, time.Second/5, 3*time.Second
		r.Source = commit
		return r
	}
	over := func(what string, result report.Report, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "the pass took longer than ") || !strings.Contains(err.Error(), what) {
			t.Errorf("want an error that names the request, got %v\n%s", err, result.Line())
		}
	}

	lost.Store("PATCH /configmaps/stuck")
	result, err := r().Run(t.Context(), "")
	over("waited for the answer to PATCH /api/v1/namespaces/"+space+"/configmaps/stuck", result, err)
	lost.Store("")
	if result, err = r().Run(t.Context(), ""); err != nil || result.Verdict.ExitCode != 0 {
		t.Fatalf("the next pass goes on: %v %s", err, result.Line())
	}

	lost.Store("DELETE /configmaps/stuck")
	result, err = r().Destroy(t.Context(), plan.Destroying)
	over("waited for the answer to DELETE /api/v1/namespaces/"+space+"/configmaps/stuck", result, err)
	if err != nil && !strings.Contains(err.Error(), "run the command again") {
		t.Errorf("no loop follows a destroy: %v", err)
	}
	c := w.cluster(t, cluster.Options{})
	have, err := c.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, owned := have.Entries[manifest.ID{Kind: "ConfigMap", Namespace: space, Name: "stuck"}]; !owned {
		t.Errorf("what is not known to be gone stays owned: %v", have.Entries)
	}
	lost.Store("")
	if result, err = r().Destroy(t.Context(), plan.Destroying); err != nil || result.Verdict.ExitCode != 0 {
		t.Errorf("the next destroy goes on: %v %s", err, result.Line())
	}
	if diff := cmp.Diff([]string(nil), w.remembered(t)); diff != "" {
		t.Errorf("what is remembered after a destroy (-want +got):\n%s", diff)
	}
}

// If a pass takes long, users must be able to see what it is currently waiting for.
func TestWaitsFor(t *testing.T) {
	w := newWorld(t)
	crd, region := w.inTheMaking(t)
	clash := w.crd("Region", "Cluster")
	clash.SetName("areas." + w.group)
	clash.Object["spec"].(map[string]any)["names"] = map[string]any{"kind": "Region", "plural": "areas"}
	cases := []struct {
		name, waits string
		commit      render.Desired
	}{
		{"Status", "objects that are not ready: Region north", want(t, crd, region)},
		{"CRD", "CRDs that are not established: areas." + w.group, want(t, crd, region, clash)},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := w.cluster(t, cluster.Options{Timeout: 4 * time.Second})
			p := planned(t, c, tc.commit)
			if waits := c.WaitsFor(); waits != "" {
				t.Errorf("before the pass it waits for %q", waits)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := c.Apply(t.Context(), p)
				ended <- err
			}()
			var heard []string
			for over := false; !over; {
				if waits := c.WaitsFor(); !slices.Contains(heard, waits) {
					heard = append(heard, waits)
				}
				select {
				case err := <-ended:
					if over = true; err != nil {
						t.Error(err)
					}
				case <-time.After(10 * time.Millisecond):
				}
			}
			if !slices.Contains(heard, tc.waits) {
				t.Errorf("want %q, heard %q", tc.waits, heard)
			}
			if waits := c.WaitsFor(); waits != "" {
				t.Errorf("after the pass it waits for %q", waits)
			}
		})
	}

	t.Run("Lease", func(t *testing.T) {
		holder := w.cluster(t, cluster.Options{Timeout: 2 * time.Second})
		applied(t, holder, want(t, crd))
		leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
		w.patch(t, w.at(leases, w.sync.Namespace), "headgate-main", `{"spec":{"holderIdentity":"other/1/x","leaseDurationSeconds":3600,"renewTime":"`+time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")+`"}}`)
		c := w.cluster(t, cluster.Options{LockTimeout: 2 * time.Second})
		p := planned(t, c, want(t, crd, configMap("default", w.sync.Namespace, "1")))
		ended := make(chan error, 1)
		go func() {
			_, err := c.Apply(t.Context(), p)
			ended <- err
		}()
		eventually(t, func() error {
			if waits := c.WaitsFor(); waits != "the lease "+w.sync.Namespace+"/headgate-main" {
				return fmt.Errorf("it waits for %q", waits)
			}
			return nil
		})
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "other/1/x") {
			t.Errorf("want an error that names the holder, got %v", err)
		}
		if waits := c.WaitsFor(); waits != "" {
			t.Errorf("after the pass it waits for %q", waits)
		}
	})
}

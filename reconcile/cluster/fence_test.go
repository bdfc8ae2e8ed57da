package cluster_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// isApply reports whether a request applies an object for good.
func isApply(req *http.Request, name string) bool {
	return req.Method == http.MethodPatch && !req.URL.Query().Has("dryRun") && strings.HasSuffix(req.URL.Path, "/"+name)
}

// steals gives the lease of a sync to another process.
func (w *world) steals(t *testing.T) {
	t.Helper()
	w.patch(t, w.at(leases, w.sync.Namespace), "headgate-main", `{"spec":{"holderIdentity":"other/1/x"}}`)
}

// A pass whose lease was stolen would overwrite what the new holder applies. The renewal would notice it a quarter of a minute later.
func TestStolenLease(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		during string        // the object during whose write the lease is stolen
		slow   time.Duration // how long the answer takes
	}{
		"NextTier":   {"A new tier begins.", "namespace", 0},
		"SlowAnswer": {"The API server was slow, and the next object is of the same tier.", "a", 1200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace
			home := namespace(space)
			applied(t, w.cluster(t, cluster.Options{}), want(t, home))
			home.SetLabels(map[string]string{"a": "b"})
			commit := want(t, home, configMap(space, "a", "1"), configMap(space, "b", "1"))
			during := strings.Replace(tc.during, "namespace", space, 1)
			config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				resp, err := next.RoundTrip(req)
				if isApply(req, during) {
					w.steals(t)
					time.Sleep(tc.slow)
				}
				return resp, err
			})
			c := clusterOf(t, config, w, cluster.Options{Concurrency: 1})
			_, err := c.Apply(t.Context(), planned(t, c, commit))
			if err == nil || !strings.Contains(err.Error(), "another pass may have begun") {
				t.Errorf("%s\nwant the pass ended, got %v", tc.reason, err)
			}
			if _, err := w.at(configMaps, space).Get(t.Context(), "b", metav1.GetOptions{}); err == nil {
				t.Errorf("%s\nb was sent without the lease", tc.reason)
			}
			if labels := w.mustGet(t, namespaces, "", space).GetLabels(); labels["a"] != "b" {
				t.Errorf("The namespace was sent with the lease: %v", labels)
			}
		})
	}
}

// A request whose answer was an error is sent again. The lease may be gone by then.
func TestStolenLeaseBeforeARepetition(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace
	applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(space), configMap(space, "a", "1")))
	var sent atomic.Int32
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if isApply(req, "a") && sent.Add(1) == 1 {
			w.steals(t)
			time.Sleep(1200 * time.Millisecond)
			recorder := httptest.NewRecorder()
			recorder.WriteHeader(http.StatusServiceUnavailable)
			return recorder.Result(), nil
		}
		return next.RoundTrip(req)
	})
	c := clusterOf(t, config, w, cluster.Options{})
	if _, err := c.Apply(t.Context(), planned(t, c, want(t, namespace(space), configMap(space, "a", "2")))); err == nil || sent.Load() != 1 {
		t.Errorf("The request was sent %d times: %v", sent.Load(), err)
	}
}

// A user who labels the lease does not take it.
func TestTouchedLease(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace
	applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(space)))
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if isApply(req, "a") {
			w.patch(t, w.at(leases, space), "headgate-main", `{"metadata":{"labels":{"a":"b"}}}`)
			time.Sleep(time.Second) // the lease is renewed meanwhile
		}
		return next.RoundTrip(req)
	})
	applied(t, clusterOf(t, config, w, cluster.Options{Concurrency: 1, LeaseDuration: 2 * time.Second}), want(t, namespace(space), configMap(space, "a", "1"), configMap(space, "b", "1")))
}

// The clocks of two machines differ. A process whose clock is ahead must not take a living lease, and one whose clock is behind must
// take a dead one.
func TestClocksDiffer(t *testing.T) {
	for name, by := range map[string]time.Duration{"Ahead": -10 * time.Minute, "Behind": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace
			applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(space)))
			renew := func() {
				at := time.Now().Add(by).UTC().Format("2006-01-02T15:04:05.000000Z")
				w.patch(t, w.at(leases, space), "headgate-main", `{"spec":{"holderIdentity":"other/1/x","leaseDurationSeconds":1,"acquireTime":"`+at+`","renewTime":"`+at+`"}}`)
			}
			renew()
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					select {
					case <-stop:
						return
					case <-time.After(250 * time.Millisecond):
						renew()
					}
				}
			}()
			commit := want(t, namespace(space), configMap(space, "a", "1"))
			c := w.cluster(t, cluster.Options{LockTimeout: 2500 * time.Millisecond})
			_, err := c.Apply(t.Context(), planned(t, c, commit))
			close(stop)
			<-stopped
			if err == nil || !strings.Contains(err.Error(), "held by other/1/x") {
				t.Errorf("The holder renews the lease, got %v", err)
			}
			if _, err := c.Apply(t.Context(), planned(t, c, commit)); err != nil {
				t.Errorf("The holder is silent: %v", err)
			}
		})
	}
}

// An object that was deleted and made anew between look and write belongs to its maker. Headgate once adopted it in spite of the
// setting, and pruned it later.
func TestMadeAnewBeforeTheWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		anew   bool
		why    reason.Code
	}{
		"MadeAnew": {"Another user made an object of the same name.", true, reason.MadeAnew},
		"Deleted":  {"A user deleted the object.", false, reason.ChangedMeanwhile},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace
			terms := facts.Terms{Adoption: facts.AdoptNone}
			applied(t, w.cluster(t, cluster.Options{Terms: terms}), want(t, namespace(space), configMap(space, "a", "1")))
			meddles := true
			config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				if meddles && isApply(req, "a") {
					meddles = false
					if err := w.at(configMaps, space).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
						t.Error(err)
					}
					if tc.anew {
						w.made(t, thing("v1", "ConfigMap", space, "a", map[string]any{"data": map[string]any{"other": "theirs"}}))
					}
				}
				return next.RoundTrip(req)
			})
			c := clusterOf(t, config, w, cluster.Options{Terms: terms})
			commit := want(t, namespace(space), configMap(space, "a", "2"))
			done, err := c.Apply(t.Context(), planned(t, c, commit))
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range done {
				if o.ID.Name == "a" && reason.Of(o.Err).Code != tc.why {
					t.Errorf("%s\nwant %s, got %v", tc.reason, tc.why, o.Err)
				}
			}
			if !tc.anew {
				applied(t, c, commit)
				w.mustGet(t, configMaps, space, "a")
				return
			}
			if p := planned(t, c, want(t, namespace(space))); p.Count(plan.Prune) > 0 {
				t.Errorf("%s\nit would be pruned: %v", tc.reason, actions(p))
			}
			if live := w.mustGet(t, configMaps, space, "a"); inventory.Ours(live, w.sync) {
				t.Errorf("%s\nit carries our marks: %v", tc.reason, live.GetLabels())
			}
		})
	}
}

// A controller writes the status of an object twenty times a second. Every write moves the resourceVersion, and no pass may fail
// because of that.
func TestBusyStatus(t *testing.T) {
	w := newWorld(t)
	crd, busy := w.crd("Bucket", "Cluster"), w.instance("Bucket", "", "busy")
	applied(t, w.cluster(t, cluster.Options{}), want(t, crd))
	kubectl(t, busy)
	at := w.at(w.resource("Bucket"), "")
	var writes, early atomic.Int32
	status := func() {
		if err := edit(t.Context(), at, "busy", fmt.Sprintf(`{"status":{"times":%d}}`, writes.Add(1)), "status"); err != nil {
			t.Error(err)
		}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				status()
			}
		}
	}()
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if isApply(req, "busy") && early.Add(-1) >= 0 { // the first attempts come too late for certain
			status()
		}
		return next.RoundTrip(req)
	})
	for name, tc := range map[string]struct {
		reason string
		before func() // another writer
	}{
		"Plain":  {"An update names no resourceVersion.", func() {}},
		"Adopts": {"The managed fields are taken over from kubectl.", func() { kubectl(t, busy) }},
		"Takes": {"Fields are taken from another manager.", func() {
			force := true
			body := fmt.Sprintf(`{"apiVersion":%q,"kind":"Bucket","spec":{"size":99}}`, busy.GetAPIVersion())
			if _, err := at.Patch(t.Context(), "busy", types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "rival", Force: &force}); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		for size := range int64(3) {
			tc.before()
			sent := busy.DeepCopy()
			sent.Object["spec"] = map[string]any{"size": 10 + size, "by": name}
			c := clusterOf(t, config, w, cluster.Options{Terms: facts.Terms{Take: true, Adoption: facts.AdoptAll}})
			p := planned(t, c, want(t, crd, sent))
			early.Store(2)
			done, err := c.Apply(t.Context(), p)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			for _, o := range done {
				if o.Err != nil {
					t.Errorf("%s\n%s %s: %v", tc.reason, o.Action, o.ID, o.Err)
				}
			}
			if early.Load() > 1 {
				t.Errorf("%s\nnothing was sent: %v", tc.reason, actions(p))
			}
		}
	}
	close(stop)
	<-stopped
	if writes.Load() < 10 {
		t.Errorf("The status was written %d times only", writes.Load())
	}
}

// The pass looks again, and writes what it finds then.
func TestMadeAnewInAPass(t *testing.T) {
	for name, anew := range map[string]bool{"MadeAnew": true, "Deleted": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace
			text := func(value string) string {
				return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: %s}\ndata: {key: %q}\n", space, value)
			}
			w.made(t, namespace(space))
			var meddles atomic.Bool
			config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				if isApply(req, "a") && meddles.CompareAndSwap(true, false) {
					if err := w.at(configMaps, space).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
						t.Error(err)
					}
					if anew {
						w.made(t, thing("v1", "ConfigMap", space, "a", map[string]any{"data": map[string]any{"other": "theirs"}}))
					}
				}
				return next.RoundTrip(req)
			})
			for _, value := range []string{"1", "2"} {
				c := clusterOf(t, config, w, cluster.Options{})
				r := reconcilerOf(c, w)
				r.Source = place{render.SourceID{Repository: "example.org/a", Commit: value}, text(value)}
				result, err := r.Run(t.Context(), "")
				if err != nil || result.Verdict.ExitCode != 0 {
					t.Errorf("commit %s: exit code %d, %v\n%s", value, result.Verdict.ExitCode, err, fmt.Sprintf("%+v", result.Steps))
				}
				meddles.Store(value == "1")
			}
			if live := w.mustGet(t, configMaps, space, "a"); value(t, live) != "2" || meddles.Load() {
				t.Errorf("want the new value, got %v", live.Object["data"])
			}
		})
	}
}

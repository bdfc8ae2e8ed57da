package cluster_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// In these tests, a second actor is faster than Headgate: it acts after the plan was made, or between two requests of a pass. The
// guards that ruled on the plan cannot see its changes.

// meddled returns a client configuration with which act runs right before the first chosen request.
func (w *world) meddled(chosen func(*http.Request) bool, act func()) *rest.Config {
	var acted atomic.Bool
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if chosen(req) && acted.CompareAndSwap(false, true) {
			act()
		}
		return next.RoundTrip(req)
	})
	return config
}

// unanswered returns a client configuration with which the chosen requests fail while fails is set.
func (w *world) unanswered(fails *atomic.Bool, chosen func(*http.Request) bool) *rest.Config {
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if fails.Load() && chosen(req) {
			return nil, errors.New("boom")
		}
		return next.RoundTrip(req)
	})
	return config
}

// carried applies a plan and returns the error of an object's step, or "".
func carried(t *testing.T, c *cluster.Cluster, p plan.Plan, name string) string {
	t.Helper()
	done, err := c.Apply(t.Context(), p)
	if err != nil && len(done) == 0 {
		t.Fatal(err)
	}
	for _, o := range done {
		switch {
		case o.ID.Name != name:
		case o.Err == nil:
			return ""
		default:
			return words.OfError(o.Err)
		}
	}
	t.Fatalf("no outcome for %s: %v", name, actions(p))
	return ""
}

// is reports whether an object exists.
func (w *world) is(t *testing.T, u *unstructured.Unstructured) bool {
	t.Helper()
	_, err := w.at(configMaps, u.GetNamespace()).Get(t.Context(), u.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// If a process dies after a write, the inventory lists every object that it left.
func TestIntentIsStoredFirst(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace
	w.made(t, namespace(space))
	w.made(t, configMap(space, "adopted", "1"))
	var sent []string
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if req.Method == http.MethodPatch && !req.URL.Query().Has("dryRun") {
			name := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
			sent = append(sent, name)
			data, _, _ := unstructured.NestedStringMap(w.inventory(t).Object, "data")
			if !slices.ContainsFunc(slices.Collect(maps.Keys(data)), func(key string) bool { return strings.Contains(key, "_"+name+"_") }) {
				t.Errorf("%s is written and the inventory does not name it: %v", name, data)
			}
		}
		return next.RoundTrip(req)
	})
	applied(t, clusterOf(t, config, w, cluster.Options{Concurrency: 1}), want(t, configMap(space, "made", "1"), configMap(space, "adopted", "1")))
	if slices.Sort(sent); !slices.Equal(sent, []string{"adopted", "made"}) {
		t.Errorf("nothing is tested: %v", sent)
	}
}

// Headgate does not overwrite fields that another manager changed after the plan was made.
func TestForceTakesWhatWasSeen(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace
	c := w.cluster(t, cluster.Options{Terms: facts.Terms{Take: true}})
	mine := want(t, namespace(space), configMap(space, "settings", "1"))
	applied(t, c, mine)
	applyAs(t, "other-tool", w.at(configMaps, space), configMap(space, "settings", "2"))
	p := planned(t, c, mine)
	applyAs(t, "third-tool", w.at(configMaps, space), configMap(space, "settings", "3"))
	if why := carried(t, c, p, "settings"); why == "" {
		t.Error("want a conflict")
	}
	if got := value(t, w.mustGet(t, configMaps, space, "settings")); got != "3" {
		t.Errorf("it holds %q, want what the third tool wrote", got)
	}
}

// Headgate deletes only the object that the guards saw, and only in that version.
func TestDeleteWhatWasSeen(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace
	c := w.cluster(t, cluster.Options{})
	applied(t, c, want(t, namespace(space), configMap(space, "kept", "1"), configMap(space, "asked", "1")))
	p := planned(t, c, want(t, namespace(space), configMap(space, "kept", "1")))
	w.patch(t, w.at(configMaps, space), "asked", `{"metadata":{"annotations":{"kustomize.toolkit.fluxcd.io/prune":"disabled"}}}`)
	if why := carried(t, c, p, "asked"); !strings.Contains(why, "changed after it was observed") {
		t.Errorf("a person asked meanwhile that it stays: %q", why)
	}
	if !w.is(t, configMap(space, "asked", "")) {
		t.Error("it was deleted")
	}
}

// Headgate removes its finalizer only from the object that the guards saw, and keeps all other finalizers.
func TestFinalizerOfWhatWasSeen(t *testing.T) {
	t.Parallel()
	const theirs = "example.org/theirs"
	base := func(w *world) *unstructured.Unstructured { return configMap(w.sync.Namespace, "base", "1") }
	at := func(w *world) string { return "/namespaces/" + w.sync.Namespace + "/configmaps/base" }
	cases := map[string]struct {
		reason string
		during bool // right before Headgate writes the finalizers; otherwise after the plan was made
		act    func(t *testing.T, w *world)
		want   []string // finalizers, without ours
	}{
		"Changed": {
			reason: "A user changes the object.",
			act: func(t *testing.T, w *world) {
				t.Helper()
				w.patch(t, w.at(configMaps, w.sync.Namespace), "base", `{"data":{"key":"theirs"}}`)
			},
		},
		"Finalized": {
			reason: "Another controller adds its finalizer between our read and our write.", during: true,
			act: func(t *testing.T, w *world) {
				t.Helper()
				live := w.mustGet(t, configMaps, w.sync.Namespace, "base")
				live.SetFinalizers(append(live.GetFinalizers(), theirs))
				if _, err := w.at(configMaps, w.sync.Namespace).Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			},
			want: []string{theirs},
		},
		"MadeAnew": {
			reason: "Another object with this name is being deleted, and only our finalizer would keep it.",
			act: func(t *testing.T, w *world) {
				t.Helper()
				them := w.at(configMaps, w.sync.Namespace)
				was := w.mustGet(t, configMaps, w.sync.Namespace, "base")
				w.patch(t, them, "base", `{"metadata":{"finalizers":null}}`)
				anew := base(w)
				for _, u := range []*unstructured.Unstructured{was, anew} {
					if u == anew {
						anew.SetFinalizers(was.GetFinalizers())
						w.made(t, anew)
					}
					if err := them.Delete(t.Context(), "base", metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace
			settled(t, w.cluster(t, cluster.Options{}), want(t, namespace(space), base(w), protecting(space, "user", "base")))
			ours := w.mustGet(t, configMaps, space, "base").GetFinalizers()
			if err := w.at(configMaps, space).Delete(t.Context(), "user", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			act := func() { tc.act(t, w) }
			c := clusterOf(t, w.meddled(func(req *http.Request) bool {
				return tc.during && req.Method == http.MethodPatch && strings.HasSuffix(req.URL.Path, at(w)) && !req.URL.Query().Has("dryRun")
			}, act), w, cluster.Options{})
			p := planned(t, c, want(t, namespace(space)))
			if !slices.ContainsFunc(p.Steps, func(s plan.Step) bool {
				return s.ID.Name == "base" && s.Action == plan.Prune && s.Do() == plan.DoUnprotect
			}) || len(ours) != 1 {
				t.Fatalf("nothing is tested: %v, finalizers %v", actions(p), ours)
			}
			if !tc.during {
				act()
			}
			if why := carried(t, c, p, "base"); !strings.Contains(why, "changed after it was observed") {
				t.Errorf("%s\nwant it left alone, got %q", tc.reason, why)
			}
			if diff := cmp.Diff(append(ours, tc.want...), w.mustGet(t, configMaps, space, "base").GetFinalizers()); diff != "" {
				t.Errorf("%s\nfinalizers (-want +got):\n%s", tc.reason, diff)
			}
			w.patch(t, w.at(configMaps, space), "base", `{"metadata":{"finalizers":null}}`)
		})
	}
}

// Right before a delete, Headgate checks again what protects the object and what would be deleted with it. If a check fails, the
// object counts as in use.
func TestPruneAsksOnceMore(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace
	w.serveUsages(t)
	var fails atomic.Bool
	cases := map[string]struct {
		reason string
		failed string // resource that can no longer be listed; "" for none
		act    func()
		crd    bool // whether the case is about the CRD instead of the ConfigMap
		want   string
	}{
		"LateUsage": {
			reason: "A Usage of the object appears.",
			act: func() {
				w.made(t, thing("protection.crossplane.io/v1beta1", "Usage", space, "late", map[string]any{
					"spec": map[string]any{"reason": "late", "of": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "resourceRef": map[string]any{"name": "dropped"}}},
				}))
			},
			want: "a Crossplane Usage protects it meanwhile (Usage " + space + "/late",
		},
		"UnreadUsages":   {reason: "Usages can no longer be read.", failed: "usages", want: "a Crossplane Usage protects it meanwhile (boom)"},
		"UncountedUsers": {reason: "Custom resources can no longer be counted.", failed: "uncounteduserss", crd: true, want: "cannot be counted any more (boom)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			crd, dropped := w.crd(name, "Cluster"), configMap(space, "dropped", "1")
			of := dropped
			if tc.crd {
				of = crd
			}
			fails.Store(false)
			rest := []*unstructured.Unstructured{namespace(space), w.crd("Region", "Cluster")}
			c := clusterOf(t, w.unanswered(&fails, func(req *http.Request) bool { return tc.failed != "" && strings.HasSuffix(req.URL.Path, "/"+tc.failed) }), w, cluster.Options{})
			applied(t, c, want(t, append(slices.Clone(rest), crd, dropped)...))
			p := planned(t, c, want(t, rest...))
			p = p.Select(func(s plan.Step) bool { return !s.Deleting }) // the CRD of the case before
			if p.Count(plan.Prune) != 2 {
				t.Fatalf("nothing is tested: %v", actions(p))
			}
			if tc.act != nil {
				tc.act()
			}
			fails.Store(true)
			if why := carried(t, c, p, of.GetName()); !strings.Contains(why, tc.want) {
				t.Errorf("%s\ngot %q, want %q", tc.reason, why, tc.want)
			}
			fails.Store(false)
			if tc.crd {
				w.mustGet(t, crds, "", crd.GetName())
			} else {
				w.mustGet(t, configMaps, space, dropped.GetName())
			}
			if err := w.at(usages, space).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Headgate removes its marks only from the object that it saw, and only while the marks are its own.
func TestReleaseWhatWasSeen(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		act    func(t *testing.T, w *world)
	}{
		"TakenOver": {
			reason: "Another sync adopted the object.",
			act: func(t *testing.T, w *world) {
				t.Helper()
				w.patch(t, w.at(configMaps, w.sync.Namespace), "a", `{"metadata":{"labels":{"`+inventory.SyncLabel+`":"other.sync"},"annotations":{"`+inventory.InventoryAnnotation+`":"other.sync"}}}`)
			},
		},
		"MadeAnew": {
			reason: "A user deleted the object and applied a copy.",
			act: func(t *testing.T, w *world) {
				t.Helper()
				copied := w.mustGet(t, configMaps, w.sync.Namespace, "a")
				if err := w.at(configMaps, w.sync.Namespace).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				u := configMap(w.sync.Namespace, "a", "1")
				u.SetLabels(copied.GetLabels())
				u.SetAnnotations(copied.GetAnnotations())
				w.made(t, u)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.cluster(t, cluster.Options{})
			applied(t, c, want(t, namespace(w.sync.Namespace), configMap(w.sync.Namespace, "a", "1")))
			nothing := render.Desired{Owner: render.OwnerHeadgate}
			seen, err := c.Observe(t.Context(), nothing)
			if err != nil {
				t.Fatal(err)
			}
			seen.Stance = plan.Orphaning
			p, err := draft.Compute(seen, guard.Guarding{}.Guards()...)
			if err != nil || p.Count(plan.Release) != 2 {
				t.Fatalf("nothing is tested: %v, %v", actions(p), err)
			}
			tc.act(t, w)
			was := w.mustGet(t, configMaps, w.sync.Namespace, "a")
			carried(t, c, p, "a")
			if diff := cmp.Diff(was.Object, w.mustGet(t, configMaps, w.sync.Namespace, "a").Object); diff != "" {
				t.Errorf("%s\n(-was +is):\n%s", tc.reason, diff)
			}
		})
	}
}

// An object whose kind is not served counts as gone only if Headgate could read all possible causes, and no CRD or APIService would
// serve the kind.
func TestHiddenUnlessRead(t *testing.T) {
	const lost = "lost.example.org"
	w := newWorld(t)
	applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(w.sync.Namespace)))
	w.patch(t, w.at(configMaps, w.sync.Namespace), "headgate-main", `{"data":{"_north_`+lost+`_Region":"{\"uid\":\"u\",\"strategy\":\"Apply\",\"actuation\":\"Succeeded\",\"reconcile\":\"Succeeded\"}"}}`)
	crd := w.crd("Zone", "Cluster") // another kind of the group, not served
	crd.SetName("zones." + lost)
	spec := crd.Object["spec"].(map[string]any)
	spec["group"] = lost
	spec["versions"].([]any)[0].(map[string]any)["served"] = false
	w.made(t, crd)
	north := manifest.ID{Group: lost, Kind: "Region", Name: "north"}
	cases := map[string]struct {
		reason string
		failed string // path that cannot be read
		answer string // response of the API server about APIServices
		keeps  string
	}{
		"Gone":                {reason: "No CRD or APIService serves the kind."},
		"CRDsUnread":          {reason: "If CRDs cannot be read, there may be one for the kind.", failed: "/customresourcedefinitions", keeps: "boom"},
		"CRDUnread":           {reason: "If a CRD of the group cannot be read, it may be the CRD of the kind.", failed: "/customresourcedefinitions/zones." + lost, keeps: "boom"},
		"APIServicesUnread":   {reason: "If APIServices cannot be read, there may be one for the group.", failed: "/apiservices", keeps: "boom"},
		"Aggregated":          {reason: "An unavailable API server may serve the kind again later.", answer: `{"group":"` + lost + `","service":{"name":"regions"}}`, keeps: "the APIService v1." + lost + " exists"},
		"ServedByThisAPI":     {reason: "An APIService for a CRD exists only as long as the CRD does.", answer: `{"group":"` + lost + `"}`},
		"AggregatedElsewhere": {reason: "An APIService for another group does not serve the kind.", answer: `{"group":"other.example.org","service":{"name":"regions"}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				switch {
				case tc.failed != "" && strings.HasSuffix(req.URL.Path, tc.failed):
					return nil, errors.New("boom")
				case tc.answer != "" && strings.HasSuffix(req.URL.Path, "/apiservices"):
					return answer(req, `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIServiceList","items":[{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.`+lost+`"},"spec":`+tc.answer+`}]}`), nil
				}
				return next.RoundTrip(req)
			})
			p := planned(t, clusterOf(t, config, w, cluster.Options{}), want(t, namespace(w.sync.Namespace)))
			why := ""
			for _, s := range p.Steps {
				if s.ID == north && errors.Is(s.Err, reason.ErrUnserved) {
					why = words.OfError(s.Err)
				}
			}
			if gone := slices.Contains(p.Gone, north); gone != (tc.keeps == "") || !strings.Contains(why, tc.keeps) {
				t.Errorf("%s\ngone %t, %q; want %q", tc.reason, gone, why, tc.keeps)
			}
		})
	}
}

// answer returns an HTTP response of an API server.
func answer(req *http.Request, body string) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req}
}

// Headgate does not delete a namespace while it cannot discover a kind that may have objects in the namespace.
func TestUndiscoveredKindsAreInUse(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(space), configMap("default", w.sync.Namespace, "1")))
	w.made(t, w.crd("Bucket", "Namespaced"))
	w.served(t, "Bucket", true)
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		switch req.URL.Path {
		case "/api", "/apis": // without aggregated discovery, clients request each group separately
			req = req.Clone(req.Context())
			req.Header.Set("Accept", "application/json")
		case "/apis/" + w.group + "/v1":
			return nil, errors.New("boom")
		}
		return next.RoundTrip(req)
	})
	p := planned(t, clusterOf(t, config, w, cluster.Options{}), want(t, configMap("default", w.sync.Namespace, "1")))
	if diff := cmp.Diff([]string{"hold (others inside) Namespace/" + space}, actions(p)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// An object does not count as gone because its kind disappeared between discovery and a read.
func TestKindVanishesDuringAPass(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace
	applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(space), configMap(space, "a", "1"), configMap(space, "b", "1")))
	w.patch(t, w.at(configMaps, space), "a", `{"metadata":{"labels":{"`+inventory.SyncLabel+`":null}}}`) // Without our label, Headgate reads it by name.
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.HasSuffix(req.URL.Path, "/configmaps/a") {
			answer := answer(req, "404 page not found")
			answer.StatusCode = http.StatusNotFound
			answer.Header.Set("Content-Type", "text/plain")
			return answer, nil
		}
		return next.RoundTrip(req)
	})
	p, err := tryPlan(t.Context(), clusterOf(t, config, w, cluster.Options{}), want(t, namespace(space), configMap(space, "b", "1")))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Steps {
		if s.ID.Kind == "ConfigMap" && s.Err == nil {
			t.Errorf("%s %s would be sent", s.Action, s.ID)
		}
	}
	if len(p.Steps) == 0 || len(p.Gone) > 0 {
		t.Errorf("want steps that fail, got %v, forgets %v", actions(p), p.Gone)
	}
}

// A pass that has lost its lease sends no more requests.
func TestLostLease(t *testing.T) {
	const objects = 10
	w := newWorld(t)
	space := w.sync.Namespace
	applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(space)))
	commit := want(t, namespace(space))
	for i := range objects {
		commit.Objects = append(commit.Objects, want(t, configMap(space, fmt.Sprintf("m%02d", i), "1")).Objects...)
	}
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	c := w.cluster(t, cluster.Options{Concurrency: 1, LeaseDuration: 2 * time.Second, Progress: func(e cluster.Event) {
		if e.Phase == "apply" && e.Done == 1 {
			w.patch(t, w.at(leases, space), "headgate-main", `{"spec":{"holderIdentity":"other/1/x"}}`)
		}
		if e.Phase == "apply" {
			time.Sleep(300 * time.Millisecond)
		}
	}})
	done, err := c.Apply(t.Context(), planned(t, c, commit))
	if err == nil || !strings.Contains(err.Error(), "another pass may have begun") || len(done) == objects {
		t.Errorf("want the pass ended, and what it did, got %v and %d of %d outcomes", err, len(done), objects)
	}
}

// If another process writes the inventory while a sync is destroyed, the inventory stays, because it may list another object.
func TestForgetWhatWasSeen(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace
	applied(t, w.cluster(t, cluster.Options{}), want(t, configMap(space, "a", "1"), namespace(space)))
	config := w.meddled(func(req *http.Request) bool {
		return req.Method == http.MethodDelete && strings.HasSuffix(req.URL.Path, "/configmaps/headgate-main")
	}, func() {
		w.patch(t, w.at(configMaps, space), "headgate-main", `{"data":{"`+space+`_b__ConfigMap":""}}`)
	})
	c := clusterOf(t, config, w, cluster.Options{})
	nothing := render.Desired{Owner: render.OwnerHeadgate}
	var err error
	for range 3 {
		var seen facts.Observed
		if seen, err = c.Observe(t.Context(), nothing); err != nil {
			t.Fatal(err)
		}
		seen.Stance = plan.Orphaning
		p, failed := draft.Compute(seen, guard.Guarding{}.Guards()...)
		if failed != nil {
			t.Fatal(failed)
		}
		if _, err = c.Apply(t.Context(), p); err != nil {
			break
		}
	}
	if !errors.Is(err, reason.ErrMoved) {
		t.Errorf("want ErrMoved, got %v", err)
	}
	if data, _, _ := unstructured.NestedStringMap(w.inventory(t).Object, "data"); len(data) != 1 {
		t.Errorf("the inventory holds %v", data)
	}
}

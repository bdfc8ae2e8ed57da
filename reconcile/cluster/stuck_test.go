package cluster_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// deaf returns the address of a server that accepts connections and never responds.
func deaf(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		var open []net.Conn
		for {
			conn, err := listener.Accept()
			if err != nil {
				break
			}
			open = append(open, conn)
		}
		for _, conn := range open {
			conn.Close()
		}
	}()
	return "https://" + listener.Addr().String() + "/"
}

// webhook returns the configuration of an admission webhook for the ConfigMaps in a namespace.
func webhook(name, url, space string) *unstructured.Unstructured {
	return thing("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", name, map[string]any{"webhooks": []any{map[string]any{
		"name": "gate.example.org", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "timeoutSeconds": int64(1), "failurePolicy": "Fail",
		"clientConfig":      map[string]any{"url": url},
		"rules":             []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "operations": []any{"CREATE", "UPDATE"}}},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": space}},
	}}})
}

// outcomes returns the error of each outcome by object name, or "".
func outcomes(done []plan.Outcome) map[string]string {
	texts := map[string]string{}
	for _, o := range done {
		texts[o.ID.Name] = words.Of(o.NotReady)
		if o.Err != nil {
			texts[o.ID.Name] = words.OfError(o.Err)
		}
	}
	return texts
}

// An admission webhook that does not respond must not stop changes that it does not rule on, least of all its own repair.
func TestDeadAdmissionWebhook(t *testing.T) {
	cases := map[string]struct {
		reason string
		url    func(t *testing.T) string
		repair func(w *world, space string) []*unstructured.Unstructured
	}{
		"Refuses": {
			reason: "Nothing listens at the webhook's address, and the commit corrects the address.",
			url:    func(*testing.T) string { return "https://127.0.0.1:1/" },
			repair: func(w *world, space string) []*unstructured.Unstructured {
				u := webhook(w.sync.Namespace, "https://127.0.0.1:1/", space)
				hooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
				hooks[0].(map[string]any)["failurePolicy"] = "Ignore"
				u.Object["webhooks"] = hooks
				return []*unstructured.Unstructured{u}
			},
		},
		"Hangs": {
			reason: "The webhook accepts connections but never responds, and the commit removes it.",
			url:    deaf,
			repair: func(*world, string) []*unstructured.Unstructured { return nil },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace + "-app"
			defer func() {
				_ = w.at(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}, "").
					Delete(t.Context(), w.sync.Namespace, metav1.DeleteOptions{})
			}()
			c := w.cluster(t, cluster.Options{Timeout: 5 * time.Second})
			applied(t, c, want(t, namespace(space), configMap(space, "behind", "1"), configMap("default", w.sync.Namespace, "1"), webhook(w.sync.Namespace, tc.url(t), space)))

			commit := func(repair ...*unstructured.Unstructured) render.Desired {
				return want(t, append(repair, namespace(space), configMap(space, "behind", "2"), configMap(space, "new", "2"), configMap("default", w.sync.Namespace, "2"))...)
			}
			p := planned(t, c, commit(tc.repair(w, space)...))
			done, err := c.Apply(t.Context(), p)
			if err != nil {
				t.Fatalf("%s\nIt is the trouble of one object: %v", tc.reason, err)
			}
			texts := outcomes(done)
			for name, part := range map[string]string{"behind": `the admission webhook "gate.example.org" does not answer`, "new": `the admission webhook "gate.example.org" does not answer`, w.sync.Namespace: ""} {
				if got, ok := texts[name]; !ok || part == "" && got != "" || !strings.Contains(got, part) {
					t.Errorf("%s\n%s: want %q in %q", tc.reason, name, part, got)
				}
			}
			// The API server needs a moment to start calling the webhook.
			eventually(t, func() error {
				p := planned(t, c, commit(tc.repair(w, space)...))
				if !p.Writes() {
					return nil
				}
				done, err := c.Apply(t.Context(), p)
				return fmt.Errorf("the next pass finishes the commit: %v %v %w", actions(p), outcomes(done), err)
			})
		})
	}
}

// twoVersions returns a CRD with two versions: the first one is the storage version, the second one is preferred.
func (w *world) twoVersions(conversion map[string]any, stored string, served ...string) *unstructured.Unstructured {
	crd := w.crd("Region", "Cluster")
	var versions []any
	for _, name := range []string{"v1alpha1", "v1"} {
		versions = append(versions, map[string]any{
			"name": name, "served": slices.Contains(served, name), "storage": name == stored,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	spec := crd.Object["spec"].(map[string]any)
	spec["versions"] = versions
	if conversion != nil {
		spec["conversion"] = conversion
	}
	return crd
}

// deadConversion returns the conversion of a CRD by a webhook at which nothing listens.
func deadConversion() map[string]any {
	return map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1/convert"},
	}}
}

// converting returns the clientConfig of a conversion webhook that only changes the version.
func converting(t *testing.T) map[string]any {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var review unstructured.Unstructured
		if err := json.NewDecoder(req.Body).Decode(&review.Object); err != nil {
			t.Error(err)
		}
		version, _, _ := unstructured.NestedString(review.Object, "request", "desiredAPIVersion")
		uid, _, _ := unstructured.NestedString(review.Object, "request", "uid")
		objects, _, _ := unstructured.NestedSlice(review.Object, "request", "objects")
		for _, o := range objects {
			o.(map[string]any)["apiVersion"] = version
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
			"response": map[string]any{"uid": uid, "convertedObjects": objects, "result": map[string]any{"status": "Success"}}})
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return map[string]any{"url": server.URL + "/convert", "caBundle": base64.StdEncoding.EncodeToString(ca)}
}

// A conversion webhook that does not respond must not stop its own repair.
func TestDeadConversionWebhook(t *testing.T) {
	w := newWorld(t)
	both := []string{"v1alpha1", "v1"}
	region := w.instance("Region", "", "north")
	region.SetAPIVersion(w.group + "/v1alpha1")
	c := w.cluster(t, cluster.Options{Timeout: 10 * time.Second})
	other := func(value string) *unstructured.Unstructured { return configMap("default", w.sync.Namespace, value) }
	applied(t, c, want(t, w.twoVersions(nil, "v1alpha1", both...), region, other("1")))
	applied(t, c, want(t, w.twoVersions(deadConversion(), "v1alpha1", both...), region, other("1")))
	w.unconverted(t, "Region")

	applied(t, c, want(t, w.twoVersions(deadConversion(), "v1alpha1", both...), region, other("2")))
	if p := planned(t, c, want(t, w.twoVersions(deadConversion(), "v1alpha1", both...), region, other("2"))); p.Writes() {
		t.Errorf("Objects are read as they are stored: %v", actions(p))
	}
	gone := planned(t, c, want(t, w.twoVersions(deadConversion(), "v1alpha1", both...), other("2")))
	if diff := cmp.Diff([]string{"prune (commit) Region." + w.group + "/north"}, actions(gone)); diff != "" {
		t.Errorf("and are pruned (-want +got):\n%s", diff)
	}
	applied(t, c, want(t, w.twoVersions(nil, "v1alpha1", both...), region, other("3")))
}

// unconverted waits until the API server calls the webhook of a CRD.
func (w *world) unconverted(t *testing.T, kind string) {
	t.Helper()
	eventually(t, func() error {
		_, err := w.at(w.resource(kind), "").List(t.Context(), metav1.ListOptions{})
		if err == nil || !strings.Contains(err.Error(), "conversion webhook for ") {
			return fmt.Errorf("it is not asked yet: %w", err)
		}
		return nil
	})
}

// The placeholder for a webhook's CA is not a valid CA, and an API server would never establish such a CRD.
func TestPlaceholderCA(t *testing.T) {
	w := newWorld(t)
	conversion := deadConversion()
	conversion["webhook"].(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = "Cg=="
	c := w.cluster(t, cluster.Options{Timeout: 10 * time.Second})
	commit := want(t, w.twoVersions(conversion, "v1", "v1alpha1", "v1"))
	applied(t, c, commit)
	if p := planned(t, c, commit); p.Writes() {
		t.Errorf("and the next pass finds it as it is wanted: %v", actions(p))
	}
}

// If no version of a kind can be read, only steps that depend on the kind fail. Its objects and its CRD are not pruned and do not
// count as gone.
func TestUnreadableKind(t *testing.T) {
	w := newWorld(t)
	both := []string{"v1alpha1", "v1"}
	space := w.sync.Namespace + "-app"
	region := w.instance("Region", "", "north")
	region.SetAPIVersion(w.group + "/v1alpha1")
	c := w.cluster(t, cluster.Options{Timeout: 10 * time.Second})
	other := func(value string) *unstructured.Unstructured { return configMap("default", w.sync.Namespace, value) }
	applied(t, c, want(t, namespace(space), w.twoVersions(nil, "v1alpha1", both...), region, other("1"), configMap("default", w.sync.Namespace+"-old", "1")))
	applied(t, c, want(t, namespace(space), w.twoVersions(nil, "v1", both...), region, other("1"), configMap("default", w.sync.Namespace+"-old", "1")))
	applied(t, c, want(t, namespace(space), w.twoVersions(deadConversion(), "v1", both...), region, other("1"), configMap("default", w.sync.Namespace+"-old", "1")))
	w.unconverted(t, "Region") // the object is stored as v1alpha1, and the CRD's storage version is v1

	for name, commit := range map[string]render.Desired{
		"wanted": want(t, namespace(space), w.twoVersions(deadConversion(), "v1", both...), region, other("2")),
		"gone":   want(t, namespace(space), other("3")),
	} {
		p := planned(t, c, commit)
		done, err := c.Apply(t.Context(), p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		texts := outcomes(done)
		if !strings.Contains(texts["north"], "cannot be read") || texts[w.sync.Namespace] != "" {
			t.Errorf("%s: only what cannot be read fails: %v", name, texts)
		}
		if name == "gone" && !slices.Contains(actions(p), "hold (in use) CustomResourceDefinition.apiextensions.k8s.io/regions."+w.group) {
			t.Errorf("The CRD goes only with a count of its objects: %v", actions(p))
		}
		inv, err := c.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kept := 0
		for id, e := range inv.Entries {
			if id.Name == "north" && e.UID != "" || id.IsCRD() {
				kept++
			}
		}
		if kept != 2 {
			t.Errorf("%s: the inventory keeps what may be there: %v", name, inv.Entries)
		}
	}
	repaired := deadConversion()
	repaired["webhook"].(map[string]any)["clientConfig"] = converting(t)
	eventually(t, func() error {
		p := planned(t, c, want(t, namespace(space), w.twoVersions(repaired, "v1", both...), region, other("4")))
		if !p.Writes() {
			return nil
		}
		done, err := c.Apply(t.Context(), p)
		return fmt.Errorf("after the repair all is as wanted: %v %v %w", actions(p), outcomes(done), err)
	})
}

// An unavailable aggregated API server affects only its own kinds.
func TestDeadAggregatedServer(t *testing.T) {
	w := newWorld(t)
	fixtures.Retire(t)
	service := thing("apiregistration.k8s.io/v1", "APIService", "", "v1."+w.group, map[string]any{"spec": map[string]any{
		"group": w.group, "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10), "insecureSkipTLSVerify": true,
		"service": map[string]any{"name": "nobody", "namespace": "default"},
	}})
	w.made(t, service)
	services := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	defer func() { _ = w.at(services, "").Delete(t.Context(), service.GetName(), metav1.DeleteOptions{}) }()
	eventually(t, func() error {
		_, err := w.at(w.resource("Region"), "").List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsServiceUnavailable(err) {
			return fmt.Errorf("it is not asked yet: %w", err)
		}
		return nil
	})
	c := w.cluster(t, cluster.Options{Timeout: 5 * time.Second})
	p := planned(t, c, want(t, w.instance("Region", "", "north"), configMap("default", w.sync.Namespace, "1")))
	done, err := c.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if texts := outcomes(done); texts["north"] == "" || texts[w.sync.Namespace] != "" {
		t.Errorf("Only what that server has fails: %v", texts)
	}
}

// If the API server does not respond, that is no evidence about objects. All other objects are applied, and nothing is pruned.
func TestNoPruneInTrouble(t *testing.T) {
	w := newWorld(t)
	troubled := false
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if troubled && req.Method == http.MethodPatch && strings.Contains(req.URL.Path, "/configmaps/troubled") {
			recorder := httptest.NewRecorder()
			recorder.Header().Set("Content-Type", "application/json")
			recorder.WriteHeader(http.StatusGatewayTimeout)
			_, _ = recorder.WriteString(`{"apiVersion":"v1","kind":"Status","status":"Failure","code":504,"reason":"Timeout","message":"Timeout: request did not complete within requested timeout - context deadline exceeded"}`)
			return recorder.Result(), nil
		}
		return next.RoundTrip(req)
	})
	c := clusterOf(t, config, w, cluster.Options{})
	space := w.sync.Namespace
	applied(t, c, want(t, namespace(space), configMap(space, "troubled", "1"), configMap(space, "other", "1"), configMap(space, "old", "1")))
	troubled = true
	p := planned(t, c, want(t, namespace(space), configMap(space, "troubled", "2"), configMap(space, "other", "2")))
	done, err := c.Apply(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "nothing is pruned") {
		t.Errorf("want an error that ends the pass, got %v", err)
	}
	got := map[string]string{}
	for _, o := range done {
		got[o.ID.Name] = string(o.Action)
		if o.Err != nil {
			got[o.ID.Name] = "failed"
		}
	}
	if diff := cmp.Diff(map[string]string{"troubled": "failed", "other": "update"}, got); diff != "" {
		t.Errorf("what is done (-want +got):\n%s", diff)
	}
	troubled = false
	applied(t, c, want(t, namespace(space), configMap(space, "troubled", "2"), configMap(space, "other", "2")))
}

// A request without a response must not block the loop for longer than its deadline, and the error names the request.
//
//test:long
func TestNeverAnswered(t *testing.T) {
	cases := map[string]struct {
		reason string
		lost   func(req *http.Request) bool
	}{
		"Inventory": {"The first read must have a deadline.", func(req *http.Request) bool {
			return strings.HasSuffix(req.URL.Path, "/configmaps/headgate-main") && req.Method == http.MethodGet
		}},
		"Discovery": {"Discovery must have a deadline.", func(req *http.Request) bool { return req.URL.Path == "/apis" }},
		"List":      {"A list may take longer, but not the whole pass.", func(req *http.Request) bool { return strings.HasSuffix(req.URL.Path, "/namespaces") }},
		"Lease": {"The lease must have a deadline.", func(req *http.Request) bool {
			return strings.Contains(req.URL.Path, "/leases") && req.Method != http.MethodGet
		}},
		"Intent": {"The first write must have a deadline.", func(req *http.Request) bool {
			return strings.HasSuffix(req.URL.Path, "/configmaps") && req.Method == http.MethodPost
		}},
		"Namespace": {"All other objects wait for the namespace.", func(req *http.Request) bool {
			return strings.Contains(req.URL.Path, "/namespaces/") && req.Method == http.MethodPatch && !strings.Contains(req.URL.Path, "configmaps")
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			dead, met := true, false
			config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				if dead && tc.lost(req) {
					met = true
					<-req.Context().Done()
					return nil, req.Context().Err()
				}
				return next.RoundTrip(req)
			})
			c := clusterOf(t, config, w, cluster.Options{AnswerTime: time.Second, Concurrency: 1})
			commit := want(t, namespace(w.sync.Namespace), namespace(w.sync.Namespace+"-app"), configMap(w.sync.Namespace, "a", "1"))
			p, err := tryPlan(t.Context(), c, commit)
			if err == nil {
				_, err = c.Apply(t.Context(), p)
			}
			if !met {
				t.Fatal("no such request was sent")
			}
			if err == nil || !strings.Contains(err.Error(), "no answer to ") {
				t.Errorf("%s\nwant an error that names the request, got %v", tc.reason, err)
			}
			dead = false
			applied(t, c, commit)
		})
	}
}

// A single 503 must not end a pass, whatever Headgate reads.
func TestOneBusyAnswer(t *testing.T) {
	w := newWorld(t)
	commit := want(t, namespace(w.sync.Namespace), configMap(w.sync.Namespace, "a", "1"))
	met := map[string]bool{}
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		line := req.Method + " " + req.URL.Path
		if met[line] || req.URL.Query().Has("watch") {
			return next.RoundTrip(req)
		}
		met[line] = true
		recorder := httptest.NewRecorder()
		recorder.WriteHeader(http.StatusServiceUnavailable)
		_, _ = recorder.WriteString("no healthy upstream")
		return recorder.Result(), nil
	})
	c := clusterOf(t, config, w, cluster.Options{Concurrency: 1})
	applied(t, c, commit)
	applied(t, c, want(t, namespace(w.sync.Namespace)))
	if len(met) < 8 {
		t.Errorf("want one at every request, got %v", met)
	}
}

// Headgate does not follow a Retry-After of an hour, because the pass would hang.
func TestRetryAfterAnHour(t *testing.T) {
	w := newWorld(t)
	asked := 0
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !strings.HasSuffix(req.URL.Path, "/configmaps/headgate-main") || asked > 0 {
			return next.RoundTrip(req)
		}
		asked++
		recorder := httptest.NewRecorder()
		recorder.Header().Set("Retry-After", "3600")
		recorder.WriteHeader(http.StatusTooManyRequests)
		return recorder.Result(), nil
	})
	c := clusterOf(t, config, w, cluster.Options{})
	began := time.Now()
	applied(t, c, want(t, namespace(w.sync.Namespace)))
	if took := time.Since(began); took > time.Minute || asked != 1 {
		t.Errorf("it waited for %s", took)
	}
}

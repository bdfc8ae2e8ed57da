package cluster_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/words"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// denying starts an admission webhook that denies every request.
func denying(t *testing.T) (url, ca string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var review map[string]any
		body, _ := io.ReadAll(req.Body)
		_ = json.Unmarshal(body, &review)
		request, _ := review["request"].(map[string]any)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
			"response": map[string]any{"uid": request["uid"], "allowed": false, "status": map[string]any{"message": "owners must be named"}},
		})
	}))
	t.Cleanup(server.Close)
	return server.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

// A real API server refuses single objects. The message gives advice, all other objects are applied, and the next pass
// tries again.
//
//test:long,unraced
func TestRefusedObjects(t *testing.T) {
	w := newWorld(t)
	space := func(name string) string { return w.sync.Namespace + "-" + name }
	for _, name := range []string{"full", "going", "denied", "unheard", "fine"} {
		w.made(t, namespace(space(name)))
	}

	quotas := schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
	hard := map[string]any{"hard": map[string]any{"count/configmaps": "0"}}
	w.made(t, thing("v1", "ResourceQuota", space("full"), "none", map[string]any{"spec": hard}))
	w.patch(t, w.at(quotas, space("full")), "none", `{"status":{"hard":{"count/configmaps":"0"},"used":{"count/configmaps":"0"}}}`, "status")

	stays := configMap(space("going"), "stays", "1")
	stays.SetFinalizers([]string{"example.org/stays"})
	w.made(t, stays)
	if err := w.at(namespaces, "").Delete(t.Context(), space("going"), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	defer w.patch(t, w.at(configMaps, space("going")), "stays", `{"metadata":{"finalizers":null}}`)

	url, ca := denying(t)
	hook := func(name, url, in string) map[string]any {
		return map[string]any{
			"name": name, "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "timeoutSeconds": int64(2), "failurePolicy": "Fail",
			"clientConfig":      map[string]any{"url": url, "caBundle": []byte(ca)},
			"rules":             []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "operations": []any{"CREATE", "UPDATE"}}},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": in}},
		}
	}
	hooks := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	w.made(t, thing("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", w.sync.Namespace, map[string]any{"webhooks": []any{
		hook("owners.example.org", url, space("denied")), hook("gone.example.org", "https://127.0.0.1:1/", space("unheard")),
	}}))
	defer func() { _ = w.at(hooks, "").Delete(t.Context(), w.sync.Namespace, metav1.DeleteOptions{}) }()

	// A deleted CRD has an object that is never deleted.
	stuck := w.crd("Bucket", "Cluster")
	applied(t, w.cluster(t, cluster.Options{}), want(t, stuck))
	held := w.instance("Bucket", "", "held")
	held.SetFinalizers([]string{"example.org/cloud"})
	w.made(t, held)
	if err := w.at(crds, "").Delete(t.Context(), stuck.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	defer w.patch(t, w.at(w.resource("Bucket"), ""), "held", `{"metadata":{"finalizers":null}}`)

	big := func(kilobytes int) *unstructured.Unstructured {
		u := w.instance("Region", "", "big-"+strings.Repeat("x", kilobytes/1000))
		u.Object["spec"] = map[string]any{"text": strings.Repeat("x", kilobytes<<10)}
		return u
	}
	objects := []*unstructured.Unstructured{
		stuck, w.crd("Region", "Cluster"), big(2000), big(4000),
		configMap(space("full"), "quota", "1"), configMap(space("going"), "going", "1"),
		configMap(space("denied"), "denied", "1"), configMap(space("unheard"), "unheard", "1"), configMap(space("fine"), "fine", "1"),
	}
	c := w.cluster(t, cluster.Options{Timeout: 3 * time.Second})
	p := planned(t, c, want(t, objects...))
	done, err := c.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, s := range p.Steps {
		for _, why := range s.Waits {
			texts[s.ID.Name] += words.Of(why)
		}
	}
	for _, o := range done {
		texts[o.ID.Name] = words.Of(o.NotReady)
		if o.Err != nil {
			texts[o.ID.Name] = words.OfError(o.Err)
		}
	}
	for name, parts := range map[string][]string{
		"quota":         {"exceeded quota: none"},
		"going":         {"being terminated"},
		"denied":        {`admission webhook "owners.example.org" denied the request: owners must be named`},
		"unheard":       {`the admission webhook "gone.example.org" does not answer`, "connection refused"},
		"big-xx":        {"too large"},
		"big-xxxx":      {"too large"},
		stuck.GetName(): {"deletion started at ", "its custom resources are deleted first"},
		"fine":          {""},
	} {
		for _, part := range parts {
			if got, ok := texts[name]; !ok || part == "" && got != "" || !strings.Contains(got, part) {
				t.Errorf("%s: want %q in %q", name, part, got)
			}
		}
	}
	for _, request := range []string{"big-xx?", "big-xxxx?"} {
		n := 0
		for _, line := range w.requests.Log() {
			if strings.HasPrefix(line, "PATCH") && strings.Contains(line, request) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s was sent %d times; it does not get smaller", request, n)
		}
	}
	p = planned(t, c, want(t, objects...))
	if p.Count(plan.Create) != 7 || !slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.ID.Name == stuck.GetName() && s.Waiting() }) {
		t.Errorf("The next pass tries again, and waits again for what is stuck, got %v", actions(p))
	}
}

// A server may be busy, slow, or fail from time to time.
//
//test:long
func TestTroubledServer(t *testing.T) {
	t.Parallel()
	answer := func(req *http.Request, code int32, reason metav1.StatusReason) *http.Response {
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Status","status":"Failure","code":%d,"reason":%q,"message":"not now"}`, code, reason)
		return &http.Response{StatusCode: int(code), Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req}
	}
	cases := map[string]struct {
		reason string
		code   int32 // status code of the response; 0 delays the request instead
		answer metav1.StatusReason
		times  int64  // number of such responses to each write of an object
		fails  string // final error of the object
	}{
		"Busy":        {"A busy server asks for a retry.", 429, metav1.StatusReasonTooManyRequests, 2, ""},
		"Broken":      {"A 500 may be temporary.", 500, metav1.StatusReasonInternalError, 2, ""},
		"Unready":     {"The server is starting.", 503, metav1.StatusReasonServiceUnavailable, 2, ""},
		"Slow":        {"The server responds slowly.", 0, "", 3, ""},
		"StaysBusy":   {"The other objects are sent, except prunes, and the pass ends.", 429, metav1.StatusReasonTooManyRequests, 1000, "not now"},
		"StaysBroken": {"", 500, metav1.StatusReasonInternalError, 1000, "not now"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var asked atomic.Int64
			config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				switch {
				case !strings.Contains(req.URL.Path, "/configmaps/troubled"), asked.Add(1) > tc.times:
				case tc.code == 0:
					time.Sleep(500 * time.Millisecond)
				case req.Method == http.MethodPatch:
					return answer(req, tc.code, tc.answer), nil
				}
				return next.RoundTrip(req)
			})
			c := clusterOf(t, config, w, cluster.Options{})
			commit := want(t, namespace(w.sync.Namespace), configMap(w.sync.Namespace, "troubled", "1"), configMap(w.sync.Namespace, "other", "1"))
			p, err := tryPlan(t.Context(), c, commit)
			if err != nil {
				t.Fatal(err)
			}
			asked.Store(0)
			done, err := c.Apply(t.Context(), p)
			if ends := tc.fails != "" && tc.code == http.StatusTooManyRequests; (err != nil) != ends {
				t.Fatal(err)
			}
			for _, o := range done {
				switch {
				case o.ID.Name == "troubled" && tc.fails != "":
					if o.Err == nil || !strings.Contains(o.Err.Error(), tc.fails) {
						t.Errorf("%s\n%s: %v", tc.reason, o.ID, o.Err)
					}
				case o.Err != nil:
					t.Errorf("%s\n%s: %v", tc.reason, o.ID, o.Err)
				}
			}
			if tc.fails == "" {
				return
			}
			asked.Store(tc.times)
			applied(t, c, commit) // it came back
		})
	}
}

package cluster_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var validating = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}

// gate starts an admission webhook that denies every request with the status code in its URL.
func gate(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		code, _ := strconv.Atoi(strings.Trim(req.URL.Path, "/"))
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Code: int32(code), Message: "not today"}}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	return server
}

// gated registers a webhook for some resources in a namespace, and waits until the API server calls it for ConfigMaps, or for
// Secrets if these are listed first. open removes the webhook.
func (w *world) gated(t *testing.T, url string, server *httptest.Server, space string, operations []any, resources ...any) (open func()) {
	t.Helper()
	client := map[string]any{"url": url}
	if server != nil {
		client["caBundle"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": space},
		"webhooks": []any{map[string]any{
			"name": "gate.example.org", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "timeoutSeconds": 1, "failurePolicy": "Fail",
			"clientConfig":      client,
			"rules":             []any{map[string]any{"apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": resources, "operations": operations}},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": space}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	w.made(t, u)
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	asked := func() error {
		var err error
		switch {
		case resources[0] == "secrets":
			_, err = w.at(secrets, space).Create(t.Context(), thing("v1", "Secret", space, "probe", nil), dry)
		case operations[0] == "DELETE":
			err = w.at(configMaps, space).Delete(t.Context(), "old", metav1.DeleteOptions{DryRun: dry.DryRun})
		default:
			_, err = w.at(configMaps, space).Create(t.Context(), configMap(space, "probe", "1"), dry)
		}
		if err != nil && !strings.Contains(err.Error(), `webhook "`) {
			t.Fatal(err)
		}
		return err
	}
	eventually(t, func() error {
		if asked() == nil {
			return errors.New("the API server does not ask the webhook yet")
		}
		return nil
	})
	open = func() {
		if err := w.at(validating, "").Delete(t.Context(), space, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
		eventually(t, asked)
	}
	return open
}

// A webhook may deny a request with any status code. Whatever the code, the object still exists and stays owned.
func TestWebhookDeniesWithAnyCode(t *testing.T) {
	w := newWorld(t)
	server := gate(t)
	for _, code := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		space := fmt.Sprintf("%s-%d", w.sync.Namespace, code)
		w.sync.Name = fmt.Sprintf("code-%d", code)
		c := w.cluster(t, cluster.Options{})
		applied(t, c, want(t, namespace(space), configMap(space, "old", "1")))
		open := w.gated(t, fmt.Sprintf("%s/%d", server.URL, code), server, space, []any{"DELETE"}, "configmaps")

		commit := want(t, namespace(space))
		done, err := c.Apply(t.Context(), planned(t, c, commit))
		if output := outcomes(done)["old"]; err != nil || !strings.Contains(output, `admission webhook "gate.example.org" denied the request: not today`) || strings.Contains(output, "changed") {
			t.Errorf("%d is the trouble of the object: %q, %v", code, output, err)
		}
		have, err := c.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, owned := have.Entries[manifest.ID{Kind: "ConfigMap", Namespace: space, Name: "old"}]; !owned {
			t.Errorf("%d: what is still there stays owned", code)
		}
		open()
		applied(t, c, commit)
		if _, err := w.at(configMaps, space).Get(t.Context(), "old", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%d: the next pass prunes it: %v", code, err)
		}
	}
}

// A webhook that also rules on Headgate's own objects stops the pass. The user must learn which webhook it is and what to do,
// because no commit can fix it, and meanwhile nothing may be pruned.
//
//test:long
func TestWebhookInTheWayOfTheInventory(t *testing.T) {
	cases := map[string]struct {
		reason    string
		code      int // 0: nothing listens
		resources []any
		fresh     bool // no inventory exists yet
		says      []string
	}{
		"Dead":           {"The service of the webhook is unreachable.", 0, []any{"configmaps"}, false, []string{"inventory ConfigMap", "does not answer", "connection refused"}},
		"DeadForLeases":  {"The webhook's rules match every resource.", 0, []any{"*"}, false, []string{"the lease", "does not answer"}},
		"Denies":         {"The webhook requires a label.", http.StatusForbidden, []any{"configmaps"}, false, []string{"inventory ConfigMap", "refuses it", "not today"}},
		"DeniesAs409":    {"Code 409 from a webhook does not mean a concurrent write, for which a pass would wait.", http.StatusConflict, []any{"configmaps", "leases"}, false, []string{"the lease", "refuses it", "not today"}},
		"DeniesTheFirst": {"No lease exists yet whose holder could be named.", http.StatusConflict, []any{"leases", "configmaps"}, true, []string{"the lease", "refuses it", "not today"}},
		"DeniesAs404":    {"Code 404 from a webhook does not mean a missing namespace or another inventory.", http.StatusNotFound, []any{"configmaps"}, false, []string{"inventory ConfigMap", "refuses it", "not today"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			server := gate(t)
			home, space := w.sync.Namespace, w.sync.Namespace+"-app"
			options := cluster.Options{LockTimeout: time.Second}
			c := w.cluster(t, options)
			before, after := want(t, namespace(space), configMap(space, "old", "1")), want(t, namespace(space), configMap(space, "new", "1"))
			if tc.fresh {
				w.made(t, namespace(home))
			} else {
				applied(t, c, before)
			}
			url := "https://127.0.0.1:1/"
			if tc.code > 0 {
				url = fmt.Sprintf("%s/%d", server.URL, tc.code)
			}
			open := w.gated(t, url, server, home, []any{"CREATE", "UPDATE"}, tc.resources...)
			_, err := c.Apply(t.Context(), planned(t, c, after))
			if err == nil {
				t.Fatalf("%s\nwant an error", tc.reason)
			}
			for _, part := range append(tc.says, `the admission webhook "gate.example.org"`, "Headgate applies and prunes nothing", "by hand, since no commit can, or have its namespaceSelector leave out the namespace "+home) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s\nwant %q in %q", tc.reason, part, err)
				}
			}
			if _, err := w.at(configMaps, space).Get(t.Context(), "new", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("%s\nnothing is written: %v", tc.reason, err)
			}
			if _, err := w.at(configMaps, space).Get(t.Context(), "old", metav1.GetOptions{}); !tc.fresh && err != nil {
				t.Errorf("%s\nnothing is pruned: %v", tc.reason, err)
			}
			open()
			applied(t, w.cluster(t, options), after)
		})
	}
}

// The key for the digests of Secrets must be in the cluster before any digest. Unlike RBAC, a webhook may accept the key later: if
// only this process had the key, the next process would see every Secret as changed.
func TestWebhookDeniesTheKey(t *testing.T) {
	w := newWorld(t)
	server := gate(t)
	home, space := w.sync.Namespace, w.sync.Namespace+"-app"
	w.made(t, namespace(home))
	open := w.gated(t, fmt.Sprintf("%s/%d", server.URL, http.StatusForbidden), server, home, []any{"CREATE"}, "secrets")
	commit := want(t, namespace(space), thing("v1", "Secret", space, "token", map[string]any{"stringData": map[string]any{"token": "x"}}))
	c := w.cluster(t, cluster.Options{})
	_, err := c.Apply(t.Context(), planned(t, c, commit))
	if err == nil || !strings.Contains(err.Error(), "cannot create the Secret "+home+"/headgate-main: the admission webhook \"gate.example.org\" refuses it") {
		t.Errorf("want an error that names the webhook, got %v", err)
	}
	open()
	applied(t, c, commit)
	if p := planned(t, w.cluster(t, cluster.Options{}), commit); p.Writes() {
		t.Errorf("another process has the same key: %v", actions(p))
	}
	if diff := cmp.Diff([]string{"configmaps/headgate-main", "secrets/headgate-main", "leases/headgate-main"}, w.remembered(t)); diff != "" {
		t.Errorf("what is remembered (-want +got):\n%s", diff)
	}
}

// A lease that a pass could not release must not lock out its own process until it expires. Other processes wait.
func TestOwnLeaseIsTakenAgain(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace
	lost := true
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if lost && req.Method == http.MethodPut && strings.Contains(req.URL.Path, "/leases/") {
			return nil, errors.New("the line is cut")
		}
		return next.RoundTrip(req)
	})
	c := clusterOf(t, config, w, cluster.Options{LeaseDuration: time.Hour, LockTimeout: time.Second})
	applied(t, c, want(t, namespace(space), configMap(space, "a", "1")))
	lost = false
	other, commit := w.cluster(t, cluster.Options{LockTimeout: time.Second}), want(t, namespace(space), configMap(space, "a", "2"))
	if _, err := other.Apply(t.Context(), planned(t, other, commit)); err == nil || !strings.Contains(err.Error(), "is being applied by ") {
		t.Errorf("another process does not know that the pass is over: %v", err)
	}
	applied(t, c, commit)
}

// A policy of the API server chooses its status code, too. Code 413 then does not mean that the object is too large for etcd.
func TestPolicyDeniesWithAnyCode(t *testing.T) {
	w := newWorld(t)
	space, home := w.sync.Namespace+"-app", w.sync.Namespace
	c := w.cluster(t, cluster.Options{})
	applied(t, c, want(t, namespace(home), namespace(space), configMap(space, "denied", "1"), configMap("default", home, "1")))
	at := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: validating.Group, Version: "v1", Resource: resource}
	}
	policies, bindings := at("validatingadmissionpolicies"), at("validatingadmissionpolicybindings")
	deny := func(in string) (open func()) {
		t.Helper()
		rules := []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "operations": []any{"CREATE", "UPDATE"}}}
		for _, made := range []struct {
			at   schema.GroupVersionResource
			kind string
			spec map[string]any
		}{
			{policies, "ValidatingAdmissionPolicy", map[string]any{
				"failurePolicy": "Fail", "validations": []any{map[string]any{"expression": "false", "message": "not today", "reason": "RequestEntityTooLarge"}},
				"matchConstraints": map[string]any{"resourceRules": rules, "namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": in}}},
			}},
			{bindings, "ValidatingAdmissionPolicyBinding", map[string]any{"policyName": in, "validationActions": []any{"Deny"}}},
		} {
			if _, err := w.at(made.at, "").Create(t.Context(), thing(validating.Group+"/v1", made.kind, "", in, map[string]any{"spec": made.spec}), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		asked := func() error {
			_, err := w.at(configMaps, in).Create(t.Context(), configMap(in, "probe", "1"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
		eventually(t, func() error {
			if asked() == nil {
				return errors.New("the API server does not know the policy yet")
			}
			return nil
		})
		return func() {
			for _, gvr := range []schema.GroupVersionResource{bindings, policies} {
				if err := w.at(gvr, "").Delete(t.Context(), in, metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			}
			eventually(t, asked)
		}
	}
	commit := want(t, namespace(home), namespace(space), configMap(space, "denied", "2"), configMap("default", home, "2"))
	open := deny(space)
	done, err := c.Apply(t.Context(), planned(t, c, commit))
	if texts := outcomes(done); err != nil || !strings.Contains(texts["denied"], "ValidatingAdmissionPolicy '"+space+"'") || strings.Contains(texts["denied"], "1.5 MiB") || texts[home] != "" {
		t.Errorf("It is the trouble of the object: %q, %v", texts, err)
	}
	open()

	open = deny(home)
	_, err = c.Apply(t.Context(), planned(t, c, commit))
	if err == nil || !strings.Contains(err.Error(), `the ValidatingAdmissionPolicy "`+home+`" refuses it, and until then Headgate applies and prunes nothing`) {
		t.Errorf("want an error that names the policy, got %v", err)
	}
	open()
	applied(t, c, commit)
}

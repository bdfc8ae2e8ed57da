package cluster_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"

	"github.com/google/go-cmp/cmp"
)

func TestRequestsByVerb(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("12345")) }))
	defer server.Close()
	cases := map[string]struct{ method, path, want string }{
		"Discovery":        {"GET", "/apis", "GET"},
		"GroupDiscovery":   {"GET", "/apis/apps/v1", "GET"},
		"Namespaces":       {"GET", "/api/v1/namespaces", "LIST"},
		"Namespace":        {"GET", "/api/v1/namespaces/a", "GET"},
		"Namespaced":       {"GET", "/api/v1/namespaces/a/configmaps", "LIST"},
		"NamespacedObject": {"GET", "/api/v1/namespaces/a/configmaps/b", "GET"},
		"AllNamespaces":    {"GET", "/apis/apps/v1/deployments?labelSelector=a", "LIST"},
		"ClusterObject":    {"GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a", "GET"},
		"Watch":            {"GET", "/apis/apps/v1/deployments?watch=true", "WATCH"},
		"Apply":            {"PATCH", "/api/v1/namespaces/a/configmaps/b?force=false", "PATCH"},
		"DryRun":           {"PATCH", "/api/v1/namespaces/a/configmaps/b?dryRun=All", "DRY-RUN PATCH"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var requests cluster.Requests
			req, err := http.NewRequestWithContext(t.Context(), tc.method, server.URL+tc.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := requests.Wrap(http.DefaultTransport).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if diff := cmp.Diff(map[string]int{tc.want: 1}, requests.Counts()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

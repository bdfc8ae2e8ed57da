package cluster_test

import (
	"net/http/httptest"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"
)

func TestVerb(t *testing.T) {
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
			if got := cluster.Verb(httptest.NewRequest(tc.method, tc.path, nil)); got != tc.want {
				t.Errorf("Verb(%s %s) = %q, want %q", tc.method, tc.path, got, tc.want)
			}
		})
	}
}

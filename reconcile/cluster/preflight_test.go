package cluster

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/preflight"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

func TestVersionIn(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		images []string
		label  string
		want   string
	}{
		"Image":   {"The image runs, whatever the chart says.", []string{"xpkg.crossplane.io/crossplane/crossplane:v2.3.1"}, "2.4.0", "v2.3.1"},
		"Sidecar": {"Another container may come first.", []string{"mesh:1.0", "crossplane:v2.3.1"}, "", "v2.3.1"},
		"Digest":  {"A digest names no version.", []string{"crossplane@sha256:0123456789012345678901234567890123456789012345678901234567890123"}, "2.4.0", "2.4.0"},
		"Nothing": {"Neither is there.", nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var d apps.Deployment
			d.Labels = map[string]string{"app.kubernetes.io/version": tc.label}
			for _, image := range tc.images {
				d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, core.Container{Image: image})
			}
			if got, _ := versionIn(&d); got != tc.want {
				t.Errorf("%s\nversionIn() = %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// A large platform has thousands of CRDs. Their owners are read with one request for each kind, and only as metadata.
func TestOrphansOfThousands(t *testing.T) {
	const n = 10_000
	uid := func(i int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", i) }
	object := func(i int, more string) string {
		return fmt.Sprintf(`{"metadata":{"name":"c%d.example.org","uid":"%s"%s}}`, i, uid(i), more)
	}
	items := func(kind string, of func(int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = of(i)
		}
		return `{"apiVersion":"meta.k8s.io/v1","kind":"` + kind + `","metadata":{},"items":[` + strings.Join(all, ",") + `]}`
	}
	owned := func(i int) string {
		by := i
		if i == 4711 {
			by = n + 1 // an owner that does not exist
		}
		return object(i, fmt.Sprintf(`,"ownerReferences":[{"apiVersion":"apiextensions.crossplane.io/v1alpha1","kind":"ManagedResourceDefinition","name":"c%d.example.org","uid":"%s","controller":true}]`, i, uid(by)))
	}
	resource := func(name, kind string) string {
		return `{"name":"` + name + `","singularName":"","namespaced":false,"kind":"` + kind + `","verbs":["list"]}`
	}
	group := func(name, version string) string {
		return `{"name":"` + name + `","versions":[{"groupVersion":"` + name + "/" + version + `","version":"` + version + `"}],"preferredVersion":{"groupVersion":"` + name + "/" + version + `","version":"` + version + `"}}`
	}
	answers := map[string]string{
		"/api":                          `{"kind":"APIVersions","versions":[]}`,
		"/apis":                         `{"kind":"APIGroupList","apiVersion":"v1","groups":[` + group("apiextensions.k8s.io", "v1") + "," + group("apiextensions.crossplane.io", "v1alpha1") + `]}`,
		"/apis/apiextensions.k8s.io/v1": `{"kind":"APIResourceList","groupVersion":"apiextensions.k8s.io/v1","resources":[` + resource("customresourcedefinitions", "CustomResourceDefinition") + `]}`,
		"/apis/apiextensions.crossplane.io/v1alpha1":                            `{"kind":"APIResourceList","groupVersion":"apiextensions.crossplane.io/v1alpha1","resources":[` + resource("managedresourcedefinitions", "ManagedResourceDefinition") + `]}`,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions":               items("PartialObjectMetadataList", owned),
		"/apis/apiextensions.crossplane.io/v1alpha1/managedresourcedefinitions": items("PartialObjectMetadataList", func(i int) string { return object(i, "") }),
	}
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		text, known := answers[r.URL.Path]
		if !known || r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}))
	defer server.Close()
	c, err := New(&rest.Config{Host: server.URL}, inventory.Sync{Namespace: "headgate-system", Name: "x"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	orphans, crds, err := c.Orphans(t.Context())
	want := []preflight.Orphan{{CRD: "c4711.example.org", Owner: "ManagedResourceDefinition c4711.example.org"}}
	if diff := cmp.Diff(want, orphans); err != nil || crds != n || diff != "" || requests.Load() > 6 {
		t.Errorf("%d CRDs, %d requests, %v (-want +got):\n%s", crds, requests.Load(), err, diff)
	}
}

package draft_test

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func usage(t *testing.T, kind, namespace, of string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	text := "apiVersion: protection.crossplane.io/v1beta1\nkind: " + kind + "\nmetadata: {name: u, namespace: \"" + namespace + "\"}\nspec: {of: " + of + "}\n"
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestUsageNames(t *testing.T) {
	bucket := manifest.ID{Group: "example.org", Kind: "Bucket", Namespace: "a", Name: "logs"}
	crd := plan.CRD("buckets.example.org")
	cases := map[string]struct {
		reason string
		usage  *unstructured.Unstructured
		id     manifest.ID
		want   bool
	}{
		"Named":          {"The Usage names the object.", usage(t, "Usage", "a", "{apiVersion: example.org/v1beta1, kind: Bucket, resourceRef: {name: logs}}"), bucket, true},
		"Another":        {"The Usage names another object of the same kind.", usage(t, "Usage", "a", "{apiVersion: example.org/v1, kind: Bucket, resourceRef: {name: other}}"), bucket, false},
		"OtherNamespace": {"A Usage without a namespace in its reference is about its own namespace.", usage(t, "Usage", "b", "{apiVersion: example.org/v1, kind: Bucket, resourceRef: {name: logs}}"), bucket, false},
		"SaysNamespace":  {"A reference of a Usage may name another namespace.", usage(t, "Usage", "b", "{apiVersion: example.org/v1, kind: Bucket, resourceRef: {name: logs, namespace: a}}"), bucket, true},
		"OtherGroup":     {"The kind of another group is a different kind.", usage(t, "Usage", "a", "{apiVersion: example.com/v1, kind: Bucket, resourceRef: {name: logs}}"), bucket, false},
		"Core":           {"The apiVersion of the core group contains no group.", usage(t, "Usage", "a", "{apiVersion: v1, kind: ConfigMap, resourceRef: {name: c}}"), manifest.ID{Kind: "ConfigMap", Namespace: "a", Name: "c"}, true},
		"Cluster":        {"A ClusterUsage protects a CRD.", usage(t, "ClusterUsage", "", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, resourceRef: {name: buckets.example.org}}"), crd, true},
		"Selected":       {"A Usage counts even before Crossplane has resolved its selector.", usage(t, "Usage", "a", "{apiVersion: example.org/v1, kind: Bucket, resourceSelector: {matchLabels: {team: a}}}"), bucket, true},
		"NotSelected":    {"The object does not have the selected labels.", usage(t, "Usage", "a", "{apiVersion: example.org/v1, kind: Bucket, resourceSelector: {matchLabels: {team: b}}}"), bucket, false},
		"Nothing":        {"The Usage refers to no object.", usage(t, "Usage", "a", "{apiVersion: example.org/v1, kind: Bucket}"), bucket, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := crossplane.UsageNames(tc.usage, tc.id, map[string]string{"team": "a"}); got != tc.want {
				t.Errorf("%s\nUsageNames(...) = %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// A Usage in the same commit names an object that does not have the label yet.
func TestProtectedByCommit(t *testing.T) {
	u := usage(t, "Usage", "default", "{apiVersion: v1, kind: ConfigMap, resourceRef: {name: a}}")
	base := render.Desired{Objects: []render.Object{given.Wanted(t, given.ConfigMap("a")), given.Wanted(t, given.ConfigMap("b")), given.Wanted(t, u)}}
	want := render.Desired{Objects: []render.Object{given.Wanted(t, u)}}
	seen, err := baseline.Baseline{Base: base, Sync: given.Sync}.Observe(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range given.Computed(t, want, seen, guard.Guarding{}.Guards()...).Steps {
		if held := s.Guard == "protected"; held != (s.ID.Name == "a") {
			t.Errorf("%s: %s %q %s", s.ID, s.Action, s.Guard, s.Reason)
		}
	}
}

// External resources are recognized before a merge, too.
func TestExternalOffline(t *testing.T) {
	xrd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition", "metadata": map[string]any{"name": "apps.example.org"},
		"spec": map[string]any{"group": "example.org", "names": map[string]any{"kind": "App"}, "claimNames": map[string]any{"kind": "AppClaim"}},
	}}
	managed, plain := given.CRD("buckets", "Bucket"), given.CRD("notes", "Note")
	managed.Object["spec"].(map[string]any)["names"].(map[string]any)["categories"] = []any{"managed"}
	of := func(kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": kind, "metadata": map[string]any{"name": "x", "namespace": "default"}}}
	}
	kept := []render.Object{given.Wanted(t, xrd), given.Wanted(t, managed), given.Wanted(t, plain)}
	base := kept
	for _, kind := range []string{"App", "AppClaim", "Bucket", "Note"} {
		base = append(base, given.Wanted(t, of(kind)))
	}
	want := render.Desired{Objects: kept}
	seen, err := baseline.Baseline{Base: render.Desired{Objects: base}, Sync: given.Sync}.Observe(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range given.Computed(t, want, seen, guard.Guarding{}.Guards()...).Steps {
		if s.ID.Name == "x" && (s.Guard == "external") != (s.ID.Kind != "Note") {
			t.Errorf("%s: %s %q %s", s.ID, s.Action, s.Guard, s.Reason)
		}
	}
}

package demand

import (
	"testing"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A definition or a policy is written in a version that the cluster serves, whichever version the commit has.
func TestInServedVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		kind       schema.GroupKind
		apiVersion string
		served     []string
		want       string
	}{
		"Same":    {"The cluster serves the version of the commit.", crossplane.KindMRAP, "apiextensions.crossplane.io/v1alpha1", []string{"v1alpha1"}, "apiextensions.crossplane.io/v1alpha1"},
		"Both":    {"The cluster prefers another version, and serves that of the commit.", crossplane.KindMRAP, "apiextensions.crossplane.io/v1alpha1", []string{"v1beta1", "v1alpha1"}, "apiextensions.crossplane.io/v1alpha1"},
		"Newer":   {"A newer Crossplane does not serve the old version any more.", crossplane.KindMRAP, "apiextensions.crossplane.io/v1alpha1", []string{"v1beta1"}, "apiextensions.crossplane.io/v1beta1"},
		"Older":   {"An older Crossplane does not serve the new version yet.", crossplane.KindMRD, "apiextensions.crossplane.io/v1beta1", []string{"v1alpha1"}, "apiextensions.crossplane.io/v1alpha1"},
		"Unknown": {"Headgate does not know the fields of a later version.", crossplane.KindMRD, "apiextensions.crossplane.io/v1beta1", []string{"v1"}, "apiextensions.crossplane.io/v1beta1"},
		"Skipped": {"It takes the version that it knows.", crossplane.KindMRD, "apiextensions.crossplane.io/v1alpha1", []string{"v1", "v1beta1"}, "apiextensions.crossplane.io/v1beta1"},
		"Absent":  {"Crossplane is not installed yet.", crossplane.KindMRD, "apiextensions.crossplane.io/v1alpha1", nil, "apiextensions.crossplane.io/v1alpha1"},
		"Other":   {"The versions of other kinds have other fields.", crossplane.KindXRD, "apiextensions.crossplane.io/v1", []string{"v2"}, "apiextensions.crossplane.io/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := render.NewObject(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": tc.apiVersion, "kind": tc.kind.Kind, "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"activate": []any{"*"}},
			}}, manifest.Origin{Path: "a.yaml", Line: 1})
			if err != nil {
				t.Fatal(err)
			}
			o.Activates = true
			got, err := inServedVersion(map[schema.GroupKind]plan.Kind{tc.kind: {Versions: tc.served}}, o)
			if err != nil {
				t.Fatal(err)
			}
			u, err := got.Content()
			if err != nil || got.APIVersion != tc.want || u.GetAPIVersion() != tc.want || got.Origin != o.Origin || !got.Activates {
				t.Errorf("%s\ninServedVersion(...) = %s (%s), want %s", tc.reason, got.APIVersion, u.GetAPIVersion(), tc.want)
			}
		})
	}
}

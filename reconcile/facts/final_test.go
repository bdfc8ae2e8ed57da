package facts_test

import (
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/render/crossplane"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Whether Active is final depends on the rules of the CRD that is served, not on a version of Crossplane.
func TestCanDeactivate(t *testing.T) {
	none := func(map[string]any, map[string]any) {}
	rules := func(rule string) []any { return []any{map[string]any{"rule": rule}} }
	for name, tc := range map[string]struct {
		reason  string
		version string
		edit    func(spec, state map[string]any)
		want    bool
	}{
		"Released": {"The rule of Crossplane's CRD refuses it.", "v1alpha1", none, false},
		"WithoutRule": {"Without the rule, the API server accepts it.", "v1alpha1", func(_, state map[string]any) {
			delete(state, "x-kubernetes-validations")
		}, true},
		"OtherWords": {"Another expression of the same rule refuses it, too.", "v1alpha1", func(_, state map[string]any) {
			state["x-kubernetes-validations"] = rules("!(oldSelf == 'Active' && self == 'Inactive')")
		}, false},
		"OfTheSpec": {"A rule of the whole spec refuses it.", "v1alpha1", func(spec, state map[string]any) {
			delete(state, "x-kubernetes-validations")
			spec["x-kubernetes-validations"] = rules("oldSelf.state != 'Active' || self.state == 'Active'")
		}, false},
		"OtherRule": {"A rule against something else does not count.", "v1alpha1", func(_, state map[string]any) {
			state["x-kubernetes-validations"] = rules("self != 'Inactive' || oldSelf == 'Active'")
		}, true},
		"NoSuchState": {"The schema does not allow Inactive.", "v1alpha1", func(_, state map[string]any) {
			delete(state, "x-kubernetes-validations")
			delete(state, "default")
			state["enum"] = []any{"Active"}
		}, false},
		"Malformed": {"A rule that does not compile refuses every object.", "v1alpha1", func(_, state map[string]any) {
			state["x-kubernetes-validations"] = rules("self ==")
		}, false},
		"Unserved":  {"It is not known in another version.", "v1beta1", none, false},
		"OtherType": {"The schema is not one of an API server.", "v1alpha1", func(_, state map[string]any) { state["type"] = int64(1) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			crd := definitionsCRD(t)
			version := crd.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
			spec, _, err := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema", "properties", "spec")
			if err != nil {
				t.Fatal(err)
			}
			tc.edit(spec.(map[string]any), spec.(map[string]any)["properties"].(map[string]any)["state"].(map[string]any))
			if got := facts.CanDeactivate(t.Context(), crd, tc.version); got != tc.want {
				t.Errorf("%s\nCanDeactivate(...) = %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
	if facts.CanDeactivate(t.Context(), &unstructured.Unstructured{}, "v1alpha1") {
		t.Error("a CRD without versions proves nothing")
	}
}

// definitionsCRD returns Crossplane's CRD of definitions.
func definitionsCRD(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	for _, file := range fixtures.Corpus(t, "crossplane-core") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(file.Data, &u.Object); err != nil {
			t.Fatal(err)
		}
		if u.GetName() == crossplane.MRDs {
			return u
		}
	}
	t.Fatal("no CRD of definitions")
	return nil
}

package facts

import (
	"context"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// CanDeactivate reports whether a definition can become inactive again, according to the CRD of definitions. Crossplane's CRD has a rule
// against that. CanDeactivate tries the change on an example in a version, and returns false if it cannot decide.
func CanDeactivate(ctx context.Context, crd *unstructured.Unstructured, version string) bool {
	content := schemaOf(crd, version)
	if content == nil {
		return false
	}
	v, err := schema.NewValidator(content)
	if err != nil {
		return false
	}
	was, is := exampleDefinition("Active"), exampleDefinition("Inactive")
	v.Coerce(was)
	v.Coerce(is)
	return len(v.Invalid(ctx, was)) == 0 && len(v.Invalid(ctx, is)) == 0 && len(v.Broken(ctx, is, was)) == 0
}

// schemaOf returns the schema of a version of a CRD, or nil.
func schemaOf(crd *unstructured.Unstructured, version string) map[string]any {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		m, _ := v.(map[string]any)
		if content, ok, _ := unstructured.NestedMap(m, "schema", "openAPIV3Schema"); ok && m["name"] == version {
			return content
		}
	}
	return nil
}

// exampleDefinition returns an MRD in a state, with the fields that Crossplane requires.
func exampleDefinition(state string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": crossplane.MRDAPIVersion,
		"kind":       crossplane.KindMRD.Kind,
		"metadata":   map[string]any{"name": "examples.example.org"},
		"spec": map[string]any{
			"group":    "example.org",
			"names":    map[string]any{"kind": "Example", "plural": "examples"},
			"scope":    "Namespaced",
			"state":    state,
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}},
		},
	}}
}

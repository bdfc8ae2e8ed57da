package crd

import (
	"errors"
	"fmt"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A FieldError is an error about a field of an MRD, or of the CRD that it makes.
type FieldError struct {
	Path    []any // keys (string) and indices (int), from the root of the object
	Problem string
}

func (e FieldError) Error() string { return e.Field() + ": " + e.Problem }

// Field returns the path as text: spec.versions[0].name.
func (e FieldError) Field() string { return manifest.Field(e.Path...) }

// Malformed returns the errors in an MRD that Crossplane cannot decode: nil or FieldErrors, joined.
func Malformed(mrd *unstructured.Unstructured) error {
	var found []error
	definition.check(mrd.Object, nil, &found)
	return errors.Join(found...)
}

// check returns errors about malformed fields, and about missing fields without which no CRD can be made: nil or FieldErrors,
// joined.
func check(mrd *unstructured.Unstructured) error {
	if err := Malformed(mrd); err != nil {
		return err
	}

	var found []error
	need := func(path ...string) {
		if s, _, _ := unstructured.NestedString(mrd.Object, path...); s == "" {
			found = append(found, FieldError{Path: steps(path), Problem: "is required"})
		}
	}
	need("metadata", "name")
	need("spec", "group")
	need("spec", "names", "kind")
	need("spec", "names", "plural")

	spec, _ := mrd.Object["spec"].(map[string]any)
	if scope := spec["scope"]; scope != nil && scope != "Namespaced" && scope != "Cluster" {
		found = append(found, FieldError{Path: []any{"spec", "scope"}, Problem: fmt.Sprintf("must be Namespaced or Cluster, not %q", scope)})
	}
	versions, _ := spec["versions"].([]any)
	if len(versions) == 0 {
		found = append(found, FieldError{Path: []any{"spec", "versions"}, Problem: "is required: at least one version"})
	}
	for i, v := range versions {
		found = append(found, checkVersion(v, []any{"spec", "versions", i})...)
	}
	return errors.Join(found...)
}

// CheckApplied finds errors that an API server reports only when the MRD itself is applied, not for its CRD. Do not use it for MRDs
// from packages, because Crossplane completes them first. It returns nil or FieldErrors, joined.
func CheckApplied(mrd *unstructured.Unstructured) error {
	var found []error
	need := func(item any, at []any, keys ...string) {
		fields, _ := item.(map[string]any)
		for _, key := range keys {
			if fields[key] == nil {
				found = append(found, FieldError{Path: join(at, key), Problem: "is required"})
			}
		}
	}
	spec, _ := mrd.Object["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for i, v := range versions {
		need(v, []any{"spec", "versions", i}, "served", "storage")
	}
	details, _ := spec["connectionDetails"].([]any)
	for i, d := range details {
		need(d, []any{"spec", "connectionDetails", i}, "name", "description")
	}
	return errors.Join(found...)
}

func checkVersion(v any, at []any) []error {
	var found []error
	version, _ := v.(map[string]any)
	if nameOf(version) == "" {
		found = append(found, FieldError{Path: join(at, "name"), Problem: "is required"})
	}
	validation, ok := version["schema"].(map[string]any)
	if ok && validation["openAPIV3Schema"] == nil {
		found = append(found, FieldError{
			Path:    join(join(at, "schema"), "openAPIV3Schema"),
			Problem: fmt.Sprintf("cannot parse OpenAPI v3 schema for version %q: it is empty", nameOf(version)),
		})
	}
	return found
}

func steps(path []string) []any {
	out := make([]any, len(path))
	for i, s := range path {
		out[i] = s
	}
	return out
}

// Package crd turns definitions into CustomResourceDefinitions, and back, exactly
// as Crossplane does.
package crd

import (
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Of renders the CRD that Crossplane derives from an MRD, without owner references: the spec, with versions in lexical order of
// name, and only the name from the metadata. It does not change mrd; the CRD shares its schemas. The error is a FieldError, or
// joins several.
func Of(mrd *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := check(mrd); err != nil {
		return nil, err
	}
	read, _ := definition.read(mrd.Object).(map[string]any)
	spec, _ := read["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)

	delete(spec, "connectionDetails")
	delete(spec, "state")
	if _, has := spec["scope"]; !has {
		spec["scope"] = "Namespaced" // the API server's default for MRDs
	}
	dropEmpty(names, "singular", "listKind", "shortNames", "categories")
	dropFalse(spec, "preserveUnknownFields")
	if conversion, ok := spec["conversion"].(map[string]any); ok {
		webhook, _ := conversion["webhook"].(map[string]any)
		client, _ := webhook["clientConfig"].(map[string]any)
		dropEmpty(client, "caBundle")
	}

	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		version, _ := v.(map[string]any)
		setDefault(version, "served", false)
		setDefault(version, "storage", false)
		dropFalse(version, "deprecated")
		dropEmpty(version, "additionalPrinterColumns", "selectableFields", "subresources")
		columns, _ := version["additionalPrinterColumns"].([]any)
		for _, c := range columns {
			column, _ := c.(map[string]any)
			dropEmpty(column, "format", "description")
			dropZero(column, "priority")
		}
	}
	slices.SortStableFunc(versions, func(a, b any) int {
		return strings.Compare(nameOf(a), nameOf(b))
	})

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": mrd.GetName()},
		"spec":       spec,
	}}, nil
}

// Definition returns the MRD that Crossplane's package manager derives from a CRD: its whole metadata, and all spec fields that an
// MRD also has. It is Active unless the package has safe-start. It does not change crd; the MRD shares its schemas. Malformed
// values stay, so that Of reports them.
func Definition(crd *unstructured.Unstructured, safeStart bool) *unstructured.Unstructured {
	read, _ := definition.read(crd.Object).(map[string]any)
	out := map[string]any{
		"apiVersion": crossplane.MRDAPIVersion,
		"kind":       crossplane.KindMRD.Kind,
	}
	maps.Copy(out, read)
	if spec, ok := out["spec"].(map[string]any); ok {
		delete(spec, "connectionDetails") // a CRD has neither field
		delete(spec, "state")
		if !safeStart {
			spec["state"] = "Active"
		}
		nameService(spec)
	}
	return &unstructured.Unstructured{Object: out}
}

// nameService sets the name and the namespace of a conversion webhook's service to "" if the CRD
// omits them. The API server requires both of an MRD, even of an inactive one. Crossplane's Go types
// write "" too, and its package manager fills them in.
func nameService(spec map[string]any) {
	conversion, _ := spec["conversion"].(map[string]any)
	webhook, _ := conversion["webhook"].(map[string]any)
	client, _ := webhook["clientConfig"].(map[string]any)
	if service, ok := client["service"].(map[string]any); ok {
		setDefault(service, "name", "")
		setDefault(service, "namespace", "")
	}
}

// Describe adds connection details to an MRD and replaces those with the same name. It changes mrd, but not the
// previous list.
func Describe(mrd *unstructured.Unstructured, details []catalogue.ConnectionDetail) {
	spec, ok := mrd.Object["spec"].(map[string]any)
	if !ok || len(details) == 0 {
		return
	}
	had, _ := spec["connectionDetails"].([]any)
	merged := slices.Clone(had)
	for _, d := range details {
		entry := map[string]any{"name": d.Name, "description": d.Description}
		i := slices.IndexFunc(merged, func(v any) bool { return nameOf(v) == d.Name })
		if i < 0 {
			merged = append(merged, entry)
		} else {
			merged[i] = entry
		}
	}
	spec["connectionDetails"] = merged
}

func nameOf(v any) string {
	m, _ := v.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

func setDefault(m map[string]any, key string, value any) {
	if _, has := m[key]; !has {
		m[key] = value
	}
}

func dropFalse(m map[string]any, key string) {
	if m[key] == false {
		delete(m, key)
	}
}

func dropZero(m map[string]any, key string) {
	if n := m[key]; n == int64(0) || n == float64(0) {
		delete(m, key)
	}
}

func dropEmpty(m map[string]any, keys ...string) {
	for _, key := range keys {
		switch v := m[key].(type) {
		case string:
			if v == "" {
				delete(m, key)
			}
		case []any:
			if len(v) == 0 {
				delete(m, key)
			}
		case map[string]any:
			if len(v) == 0 {
				delete(m, key)
			}
		}
	}
}

package kinds

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// CRDs returns the names of the CRDs of every release, sorted.
func CRDs() []string {
	all, err := unpacked()
	if err != nil {
		return nil // a test reads all of them
	}
	names := map[string]bool{}
	for _, raw := range all.CRDs {
		var crd apiextensions.CustomResourceDefinition
		if json.Unmarshal(raw, &crd) == nil {
			names[crd.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// ReleasesOf returns the first and the last of the known releases that have exactly these CRDs; "" if none has. Releases between two
// known ones have the CRDs of the older one.
func ReleasesOf(live []*unstructured.Unstructured) (first, last string) {
	all, err := unpacked()
	if err != nil {
		return "", ""
	}
	seen := map[string]string{}
	for _, u := range live {
		raw, err := json.Marshal(u.Object)
		if err != nil {
			return "", ""
		}
		name, text := essence(raw)
		seen[name] = text
	}
	known := make([][2]string, len(all.CRDs))
	for i, raw := range all.CRDs {
		known[i][0], known[i][1] = essence(raw)
	}
	for _, r := range all.Releases {
		differs := func(i int) bool { return seen[known[i][0]] != known[i][1] }
		if len(r.CRDs) == len(seen) && !slices.ContainsFunc(r.CRDs, differs) {
			first, last = cmp.Or(first, r.Version), r.Version
		}
	}
	return first, last
}

// essence returns the name of a CRD, and its versions as text: whether they are served, and their schemas without descriptions.
func essence(raw []byte) (name, versions string) {
	var crd apiextensions.CustomResourceDefinition
	if err := json.Unmarshal(raw, &crd); err != nil {
		return "", ""
	}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		v.AdditionalPrinterColumns = nil
		if v.Schema != nil {
			undescribed(v.Schema.OpenAPIV3Schema)
		}
	}
	text, err := json.Marshal(crd.Spec.Versions)
	if err != nil {
		return crd.Name, ""
	}
	return crd.Name, string(text)
}

// undescribed removes the descriptions from a schema.
func undescribed(s *apiextensions.JSONSchemaProps) {
	if s == nil {
		return
	}
	s.Description = ""
	for name, field := range s.Properties {
		undescribed(&field)
		s.Properties[name] = field
	}
	if s.Items != nil {
		undescribed(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		undescribed(s.AdditionalProperties.Schema)
	}
	undescribed(s.Not)
	for _, branches := range [][]apiextensions.JSONSchemaProps{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range branches {
			undescribed(&branches[i])
		}
	}
}

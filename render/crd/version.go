package crd

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// A Version is a version of a kind, as its CRD or MRD declares it.
type Version struct {
	Name       string `json:"name"`
	Served     bool   `json:"served"`
	Storage    bool   `json:"storage"`
	Deprecated bool   `json:"deprecated,omitempty"`
	Warning    string `json:"warning,omitempty"` // shown to users of the version

	Schema map[string]any `json:"-"` // nil if it has none
}

// VersionsOf returns the versions of a CRD or MRD, in the order in which kubectl prefers them, with served versions before those
// that are not served.
func VersionsOf(u *unstructured.Unstructured) []Version {
	spec, _ := u.Object["spec"].(map[string]any)
	list, _ := spec["versions"].([]any)
	var all []Version
	for _, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			continue
		}
		schema, _ := m["schema"].(map[string]any)
		one := Version{Name: nameOf(m), Served: m["served"] == true, Storage: m["storage"] == true, Deprecated: m["deprecated"] == true}
		one.Warning, _ = m["deprecationWarning"].(string)
		one.Schema, _ = schema["openAPIV3Schema"].(map[string]any)
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b Version) int {
		if a.Served != b.Served {
			if a.Served {
				return -1
			}
			return 1
		}
		return apiversion.CompareKubeAwareVersionStrings(b.Name, a.Name)
	})
	return all
}

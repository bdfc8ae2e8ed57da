package kinds

import (
	"encoding/json"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The CRDs of a release identify it, whatever an API server adds to them.
func TestReleasesOf(t *testing.T) {
	all, err := unpacked()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Releases {
		var crds []*unstructured.Unstructured
		for _, i := range r.CRDs {
			u := &unstructured.Unstructured{}
			if err := json.Unmarshal(all.CRDs[i], &u.Object); err != nil {
				t.Fatal(err)
			}
			versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
			for _, v := range versions {
				_ = unstructured.SetNestedField(v.(map[string]any), "what it is", "schema", "openAPIV3Schema", "description")
			}
			_ = unstructured.SetNestedSlice(u.Object, versions, "spec", "versions")
			u.Object["status"] = map[string]any{"storedVersions": []any{"v1"}}
			crds = append(crds, u)
		}
		same := slices.DeleteFunc(slices.Clone(all.Releases), func(other releaseCRDs) bool { return !slices.Equal(other.CRDs, r.CRDs) })
		if first, last := ReleasesOf(crds); first != same[0].Version || last != same[len(same)-1].Version {
			t.Errorf("the CRDs of %s are those of %q to %q", r.Version, first, last)
		}
		if got, _ := ReleasesOf(crds[1:]); got != "" {
			t.Errorf("without one of its CRDs, it is %q", got)
		}
		_ = unstructured.SetNestedSlice(crds[0].Object, []any{}, "spec", "versions")
		if got, _ := ReleasesOf(crds); got != "" {
			t.Errorf("with another CRD, it is %q", got)
		}
	}
	if n := len(CRDs()); n != len(all.Releases[len(all.Releases)-1].CRDs) {
		t.Errorf("%d names of CRDs", n)
	}
}

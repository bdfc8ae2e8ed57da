package schema

import (
	"encoding/json"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// FuzzCompare compares arbitrary input. A definition must not differ from itself, and one direction must add what the other
// removes.
func FuzzCompare(f *testing.F) {
	whole, err := yaml.YAMLToJSON([]byte(definition))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, []byte(`{"spec": {"scope": [], "names": "x", "versions": [{"name": "v2", "schema": {"openAPIV3Schema": {"properties": {"a": 1}, "required": [1, {}], "items": []}}}]}}`))
	f.Add([]byte(`{"spec": {"versions": {"name": "v1"}}}`), []byte(`{"spec": {"versions": [{"name": 1}, null, "v1"]}}`))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		a, b := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		if json.Unmarshal(first, &a.Object) != nil || json.Unmarshal(second, &b.Object) != nil {
			return
		}
		for _, u := range []*unstructured.Unstructured{a, b} {
			if d := Compare(u, u); len(d.Changes)+len(d.Added) > 0 {
				t.Fatalf("differs from itself: %v %v", d.Changes, d.Added)
			}
		}
		there, back := Compare(a, b), Compare(b, a)
		for _, added := range there.Added {
			gone := Change{Rule: Field, Version: added.Version, Path: added.Path, Breaking: true}
			if added.Rule == "version" {
				gone.Rule = Removed
			}
			kept := gone
			kept.Breaking = false // unknown fields are kept there
			if !slices.Contains(back.Changes, gone) && !slices.Contains(back.Changes, kept) {
				t.Fatalf("%v is added, and not removed on the way back: %v", added, back.Changes)
			}
		}
		if !slices.IsSortedFunc(there.Changes, Change.Compare) {
			t.Fatalf("not sorted: %v", there.Changes)
		}
	})
}

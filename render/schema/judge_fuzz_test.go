package schema

import (
	"encoding/json"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// FuzzJudge judges arbitrary input. It must never panic, and be deterministic. An update without changes loses and refuses nothing,
// and an object that fits once fits again.
func FuzzJudge(f *testing.F) {
	j, err := yaml.YAMLToJSON([]byte(definition))
	if err != nil {
		f.Fatal(err)
	}
	var crd unstructured.Unstructured
	if err := json.Unmarshal(j, &crd.Object); err != nil {
		f.Fatal(err)
	}
	whole, err := json.Marshal(schemaOf(versions(object(crd.Object["spec"]))["v2"]))
	if err != nil {
		f.Fatal(err)
	}
	bare := []byte(`{"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}`)
	f.Add(whole, bare, []byte(`{"spec": {"region": "south", "size": 3, "rules": [{"port": 80}], "tags": {"a": "b"}, "note": null}}`))
	f.Add(bare, whole, []byte(`{"spec": {"free": {"a": [1, null, {}]}, "rules": [null]}, "status": {"a": 1}}`))
	f.Add([]byte(`{"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": true, "default": 1}, "b": {"type": "object", "default": {}, "required": ["c"], "properties": {"c": {"type": "string", "default": "x"}}}}}`),
		[]byte(`{"type": "object", "properties": {"a": {"type": "string", "nullable": true}, "b": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "properties": {"k": {"type": "integer"}}}}}}`),
		[]byte(`{"a": "1", "b": [{"k": 1}, {"k": 1}]}`))
	f.Add([]byte(`{"type": "object", "properties": {"o": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}, "x-kubernetes-validations": [{"rule": "self.o.kind == oldSelf.o.kind", "messageExpression": "self.o.kind"}]}`),
		[]byte(`{"type": "object", "additionalProperties": {"type": "object", "properties": {"kind": {"type": "string", "enum": ["a"]}}}}`),
		[]byte(`{"o": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}, "creationTimestamp": null}}}`))
	f.Fuzz(func(t *testing.T, first, second, content []byte) {
		was, is := definitionOf(first), definitionOf(second)
		var o map[string]any
		if was == nil || is == nil || utiljson.Unmarshal(content, &o) != nil || o == nil {
			return
		}
		loses, refused, ok := verdict(t, was, is, o)
		if again, other, _ := verdict(t, was, is, o); !slices.Equal(loses, again) || !slices.Equal(refused, other) {
			t.Fatalf("once it says %q %q, and then %q %q", loses, refused, again, other)
		}
		if loses, refused, _ := verdict(t, was, was, o); len(loses)+len(refused) > 0 {
			t.Fatalf("nothing changes, and it loses %q and is refused %q", loses, refused)
		}
		if ok && len(loses)+len(refused) == 0 {
			if loses, refused, _ := verdict(t, is, is, o); len(loses)+len(refused) > 0 {
				t.Fatalf("it fits, and then loses %q and is refused %q", loses, refused)
			}
		}
	})
}

// definitionOf returns a CRD with one version and a schema.
func definitionOf(schema []byte) *unstructured.Unstructured {
	var declared map[string]any
	if utiljson.Unmarshal(schema, &declared) != nil || declared == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"versions": []any{map[string]any{
		"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": declared},
	}}}}}
}

// verdict judges a copy of an object.
func verdict(t *testing.T, was, is *unstructured.Unstructured, o map[string]any) (loses, refused []string, ok bool) {
	t.Helper()
	j, err := NewJudge(was, is, "v1")
	if err != nil {
		return nil, nil, false
	}
	loses, refused = j.Of(t.Context(), (&unstructured.Unstructured{Object: o}).DeepCopy())
	return loses, refused, true
}

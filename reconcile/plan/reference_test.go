package plan_test

import (
	"reflect"
	"testing"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Where a path leads, there something is, and what is put there is what is there then.
func FuzzFind(f *testing.F) {
	for _, path := range []string{
		"$.a", ".a.b[0]", "$..c", "$.a.b[-1:]", "$['a']['b.c/d']", "$.list[?(@.type=='Ready')].status", "$", "$.a.length()", "$[", "", "$.*", "$.list[(@.length-1)]",
	} {
		f.Add(`{"a":{"b":[1,2],"b.c/d":"x"},"list":[{"type":"Ready","status":"True"}],"c":9007199254740993}`, path)
	}
	f.Fuzz(func(t *testing.T, object, path string) {
		var content map[string]any
		if utiljson.Unmarshal([]byte(object), &content) != nil || content == nil {
			return
		}
		places, err := plan.Find(content, path)
		if err != nil {
			return
		}
		for _, at := range places {
			last := len(at) - 1
			switch parent := plan.Get(content, at[:last]).(type) {
			case map[string]any:
				if _, there := parent[at[last].(string)]; !there {
					t.Fatalf("%q leads to %v, where nothing is", path, at)
				}
			case []any:
			default:
				t.Fatalf("%q leads to %v, which is in a %T", path, at, parent)
			}
		}
		if len(places) != 1 {
			return
		}
		if err := plan.Put(content, places[0], "something else", ""); err != nil {
			t.Fatal(err)
		}
		if got := plan.Get(content, places[0]); !reflect.DeepEqual(got, "something else") {
			t.Fatalf("%q: %v is there after something else was put there", path, got)
		}
	})
}

// Nobody who reads the inventory can try values of a Secret against a digest, wherever the value
// was copied to.
func TestDigestOfACopy(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"pin": "1234"}}}
	o, err := render.NewObject(u, manifest.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	keyed := plan.Observed{Key: []byte("key")}
	if plain := (plan.Observed{}).Digest(o); keyed.Digest(o) != plain {
		t.Error("what everybody may read is not keyed")
	}
	o.Secret = true
	if keyed.Digest(o) == (plan.Observed{}).Digest(o) {
		t.Error("the digest of a copy is not keyed")
	}
}

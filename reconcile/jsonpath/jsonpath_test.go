package jsonpath_test

import (
	"reflect"
	"testing"

	"headgate.dev/headgate/reconcile/jsonpath"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Every found path leads to a value. After a write, the path holds the written value.
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
		places, err := jsonpath.Find(content, path)
		if err != nil {
			return
		}
		for _, at := range places {
			last := len(at) - 1
			switch parent := jsonpath.Get(content, at[:last]).(type) {
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
		if err := jsonpath.Put(content, places[0], "something else", ""); err != nil {
			t.Fatal(err)
		}
		if got := jsonpath.Get(content, places[0]); !reflect.DeepEqual(got, "something else") {
			t.Fatalf("%q: %v is there after something else was put there", path, got)
		}
	})
}

package diff

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// DropEqualSchemas takes out of two definitions what is equal in the schemas of a version.
func DropEqualSchemas(live, after *unstructured.Unstructured) {
	was, is := versionsByName(live), versionsByName(after)
	for name, version := range was {
		if other, kept := is[name]; kept {
			dropEqual(asMap(version["schema"]), asMap(other["schema"]))
		}
	}
}

func versionsByName(u *unstructured.Unstructured) map[string]map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "versions")
	items, _ := list.([]any)
	named, _ := byName(items)
	all := make(map[string]map[string]any, len(named))
	for name, v := range named {
		all[name] = asMap(v)
	}
	return all
}

// dropEqual takes out of two maps what is equal in them.
func dropEqual(was, is map[string]any) {
	for key, from := range was {
		to, both := is[key]
		if !both {
			continue
		}
		f, isMap := from.(map[string]any)
		t, alsoMap := to.(map[string]any)
		var same bool
		if isMap && alsoMap {
			dropEqual(f, t)
			same = len(f)+len(t) == 0
		} else {
			same = reflect.DeepEqual(from, to)
		}
		if same {
			delete(was, key)
			delete(is, key)
		}
	}
}

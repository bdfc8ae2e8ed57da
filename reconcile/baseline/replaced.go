package baseline

import (
	"encoding/json"
	"reflect"
	"sync"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// A replacement is the update of a definition, a CRD or an XRD by the next commit. Both sides leave out the equal parts of their
// schemas, so that two thousand of them fit into memory: an upgrade changes one or two fields in each. The difference is that of the
// complete schemas.
type replacement struct {
	Live       map[string]any    `json:"live"`
	After      map[string]any    `json:"after"`
	Difference schema.Difference `json:"difference"`
}

func (r replacement) live() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: r.Live}
}

func (r replacement) after() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: r.After}
}

// large limits the memory of comparisons: a decoded definition takes ten times its size.
var large sync.Mutex

const largeSize = 48 << 10

// replacementOf compares two versions of a definition. The memo stores the result.
func replacementOf(base, want render.Object) (replacement, error) {
	known, err := want.Learn("beside 6 "+base.Digest, func() (string, error) {
		if want.Size > largeSize {
			large.Lock()
			defer large.Unlock()
		}
		live, after, err := contents(base, want)
		if err != nil {
			return "", err
		}
		share(live.Object, after.Object)
		r := replacement{live.Object, after.Object, schema.Compare(live, after)}
		r.leaveEqualSchemas()
		known, err := json.Marshal(r)
		return string(known), err
	})
	if err != nil {
		return replacement{}, err
	}
	var r replacement
	return r, utiljson.Unmarshal([]byte(known), &r)
}

// share replaces the parts of one value that are equal to those of another, and reports whether both are equal. Then they are
// compared by their addresses.
func share(was, is any) bool {
	equal := true
	switch was := was.(type) {
	case map[string]any:
		is, ok := is.(map[string]any)
		if !ok {
			return false
		}
		for key, from := range was {
			if to, both := is[key]; both && share(from, to) {
				is[key] = from
			} else {
				equal = false
			}
		}
		return equal && len(was) == len(is)
	case []any:
		is, ok := is.([]any)
		if !ok || len(was) != len(is) {
			return false
		}
		for i, from := range was {
			if share(from, is[i]) {
				is[i] = from
			} else {
				equal = false
			}
		}
		return equal
	}
	return reflect.DeepEqual(was, is)
}

// leaveEqualSchemas removes the equal parts of the schemas of each version from both sides.
func (r replacement) leaveEqualSchemas() {
	before := schemasOf(r.Live)
	for name, is := range schemasOf(r.After) {
		leaveEqual(before[name], is)
	}
}

// schemasOf returns the schemas of a definition by version, and nothing if versions share a name.
func schemasOf(definition map[string]any) map[string]map[string]any {
	versions, _, _ := unstructured.NestedFieldNoCopy(definition, "spec", "versions")
	list, _ := versions.([]any)
	all := map[string]map[string]any{}
	for _, v := range list {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if _, twice := all[name]; twice {
			return nil
		}
		all[name], _ = version["schema"].(map[string]any)
	}
	return all
}

// leaveEqual removes the equal entries of two maps from both.
func leaveEqual(was, is map[string]any) {
	for key, from := range was {
		to, both := is[key]
		if !both {
			continue
		}
		below, isMap := from.(map[string]any)
		beside, alsoMap := to.(map[string]any)
		same := reflect.DeepEqual(from, to)
		if isMap && alsoMap && !same {
			leaveEqual(below, beside)
			same = len(below)+len(beside) == 0
		}
		if same {
			delete(was, key)
			delete(is, key)
		}
	}
}

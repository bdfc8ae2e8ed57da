package diff_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"headgate.dev/headgate/reconcile/diff"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestDropEqualSchemas(t *testing.T) {
	const head, tail = `{"apiVersion":"v1","spec":{"a":"\\\"","versions":[`, `]},"z":{"spec":1}}`
	cases := map[string]struct {
		reason          string
		was, is         string
		wantWas, wantIs string
	}{
		"Gains": {
			reason:  "Only the difference of an upgrade remains.",
			was:     `{"name":"v1","schema":{"p":{"a":{"t":"\\"},"c":[1,{}]}}}`,
			is:      `{"name":"v1","schema":{"p":{"a":{"t":"\\"},"b":{"t":2},"c":[1,{}]}}}`,
			wantWas: `{"name":"v1","schema":{"p":{}}}`,
			wantIs:  `{"name":"v1","schema":{"p":{"b":{"t":2}}}}`,
		},
		"Equal": {
			reason:  "An object without remaining fields is removed, too.",
			was:     `{"name":"v1","schema":{"p":{"a":1}},"served":true}`,
			is:      `{"name":"v1","schema":{"p":{"a":1}},"served":false}`,
			wantWas: `{"name":"v1","schema":{},"served":true}`,
			wantIs:  `{"name":"v1","schema":{},"served":false}`,
		},
		"Lists": {
			reason:  "Lists are compared as a whole.",
			was:     `{"name":"v1","schema":{"r":["a"],"s":[],"t":12}}`,
			is:      `{"name":"v1","schema":{"r":["a","b"],"s":{},"t":1}}`,
			wantWas: `{"name":"v1","schema":{"r":["a"],"s":[],"t":12}}`,
			wantIs:  `{"name":"v1","schema":{"r":["a","b"],"s":{},"t":1}}`,
		},
		"Versions": {
			reason:  "Versions are matched by name, in any order, and those without a counterpart remain.",
			was:     `{"name":"v1","schema":{"a":1}},{"name":"v2","schema":{"a":{"b":1,"c":1}}}`,
			is:      `{"name":"v2","schema":{"a":{"b":1,"c":2}}},{"name":"v3","schema":{"a":1}}`,
			wantWas: `{"name":"v1","schema":{"a":1}},{"name":"v2","schema":{"a":{"c":1}}}`,
			wantIs:  `{"name":"v2","schema":{"a":{"c":2}}},{"name":"v3","schema":{"a":1}}`,
		},
		"Twice": {
			reason: "Versions with the same name cannot be matched.",
			was:    `{"name":"v1","schema":{"a":1}},{"name":"v1","schema":{"a":1}}`, is: `{"name":"v1","schema":{"a":1}}`,
			wantWas: `{"name":"v1","schema":{"a":1}},{"name":"v1","schema":{"a":1}}`, wantIs: `{"name":"v1","schema":{"a":1}}`,
		},
		"NoSchema": {
			reason: "A version may lack a schema or everything else.",
			was:    `{"name":"v1"},{"name":"v2","schema":null},1`, is: `{"name":"v1","schema":{"a":1}}`,
			wantWas: `{"name":"v1"},{"name":"v2","schema":null},1`, wantIs: `{"name":"v1","schema":{"a":1}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			was, is := diff.DropEqualSchemas([]byte(head+tc.was+tail), []byte(head+tc.is+tail))
			if diff := cmp.Diff([]string{head + tc.wantWas + tail, head + tc.wantIs + tail}, []string{string(was), string(is)}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	for _, raw := range []string{`{}`, `{"spec":1}`, `{"spec":{}}`, `{"spec":{"versions":{}}}`, `{"spec":{"versions":[]}}`} {
		if was, is := diff.DropEqualSchemas([]byte(raw), []byte(raw)); string(was) != raw || string(is) != raw {
			t.Errorf("DropEqualSchemas(%s) = %s, %s", raw, was, is)
		}
	}
}

// The result is the same as decoding both objects and removing, in each map, the keys with equal values in both.
func TestDropEqualSchemasIsExact(t *testing.T) {
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Float64Range(-9, 9).AsAny(), rapid.SampledFrom([]string{"", "a", "\"", "\\", "}", "<", "é"}).AsAny())
		if depth == 0 {
			return leaf
		}
		key := rapid.SampledFrom([]string{"a", "a!", "b", "\"", "\\", "<", "é"})
		return rapid.OneOf(leaf, rapid.SliceOfN(value(depth-1), 0, 2).AsAny(), rapid.MapOfN(key, value(depth-1), 0, 4).AsAny(), rapid.MapOfN(key, value(depth-1), 2, 4).AsAny())
	}
	definition := func(schema any) []byte {
		raw, err := json.Marshal(map[string]any{"spec": map[string]any{"versions": []any{map[string]any{"name": "v1", "schema": schema}}}})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	rapid.Check(t, func(t *rapid.T) {
		both := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), value(3), 1, 4)
		was, is := both.Draw(t, "was"), both.Draw(t, "is")
		leanWas, leanIs := diff.DropEqualSchemas(definition(was), definition(is))
		for key := range was { // as before, slowly
			dropEqual(was, is, key)
		}
		if diff := cmp.Diff([]string{string(definition(was)), string(definition(is))}, []string{string(leanWas), string(leanIs)}); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func dropEqual(was, is map[string]any, key string) {
	to, both := is[key]
	if !both {
		return
	}
	f, isMap := was[key].(map[string]any)
	t, alsoMap := to.(map[string]any)
	same := reflect.DeepEqual(was[key], to)
	if isMap && alsoMap {
		for below := range f {
			dropEqual(f, t, below)
		}
		same = len(f)+len(t) == 0
	}
	if same {
		delete(was, key)
		delete(is, key)
	}
}

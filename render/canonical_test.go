package render

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
)

// The digests of all objects depend on it: another encoding would be another digest of the same object.
func TestCanonicalIsMarshal(t *testing.T) {
	same := func(t rapid.TB, content map[string]any) {
		want, err := json.Marshal(content)
		if err != nil {
			t.Fatalf("%v", err)
		}
		got, err := canonical(content)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Fatalf("(-json.Marshal +canonical):\n%s", diff)
		}
	}
	same(t, map[string]any{
		"b": nil, "a": true, "c": int64(math.MinInt64), "d": 1.5, "e": 1e30, "f": "<é&\u2028\"\\\n\x00\x7f>", "<": []any(nil), "g": map[string]any(nil),
		"h": []any{}, "i": map[string]any{"": []any{int64(1), "two", map[string]any{"z": false, "y": float64(2)}}}, "j": "\xff", "k": 7,
	})
	rapid.Check(t, func(t *rapid.T) {
		var value func(depth int) *rapid.Generator[any]
		value = func(depth int) *rapid.Generator[any] {
			leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Float64Range(-1e9, 1e9).AsAny(), rapid.String().AsAny())
			if depth == 0 {
				return leaf
			}
			return rapid.OneOf(leaf, rapid.SliceOfN(value(depth-1), 0, 3).AsAny(), rapid.MapOfN(rapid.String(), value(depth-1), 0, 3).AsAny())
		}
		content := rapid.MapOfN(rapid.String(), value(3), 0, 4).Draw(t, "content")
		same(t, content)
		raw, err := (Object{packed: pack(must(canonical(content)))}).JSON()
		if err != nil || string(raw) != string(must(canonical(content))) {
			t.Fatalf("what is packed is unpacked as it was: %s, %v", raw, err)
		}
		var again map[string]any
		if err := utiljson.Unmarshal(raw, &again); err != nil {
			t.Fatalf("%v", err)
		}
	})
}

func must(raw []byte, _ error) []byte { return raw }

package api

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
)

// A number that nothing validates reaches code that never expected it: -1 as a limit, or a duration that overflows. Every numeric
// field of a Spec refuses such a value and names itself, also a field that was added later.
func TestEveryNumberOfASpecIsValidated(t *testing.T) {
	values := map[string]struct {
		good any
		bad  []any
	}{
		"number":   {1, []any{-1, 0, 1.5, int64(1) << 62}},
		"duration": {"1h", []any{"-1s", "0s", "-1", "1000000h"}},
		"size":     {"1Mi", []any{"-1", "0", "1Ei"}},
	}
	found := 0
	for _, field := range numbersIn(reflect.TypeFor[v1alpha1.Spec](), nil) {
		found++
		path := "spec." + strings.Join(field.path, ".") + ":"
		decoded := func(value any) string {
			_, err := Decode(fileWith(t, field.path, value))
			if err == nil {
				return ""
			}
			return err.Error()
		}
		of := values[field.kind]
		if text := decoded(of.good); strings.Contains(text, path) {
			t.Errorf("%s %v is refused: %s", path, of.good, text)
		}
		for _, value := range of.bad {
			if text := decoded(value); !strings.Contains(text, path) {
				t.Errorf("%s %v is not refused with a message that names the field, but: %q", path, value, text)
			}
		}
	}
	if found < 14 {
		t.Errorf("the Spec has %d numeric fields, fewer than when this test was written", found)
	}
}

// A numeric field has a path of names in a file.
type numeric struct {
	path []string
	kind string
}

// numbersIn returns the numeric fields below a type.
func numbersIn(of reflect.Type, path []string) (all []numeric) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	switch {
	case of == reflect.TypeFor[v1alpha1.Duration]():
		return []numeric{{path, "duration"}}
	case of == reflect.TypeFor[v1alpha1.Size]():
		return []numeric{{path, "size"}}
	case of.Kind() >= reflect.Int && of.Kind() <= reflect.Float64:
		return []numeric{{path, "number"}}
	case of.Kind() != reflect.Struct:
		return nil
	}
	for name, field := range fields(of) {
		all = append(all, numbersIn(field, append(slices.Clone(path), name))...)
	}
	return all
}

// fileWith returns a file with a Sync that sets one field of its Spec.
func fileWith(t *testing.T, path []string, value any) []byte {
	t.Helper()
	spec := map[string]any{"source": map[string]any{"repo": "https://git.example.org/platform.git"}}
	at := spec
	for _, name := range path[:len(path)-1] {
		inner, is := at[name].(map[string]any)
		if !is {
			inner = map[string]any{}
			at[name] = inner
		}
		at = inner
	}
	at[path[len(path)-1]] = value
	file, err := json.Marshal(map[string]any{"apiVersion": "headgate.dev/v1alpha1", "kind": "Sync", "metadata": map[string]any{"name": "prod"}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	return file
}

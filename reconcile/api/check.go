package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
)

// A flaw is a wrong field of a Sync. Its path holds keys and indices.
type flaw struct {
	path []any
	text string
}

// shape returns the fields of a decoded document that a Sync does not have, and the values of a wrong type. It does
// not quote the values, because one may be a misplaced secret. A field of the spec without a value is a flaw, too.
// Kubernetes treats such a field as absent, so a limit whose entries are all commented out would allow everything.
func shape(document any) []flaw {
	return shapeOf(document, reflect.TypeFor[v1alpha1.Sync](), nil)
}

var unmarshals = reflect.TypeFor[json.Unmarshaler]()

func shapeOf(v any, want reflect.Type, path []any) []flaw {
	optional := want.Kind() == reflect.Pointer
	for want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	inSpec := len(path) > 1 && path[0] == "spec"
	if v == nil && inSpec {
		return []flaw{{path, "has no value; give it one, or remove the field"}}
	}
	if v == nil || reflect.PointerTo(want).Implements(unmarshals) {
		return nil
	}
	wrong := func(text string) []flaw { return []flaw{{path, "must be " + text + ", not " + typeOf(v)}} }
	switch want.Kind() {
	case reflect.Struct:
		m, ok := v.(map[string]any)
		if !ok {
			return wrong("a mapping")
		}
		return fieldsOf(m, want, path)
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok {
			return wrong("a mapping")
		}
		var all []flaw
		for _, key := range slices.Sorted(maps.Keys(m)) {
			all = append(all, shapeOf(m[key], want.Elem(), below(path, key))...)
		}
		return all
	case reflect.Slice:
		items, ok := v.([]any)
		if !ok {
			return wrong("a list")
		}
		var all []flaw
		for i, item := range items {
			all = append(all, shapeOf(item, want.Elem(), below(path, i))...)
		}
		return all
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			return wrong("true or false")
		}
	case reflect.String:
		if _, ok := v.(string); !ok {
			return wrong(textFor(want))
		}
	case reflect.Int, reflect.Int64:
		n, ok := v.(float64)
		switch {
		case !ok || n != float64(int64(n)):
			return wrong("a whole number")
		case n == 0 && inSpec && !optional: // it would leave the field out
			return []flaw{{path, "must be at least 1, not 0"}}
		}
	}
	return nil
}

// textFor describes the text that a field accepts.
func textFor(field reflect.Type) string {
	switch field {
	case reflect.TypeFor[v1alpha1.Duration]():
		return "a duration such as 30s, 5m or 1h"
	case reflect.TypeFor[v1alpha1.Size]():
		return "a size such as 16Mi"
	}
	return "text"
}

// typeOf describes the type of a decoded value.
func typeOf(v any) string {
	switch v := v.(type) {
	case bool:
		return "a boolean; quote it if it is meant as text"
	case float64:
		if v == float64(int64(v)) {
			return "a number; quote it if it is meant as text"
		}
		return "a fraction"
	case string:
		return "text"
	case []any:
		return "a list"
	}
	return "a mapping"
}

// fieldsOf checks the fields of a mapping.
func fieldsOf(m map[string]any, want reflect.Type, path []any) []flaw {
	known := fields(want)
	var all []flaw
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if of, ok := known[key]; ok {
			all = append(all, shapeOf(m[key], of, below(path, key))...)
			continue
		}
		all = append(all, flaw{below(path, key), "is not a field of a Sync" + suggestion(key, path, known)})
	}
	return all
}

// fields returns the types of the fields of a struct, by their JSON names.
func fields(of reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous:
			maps.Copy(all, fields(f.Type))
		default:
			all[name] = f.Type
		}
	}
	return all
}

// suggestion returns a hint for an unknown key: a field of the same mapping with a similar spelling, or the place of
// a field with this name elsewhere.
func suggestion(key string, path []any, known map[string]reflect.Type) string {
	best, least := "", 3
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if d := levenshtein.Distance(strings.ToLower(key), strings.ToLower(name), nil); d < least && d < len(name) {
			best, least = name, d
		}
	}
	if best != "" {
		return "; write " + best
	}
	if at := find(key, reflect.TypeFor[v1alpha1.Spec](), "spec", 3); len(at) == 1 {
		return "; it belongs to " + at[0]
	}
	if len(path) == 0 || path[0] == "metadata" {
		return ""
	}
	return "; the fields here are " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
}

// find returns the paths of all structs that have a field with this name, down to depth levels.
func find(key string, in reflect.Type, path string, depth int) []string {
	for in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	if in.Kind() != reflect.Struct || depth == 0 {
		return nil
	}
	var all []string
	known := fields(in)
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if strings.EqualFold(name, key) {
			all = append(all, path)
		}
		all = append(all, find(key, known[name], path+"."+name, depth-1)...)
	}
	return all
}

// below returns a path with one more step.
func below(path []any, step any) []any { return append(slices.Clip(slices.Clone(path)), step) }

// field returns a path in its written form: spec.packages[0].name.
func field(path []any) string {
	var b strings.Builder
	for _, step := range path {
		if i, ok := step.(int); ok {
			fmt.Fprintf(&b, "[%d]", i)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		fmt.Fprint(&b, step)
	}
	return b.String()
}

package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"headgate.dev/headgate/render/check"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// converter holds the schemas of server-side apply, which are part of client-go. Reading them takes a tenth of a second.
var converter = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme()) })

// repetitions returns items of lists that server-side apply cannot tell apart: those with the same keys, with no key, or with the same
// value in a set. Everything else about the object fits its type.
func repetitions(o *unstructured.Unstructured) []check.Problem {
	if !hasList(o.Object) {
		return nil
	}
	empty := &unstructured.Unstructured{Object: map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind()}}
	of, err := converter().ObjectToTyped(empty)
	if err != nil {
		return nil // server-side apply deduces a schema, in which no list has keys
	}
	w := walk{schema: of.Schema()}
	w.value(o.Object, of.TypeRef(), nil)
	return w.found
}

// hasList reports whether a value contains a list of two items, or of one that may lack its key.
func hasList(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, below := range v {
			if hasList(below) {
				return true
			}
		}
	case []any:
		return len(v) > 0
	}
	return false
}

// A walk finds repetitions.
type walk struct {
	schema *schema.Schema
	found  []check.Problem
}

func (w *walk) value(v any, of schema.TypeRef, at *field.Path) {
	atom, ok := w.schema.Resolve(of)
	if !ok {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if atom.Map == nil {
			return
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below, known := atom.Map.FindField(key)
			switch {
			case known && at == nil:
				w.value(v[key], below.Type, field.NewPath(key))
			case known:
				w.value(v[key], below.Type, at.Child(key))
			case at != nil:
				w.value(v[key], atom.Map.ElementType, at.Key(key))
			}
		}
	case []any:
		if atom.List == nil {
			return
		}
		if atom.List.ElementRelationship == schema.Associative {
			w.items(v, atom.List, at)
		}
		for i, item := range v {
			w.value(item, atom.List.ElementType, at.Index(i))
		}
	}
}

// items compares the items of a set, or of a list with keys.
func (w *walk) items(items []any, of *schema.List, at *field.Path) {
	first := map[string]int{}
	for i, item := range items {
		key, why := w.keyOf(item, of)
		j, twice := first[key]
		switch {
		case why != "":
			add(&w.found, at.Index(i), why)
			continue
		case twice && len(of.Keys) == 0:
			add(&w.found, at.Index(i), fmt.Sprintf("is the same as item %d: remove one of them", j))
		case twice:
			add(&w.found, at.Index(i), fmt.Sprintf("has the same %s as item %d: remove one of them", strings.Join(of.Keys, " and "), j))
		default:
			first[key] = i
		}
	}
}

// keyOf returns what identifies an item of a list, or why nothing does.
func (w *walk) keyOf(item any, of *schema.List) (key, why string) {
	if item == nil {
		return "", "must not be empty"
	}
	if len(of.Keys) == 0 {
		raw, err := json.Marshal(item)
		if err != nil {
			return "", "cannot be read"
		}
		return string(raw), ""
	}
	m, ok := item.(map[string]any)
	if !ok {
		return "", "must be a mapping"
	}
	var values []any
	lacks := true
	for _, name := range of.Keys {
		v, ok := m[name]
		if !ok {
			v, ok = w.defaultOf(name, of)
		}
		lacks = lacks && !ok
		values = append(values, v, ok)
	}
	if lacks {
		return "", "needs " + strings.Join(of.Keys, " or ")
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return "", "cannot be read"
	}
	return string(raw), ""
}

// defaultOf returns the default of a key.
func (w *walk) defaultOf(name string, of *schema.List) (v any, ok bool) {
	atom, known := w.schema.Resolve(of.ElementType)
	if !known || atom.Map == nil {
		return nil, false
	}
	f, _ := atom.Map.FindField(name)
	return f.Default, f.Default != nil
}

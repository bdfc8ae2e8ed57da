package ownership

import (
	"reflect"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Remove removes a set of fields from the content of an object, and mappings and lists of the set that become empty.
// It ignores fields that the content does not have.
func Remove(content map[string]any, fields *fieldpath.Set) {
	removeBelow(content, fields)
}

// removeBelow returns a value without a set of fields.
func removeBelow(v any, fields *fieldpath.Set) any {
	elements := map[string]fieldpath.PathElement{}
	fields.Members.Iterate(func(e fieldpath.PathElement) { elements[e.String()] = e })
	fields.Children.Iterate(func(e fieldpath.PathElement) { elements[e.String()] = e })
	for _, e := range elements {
		below, hasBelow := fields.Children.Get(e)
		whole := fields.Members.Has(e)
		key, found := find(v, e)
		if !found {
			continue
		}
		inner, keeps := valueAt(v, key), false
		if hasBelow {
			inner = removeBelow(inner, below)
			keeps = e.FieldName != nil && !isEmpty(inner) // fields of another field manager
		}
		if whole && !keeps {
			v = without(v, key)
		} else {
			v = with(v, key, inner)
		}
	}
	return v
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return v == nil
}

// find returns the key or index of an element of a mapping or list.
func find(v any, e fieldpath.PathElement) (key any, found bool) {
	switch v := v.(type) {
	case map[string]any:
		if e.FieldName == nil {
			return nil, false
		}
		_, found = v[*e.FieldName]
		return *e.FieldName, found
	case []any:
		i := slices.IndexFunc(v, func(item any) bool { return isItem(item, e) })
		return i, i >= 0
	}
	return nil, false
}

// isItem reports whether an element of a path identifies a list item.
func isItem(item any, e fieldpath.PathElement) bool {
	switch {
	case e.Value != nil:
		return value.Equals(*e.Value, value.NewValueInterface(item))
	case e.Key != nil:
		m, ok := item.(map[string]any)
		return ok && !slices.ContainsFunc(*e.Key, func(f value.Field) bool {
			v, has := m[f.Name]
			return has && !value.Equals(f.Value, value.NewValueInterface(v))
		})
	}
	return false
}

func valueAt(v, key any) any {
	switch v := v.(type) {
	case map[string]any:
		name, _ := key.(string)
		return v[name]
	case []any:
		if i, ok := key.(int); ok {
			return v[i]
		}
	}
	return nil
}

func with(v, key, inner any) any {
	switch v := v.(type) {
	case map[string]any:
		name, _ := key.(string)
		v[name] = inner
	case []any:
		if i, ok := key.(int); ok {
			v[i] = inner
		}
	}
	return v
}

func without(v, key any) any {
	switch v := v.(type) {
	case map[string]any:
		name, _ := key.(string)
		delete(v, name)
	case []any:
		if i, ok := key.(int); ok {
			return slices.Delete(slices.Clone(v), i, i+1)
		}
	}
	return v
}

// Returned returns the leaf fields of a set that were removed and that the object still holds with the same value.
func Returned(before, now map[string]any, fields *fieldpath.Set) *fieldpath.Set {
	return kept(before, now, fields.Leaves())
}

// kept returns the fields of a set that two contents have with the same value.
func kept(before, now map[string]any, fields *fieldpath.Set) *fieldpath.Set {
	same := fieldpath.NewSet()
	for path := range fields.All() {
		was, had := at(before, path)
		is, has := at(now, path)
		if had && has && reflect.DeepEqual(was, is) {
			same.Insert(path.Copy())
		}
	}
	return same
}

// at returns the value at a path.
func at(v any, path fieldpath.Path) (any, bool) {
	for _, e := range path {
		key, found := find(v, e)
		if !found {
			return nil, false
		}
		v = valueAt(v, key)
	}
	return v, true
}

package diff

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Pointer is a JSON pointer with its parts unescaped. The part "*" matches every key or index.
type Pointer []string

// PointerOf parses a valid JSON pointer (RFC 6901).
func PointerOf(s string) Pointer {
	p := Pointer(strings.Split(s, "/")[1:])
	for i, part := range p {
		p[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return p
}

// in returns the places in a value that match the pointer, in order.
func (p Pointer) in(v any) []Pointer {
	if len(p) == 0 {
		return []Pointer{nil}
	}
	var all []Pointer
	for _, key := range keysOf(v) {
		if p[0] != key && p[0] != "*" {
			continue
		}
		child, _ := childOf(v, key)
		for _, rest := range p[1:].in(child) {
			all = append(all, slices.Concat(Pointer{key}, rest))
		}
	}
	return all
}

func keysOf(v any) []string {
	switch v := v.(type) {
	case map[string]any:
		return slices.Sorted(maps.Keys(v))
	case []any:
		keys := make([]string, len(v))
		for i := range v {
			keys[i] = strconv.Itoa(i)
		}
		return keys
	}
	return nil
}

func childOf(v any, key string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		child, ok := v[key]
		return child, ok
	case []any:
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= len(v) {
			return nil, false
		}
		return v[i], true
	}
	return nil, false
}

// of returns the value at the pointer.
func (p Pointer) of(v any) (any, bool) {
	for _, key := range p {
		child, ok := childOf(v, key)
		if !ok {
			return nil, false
		}
		v = child
	}
	return v, true
}

// across returns another object's value at a place of this object. It matches list items by name if they have one,
// and by index otherwise.
func (p Pointer) across(here, there any) (any, bool) {
	for _, key := range p {
		mine, _ := childOf(here, key)
		theirs, ok := childOf(there, key)
		if list, isList := there.([]any); isList {
			if name, named := nameOf(mine); named {
				i := slices.IndexFunc(list, func(item any) bool { n, _ := nameOf(item); return n == name })
				theirs, ok = childOf(there, strconv.Itoa(i))
			}
		}
		if !ok {
			return nil, false
		}
		here, there = mine, theirs
	}
	return there, true
}

func nameOf(item any) (string, bool) {
	m, _ := item.(map[string]any)
	name, ok := m["name"].(string)
	return name, ok
}

// set sets a value whose parent exists.
func (p Pointer) set(v, value any) {
	last := len(p) - 1
	switch parent, _ := p[:last].of(v); parent := parent.(type) {
	case map[string]any:
		parent[p[last]] = value
	case []any:
		if i, err := strconv.Atoi(p[last]); err == nil && i >= 0 && i < len(parent) {
			parent[i] = value
		}
	}
}

// remove removes the value at the pointer and reports whether it could. It cannot remove a list item.
func (p Pointer) remove(v any) bool {
	last := len(p) - 1
	parent, _ := p[:last].of(v)
	m, ok := parent.(map[string]any)
	delete(m, p[last])
	return ok
}

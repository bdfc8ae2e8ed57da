// Package diff compares objects: the changes of an update, and the differences between a live object and a commit
// with their writers. It also defines which fields to ignore and which values to mask.
package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Change is one place where an object differs from its next state.
type Change struct {
	Path string `json:"path"`           // such as "spec.versions[v1beta1].served"
	From string `json:"from,omitempty"` // as JSON; "" if the value is absent
	To   string `json:"to,omitempty"`
	By   string `json:"by,omitempty"` // the field manager that loses the field
}

// Changes returns the fields in which an object differs from its next state. It masks hidden values.
func Changes(live, after *unstructured.Unstructured, hide Mask) []Change {
	d := differ{hidden: hide}
	d.compare("", Bare(live).Object, Bare(after).Object)
	return d.changes
}

// HolderOf returns the field manager that loses a path, or "".
func HolderOf(taken []Taken, path string) string {
	for _, t := range taken {
		for _, field := range t.Fields {
			if isBelow(path, field) {
				return t.Manager
			}
		}
	}
	return ""
}

// Bare returns an object without the metadata that the API server maintains. It shares all other values with the object.
func Bare(u *unstructured.Unstructured) *unstructured.Unstructured {
	object := maps.Clone(u.Object)
	delete(object, "status")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, kept := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
			delete(metadata, kept)
		}
		object["metadata"] = metadata
	}
	return &unstructured.Unstructured{Object: object}
}

type differ struct {
	hidden  Mask
	changes []Change
}

func (d *differ) compare(path string, from, to any) {
	if reflect.DeepEqual(from, to) {
		return
	}
	switch from := from.(type) {
	case map[string]any:
		if to, ok := to.(map[string]any); ok {
			for key := range keys(from, to) {
				d.compare(join(path, key), from[key], to[key])
			}
			return
		}
	case []any:
		if to, ok := to.([]any); ok {
			d.compareLists(path, from, to)
			return
		}
	}
	d.changes = append(d.changes, Change{Path: path, From: d.text(path, from, "before"), To: d.text(path, to, "after")})
}

// compareLists matches list items by name if all have one, as the versions of a CRD do, and by position otherwise.
func (d *differ) compareLists(path string, from, to []any) {
	was, named := byName(from)
	is, alsoNamed := byName(to)
	if named && alsoNamed {
		for name := range keys(was, is) {
			d.compare(fmt.Sprintf("%s[%s]", path, name), was[name], is[name])
		}
		d.compareOrder(path, from, to)
		return
	}
	for i := range max(len(from), len(to)) {
		var f, t any
		if i < len(from) {
			f = from[i]
		}
		if i < len(to) {
			t = to[i]
		}
		d.compare(fmt.Sprintf("%s[%d]", path, i), f, t)
	}
}

// compareOrder adds a change if two lists have the same names in another order.
func (d *differ) compareOrder(path string, from, to []any) {
	was, is := namesOf(from), namesOf(to)
	if !slices.Equal(was, is) && slices.Equal(slices.Sorted(slices.Values(was)), slices.Sorted(slices.Values(is))) {
		d.changes = append(d.changes, Change{Path: path, From: d.text(path, was, "before"), To: d.text(path, is, "after")})
	}
}

func namesOf(items []any) []string {
	names := make([]string, len(items))
	for i, item := range items {
		names[i], _ = nameOf(item)
	}
	return names
}

func byName(items []any) (map[string]any, bool) {
	named := make(map[string]any, len(items))
	for _, item := range items {
		m, _ := item.(map[string]any)
		name, ok := m["name"].(string)
		if _, twice := named[name]; !ok || twice {
			return nil, false
		}
		named[name] = item
	}
	return named, true
}

// keys returns the keys of both maps.
func keys(a, b map[string]any) map[string]struct{} {
	all := make(map[string]struct{}, len(a))
	for k := range a {
		all[k] = struct{}{}
	}
	for k := range b {
		all[k] = struct{}{}
	}
	return all
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// text returns a value as JSON, or a mask for a secret.
func (d *differ) text(path string, value any, when string) string {
	if value == nil {
		return ""
	}
	if d.hidden.Covers(path) {
		return "*** (" + when + ")"
	}
	b, err := json.Marshal(value)
	if err != nil {
		return d.hidden.Text(fmt.Sprint(value))
	}
	return d.hidden.Text(string(b))
}

// PathOf returns a place in an object as the path of a Change, up to the first list.
func PathOf(at []any) string {
	path := ""
	for _, step := range at {
		key, ok := step.(string)
		if !ok {
			break
		}
		path = join(path, key)
	}
	return path
}

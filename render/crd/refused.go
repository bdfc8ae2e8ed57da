package crd

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Refused returns why the API server refuses to apply an MRD, active or not, by the schema of MRDs in Crossplane v2.4: unknown
// fields, values of another type, and missing required fields. It returns nil or FieldErrors, joined.
func Refused(mrd *unstructured.Unstructured) error {
	var found []error
	object := maps.Clone(mrd.Object)
	for _, key := range []string{"apiVersion", "kind", "status"} {
		delete(object, key)
	}
	definition.unknown(object, nil, &found)
	definition.check(mrd.Object, nil, &found)
	if len(found) > 0 {
		return errors.Join(found...) // the checks below need fields of the right types
	}
	r := requirements{&found}
	spec := r.mapping(mrd.Object, "spec", nil, true)
	if spec == nil {
		return errors.Join(found...)
	}
	at := []any{"spec"}
	r.need(spec, at, "group", "names", "versions")
	r.oneOf(spec, at, "scope", "Namespaced", "Cluster")
	r.oneOf(spec, at, "state", "Active", "Inactive")
	if names := r.mapping(spec, "names", at, false); names != nil {
		at := join(at, "names")
		r.need(names, at, "kind", "plural")
		r.lower(names, at, "plural")
		r.lower(names, at, "singular")
	}
	if conversion := r.mapping(spec, "conversion", at, false); conversion != nil {
		at := join(at, "conversion")
		r.need(conversion, at, "strategy")
		if webhook := r.mapping(conversion, "webhook", at, false); webhook != nil {
			at := join(at, "webhook")
			r.need(webhook, at, "conversionReviewVersions")
			client := r.mapping(webhook, "clientConfig", at, false)
			if service := r.mapping(client, "service", join(at, "clientConfig"), false); service != nil {
				r.need(service, join(join(at, "clientConfig"), "service"), "name", "namespace")
			}
		}
	}
	r.each(spec, at, "connectionDetails", func(item map[string]any, at []any) { r.need(item, at, "name", "description") })
	r.each(spec, at, "versions", func(version map[string]any, at []any) {
		r.need(version, at, "name", "served", "storage")
		r.each(version, at, "additionalPrinterColumns", func(item map[string]any, at []any) { r.need(item, at, "name", "type", "jsonPath") })
		r.each(version, at, "selectableFields", func(item map[string]any, at []any) { r.need(item, at, "jsonPath") })
		subresources := r.mapping(version, "subresources", at, false)
		if scale := r.mapping(subresources, "scale", join(at, "subresources"), false); scale != nil {
			r.need(scale, join(join(at, "subresources"), "scale"), "specReplicasPath", "statusReplicasPath")
		}
	})
	return errors.Join(found...)
}

// requirements collects what is missing in an object whose values have the right types.
type requirements struct{ found *[]error }

func (r requirements) add(at []any, key, problem string) {
	*r.found = append(*r.found, FieldError{Path: join(at, key), Problem: problem})
}

// need reports missing fields of a mapping.
func (r requirements) need(m map[string]any, at []any, keys ...string) {
	for _, key := range keys {
		if m[key] == nil {
			r.add(at, key, "is required")
		}
	}
}

// mapping returns a field that is a mapping, or nil.
func (r requirements) mapping(m map[string]any, key string, at []any, required bool) map[string]any {
	value, _ := m[key].(map[string]any)
	if value == nil && required {
		r.add(at, key, "is required")
	}
	return value
}

// each calls visit for the items of a list.
func (r requirements) each(m map[string]any, at []any, key string, visit func(item map[string]any, at []any)) {
	list, _ := m[key].([]any)
	for i, v := range list {
		item, _ := v.(map[string]any)
		visit(item, join(join(at, key), i))
	}
}

// oneOf reports a value that is set to none of the given values.
func (r requirements) oneOf(m map[string]any, at []any, key string, values ...string) {
	if value, set := m[key].(string); set && !slices.Contains(values, value) {
		r.add(at, key, fmt.Sprintf("must be %s, not %q", strings.Join(values, " or "), value))
	}
}

// lower reports a name that is not in lower case.
func (r requirements) lower(m map[string]any, at []any, key string) {
	if value, _ := m[key].(string); value != strings.ToLower(value) {
		r.add(at, key, fmt.Sprintf("must be in lower case, not %q", value))
	}
}

// unknown reports the fields of a value that are not in its shape, in order of path.
func (s shape) unknown(v any, at []any, found *[]error) {
	switch v := v.(type) {
	case map[string]any:
		if s.is != object {
			return
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			field, known := s.fields[key]
			if !known {
				*found = append(*found, FieldError{Path: join(at, key), Problem: "unknown field"})
				continue
			}
			field.unknown(v[key], join(at, key), found)
		}
	case []any:
		if s.is != list {
			return
		}
		for i, item := range v {
			s.items.unknown(item, join(at, i), found)
		}
	}
}

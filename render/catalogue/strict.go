package catalogue

import (
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/render/manifest"
)

// A Strict reads a decoded document field by field and collects the errors in it.
type Strict struct {
	Document *manifest.Document
	Problems Errors
}

// Refuse adds an error about a field.
func (s *Strict) Refuse(at []any, format string, args ...any) {
	s.Problems = append(s.Problems, Errorf(placeOf(s.Document, at...), "%s %s", manifest.Field(at...), fmt.Sprintf(format, args...)))
}

// placeOf returns the place of a field, or else of its nearest existing parent.
func placeOf(d *manifest.Document, at ...any) manifest.Origin {
	origin := d.Origin
	for path := at; origin == d.Origin && len(path) > 0; path = path[:len(path)-1] {
		origin = d.OriginOf(path...)
	}
	return origin
}

// Object returns v as a mapping and refuses unknown fields.
func (s *Strict) Object(v any, at []any, known ...string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		s.Refuse(at, "must be an object")
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(known, key) {
			s.Refuse(slices.Concat(at, []any{key}), "is not known: there are %v", known)
		}
	}
	return m
}

// List returns a non-empty list.
func (s *Strict) List(v any, at []any) []any {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		s.Refuse(at, "must be a list with at least one item")
	}
	return list
}

// Text returns a non-empty string.
func (s *Strict) Text(v any, at []any) string {
	text, ok := v.(string)
	if !ok || text == "" {
		s.Refuse(at, "must be a string that is not empty")
	}
	return text
}

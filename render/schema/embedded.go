package schema

import (
	"fmt"
	"maps"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	fielderrors "k8s.io/apimachinery/pkg/util/validation/field"
)

// Untyped returns what server-side apply refuses in an object although the schema allows it: unknown and malformed fields in the
// metadata of embedded objects, and lists in the place of texts with a format, which schema validation does not look at.
func (v *Validator) Untyped(o *unstructured.Unstructured) (unknown []string, wrong fielderrors.ErrorList) {
	err, unknown := objectmeta.CoerceWithOptions(nil, o.Object, v.structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		wrong = append(wrong, err)
	}
	return unknown, append(wrong, listsForText(nil, o.Object, v.structural)...)
}

// listsForText returns an error for each list in a value whose schema is a text.
func listsForText(at *fielderrors.Path, value any, s *structuralschema.Structural) (wrong fielderrors.ErrorList) {
	if s == nil {
		return nil
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			below, declared := s.Properties[key]
			switch {
			case declared:
				wrong = append(wrong, listsForText(at.Child(key), value[key], &below)...)
			case s.AdditionalProperties != nil:
				wrong = append(wrong, listsForText(at.Key(key), value[key], s.AdditionalProperties.Structural)...)
			}
		}
	case []any:
		if s.Type == "string" {
			return fielderrors.ErrorList{fielderrors.TypeInvalid(at, "list", fmt.Sprintf("must be of type %s, not a list", s.Type))}
		}
		for i, item := range value {
			wrong = append(wrong, listsForText(at.Index(i), item, s.Items)...)
		}
	}
	return wrong
}

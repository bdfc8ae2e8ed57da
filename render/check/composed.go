package check

import (
	"context"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Base checks a base. Required fields and rules of CEL do not count, because patches may add to the base.
func (d *declared) Base(base *unstructured.Unstructured) Result {
	v, err := d.version(base)
	if err != nil {
		return Result{}
	}
	_, untyped := v.Untyped(base)
	found := append(problems(untyped), v.unknown(base)...)
	unstructured.RemoveNestedField(base.Object, "status")
	v.Default(base)
	wrong := slices.DeleteFunc(v.Invalid(context.Background(), base), func(e *field.Error) bool { return grows(e.Type) })
	return Result{Errors: append(found, problems(wrong)...)}
}

// grows reports whether an object with an error of this type may become valid when it gains fields.
func grows(t field.ErrorType) bool {
	return t == field.ErrorTypeRequired || t == field.ErrorTypeInvalid || t == field.ErrorTypeTooLong || t == field.ErrorTypeTooMany
}

// overlap reports whether one of two field paths is the other, or is below it.
func overlap(a, b string) bool {
	x, err := fieldpath.Parse(a)
	y, failed := fieldpath.Parse(b)
	if err != nil || failed != nil {
		return true // it is not known
	}
	for i := range min(len(x), len(y)) {
		wild := x[i].Field == "*" || y[i].Field == "*"
		if x[i] != y[i] && !wild {
			return false
		}
	}
	return true
}

// Lacks prunes an object with only the field. Metadata is the same for all kinds.
func (d *declared) Lacks(version, path string) (why string, lacks bool) {
	o, err := Only(path)
	if err != nil {
		return err.Error(), true
	}
	if o == nil {
		return "", false
	}
	o.SetGroupVersionKind(o.GroupVersionKind().GroupKind().WithVersion(version))
	v, err := d.version(o)
	if err != nil {
		return "", false
	}
	if unknown := v.unknown(o); len(unknown) > 0 {
		return unknown[0].Field + " is not in its schema" + strings.TrimPrefix(unknown[0].Message, unknownField), true
	}
	return "", false
}

// Only returns an object with only the field of a field path, or nil if every kind may have the field. A wildcard stands for the keys
// or the items that are there.
func Only(path string) (*unstructured.Unstructured, error) {
	segments, err := fieldpath.Parse(path)
	if err != nil {
		return nil, err
	}
	if wild := slices.IndexFunc(segments, func(s fieldpath.Segment) bool { return s.Field == "*" }); wild >= 0 {
		segments = segments[:wild]
	}
	if len(segments) == 0 || slices.Contains([]string{"metadata", "apiVersion", "kind"}, segments[0].Field) {
		return nil, nil
	}
	var value any = map[string]any{}
	for _, s := range slices.Backward(segments) {
		if s.Type == fieldpath.SegmentIndex {
			value = []any{value}
		} else {
			value = map[string]any{s.Field: value}
		}
	}
	content, ok := value.(map[string]any)
	if !ok {
		return nil, nil
	}
	return &unstructured.Unstructured{Object: content}, nil
}

package schema

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	fielderrors "k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// A Validator treats objects as an API server does that has the schema of one version of a CRD. It uses the API server's own
// libraries. It is safe for concurrent use.
type Validator struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
	keeps      bool // keeps fields that the schema does not declare
}

// NewValidator returns the Validator of a schema: the openAPIV3Schema of one version.
func NewValidator(content map[string]any) (*Validator, error) { return newValidator(false, content) }

// newValidator returns the Validator of a schema. If secret is true, errors do not show values of objects.
func newValidator(secret bool, content map[string]any) (*Validator, error) {
	var props apiextensionsv1.JSONSchemaProps
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &props); err != nil {
		return nil, err
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	if secret {
		hideValues(structural)
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	return &Validator{structural: structural, schema: validator, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}, err
}

// hideValues removes message expressions, which would show values of objects: the author of the schema may have no right to read
// the objects.
func hideValues(structural *structuralschema.Structural) {
	(&structuralschema.Visitor{Structural: func(s *structuralschema.Structural) bool {
		for i := range s.XValidations {
			s.XValidations[i].MessageExpression = ""
		}
		return false
	}}).Visit(structural)
}

// Coerce changes an object as the API server does when it reads the object.
func (v *Validator) Coerce(o *unstructured.Unstructured) {
	v.Prune(o)
	defaulting.PruneNonNullableNullsWithoutDefaults(o.Object, v.structural)
	v.Default(o)
	_ = objectmeta.Coerce(nil, o.Object, v.structural, false, true) // never an error: malformed metadata is dropped
}

// Prune removes the fields that the schema does not declare, and returns their paths.
func (v *Validator) Prune(o *unstructured.Unstructured) (unknown []string) {
	if v.keeps {
		return nil
	}
	return pruning.PruneWithOptions(o.Object, v.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// Fields returns the names of the fields that the schema declares at a path of keys and indices, in no order.
func (v *Validator) Fields(path []any) []string {
	at := v.structural
	for _, step := range path {
		key, _ := step.(string)
		below, named := at.Properties[key]
		switch {
		case named:
			at = &below
		case at.Items != nil:
			at = at.Items
		case at.AdditionalProperties != nil && at.AdditionalProperties.Structural != nil:
			at = at.AdditionalProperties.Structural
		default:
			return nil
		}
	}
	return slices.Collect(maps.Keys(at.Properties))
}

// Default sets the defaults of the schema. A null without a default stays: the API server leaves it out of objects that it reads, and
// refuses it in a server-side apply.
func (v *Validator) Default(o *unstructured.Unstructured) {
	defaulting.Default(o.Object, v.structural)
}

// Invalid returns the schema errors of an object.
func (v *Validator) Invalid(ctx context.Context, o *unstructured.Unstructured) fielderrors.ErrorList {
	wrong := validation.ValidateCustomResource(nil, o.Object, v.schema)
	wrong = append(wrong, objectmeta.Validate(ctx, nil, o.Object, v.structural, false)...)
	return append(wrong, listtype.ValidateListSetsAndMaps(nil, v.structural, o.Object)...)
}

// Broken returns the errors of the CEL rules that refuse an object. old is the object before an update, or nil. The object must have
// no schema errors.
func (v *Validator) Broken(ctx context.Context, o, old *unstructured.Unstructured) fielderrors.ErrorList {
	if v.rules == nil {
		return nil
	}
	var was any
	if old != nil {
		was = old.Object
	}
	wrong, _ := v.rules.Validate(ctx, nil, v.structural, o.Object, was, celconfig.RuntimeCELCostBudget)
	return wrong
}

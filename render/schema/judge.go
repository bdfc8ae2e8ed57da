package schema

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	fielderrors "k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// A Judge reports what an API server makes of objects that were written before an update of their
// definition, with the API server's own libraries. It is for one goroutine.
type Judge struct {
	after  []judged // what an object goes through when it is next written
	before judged
}

// A judged schema is that of one version.
type judged struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// NewJudge returns the judge of an update, for objects that are read in one version. Without conversion they
// have to fit that version as it becomes, and the one that objects are stored in then.
func NewJudge(before, after *unstructured.Unstructured, version string) (*Judge, error) {
	was, is := versions(object(before.Object["spec"])), versions(object(after.Object["spec"]))
	if is[version] == nil && converts(after) {
		return nil, fmt.Errorf("version %s is not declared any more, and only the webhook knows what becomes of it", version)
	}
	if object(after.Object["spec"])["preserveUnknownFields"] == true {
		return nil, errors.New("it keeps fields that its schema does not declare")
	}
	var j Judge
	var err error
	if j.before, err = newJudged(schemaOf(was[version])); err != nil {
		return nil, fmt.Errorf("version %s as it is: %w", version, err)
	}
	through := []string{version}
	if to := stored(is); to != version && !converts(after) {
		through = append(through, to)
	}
	for _, name := range through {
		if is[name] == nil {
			continue
		}
		next, err := newJudged(schemaOf(is[name]))
		if err != nil {
			return nil, fmt.Errorf("version %s as it will be: %w", name, err)
		}
		j.after = append(j.after, next)
	}
	return &j, nil
}

func newJudged(said map[string]any) (judged, error) {
	var props apiextensionsv1.JSONSchemaProps
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(said, &props); err != nil {
		return judged{}, err
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil); err != nil {
		return judged{}, err
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return judged{}, err
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return judged{}, err
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	return judged{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, err
}

// Of returns the fields that an object loses, and those for which it is refused with a word on why: what is
// below status counts in neither, and nothing that was already refused before. It changes the object.
func (j *Judge) Of(ctx context.Context, o *unstructured.Unstructured) (loses, refused []string) {
	was := o.DeepCopy()
	for _, next := range j.after {
		lost, wrong := next.write(ctx, o)
		loses, refused = append(loses, lost...), append(refused, wrong...)
	}
	if len(refused) > 0 {
		_, already := j.before.write(ctx, was)
		refused = slices.DeleteFunc(refused, func(why string) bool { return slices.Contains(already, why) })
	}
	return distinct(loses), distinct(refused)
}

func distinct(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}

// write does to an object what the API server does when it is written, and returns what it loses and why it
// is refused.
func (j judged) write(ctx context.Context, o *unstructured.Unstructured) (loses, refused []string) {
	for _, path := range pruning.PruneWithOptions(o.Object, j.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		if place := anyItem(path); counts(place) {
			loses = append(loses, place)
		}
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(o.Object, j.structural)
	defaulting.Default(o.Object, j.structural)
	wrong := validation.ValidateCustomResource(nil, o.Object, j.schema)
	wrong = append(wrong, listtype.ValidateListSetsAndMaps(nil, j.structural, o.Object)...)
	if j.rules != nil && len(wrong) == 0 { // as an API server does
		broken, _ := j.rules.Validate(ctx, nil, j.structural, o.Object, nil, celconfig.RuntimeCELCostBudget)
		wrong = append(wrong, broken...)
	}
	for _, e := range wrong {
		if place := anyItem(e.Field); counts(place) {
			refused = append(refused, strings.TrimPrefix(place+": ", ": ")+why(e))
		}
	}
	return loses, refused
}

// why says why a field is refused, without its value.
func why(e *fielderrors.Error) string {
	said := strings.ToLower(e.Type.String())
	if e.Type == fielderrors.ErrorTypeInvalid && strings.HasPrefix(e.Detail, "failed rule") {
		said += ": " + e.Detail
	}
	return said
}

func counts(place string) bool {
	return !Change{Path: place}.InStatus() && place != "metadata" && !strings.HasPrefix(place, "metadata.")
}

var numbered = regexp.MustCompile(`\[\d+\]`)

// anyItem is a path that speaks of all items of a list.
func anyItem(path string) string {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "<nil>"), ".")
	return numbered.ReplaceAllString(path, "[]")
}

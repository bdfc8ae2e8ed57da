package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	fielderrors "k8s.io/apimachinery/pkg/util/validation/field"
)

// A Judge reports how an API server treats objects that were written before an update of their definition. It uses the API server's
// own libraries. It is not safe for concurrent use.
type Judge struct {
	before judged
	after  []judged // the schemas that an object must satisfy when it is next written
}

// judged is a Validator whose errors do not show values of objects.
type judged = *Validator

func newJudged(content map[string]any) (judged, error) { return newValidator(true, content) }

// NewJudge returns the judge of an update for objects that are read in one version. Without conversion, the objects must fit three
// kinds of versions after the update: the same version, the storage version, and newly served versions.
func NewJudge(before, after *unstructured.Unstructured, version string) (*Judge, error) {
	was, is := versions(object(before.Object["spec"])), versions(object(after.Object["spec"]))
	to := stored(is)
	switch {
	case was[version] == nil:
		return nil, fmt.Errorf("version %s is not declared", version)
	case is[version] == nil && converts(after):
		return nil, fmt.Errorf("version %s is not declared any more, and only the webhook knows how its objects are converted", version)
	case is[to] == nil:
		return nil, errors.New("no version of it stores objects")
	case object(after.Object["spec"])["preserveUnknownFields"] == true:
		return nil, errors.New("it keeps fields that its schema does not declare")
	}
	var j Judge
	var err error
	if j.before, err = newJudged(schemaOf(was[version])); err != nil {
		return nil, fmt.Errorf("version %s as it is: %w", version, err)
	}
	j.before.keeps = object(before.Object["spec"])["preserveUnknownFields"] == true
	through := []string{version}
	if !converts(after) {
		through = slices.Concat(through, []string{to}, newlyServed(was, is)) // an update in one of these versions drops undeclared fields
	}
	for i, name := range through {
		if is[name] == nil || slices.Contains(through[:i], name) {
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

// Of returns the fields whose values an object loses, and the fields for which it is refused, each with a reason. It ignores fields
// below status, and losses and refusals that the definition already caused before the update. It changes the object.
func (j *Judge) Of(ctx context.Context, o *unstructured.Unstructured) (loses, refused []string) {
	j.before.Coerce(o) // as the API server reads it
	was := o.DeepCopy()
	for _, next := range j.after {
		read := o.DeepCopy()
		next.Coerce(o)
		loses = append(loses, lost(written(read), written(o), "")...)
		wrong := next.invalid(ctx, o)
		if len(wrong) > 0 {
			wrong = without(wrong, j.before.invalid(ctx, was))
		}
		if len(wrong) == 0 {
			wrong = next.broken(ctx, o)
		}
		if len(wrong) > 0 {
			wrong = without(wrong, j.before.broken(ctx, was))
		}
		for _, r := range wrong {
			refused = append(refused, r.message)
		}
	}
	return distinct(loses), distinct(refused)
}

func distinct(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}

// lost returns the paths below which an object no longer has its previous values.
func lost(was, is any, path string) []string {
	var all []string
	switch was := was.(type) {
	case map[string]any:
		is, same := is.(map[string]any)
		if !same {
			return []string{path}
		}
		for key, value := range was {
			below := strings.TrimPrefix(path+"."+key, ".")
			switch now, kept := is[key]; {
			case kept:
				all = append(all, lost(value, now, below)...)
			case value != nil || key != "creationTimestamp": // Go itself adds a null there
				all = append(all, below)
			}
		}
	case []any:
		is, same := is.([]any)
		if !same || len(was) != len(is) {
			return []string{path}
		}
		for i := range was {
			all = append(all, lost(was[i], is[i], path+"[]")...)
		}
	default:
		if !reflect.DeepEqual(was, is) {
			return []string{path}
		}
	}
	return all
}

// written returns the fields of an object without the status, which controllers write again, and the metadata, which no schema changes.
func written(o *unstructured.Unstructured) map[string]any {
	fields := maps.Clone(o.Object)
	delete(fields, "status")
	delete(fields, "metadata")
	return fields
}

// A refusal is a reason why an API server refuses an object.
type refusal struct {
	path    string
	why     string // without values
	message string // for users: the same for all items of a list
}

// invalid returns the schema errors of an object. An API server lets a client keep an invalid value but not change it, so they
// count.
func (v judged) invalid(ctx context.Context, o *unstructured.Unstructured) []refusal {
	return refusals(v.Invalid(ctx, o), false)
}

// broken returns the CEL rules that refuse an update that changes nothing.
func (v judged) broken(ctx context.Context, o *unstructured.Unstructured) []refusal {
	return refusals(v.Broken(ctx, o, o), true)
}

// refusals converts errors to refusals. It distinguishes CEL rules by message, because one place may have many rules.
func refusals(errs fielderrors.ErrorList, rules bool) []refusal {
	var all []refusal
	for _, e := range errs {
		r := refusal{path: strings.TrimPrefix(strings.TrimPrefix(e.Field, "<nil>"), "."), why: strings.ToLower(e.Type.String())}
		if (Change{Path: r.path}).InStatus() {
			continue
		}
		r.message = strings.TrimPrefix(numbered.ReplaceAllString(r.path, "[]")+": ", ": ") + r.why
		if rules {
			r.why = e.Detail
		}
		if rules && strings.HasPrefix(e.Detail, "failed rule") {
			r.message += ": " + e.Detail
		}
		all = append(all, r)
	}
	return all
}

// without returns the refusals that are not known. Each known refusal cancels one equal refusal.
func without(refused, known []refusal) []refusal {
	left := map[refusal]int{}
	for _, r := range known {
		left[r]++
	}
	return slices.DeleteFunc(refused, func(r refusal) bool {
		left[r]--
		return left[r] >= 0
	})
}

var numbered = regexp.MustCompile(`\[\d+\]`)

package check

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// originless is the origin of objects that exist only for their digest.
var originless manifest.Origin

// Versions returns the served versions, preferred first.
func (d *declared) Versions() []string { return d.known().Versions }

// Namespaced reports whether the kind is namespaced.
func (d *declared) Namespaced() bool { return d.known().Namespaced }

// Key identifies the CRD.
func (d *declared) Key() string { return d.known().Key }

// known returns the facts, which declarations.Kind has read without an error.
func (d *declared) known() facts {
	f, _ := d.facts()
	return f
}

// Check checks an object against the schema of its version.
func (d *declared) Check(o *unstructured.Unstructured) Result {
	v, err := d.version(o)
	if err != nil {
		return Result{NotChecked: unusable}
	}
	return Result{Errors: v.check(o)}
}

// unusable is why objects are not checked whose schema no API server accepts. Another check reports the schema.
const unusable = "their schemas are not valid, or there are several"

// version returns the schema of an object's version.
func (d *declared) version(o *unstructured.Unstructured) (*served, error) {
	d.making.Do(func() {
		u, err := d.crd()
		if err != nil {
			d.err = err
			return
		}
		d.made = newCustom(u)
	})
	if d.err != nil {
		return nil, d.err
	}
	name := o.GroupVersionKind().Version
	of, known := d.made[name]
	if !known {
		return nil, fmt.Errorf("version %s is not declared", name)
	}
	return of()
}

// custom holds the versions of a CRD by name. A version is compiled when it is first used.
type custom map[string]func() (*served, error)

// A served is one version of a CRD.
type served struct {
	*schema.Validator
	status bool // status is a subresource
}

func newCustom(crd *unstructured.Unstructured) custom {
	c := custom{}
	for name, of := range versionsOf(crd) {
		c[name] = sync.OnceValues(func() (*served, error) { return newServed(of) })
	}
	return c
}

func newServed(version map[string]any) (*served, error) {
	content, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	_, status, _ := unstructured.NestedFieldNoCopy(version, "subresources", "status")
	v, err := schema.NewValidator(content)
	if err != nil {
		return nil, err
	}
	return &served{v, status}, nil
}

// check returns why the API server refuses to create an object. It changes the object.
func (v *served) check(o *unstructured.Unstructured) []Problem {
	found := v.shape(o)
	if len(found) > 0 {
		return found // the API server reports these alone
	}
	return problems(v.Broken(context.Background(), o, nil))
}

// Compares returns true: a schema may have rules for updates.
func (d *declared) Compares() bool { return true }

// Update returns the rules that refuse an update. It returns nothing if the new object is refused anyway, or if the versions differ.
func (d *declared) Update(o, old *unstructured.Unstructured) []Problem {
	v, err := d.version(o)
	if err != nil || o.GetAPIVersion() != old.GetAPIVersion() || len(v.shape(o)) > 0 {
		return nil
	}
	v.Coerce(old)
	return without(problems(v.Broken(context.Background(), o, old)), problems(v.Broken(context.Background(), o, nil)))
}

// without returns problems that are not known.
func without(found, known []Problem) []Problem {
	return slices.DeleteFunc(found, func(p Problem) bool { return slices.Contains(known, p) })
}

// shape returns unknown fields and schema errors of an object, and makes it what the API server stores.
func (v *served) shape(o *unstructured.Unstructured) []Problem {
	embedded, untyped := v.Untyped(o)
	found := v.unknown(o)
	for _, path := range embedded {
		found = append(found, Problem{Field: path, Message: unknownField})
	}
	found = append(found, problems(untyped)...)
	if v.status {
		unstructured.RemoveNestedField(o.Object, "status") // a write to the object does not set it
	}
	v.Default(o)
	return append(found, problems(v.Invalid(context.Background(), o))...)
}

const unknownField = "unknown field"

// unknown removes the unknown fields of an object, and returns them.
func (v *served) unknown(o *unstructured.Unstructured) (found []Problem) {
	for _, field := range v.Prune(o) {
		p := Problem{Field: field, Message: unknownField}
		path := Path(o.Object, field)
		key, _ := path[len(path)-1].(string)
		if near := manifest.Meant(key, v.Fields(path[:len(path)-1])); near != "" {
			p.Message += "; did you mean " + near + "?"
		}
		found = append(found, p)
	}
	return found
}

// problems returns errors of the API server's libraries in our own words.
func problems(errs field.ErrorList) []Problem {
	var all []Problem
	for _, e := range errs {
		p := Problem{Field: strings.TrimPrefix(strings.TrimPrefix(e.Field, "<nil>"), "."), Message: wording(e)}
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

var notOfType = regexp.MustCompile(`^must be of type (.*): "([^"]*)"$`)

// wording returns what is wrong with a field.
func wording(e *field.Error) string {
	detail := strings.TrimPrefix(e.Detail, e.Field+" in body ")
	switch e.Type {
	case field.ErrorTypeRequired:
		return "is required"
	case field.ErrorTypeDuplicate:
		return "is there twice"
	case field.ErrorTypeNotSupported:
		return fmt.Sprintf("cannot be %#v; %s", e.BadValue, detail)
	case field.ErrorTypeTypeInvalid:
		return notOfType.ReplaceAllString(detail, "must be of type $1, not $2")
	}
	switch {
	case detail == "":
		return strings.ToLower(e.Type.String())
	case strings.HasPrefix(detail, "json: cannot unmarshal "): // it names a type of Go
		return "has a field of the wrong type"
	}
	return detail
}

package render

import (
	"errors"

	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crd"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Definition is a definition of the commit with the decision on it.
type Definition struct {
	activation.Decision

	conversion Conversion
}

// CRD is the CRD that the definition makes, active or not. It decodes the document;
// what is wrong with that is catalogue.Errors.
func (d Definition) CRD() (Object, error) {
	u, err := d.Document.Decode()
	if err != nil {
		return Object{}, catalogue.Errors{{Origin: d.Document.Origin, Err: err}}
	}
	mrd := u
	switch {
	case d.FromCRD:
		mrd = crd.Definition(u, d.Package.SafeStart)
	case d.Package == nil:
		if err := crd.CheckApplied(u); err != nil {
			return Object{}, d.problems(err)
		}
	}
	made, err := crd.Of(mrd)
	if err != nil {
		return Object{}, d.problems(err)
	}
	if err := d.conversion.settle(made, d.Package); err != nil {
		return Object{}, catalogue.Errors{catalogue.Errorf(d.Document.OriginOf("spec", "conversion"), "%w", err)}
	}
	return d.object(made)
}

// MRD is the definition for Crossplane. A conversion webhook that nobody is known to answer
// stays as it is, and is its Problem: it matters once a CRD is made of it. The MRD never says whether it is active: a state that
// is applied once and then left out would fall back to Inactive, which the API refuses
// for ever. Object.Activates says it instead.
func (d Definition) MRD() (Object, error) {
	u, err := d.decode(crd.Malformed)
	if err != nil {
		return Object{}, err
	}
	unsettled := d.conversion.settle(u, d.Package)
	unstructured.RemoveNestedField(u.Object, "spec", "state")
	o, err := d.object(u)
	o.Activates = d.State == catalogue.Active
	if unsettled != nil {
		o.Problem = catalogue.Errorf(d.Document.OriginOf("spec", "conversion"), "%w", unsettled)
	}
	return o, err
}

// Declared is the definition as an MRD that says all there is to it, its state too: the one
// that is declared, or the one that Crossplane makes of the CRD that is. It is one that
// makes a CRD; else the error is catalogue.Errors.
func (d Definition) Declared() (*unstructured.Unstructured, error) {
	return d.decode(func(mrd *unstructured.Unstructured) error {
		_, err := crd.Of(mrd)
		return err
	})
}

// decode is the definition as an MRD that passes a check.
func (d Definition) decode(check func(mrd *unstructured.Unstructured) error) (*unstructured.Unstructured, error) {
	u, err := d.Document.Decode()
	if err != nil {
		return nil, catalogue.Errors{{Origin: d.Document.Origin, Err: err}}
	}
	if d.FromCRD {
		u = crd.Definition(u, d.Package.SafeStart)
	}
	if err := check(u); err != nil {
		return nil, d.problems(err)
	}
	crd.Describe(u, d.ConnectionDetails)
	return u, nil
}

func (d Definition) object(made *unstructured.Unstructured) (Object, error) {
	o, err := NewObject(made, d.Document.Origin)
	o.Definition = d.Name
	if d.Package != nil {
		o.Package = d.Package.Name
	}
	return o, err
}

// problems puts each of the errors at the line of its field.
func (d Definition) problems(err error) catalogue.Errors {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all catalogue.Errors
		for _, e := range joined.Unwrap() {
			all = append(all, d.problems(e)...)
		}
		return all
	}
	at := d.Document.Origin
	if field, ok := errors.AsType[crd.FieldError](err); ok {
		for path := field.Path; at == d.Document.Origin && len(path) > 0; path = path[:len(path)-1] {
			at = d.Document.OriginOf(path...) // what is missing is missing in the line of its parent
		}
	}
	return catalogue.Errors{catalogue.Errorf(at, "cannot make a CRD of %s: %w", d.Name, err)}
}

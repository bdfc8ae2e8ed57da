package render

import (
	"errors"
	"fmt"

	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crd"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A DecidedDefinition is a definition of the commit with the decision on it.
type DecidedDefinition struct {
	activation.Decision

	conversion Conversion
	settled    string // the digest of it
}

// CRD is the CRD that the definition makes, active or not. It decodes the document;
// what is wrong with that is catalogue.Errors.
func (d DecidedDefinition) CRD() (Object, error) { return d.object("CRD", d.crd) }

// MRD is the definition for Crossplane. A conversion webhook that nobody is known to answer
// stays as it is, and is its Problem: it matters once a CRD is made of it. The MRD never says
// whether it is active: a state that is applied once and then left out would fall back to
// Inactive, which the API refuses for ever. Object.Activates says it instead.
func (d DecidedDefinition) MRD() (Object, error) {
	o, err := d.object("MRD", d.mrd)
	o.Activates = d.State == catalogue.Active
	return o, err
}

// Declared is the definition as an MRD that says all there is to it, its state too: the one
// that is declared, or the one that Crossplane makes of the CRD that is. It is one that
// makes a CRD; else the error is catalogue.Errors.
func (d DecidedDefinition) Declared() (*unstructured.Unstructured, error) {
	return d.decode(func(mrd *unstructured.Unstructured) error {
		_, err := crd.Of(mrd)
		return err
	})
}

// Draft returns the CRD that the definition makes for any owner, active or not, to be judged and not to be
// applied: a conversion is left out if its webhook names no service. What is wrong with the document is
// catalogue.Errors.
func (d DecidedDefinition) Draft() (*unstructured.Unstructured, error) {
	mrd, err := d.read()
	if err != nil {
		return nil, err
	}
	u, err := crd.Of(mrd)
	if err != nil {
		return nil, d.problems(err)
	}
	return u, Conversion{Strategy: ConversionNone}.settle(u, nil)
}

// object is what made makes, and why no CRD can be made of that. With a Memo that knows
// what comes of it, it is made where somebody asks for the content.
func (d DecidedDefinition) object(what string, made func() (u *unstructured.Unstructured, problem string, err error)) (Object, error) {
	var o Object
	pkg, safeStart := "", false
	if d.Package != nil {
		pkg, safeStart = d.Package.Name, d.Package.SafeStart
	}
	// Everything that made depends on, besides the document.
	known, err := d.Document.Learn(fmt.Sprintf("2 %s %t %q %s %q", what, safeStart, pkg, d.settled, d.ConnectionDetails), func() (string, error) {
		u, problem, err := made()
		if err != nil {
			return "", err
		}
		if o, err = NewObject(u, d.Document.Origin); err != nil {
			return "", err
		}
		return o.facts(problem)
	})
	if err != nil {
		return Object{}, err
	}
	f, err := factsOf(known)
	if err != nil {
		return Object{}, err
	}
	if o.json == nil {
		o = f.object(d.Document.Origin)
		o.again = func() (*unstructured.Unstructured, error) {
			u, _, err := made()
			return u, err
		}
	}
	if f.Problem != "" {
		o.Problem = catalogue.Errorf(d.Document.OriginOf("spec", "conversion"), "%s", f.Problem)
	}
	o.Definition, o.Package, o.document = d.Name, pkg, d.Document
	return o, nil
}

func (d DecidedDefinition) crd() (u *unstructured.Unstructured, problem string, err error) {
	mrd, err := d.read()
	if err != nil {
		return nil, "", err
	}
	if d.Package == nil {
		if err := crd.CheckApplied(mrd); err != nil {
			return nil, "", d.problems(err)
		}
	}
	if u, err = crd.Of(mrd); err != nil {
		return nil, "", d.problems(err)
	}
	manifest.DropPlaceholderCA(u)
	if err := d.conversion.settle(u, d.Package); err != nil {
		return nil, "", catalogue.Errors{catalogue.Errorf(d.Document.OriginOf("spec", "conversion"), "%w", err)}
	}
	return u, "", nil
}

func (d DecidedDefinition) mrd() (u *unstructured.Unstructured, problem string, err error) {
	if u, err = d.decode(crd.Malformed); err != nil {
		return nil, "", err
	}
	if err := d.conversion.settle(u, d.Package); err != nil {
		problem = err.Error()
	}
	unstructured.RemoveNestedField(u.Object, "spec", "state")
	return u, problem, nil
}

// decode is the definition as an MRD that passes a check.
func (d DecidedDefinition) decode(check func(mrd *unstructured.Unstructured) error) (*unstructured.Unstructured, error) {
	u, err := d.read()
	if err != nil {
		return nil, err
	}
	if err := check(u); err != nil {
		return nil, d.problems(err)
	}
	crd.Describe(u, d.ConnectionDetails)
	manifest.DropPlaceholderCA(u)
	return u, nil
}

// read is the definition as an MRD, as far as its document says what it is.
func (d DecidedDefinition) read() (*unstructured.Unstructured, error) {
	u, err := d.Document.Recall()
	if err != nil {
		return nil, catalogue.Errors{{Origin: d.Document.Origin, Err: err}}
	}
	if d.FromCRD {
		u = crd.Definition(u, d.Package.SafeStart)
	}
	return u, nil
}

// problems puts each of the errors at the line of its field.
func (d DecidedDefinition) problems(err error) catalogue.Errors {
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

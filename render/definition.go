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

// A DecidedDefinition is a definition of the commit with the decision about it.
type DecidedDefinition struct {
	activation.Decision

	conversion Conversion
	settled    string // the digest of conversion
	compared   bool   // see Options.Compares
}

// CRD returns the CRD that the definition makes, active or not. It decodes the document; errors in it are catalogue.Errors. With
// ConversionUnknown, a webhook without a known service is the object's Problem.
func (d DecidedDefinition) CRD() (Object, error) { return d.object("CRD", d.crd) }

// MRD returns the definition for Crossplane. A conversion webhook without a known service stays unchanged and becomes the object's
// Problem, which matters only when a CRD is made. The MRD never sets its state: a state that is applied once and then left out
// would fall back to Inactive, which the API always refuses. Object.Activates holds the state instead.
func (d DecidedDefinition) MRD() (Object, error) {
	o, err := d.object("MRD", d.mrd)
	o.Activates = d.State == catalogue.Active
	return o, err
}

// Declared returns the definition as a complete MRD, with its state. That is the declared MRD, or the one that
// Crossplane derives from the declared CRD. The error is catalogue.Errors if it cannot make a CRD.
func (d DecidedDefinition) Declared() (*unstructured.Unstructured, error) {
	return d.decode(func(mrd *unstructured.Unstructured) error {
		_, err := crd.Of(mrd)
		return err
	})
}

// Draft returns the CRD that the definition makes for any owner, active or not. It is for inspection only, never
// applied. It has no conversion if the webhook names no service. The error about a bad document is catalogue.Errors.
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

// object returns the object that made makes, with the reason as its Problem if it cannot make a CRD. If a Memo contains the result,
// made runs only when a caller needs the content.
func (d DecidedDefinition) object(what string, made func() (u *unstructured.Unstructured, problem string, err error)) (Object, error) {
	var o Object
	pkg, safeStart := "", false
	if d.Package != nil {
		pkg, safeStart = d.Package.Name, d.Package.SafeStart
	}
	// The key contains everything that the result depends on, besides the document.
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
	if d.compared && o.json != nil {
		o.packed, o.json = pack(o.json), nil
	}
	if o.json == nil && o.packed == nil {
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
	err = d.conversion.settle(u, d.Package)
	switch {
	case err == nil:
		return u, "", nil
	case d.conversion.Strategy == ConversionUnknown:
		return u, err.Error(), nil
	}
	return nil, "", catalogue.Errors{catalogue.Errorf(d.Document.OriginOf("spec", "conversion"), "%w", err)}
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

// decode returns the definition as an MRD that passes a check.
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

// read returns the definition as an MRD, without defaults or checks.
func (d DecidedDefinition) read() (*unstructured.Unstructured, error) {
	u, err := d.document()
	if err != nil {
		return nil, catalogue.Errors{{Origin: d.Document.Origin, Err: err}}
	}
	if d.FromCRD {
		u = crd.Definition(u, d.Package.SafeStart)
	}
	return u, nil
}

// document decodes the document. A comparison does not store the result in the Memo: it would write a lot and rarely read it again.
func (d DecidedDefinition) document() (*unstructured.Unstructured, error) {
	if d.compared {
		return d.Document.Decode()
	}
	return d.Document.Recall()
}

// problems places each error at the line of its field.
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
			at = d.Document.OriginOf(path...) // a missing field is reported at the line of its parent
		}
	}
	return catalogue.Errors{catalogue.Errorf(at, "cannot make a CRD of %s: %w", d.Name, err)}
}

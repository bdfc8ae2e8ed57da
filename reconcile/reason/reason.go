// Package reason has the codes of reasons. A reason explains a step, a ruling or an error as a value; package report turns it into
// sentences.
package reason

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Code is the kind of a Reason, in the form of the reasons of Kubernetes conditions: InUse, NotCounted. The comment of each code
// lists the values of its reasons, in order.
type Code string

// The codes of any step.
const (
	Both     Code = "Both"     // two reasons
	Approved Code = "Approved" // a guard that the step passed with an approval, and why the guard held it
	AlsoHeld Code = "AlsoHeld" // the reasons of the guards that hold a step, another guard that holds it, and its reason
	Failed   Code = "Failed"   // an error
)

// The codes of steps that were not carried out because the object is not as observed any more. They are planned again.
const (
	MadeAnew         Code = "MadeAnew"         // no value: another object has the name now
	ChangedMeanwhile Code = "ChangedMeanwhile" // no value
)

// The codes of prunes that were not sent.
const (
	ProtectedMeanwhile Code = "ProtectedMeanwhile" // the Usage that protects the object, or why Usages cannot be read
	UncountableNow     Code = "UncountableNow"     // why the objects that would be deleted with it cannot be counted any more
	UsedMeanwhile      Code = "UsedMeanwhile"      // how many objects would be deleted with the object, and an example
	AnExample          Code = "AnExample"          // one of the counted objects
	NamespaceNotEmpty  Code = "NamespaceNotEmpty"  // an object in the namespace that stays
)

// The codes of prunes that are not over.
const (
	NotGone Code = "NotGone" // the time limit, and what the object waits for
)

// With returns the reason with this code and the values that its wording needs, in this order.
func (c Code) With(values ...any) Reason { return Reason{Code: c, Values: values} }

// A Reason explains a step or a check. The zero Reason is no reason. A value is a string, an integer, a metav1.Time,
// a manifest.ID, a manifest.Origin, a schema.Change, another Reason, or a list of these. A message of another system, such as an API server, is a
// string. Package report turns reasons into sentences.
type Reason struct {
	Code   Code
	Values []any
}

// A CodedError is a reason as an error. Its text is the code and the values; package report turns it into a sentence.
type CodedError struct{ Reason }

// Error implements error.
func (p CodedError) Error() string { return p.String() }

// Of returns the reason of an error; no reason if there is no error.
func Of(err error) Reason {
	if err == nil {
		return Reason{}
	}
	if p, ok := errors.AsType[CodedError](err); ok {
		return p.Reason
	}
	return Failed.With(err.Error())
}

// None reports whether there is no reason.
func (r Reason) None() bool { return r.Code == "" }

// Has reports whether a reason, or a reason in it, has one of these codes.
func (r Reason) Has(codes ...Code) bool {
	if slices.Contains(codes, r.Code) {
		return true
	}
	return slices.ContainsFunc(r.Values, func(v any) bool {
		switch v := v.(type) {
		case Reason:
			return v.Has(codes...)
		case []Reason:
			return slices.ContainsFunc(v, func(r Reason) bool { return r.Has(codes...) })
		}
		return false
	})
}

// Or returns the reason or, if it is none, the other one.
func (r Reason) Or(other Reason) Reason {
	if r.None() {
		return other
	}
	return r
}

// And returns a reason with both reasons, or the only one that is set.
func And(a, b Reason) Reason {
	if a.None() || b.None() {
		return a.Or(b)
	}
	return Both.With(a, b)
}

// String returns the code and the values, for tests and for debugging.
func (r Reason) String() string {
	if len(r.Values) == 0 {
		return string(r.Code)
	}
	values := make([]string, len(r.Values))
	for i, v := range r.Values {
		values[i] = fmt.Sprint(v)
	}
	return string(r.Code) + "(" + strings.Join(values, ", ") + ")"
}

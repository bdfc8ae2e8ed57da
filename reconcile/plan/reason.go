package plan

import (
	"errors"
	"fmt"
	"strings"
)

// A Code names why something is as it is, in the form of the reasons of Kubernetes conditions: InUse, NotCounted.
type Code string

// The codes of any step.
const (
	Both     Code = "Both"     // the one and the other
	Approved Code = "Approved" // past the guard that is named, for the reason for which that held it
	Failed   Code = "Failed"   // an error
)

// The codes of prunes that were not sent.
const (
	ProtectedMeanwhile Code = "ProtectedMeanwhile" // the Usage that protects the object, or why Usages cannot be read
	UncountableNow     Code = "UncountableNow"     // why what would be deleted with the object cannot be counted any more
	UsedMeanwhile      Code = "UsedMeanwhile"      // how many objects would be deleted with the object, and an example
	AnExample          Code = "AnExample"          // one of the objects that were counted
)

// The codes of prunes that are not over.
const (
	NotGone Code = "NotGone" // after which time, and what the object waits for
)

// With returns the reason of a code. Its wording needs these values, in this order.
func (c Code) With(values ...any) Reason { return Reason{Code: c, Values: values} }

// A Reason explains a step or a check. The zero Reason is none. A value is a string, an integer, a manifest.ID, a
// manifest.Origin, a schema.Change, another Reason, or a list of these. A message of another system, such as an API
// server, is a string. Package report words reasons for people.
type Reason struct {
	Code   Code
	Values []any
}

// A ReasonError is a reason as an error. Its text is the code and the values: package report words it.
type ReasonError struct{ Reason }

// Error implements error.
func (p ReasonError) Error() string { return p.String() }

// ReasonOf returns the reason of an error.
func ReasonOf(err error) Reason {
	if p, ok := errors.AsType[ReasonError](err); ok {
		return p.Reason
	}
	return Failed.With(err.Error())
}

// None reports whether there is no reason.
func (r Reason) None() bool { return r.Code == "" }

// Or returns the reason, or another one if there is none.
func (r Reason) Or(other Reason) Reason {
	if r.None() {
		return other
	}
	return r
}

// And returns both of two reasons, as far as there are any.
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

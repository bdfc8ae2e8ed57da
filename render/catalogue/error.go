package catalogue

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// An Error is an error that prevents rendering a commit. Its text begins with the place.
type Error struct {
	Origin manifest.Origin
	Err    error
	Again  bool // a repeated declaration; the first one counts, and everything was read
}

func (e Error) Error() string { return e.Err.Error() }

// Reason returns the text without the place.
func (e Error) Reason() string {
	if placed, is := errors.AsType[manifest.PlacedError](e.Err); is {
		return placed.Err.Error()
	}
	return e.Err.Error()
}

// Unwrap is for errors.Is and errors.As.
func (e Error) Unwrap() error { return e.Err }

// Errorf returns an Error at a place.
func Errorf(at manifest.Origin, format string, args ...any) Error {
	return Error{Origin: at, Err: manifest.PlacedError{Origin: at, Err: fmt.Errorf(format, args...)}}
}

// Errors holds all errors of a commit. The text shows the first ten.
type Errors []Error

// ErrorsOf returns the parts of a joined error. Parts without a place get the place at.
func ErrorsOf(at manifest.Origin, err error) Errors {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // errors.As would find only the first part
		var all Errors
		for _, one := range joined.Unwrap() {
			all = append(all, ErrorsOf(at, one)...)
		}
		return all
	}
	if several, ok := errors.AsType[Errors](err); ok {
		return several
	}
	if one, ok := errors.AsType[Error](err); ok {
		return Errors{one}
	}
	if placed, ok := errors.AsType[manifest.PlacedError](err); ok {
		at = placed.Origin
	}
	if err != nil {
		return Errors{{Origin: at, Err: err}}
	}
	return nil
}

// Sorted returns the errors in order of place.
func (es Errors) Sorted() Errors {
	return slices.SortedFunc(slices.Values(es), func(a, b Error) int {
		if c := a.Origin.Compare(b.Origin); c != 0 {
			return c
		}
		return strings.Compare(a.Error(), b.Error())
	})
}

// OrNil returns the sorted errors as an error, or nil if there are none.
func (es Errors) OrNil() error {
	if len(es) == 0 {
		return nil
	}
	return es.Sorted()
}

// RuleUnusable is the rule for commits that cannot be rendered or planned.
const RuleUnusable = "unusable"

// Findings returns the errors as findings of RuleUnusable.
func (es Errors) Findings() []manifest.Finding {
	var found []manifest.Finding
	for _, e := range es {
		found = append(found, manifest.Finding{
			Rule: RuleUnusable, Severity: manifest.Error, Origin: e.Origin, About: manifest.About{Subject: e.Reason()}, Message: strings.TrimPrefix(e.Error(), e.Origin.String()+": "),
		})
	}
	return found
}

// tooMuch returns the error about a commit that is too large, or nil. It hides all other errors, because they depend on which files
// were read first.
func (es Errors) tooMuch(root string) error {
	var most manifest.LimitError
	for _, e := range es {
		if t, ok := errors.AsType[manifest.LimitError](e); ok && (most.Path == "" || t.Bytes > 0 && most.Nodes == 0 || t.Nodes > 0) {
			most = t
		}
	}
	if most.Path == "" {
		return nil
	}
	most.Path = root
	return Errors{{Origin: manifest.Origin{Path: root}, Err: most}}
}

func (es Errors) Error() string {
	const most = 10
	var lines []string
	for _, e := range es[:min(most, len(es))] {
		lines = append(lines, e.Error())
	}
	if more := len(es) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap is for errors.Is and errors.As.
func (es Errors) Unwrap() []error {
	all := make([]error, len(es))
	for i, e := range es {
		all[i] = e
	}
	return all
}

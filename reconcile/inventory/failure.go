package inventory

import (
	"cmp"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// A Failure is an object that failed in the last pass, or was not ready at its end, and why.
type Failure struct {
	Object manifest.ID `json:"object"`
	Why    string      `json:"why"`
}

// Failures are the failures of one pass.
type Failures []Failure

const (
	mostFailures = 50  // failures in an inventory
	mostOfWhy    = 300 // bytes of a reason in an inventory
)

// Of returns why an object failed; "" if that is not known.
func (f Failures) Of(id manifest.ID) string {
	i := slices.IndexFunc(f, func(one Failure) bool { return one.Object == id })
	if i < 0 {
		return ""
	}
	return f[i].Why
}

// Bounded returns the failures that fit into an inventory, sorted.
func (f Failures) Bounded() Failures {
	f = slices.SortedFunc(slices.Values(f), func(a, b Failure) int {
		return cmp.Or(a.Object.Compare(b.Object), cmp.Compare(a.Why, b.Why))
	})
	f = f[:min(len(f), mostFailures)]
	for i, one := range f {
		f[i].Why = cut(one.Why)
	}
	return f
}

// cut returns a text in one line, without what does not fit into an inventory.
func cut(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	for n := min(len(runes), mostOfWhy); ; n-- {
		if short := string(runes[:n]); len(short) <= mostOfWhy {
			if n < len(runes) {
				short += " …"
			}
			return short
		}
	}
}

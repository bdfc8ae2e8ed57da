package manifest

import (
	"fmt"
	"strings"
)

// An Origin is the place in a commit from which something was read.
type Origin struct {
	Path string `json:"path"` // slash-separated, from the root of the commit
	Line int    `json:"line"` // the first line of the document, or of the relevant part; from 1
}

func (o Origin) String() string {
	if o.Line == 0 {
		return o.Path
	}
	return fmt.Sprintf("%s:%d", o.Path, o.Line)
}

// Compare orders origins by path, then by line.
func (o Origin) Compare(other Origin) int {
	if c := strings.Compare(o.Path, other.Path); c != 0 {
		return c
	}
	return o.Line - other.Line
}

// A PlacedError is an error at a place of a commit. Its text begins with the place.
type PlacedError struct {
	Origin Origin
	Err    error
}

func (e PlacedError) Error() string { return e.Origin.String() + ": " + e.Err.Error() }

// Unwrap is for errors.Is and errors.As.
func (e PlacedError) Unwrap() error { return e.Err }

// failed returns an error at a place: what failed, and why.
func (o Origin) failed(what string, why error) error {
	return PlacedError{Origin: o, Err: fmt.Errorf("%s: %w", what, why)}
}

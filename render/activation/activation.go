// Package activation decides which definitions are active, and because of what,
// as Crossplane v2 does.
package activation

import (
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// Cause is a kind of reason.
type Cause string

// The causes of being active.
const (
	Declared    Cause = "state"         // spec.state of the MRD is Active
	NoSafeStart Cause = "no-safe-start" // converted from a CRD of a package without that capability
	Matched     Cause = "policy"        // a pattern of an unpaused policy matches the name
)

// A Reason is one reason why a definition is active.
type Reason struct {
	Cause   Cause           `json:"cause"`
	Policy  string          `json:"policy,omitempty"`  // of Matched
	Pattern string          `json:"pattern,omitempty"` // of Matched
	Package string          `json:"package,omitempty"` // of NoSafeStart
	Origin  manifest.Origin `json:"origin"`
}

// A Decision is a definition: active or not, and every reason why.
type Decision struct {
	*catalogue.Definition
	Active  bool
	Reasons []Reason // empty where it is not active; policies in order of name, patterns as written
}

// Decide decides every definition of a catalogue, in its order, and finds the
// patterns that do not do what their author thinks.
func Decide(c catalogue.Catalogue) ([]Decision, []manifest.Finding) {
	panic("to be written")
}

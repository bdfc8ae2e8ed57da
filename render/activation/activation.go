// Package activation decides which definitions are active, and why, as Crossplane v2 does. It also finds patterns that do not do
// what their author expects. Package plan compares the result with what was active before.
package activation

import (
	"slices"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// Cause is the kind of reason why a definition is active.
type Cause string

// The causes.
const (
	Declared    Cause = "state"         // spec.state of the MRD is Active
	NoSafeStart Cause = "no-safe-start" // converted from a CRD of a package without that capability
	Matched     Cause = "policy"        // a pattern of an unpaused policy matches the name

	MatchedInCluster Cause = "cluster-policy" // the same of a policy that the cluster has and the commit does not declare
)

// An Activator makes a definition active: its own state, its package or a pattern of a policy.
type Activator struct {
	Cause   Cause           `json:"cause"`
	Policy  string          `json:"policy,omitempty"`  // that matches
	Pattern string          `json:"pattern,omitempty"` // that matches
	Package string          `json:"package,omitempty"` // of NoSafeStart
	Origin  manifest.Origin `json:"origin"`
}

// InFull reports whether an activator names a definition in full.
func (a Activator) InFull(name string) bool { return a.Cause == Declared || a.Pattern == name }

// A Decision is a definition: active or not, and every reason why.
type Decision struct {
	*catalogue.Definition
	Active  bool
	Reasons []Activator // empty if it is inactive; ordered by policy name, then as the patterns are written
}

// Decide decides every definition of a catalogue, in its order, and returns sorted findings about patterns that do not do what
// their author expects. A paused policy activates nothing; a paused definition can still be active.
func Decide(c catalogue.Catalogue) ([]Decision, []manifest.Finding) {
	patterns := patternsOf(c.Policies)
	decisions := make([]Decision, len(c.Definitions))
	for i, d := range c.Definitions {
		reasons := own(d)
		for _, p := range patterns.matching(d.Name) {
			reasons = append(reasons, Activator{Cause: Matched, Policy: p.policy, Pattern: p.Glob, Origin: p.Origin})
		}
		decisions[i] = Decision{Definition: d, Active: len(reasons) > 0, Reasons: reasons}
	}

	found := slices.Concat(
		patterns.findings(c),
		pausedPolicies(c.Policies),
		pausedDefinitions(decisions),
		unrestricted(decisions),
	)
	slices.SortFunc(found, manifest.Finding.Compare)
	return decisions, found
}

// own returns the reasons why a definition is active without any policy.
func own(d *catalogue.Definition) []Activator {
	switch {
	case d.State != catalogue.Active:
		return nil
	case d.FromCRD && d.Package != nil:
		return []Activator{{Cause: NoSafeStart, Package: d.Package.Name, Origin: d.Package.Origin}}
	default:
		return []Activator{{Cause: Declared, Origin: d.Origin()}}
	}
}

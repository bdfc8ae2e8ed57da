package plan

import (
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
)

// Wider returns an error if the live policies activate more than the plan assumes after its writes. It is called right before a
// package is sent.
func Wider(p Plan, live map[string]crossplane.LivePolicy) error {
	assumed := map[string]bool{}
	for _, policy := range p.Policies {
		for _, glob := range policy.Patterns {
			assumed[glob] = assumed[glob] || !policy.Paused
		}
	}
	for _, name := range slices.Sorted(maps.Keys(live)) {
		for _, glob := range live[name].Patterns {
			if !live[name].Paused && !assumed[glob] {
				return reason.CodedError{Reason: reason.LivePolicyWider.With(name, glob)}
			}
		}
	}
	return nil
}

// A PolicyInForce is a policy that activates definitions after the writes of a plan.
type PolicyInForce struct {
	crossplane.LivePolicy
	Name string
	Live bool // it is already in the cluster
}

// PoliciesInForce are sorted: first the policies of the cluster, by name, then those of the commit.
type PoliciesInForce []PolicyInForce

// AsLive returns a policy of a commit as the cluster will have it.
func AsLive(p catalogue.Policy) crossplane.LivePolicy {
	live := crossplane.LivePolicy{Paused: p.Paused}
	for _, pattern := range p.Patterns {
		live.Patterns = append(live.Patterns, pattern.Glob)
	}
	return live
}

// Matching returns the name of the first policy that activates a definition; "" if none does.
func (all PoliciesInForce) Matching(name string) string {
	for _, p := range all {
		if p.Matches(name) {
			return p.Name
		}
	}
	return ""
}

// Opening returns the names of the policies that activate a definition with a wildcard.
func (all PoliciesInForce) Opening(name string) []string {
	var names []string
	for _, p := range all {
		if !p.Paused && slices.ContainsFunc(p.Patterns, func(glob string) bool { return glob != name && crossplane.Matches(glob, name) }) {
			names = append(names, p.Name)
		}
	}
	return names
}

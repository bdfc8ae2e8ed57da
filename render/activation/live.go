package activation

import (
	"maps"
	"slices"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
)

// Undeclared returns the policies of a cluster that a commit does not declare. They activate definitions, too: Crossplane's Helm
// chart creates the policy default, which activates everything.
func Undeclared(live map[string]crossplane.LivePolicy, declared []catalogue.Policy) map[string]crossplane.LivePolicy {
	others := maps.Clone(live)
	for _, p := range declared {
		delete(others, p.Name)
	}
	return others
}

// With returns decisions that count policies of a cluster as well. The reasons in the commit come first.
func With(decisions []Decision, live map[string]crossplane.LivePolicy) []Decision {
	if len(live) == 0 {
		return decisions
	}
	names := slices.Sorted(maps.Keys(live))
	decisions = slices.Clone(decisions)
	for i := range decisions {
		d := &decisions[i]
		d.Reasons = slices.Clip(d.Reasons)
		for _, name := range names {
			for _, pattern := range live[name].Matching(d.Name) {
				d.Reasons = append(d.Reasons, Activator{Cause: MatchedInCluster, Policy: name, Pattern: pattern})
			}
		}
		d.Active = len(d.Reasons) > 0
	}
	return decisions
}

package plan

import (
	"maps"
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The codes of packages that were not sent.
const (
	LivePolicyWider Code = "LivePolicyWider" // a live policy, and a pattern of it that the plan does not assume
)

// LeavingPolicies returns the steps of the live policies that activate a definition and are no longer in the commit.
func (c Case) LeavingPolicies(name string) []Step {
	var steps []Step
	for _, s := range c.Steps {
		if s.ID == crossplane.MRAP(s.ID.Name) && (s.Action == Prune || s.Would == Prune) && c.Seen.Upstream.Policies[s.ID.Name].Matches(name) {
			steps = append(steps, s)
		}
	}
	slices.SortFunc(steps, func(a, b Step) int { return a.ID.Compare(b.ID) })
	return steps
}

// A PolicyInForce is a policy that activates definitions after the writes of a plan.
type PolicyInForce struct {
	crossplane.LivePolicy
	Name string
	Live bool // it is already in the cluster
}

// PoliciesInForce are sorted: first the policies of the cluster, by name, then those of the commit.
type PoliciesInForce []PolicyInForce

// InForce returns the policies in the cluster after the writes of the plan, but before its prunes, which come last. A policy of the
// commit counts only if it will be written. A live policy stays unchanged if its update is held, retained, reported, refused or
// waiting. Policies that Crossplane installs with a package count as soon as they are in the commit. The policies named in but are
// left out.
func (c Case) InForce(but ...string) PoliciesInForce {
	steps := map[string]Step{}
	for _, s := range c.Steps {
		if s.ID == crossplane.MRAP(s.ID.Name) {
			steps[s.ID.Name] = s
		}
	}
	sent := map[string]bool{}
	for name, s := range steps {
		sent[name] = c.isSent(s)
	}
	var all PoliciesInForce
	for _, name := range slices.Sorted(maps.Keys(c.Seen.Upstream.Policies)) {
		live := c.Seen.Upstream.Policies[name]
		if s, ok := steps[name]; ok && sent[name] {
			live = s.PolicyAfter(c.WantedPolicy(name), live)
		}
		all = append(all, PolicyInForce{live, name, true})
	}
	for _, p := range c.Want.Policies {
		_, has := steps[p.Name]
		_, exists := c.Seen.Upstream.Policies[p.Name]
		if !has && c.isWanted(p) || has && (exists || !sent[p.Name]) {
			continue
		}
		all = append(all, PolicyInForce{AsLive(p), p.Name, false})
	}
	return slices.DeleteFunc(all, func(p PolicyInForce) bool { return slices.Contains(but, p.Name) })
}

// isSent reports whether a step will be sent, and without waiting for another one. Guards rule before the plan decides which steps
// wait for dependencies.
func (c Case) isSent(s Step) bool {
	if !s.writes() || s.Err != nil || s.Waiting() {
		return false
	}
	return c.Seen.Stance.In(OnCommit) || !slices.ContainsFunc(c.first[s.ID], func(e edge) bool {
		var first *Step
		if i := slices.IndexFunc(c.Steps, func(s Step) bool { return s.ID == e.to }); i >= 0 {
			first = &c.Steps[i]
		}
		return !s.comesFirst(e.to, Object.With(e.to), first, c.Seen).None()
	})
}

// inForce returns the policies in force after the writes of the plan, but before its prunes. If a sync only looks, other tools
// apply all policies of the commit.
func (p *drafted) inForce(seen Observed) PoliciesInForce {
	switch {
	case p.Want.Owner != render.OwnerCrossplane:
		return nil
	case seen.Stance == Looking:
		var all PoliciesInForce
		for _, policy := range p.Want.Policies {
			all = append(all, PolicyInForce{AsLive(policy), policy.Name, false})
		}
		return all
	}
	return Case{Want: p.Want, Seen: seen, Steps: p.Steps, first: p.first}.InForce()
}

// PolicyAfter returns a policy as it is after the step. Ignored fields, and fields of other field managers, stay as they are. If
// the result of the write is not known, both versions count.
func (s Step) PolicyAfter(want, live crossplane.LivePolicy) crossplane.LivePolicy {
	if s.Action == Create {
		return want
	}
	if s.After != nil {
		if after, ok := policyIn(s.After); ok {
			return after
		}
	}
	return crossplane.LivePolicy{Patterns: slices.Concat(live.Patterns, want.Patterns), Paused: live.Paused && want.Paused}
}

// policyIn reads a policy. It returns false if the patterns are not a list of strings, which the API server refuses.
func policyIn(u *unstructured.Unstructured) (p crossplane.LivePolicy, ok bool) {
	globs, _, err := unstructured.NestedStringSlice(u.Object, "spec", "activate")
	return crossplane.LivePolicy{Patterns: globs, Paused: u.GetAnnotations()[crossplane.PausedAnnotation] == "true"}, err == nil
}

// WantedPolicy returns a policy as the commit has it.
func (c Case) WantedPolicy(name string) crossplane.LivePolicy {
	for _, p := range c.Want.Policies {
		if p.Name == name {
			return AsLive(p)
		}
	}
	return crossplane.LivePolicy{}
}

// isWanted reports whether a policy is an object of the commit. Otherwise, Crossplane installs it.
func (c Case) isWanted(p catalogue.Policy) bool {
	return slices.ContainsFunc(c.Want.Objects, func(o render.Object) bool { return o.ID == crossplane.MRAP(p.Name) })
}

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

// Wider returns an error if the live policies activate more than the plan assumes after its writes. It is called right before a
// package is sent.
func (p Plan) Wider(live map[string]crossplane.LivePolicy) error {
	assumed := map[string]bool{}
	for _, policy := range p.Policies {
		for _, glob := range policy.Patterns {
			assumed[glob] = assumed[glob] || !policy.Paused
		}
	}
	for _, name := range slices.Sorted(maps.Keys(live)) {
		for _, glob := range live[name].Patterns {
			if !live[name].Paused && !assumed[glob] {
				return ReasonError{LivePolicyWider.With(name, glob)}
			}
		}
	}
	return nil
}

// Named returns the name of the first live policy that activates a definition; "" if none does.
func Named(live map[string]crossplane.LivePolicy, definition string) string {
	for _, name := range slices.Sorted(maps.Keys(live)) {
		if live[name].Matches(definition) {
			return name
		}
	}
	return ""
}

// goingToBe returns the policies in force if everything that the commit wants is written. What is held or refused is known only
// after the guards have ruled.
func (o Observed) goingToBe() PoliciesInForce {
	asked := map[string]bool{}
	for _, a := range o.Asked {
		if crossplane.IsMRAP(a.ID) {
			asked[a.ID.Name] = true
		}
	}
	all := PoliciesInForce{}
	for _, name := range slices.Sorted(maps.Keys(o.Upstream.Policies)) {
		if !asked[name] || o.Trials[crossplane.MRAP(name)].Err != nil {
			all = append(all, PolicyInForce{o.Upstream.Policies[name], name, true})
		}
	}
	for _, p := range o.Want.Policies {
		all = append(all, PolicyInForce{AsLive(p), p.Name, false})
	}
	return all
}

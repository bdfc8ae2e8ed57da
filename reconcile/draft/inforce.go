package draft

import (
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// LeavingPolicies returns the steps of the live policies that activate a definition and are no longer in the commit.
func (c Case) LeavingPolicies(name string) []plan.Step {
	var steps []plan.Step
	for _, s := range c.Steps {
		activates := s.ID == crossplane.MRAP(s.ID.Name) && c.Seen.Upstream.Policies[s.ID.Name].Matches(name)
		if activates && (s.Action == plan.Prune || s.Would == plan.Prune) {
			steps = append(steps, s)
		}
	}
	slices.SortFunc(steps, func(a, b plan.Step) int { return a.ID.Compare(b.ID) })
	return steps
}

// InForce returns the policies in the cluster after the writes of the plan, but before its prunes, which come last. A policy of the
// commit counts only if it will be written. A live policy stays unchanged if its update is held, retained, reported, refused or
// waiting. Policies that Crossplane installs with a package count as soon as they are in the commit. The policies named in but are
// left out.
func (c Case) InForce(but ...string) plan.PoliciesInForce {
	steps := map[string]plan.Step{}
	for _, s := range c.Steps {
		if s.ID == crossplane.MRAP(s.ID.Name) {
			steps[s.ID.Name] = s
		}
	}
	var all plan.PoliciesInForce
	for _, name := range slices.Sorted(maps.Keys(c.Seen.Upstream.Policies)) {
		live := c.Seen.Upstream.Policies[name]
		if s := steps[name]; c.isSent(s) {
			live = PolicyAfter(s, c.WantedPolicy(name), live)
		}
		all = append(all, plan.PolicyInForce{LivePolicy: live, Name: name, Live: true})
	}
	for _, p := range c.Want.Policies {
		s, has := steps[p.Name]
		_, exists := c.Seen.Upstream.Policies[p.Name]
		isCreated := !exists && c.isSent(s)
		if isCreated || !has && !c.isWanted(p) {
			all = append(all, plan.PolicyInForce{LivePolicy: plan.AsLive(p), Name: p.Name})
		}
	}
	return slices.DeleteFunc(all, func(p plan.PolicyInForce) bool { return slices.Contains(but, p.Name) })
}

// isSent reports whether a step will be sent, and without waiting for another one. Guards rule before the plan decides which steps
// wait for dependencies.
func (c Case) isSent(s plan.Step) bool {
	if !s.Applies() || s.Err != nil || s.Waiting() {
		return false
	}
	return !slices.ContainsFunc(c.after[s.ID], func(e demand.Edge) bool {
		var first *plan.Step
		if i := slices.IndexFunc(c.Steps, func(s plan.Step) bool { return s.ID == e.To }); i >= 0 {
			first = &c.Steps[i]
		}
		return !comesFirst(s, e.To, reason.Object.With(e.To), first, c.Seen.Known()).None()
	})
}

// inForce returns the policies in force after the writes of the plan, but before its prunes.
func (p *drafted) inForce(seen facts.Observed) plan.PoliciesInForce {
	if p.Want.Owner != render.OwnerCrossplane {
		return nil
	}
	return p.caseOf(seen).InForce()
}

// forceSent records the policies in force after the writes of the plan.
func (p *drafted) forceSent(seen facts.Observed) { p.Policies = p.inForce(seen) }

// forceAll records all policies of the commit as in force, because other tools apply it.
func (p *drafted) forceAll(facts.Observed) {
	if p.Want.Owner != render.OwnerCrossplane {
		return
	}
	for _, policy := range p.Want.Policies {
		p.Policies = append(p.Policies, plan.PolicyInForce{LivePolicy: plan.AsLive(policy), Name: policy.Name})
	}
}

// PolicyAfter returns a policy as it is after the step. Ignored fields, and fields of other field managers, stay as they are. If
// the result of the write is not known, both versions count.
func PolicyAfter(s plan.Step, want, live crossplane.LivePolicy) crossplane.LivePolicy {
	if s.Action == plan.Create {
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
			return plan.AsLive(p)
		}
	}
	return crossplane.LivePolicy{}
}

// isWanted reports whether a policy is an object of the commit. Otherwise, Crossplane installs it.
func (c Case) isWanted(p catalogue.Policy) bool {
	return slices.ContainsFunc(c.Want.Objects, func(o render.Object) bool { return o.ID == crossplane.MRAP(p.Name) })
}

// goingToBe returns the policies in force if everything that the commit wants is written. What is held or refused is known only
// after the guards have ruled.
func goingToBe(o facts.Observed) plan.PoliciesInForce {
	asked := map[string]bool{}
	for _, a := range o.Asked {
		if crossplane.IsMRAP(a.ID) {
			asked[a.ID.Name] = true
		}
	}
	all := plan.PoliciesInForce{}
	for _, name := range slices.Sorted(maps.Keys(o.Upstream.Policies)) {
		if !asked[name] || o.Trials[crossplane.MRAP(name)].Err != nil {
			all = append(all, plan.PolicyInForce{LivePolicy: o.Upstream.Policies[name], Name: name, Live: true})
		}
	}
	for _, p := range o.Want.Policies {
		all = append(all, plan.PolicyInForce{LivePolicy: plan.AsLive(p), Name: p.Name})
	}
	return all
}

package plan

import (
	"cmp"
	"maps"
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// flood holds a policy, or a package, that would activate more at once than anybody
// reviews, and a package of which a policy of the cluster would activate what no policy
// of the commit names. Activation is final: this is the last moment to ask.
func flood(most int) func(Step, Case) Ruling {
	most = cmp.Or(most, 100)
	return func(s Step, c Case) Ruling {
		switch {
		case c.Want.Owner != render.OwnerCrossplane:
			return allowed
		case s.ID == MRAP(s.ID.Name):
			names := c.newly(c.globs(s.ID.Name))
			if len(names) > most {
				return held("it would activate %d definitions at once, more than %d, for example %s; name fewer, or raise maxActivations", len(names), most, names[0])
			}
		case IsPackage(s.ID):
			return floodOfPackage(s.ID, c, most)
		}
		return allowed
	}
}

// floodOfPackage rules on a package by the policies that are live when it arrives.
func floodOfPackage(id manifest.ID, c Case, most int) Ruling {
	brings, known := c.brings(id)
	var opened, unnamed []string
	for _, name := range brings {
		if c.isOpen(name) || !c.matchedLive(name) {
			continue
		}
		opened = append(opened, name)
		if !c.named(name) {
			unnamed = append(unnamed, name)
		}
	}
	switch {
	case len(unnamed) > 0:
		policy := c.livePolicy(unnamed[0])
		return held("the policy %s in the cluster would activate %s of it that no policy of the commit names, for example %s; %s", policy, plural(int64(len(unnamed)), "definition"), unnamed[0], tame(policy))
	case len(opened) > most:
		return held("policies would activate %d of its definitions at once, more than %d; name fewer, or raise maxActivations", len(opened), most)
	case !known && c.livePolicy(anyDefinition) != "":
		policy := c.livePolicy(anyDefinition)
		return held("the policy %s in the cluster activates every definition that it brings; %s", policy, tame(policy))
	}
	return allowed
}

// tame is what to do about a policy that activates too much.
func tame(policy string) string {
	if policy == "default" {
		return "delete that policy, and set Crossplane's Helm value provider.defaultActivations to []: else it is back after the next restart of Crossplane"
	}
	return "narrow or delete that policy first"
}

// anyDefinition is a name that only a pattern matches that matches everything.
const anyDefinition = "any.definition.of.an.unknown.package.invalid"

// brings are the definitions of a package, and of what it depends on, as far as they are known.
func (c Case) brings(id manifest.ID) (names []string, known bool) {
	for _, d := range c.Want.Definitions {
		if d.Package != nil && d.Package.InstalledBy(id) {
			names = append(names, d.Name)
			known = true
		}
	}
	for _, p := range c.Want.Packages {
		known = known || p.Pulled() && p.InstalledBy(id)
	}
	unread := slices.ContainsFunc(c.Want.Unread, func(u catalogue.Unread) bool { return slices.Contains(u.Installers, id) })
	return names, known && !unread
}

// newly are the definitions, known from the commit or the cluster, that patterns match
// and that are not open yet.
func (c Case) newly(globs []string) []string {
	names := map[string]bool{}
	consider := func(name string) {
		if c.isOpen(name) {
			return
		}
		if slices.ContainsFunc(globs, func(glob string) bool { return activation.Matches(glob, name) }) {
			names[name] = true
		}
	}
	for _, d := range c.Want.Definitions {
		consider(d.Name)
	}
	for name := range c.Seen.Upstream.Definitions {
		consider(name)
	}
	return slices.Sorted(maps.Keys(names))
}

// isOpen says whether the CRD of a definition is there, or about to be: Crossplane activated it,
// or this sync made it before it handed over.
func (c Case) isOpen(name string) bool {
	_, made := c.Seen.Inventory.Entries[CRD(name)]
	return made || c.Seen.Upstream.Definitions[name].Active
}

// named says whether a policy of the commit names a definition.
func (c Case) named(name string) bool {
	return slices.ContainsFunc(c.Want.Definitions, func(d render.Definition) bool {
		return d.Name == name && slices.ContainsFunc(d.Reasons, func(r activation.Reason) bool { return r.Cause == activation.Matched })
	})
}

func (c Case) matchedLive(name string) bool { return c.livePolicy(name) != "" }

// livePolicy is the first policy of the cluster that would activate a definition, as it
// is now: what the commit makes of the policy comes first in the order of a pass.
func (c Case) livePolicy(name string) string {
	return c.policyBut(name, nil)
}

// leavingPolicies are the steps of those policies of the cluster that name a definition, and that the
// commit does not want any more.
func (c Case) leavingPolicies(name string) []Step {
	var steps []Step
	for _, s := range c.Steps {
		if s.ID == MRAP(s.ID.Name) && (s.Action == Prune || s.Would == Prune) && c.Seen.Upstream.Policies[s.ID.Name].matches(name) {
			steps = append(steps, s)
		}
	}
	slices.SortFunc(steps, func(a, b Step) int { return a.ID.Compare(b.ID) })
	return steps
}

// policyBut is livePolicy, of all policies but those of steps.
func (c Case) policyBut(name string, but []Step) string {
	for _, policy := range slices.Sorted(maps.Keys(c.Seen.Upstream.Policies)) {
		replaced := slices.ContainsFunc(c.Want.Objects, func(o render.Object) bool { return o.ID == MRAP(policy) }) &&
			c.Seen.Trials[MRAP(policy)].Err == nil // what the API server refuses replaces nothing
		replaced = replaced || slices.ContainsFunc(but, func(s Step) bool { return s.ID == MRAP(policy) })
		if !replaced && c.Seen.Upstream.Policies[policy].matches(name) {
			return policy
		}
	}
	for _, p := range c.Want.Policies {
		for _, pattern := range p.Patterns {
			if !p.Paused && name != anyDefinition && activation.Matches(pattern.Glob, name) {
				return p.Name
			}
		}
	}
	return ""
}

// globs are the patterns of a policy of the commit.
func (c Case) globs(policy string) (globs []string) {
	for _, p := range c.Want.Policies {
		if p.Name != policy {
			continue
		}
		for _, pattern := range p.Patterns {
			globs = append(globs, pattern.Glob)
		}
	}
	return globs
}

// owner holds whatever makes or deletes CRDs where the record of who does disagrees with the
// cluster, and Crossplane's objects where this sync makes the CRDs itself.
func owner(isSet bool) func(Step, Case) Ruling {
	return func(s Step, c Case) Ruling {
		natural := c.Seen.Natural
		prunes := s.Action == Prune
		switch {
		case natural == "" || natural == c.Want.Owner:
			return allowed
		case c.Want.Owner == render.OwnerHeadgate && !prunes && (s.ID == MRAP(s.ID.Name) || s.ID.Group == "pkg.crossplane.io"):
			return held("Crossplane runs here, and this sync makes the CRDs itself: both would; set crdOwner: Crossplane")
		case isSet || !s.Definition && !(prunes && (s.ID.IsCRD() || s.ID.IsMRD())):
			return allowed
		case c.Want.Owner == render.OwnerHeadgate:
			return held("this sync made the CRDs so far, and Crossplane runs here now; set crdOwner: Crossplane to hand them over, which deletes nothing, or crdOwner: Headgate to go on making them")
		}
		return held("Crossplane made the CRDs so far, and its API is not served any more; install it again, or set crdOwner: Headgate to have this sync make them")
	}
}

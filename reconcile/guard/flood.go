package guard

import (
	"cmp"
	"maps"
	"slices"
	once "sync"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// flood holds steps that would activate more new definitions than a person reviews: policies, packages, and the CRD or MRD of every
// definition of the commit. If Crossplane makes the CRDs, it also holds a package if a policy in the cluster would activate
// definitions of it that no policy of the commit names. Definitions that a policy of the commit names in full do not count, because
// a person wrote these names. Activation is final, so this is the last moment to ask. flood rules after all other guards, because
// it must know which other steps are held.
func flood(most int) draft.Rule {
	return func(c draft.Case) func(plan.Step) plan.Ruling {
		return floodingOf(c, cmp.Or(most, 100)).rule
	}
}

// flooding is the state of flood for one plan. Each of its functions computes its result once. Guards rule on policies before
// definitions and packages, so the result of the first call of policies holds for the whole plan.
type flooding struct {
	draft.Case
	most int

	policies func() plan.PoliciesInForce // in force after the writes of the plan
	openings func() openings             // the activations of the plan
	full     func() map[string]bool      // the patterns of the policies of the commit
}

func floodingOf(c draft.Case, most int) *flooding {
	f := &flooding{Case: c, most: most}
	f.policies = once.OnceValue(func() plan.PoliciesInForce { return c.InForce() })
	f.openings = once.OnceValue(f.count)
	f.full = once.OnceValue(func() map[string]bool { return patternsOf(c.Want.Policies) })
	return f
}

func (c *flooding) rule(s plan.Step) plan.Ruling {
	switch {
	case s.Definition:
		return c.ofDefinition(s)
	case c.Want.Owner != render.OwnerCrossplane:
		return allowed
	case s.ID == crossplane.MRAP(s.ID.Name):
		return c.ofPolicy(s)
	case crossplane.IsPackage(s.ID):
		return c.ofPackage(s)
	}
	return allowed
}

// ofPolicy rules on a policy by the definitions that it would activate.
func (c *flooding) ofPolicy(s plan.Step) plan.Ruling {
	p := draft.PolicyAfter(s, c.WantedPolicy(s.ID.Name), c.Seen.Upstream.Policies[s.ID.Name])
	names := c.newly(plan.PoliciesInForce{{LivePolicy: p, Name: s.ID.Name, Live: true}})
	unread := c.ofUnread(p)
	unread.Amount = approval.Named(names)
	if len(names) > c.most {
		return asks(unread.Cause, unread.Amount, reason.WildcardsActivateMany.With(len(names), c.most, names[0]))
	}
	return unread
}

// ofPackage rules on a package by the policies that will be in force when it arrives, and by those in the package.
func (c *flooding) ofPackage(s plan.Step) plan.Ruling {
	id := s.ID
	force := c.policies()
	definitions, known := c.definitionsOf(id)
	// The approver of a held policy has seen the definitions that it activates here.
	approved := slices.Concat(force, c.heldPolicies())
	var opened, unnamed []string
	for _, d := range definitions {
		if c.isOpen(d.Name) {
			continue
		}
		if force.Matching(d.Name) != "" && !isNamed(d) {
			unnamed = append(unnamed, d.Name)
		}
		if !c.inFull(d.Name) && (isUnrestricted(d) || len(approved.Opening(d.Name)) > 0) {
			opened = append(opened, d.Name)
		}
	}
	all := slices.Concat(opened, unnamed)
	var many reason.Reason
	for _, p := range c.shippedBy(id) {
		names := c.newly(plan.PoliciesInForce{{LivePolicy: plan.AsLive(p), Name: p.Name}})
		if all = append(all, names...); len(names) > c.most && many.None() {
			many = reason.ShippedPolicyActivatesMany.With(p.Name, len(names), c.most, names[0])
		}
	}
	universal := slices.IndexFunc(force, func(p plan.PolicyInForce) bool {
		return p.Live && p.Matches(anyDefinition) && !c.WantedPolicy(p.Name).Matches(anyDefinition)
	})
	unread := c.unreadInForce(s, force)
	if !known && universal >= 0 {
		policy := force[universal].Name
		unread = asks(approval.Uncounted, approval.Amount{}, reason.LivePolicyActivatesAll.With(policy, narrow(policy)))
	}
	unread.Amount = approval.Named(all)
	switch {
	case !many.None():
		return asks(unread.Cause, unread.Amount, many)
	case len(unnamed) > 0:
		policy := force.Matching(unnamed[0])
		return asks(unread.Cause, unread.Amount, reason.LivePolicyActivatesUnnamed.With(policy, len(unnamed), unnamed[0], narrow(policy)))
	case len(opened) > c.most:
		return asks(unread.Cause, unread.Amount, reason.PackageActivatesMany.With(len(opened), c.most, opened[0]))
	}
	return unread
}

// heldPolicies returns the policies of the commit that this guard holds.
func (c *flooding) heldPolicies() plan.PoliciesInForce {
	var all plan.PoliciesInForce
	for _, s := range c.Steps {
		if s.ID == crossplane.MRAP(s.ID.Name) && s.IsHeldBy(Flood) {
			all = append(all, plan.PolicyInForce{LivePolicy: c.WantedPolicy(s.ID.Name), Name: s.ID.Name})
		}
	}
	return all
}

// ofDefinition rules on the CRD or MRD of a definition by how many definitions the same policy, or the same package, activates in
// this plan.
func (c *flooding) ofDefinition(s plan.Step) plan.Ruling {
	counts := c.openings()
	o, opens := counts.of[s.ID]
	if !opens {
		return allowed
	}
	for _, policy := range o.policies {
		if n := counts.policies[policy]; n > c.most {
			return held(reason.PolicyActivatesMany.With(policy, n, c.most))
		}
	}
	if n := counts.packages[o.directory]; o.directory != "" && n > c.most {
		return held(reason.DirectoryActivatesMany.With(n, o.directory, c.most))
	}
	if o.unnamed != "" {
		return held(reason.LivePolicyActivatesIt.With(o.unnamed, narrow(o.unnamed)))
	}
	return allowed
}

// An opening is the activation of one definition by a CRD or an MRD of the commit.
type opening struct {
	byItself  bool     // it is active regardless of policies
	policies  []string // policies whose wildcards activate it
	directory string   // the directory of its package; "" if it is in none
	unnamed   string   // a policy of the cluster that activates it, although no policy of the commit does
}

// openings holds the activations of a plan, counted by policy and by package.
type openings struct {
	of                 map[manifest.ID]opening
	policies, packages map[string]int
}

// count returns the activations by the plan's CRDs and MRDs.
func (c *flooding) count() openings {
	all := openings{map[manifest.ID]opening{}, map[string]int{}, map[string]int{}}
	definitions := make(map[string]render.DecidedDefinition, len(c.Want.Definitions))
	for _, d := range c.Want.Definitions {
		definitions[d.Name] = d
	}
	force, seen := c.policies(), c.seenPolicies()
	for _, s := range c.Steps {
		d, known := definitions[s.ID.Name]
		if !known || !opensKind(s) {
			continue
		}
		if c.isOpen(d.Name) || c.inFull(d.Name) {
			continue
		}
		o := openingOf(s, d, force, seen)
		if !o.byItself && len(o.policies) == 0 {
			continue
		}
		all.of[s.ID] = o
		all.packages[o.directory]++
		for _, policy := range o.policies {
			all.policies[policy]++
		}
	}
	return all
}

// opensKind reports whether a step creates or activates a definition.
func opensKind(s plan.Step) bool {
	activates := s.Action == plan.Update && s.Activates
	return s.Definition && (s.Action == plan.Create || activates)
}

// openingOf returns the activation of a definition by a step. seen are the policies whose definitions a person has seen.
func openingOf(s plan.Step, d render.DecidedDefinition, force plan.PoliciesInForce, seen map[string]bool) opening {
	o := opening{byItself: isUnrestricted(d)}
	if d.Package != nil {
		o.directory = d.Package.Directory
	}
	if !crossplane.IsMRD(s.ID) {
		o.policies = wildcards(d.Reasons, d.Name)
		return o
	}
	o.byItself = o.byItself && s.Activates
	o.policies = slices.DeleteFunc(force.Opening(d.Name), func(policy string) bool { return seen[policy] })
	if d.Package != nil && !isNamed(d) {
		o.unnamed = force.Matching(d.Name)
	}
	return o
}

// seenPolicies returns the policies of the commit that a person approved, and so has seen which definitions they activate.
func (c *flooding) seenPolicies() map[string]bool {
	seen := map[string]bool{}
	for _, s := range c.Steps {
		if s.ID == crossplane.MRAP(s.ID.Name) && s.Action != plan.Hold && c.IsApproved(s, Flood) {
			seen[s.ID.Name] = true
		}
	}
	return seen
}

// wildcards returns the policies among reasons that match the definition with a wildcard, without duplicates.
func wildcards(reasons []activation.Activator, name string) []string {
	var policies []string
	for _, r := range reasons {
		if r.Cause == activation.Matched && r.Pattern != name && !slices.Contains(policies, r.Policy) {
			policies = append(policies, r.Policy)
		}
	}
	return policies
}

// isUnrestricted reports whether a definition is active because its package lacks safe-start, regardless of policies.
func isUnrestricted(d render.DecidedDefinition) bool {
	return slices.ContainsFunc(d.Reasons, func(r activation.Activator) bool { return r.Cause == activation.NoSafeStart })
}

// narrow returns what to do about a live policy that activates too much.
func narrow(policy string) reason.Reason {
	if policy == "default" {
		return reason.DeleteDefaultPolicy.With()
	}
	return reason.NarrowPolicy.With()
}

// anyDefinition is a name that only a pattern for all names matches.
const anyDefinition = "any.definition.of.an.unknown.package.invalid"

// definitionsOf returns the definitions of a package and its dependencies. known reports whether the list is complete.
func (c *flooding) definitionsOf(id manifest.ID) (definitions []render.DecidedDefinition, known bool) {
	copied := false
	for _, of := range c.Want.Beside { // Crossplane installs the image, not the copy
		if of.Package.InstalledBy(id) {
			definitions, known, copied = append(definitions, of.Definitions...), true, true
		}
	}
	for _, d := range c.Want.Definitions {
		if d.Package == nil || !d.Package.InstalledBy(id) {
			continue
		}
		isCopy := copied && !d.Package.Pulled() && d.Package.Installer == id
		if !isCopy {
			definitions, known = append(definitions, d), true
		}
	}
	for _, p := range c.Want.Packages {
		known = known || p.Pulled() && p.InstalledBy(id)
	}
	unread := slices.ContainsFunc(c.Want.Unread, func(u catalogue.Unread) bool { return slices.Contains(u.Installers, id) })
	return definitions, known && !unread
}

// shippedBy returns the policies that Crossplane installs with a package or with its dependencies.
func (c *flooding) shippedBy(id manifest.ID) []catalogue.Policy {
	from := map[string]bool{} // directories
	for _, p := range c.Want.Packages {
		from[p.Directory] = p.InstalledBy(id)
	}
	var shipped []catalogue.Policy
	for _, l := range c.Want.Left {
		i := slices.IndexFunc(c.Want.Policies, func(p catalogue.Policy) bool { return l.ID == crossplane.MRAP(p.Name) })
		if i >= 0 && from[l.Package] {
			shipped = append(shipped, c.Want.Policies[i])
		}
	}
	return shipped
}

// newly returns the definitions, from the commit or the cluster, that wildcards of policies would activate: those that are not open
// yet and that no policy of the commit names in full.
func (c *flooding) newly(by plan.PoliciesInForce) []string {
	names := map[string]bool{}
	consider := func(name string) {
		if !c.isOpen(name) && !c.inFull(name) && len(by.Opening(name)) > 0 {
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

// isOpen reports whether the CRD of a definition exists already, made by Crossplane or by this sync. An entry without a UID is only
// an intent and does not count.
func (c *flooding) isOpen(name string) bool {
	_, live := c.Seen.Objects[plan.CRD(name)]
	return live || c.Seen.Inventory.Entries[plan.CRD(name)].UID != "" || c.Seen.Upstream.Definitions[name].Active
}

// isNamed reports whether a policy of the commit matches a definition, in full or with a wildcard.
func isNamed(d render.DecidedDefinition) bool {
	return slices.ContainsFunc(d.Reasons, func(r activation.Activator) bool { return r.Cause == activation.Matched })
}

// inFull reports whether a policy of the commit names a definition in full.
func (c *flooding) inFull(name string) bool { return c.full()[name] }

// patternsOf returns the patterns of policies. The value reports whether one of the policies with the pattern is not paused.
func patternsOf(policies []catalogue.Policy) map[string]bool {
	all := map[string]bool{}
	for _, p := range policies {
		for _, pattern := range p.Patterns {
			all[pattern.Glob] = all[pattern.Glob] || !p.Paused
		}
	}
	return all
}

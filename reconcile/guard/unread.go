package guard

import (
	"cmp"
	"slices"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A package that cannot be read declares an unknown number of definitions, not zero. Once Crossplane has installed it, all of them
// are in the cluster.

// ofUnread holds a policy with a wildcard that may activate definitions of a package that Headgate could not read and that is not
// installed yet. A wildcard that is already in force changes nothing.
func (c *flooding) ofUnread(after crossplane.LivePolicy) plan.Ruling {
	globs := after.Wildcards()
	if len(globs) == 0 {
		return allowed
	}
	for _, s := range c.Steps {
		if !installs(s) || c.isInstalled(s) {
			continue
		}
		why := c.whyUnread(s.ID)
		if why.None() {
			continue
		}
		stay := c.staying(c.InForce())
		if i := slices.IndexFunc(globs, func(glob string) bool { return !have(stay, glob) }); i >= 0 {
			return asks(approval.Uncounted, approval.Amount{}, reason.WildcardOverUnread.With(why, globs[i]))
		}
		return allowed
	}
	return allowed
}

// unreadInForce holds a package that Headgate could not read if a wildcard of a live policy may activate its definitions. For a new
// version of an installed package, only a wildcard for everything counts.
func (c *flooding) unreadInForce(s plan.Step, force plan.PoliciesInForce) plan.Ruling {
	if !installs(s) || c.isInstalled(s) {
		return allowed
	}
	why := c.whyUnread(s.ID)
	if why.None() {
		return allowed
	}
	for _, p := range c.staying(force) { // new wildcards are held with their policies
		for _, glob := range p.Patterns {
			if s.Action == plan.Create || crossplane.Matches(glob, anyDefinition) {
				return asks(approval.Uncounted, approval.Amount{}, reason.UnreadUnderWildcard.With(why, glob, p.Name))
			}
		}
	}
	return allowed
}

// staying returns the wildcards of policies in force that the live policies already have.
func (c *flooding) staying(force plan.PoliciesInForce) plan.PoliciesInForce {
	var all plan.PoliciesInForce
	for _, p := range force {
		live := c.Seen.Upstream.Policies[p.Name].Wildcards()
		both := slices.DeleteFunc(p.Wildcards(), func(glob string) bool { return !p.Live || !slices.Contains(live, glob) })
		if len(both) > 0 {
			all = append(all, plan.PolicyInForce{LivePolicy: crossplane.LivePolicy{Patterns: both}, Name: p.Name, Live: true})
		}
	}
	return all
}

// have reports whether one of the policies has this wildcard, or a wildcard for everything.
func have(all plan.PoliciesInForce, glob string) bool {
	return slices.ContainsFunc(all, func(p plan.PolicyInForce) bool { return slices.Contains(p.Patterns, glob) || p.Matches(anyDefinition) })
}

// installs reports whether a step leaves a package in the cluster that may have definitions.
func installs(s plan.Step) bool {
	if !crossplane.IsPackage(s.ID) || s.ID.Kind == crossplane.Function || s.Is(plan.Prune) {
		return false
	}
	return s.Action != plan.Hold || s.Would != plan.Create || s.Guard == Flood
}

// isInstalled reports whether the cluster has all definitions of a step's package. Between two commits, that is assumed if the
// package does not change.
func (c *flooding) isInstalled(s plan.Step) bool {
	p := c.Seen.Upstream.Packages[s.ID]
	switch {
	case s.Action == plan.Create || s.Would == plan.Create:
		return false
	case s.Action == plan.Update && packageImage(s.Live) != packageImage(s.After):
		return false
	case c.Seen.Stance.In(plan.OnCommit):
		return true
	}
	return p.Revision != "" && !p.Behind && p.Healthy == metav1.ConditionTrue
}

// packageImage returns the image of a Provider or Configuration; "" if it is not known.
func packageImage(u *unstructured.Unstructured) string {
	if u == nil {
		return ""
	}
	image, _, _ := unstructured.NestedString(u.Object, "spec", "package")
	return image
}

// whyUnread returns why the content of a package is not known; no reason if it is.
func (c *flooding) whyUnread(id manifest.ID) reason.Reason {
	if _, known := c.definitionsOf(id); known {
		return reason.Reason{}
	}
	for _, u := range c.Want.Unread {
		if slices.Contains(u.Installers, id) && u.Err != nil {
			return reason.PackageUnreadable.With(u.Err.Error())
		}
	}
	return reason.PackageNotRead.With(cmp.Or(id.Kind, "package"), id.Name)
}

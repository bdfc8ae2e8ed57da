package draft

import (
	"cmp"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// PathOf returns the file that declared an object; "" if no file of the commit did. It returns inventory.Anywhere if the inventory
// does not show it, because an older version wrote it or it was lost.
func PathOf(o facts.Ground, id manifest.ID) string {
	e := o.Inventory.Entries[id]
	if e.Path == "" && (o.Inventory.Record.Format == 0 || e.Rebuilt) {
		return inventory.Anywhere
	}
	return e.Path
}

// locates reports whether the plan has a path that the inventory lacks.
func locates(p plan.Plan, have inventory.Inventory) bool {
	if len(have.Entries) == 0 {
		return false
	}
	return !slices.Equal(have.Record.Policies, record.PolicyFiles(p, have.Record)) ||
		!slices.Equal(have.Record.PolicyNames, inventory.PolicyNames(p.Want, have.Record.PolicyNames)) ||
		slices.ContainsFunc(p.Steps, func(s plan.Step) bool {
			e, owned := have.Entries[s.ID]
			path := record.PathOf(p, s)
			return owned && path != "" && path != e.Path
		})
}

// locate notes what the inventory does not know yet of where the commit declares objects.
func (p *drafted) locate(seen facts.Observed) {
	p.moves = locates(p.Plan, seen.Inventory)
	p.Undeclared = undeclared(seen)
}

// Deactivates reports whether definitions that no policy names are to be deactivated.
func Deactivates(o facts.Observed, want render.Desired) bool {
	if !o.Terms.Deactivate {
		return false
	}
	_, skipped := inventory.SkippedPolicy(want, o.Inventory.Record)
	_, unread := unreadPolicies(want)
	return !skipped && !unread
}

// NoteSkippedPolicy returns a finding about a skipped policy, which prevents every deactivation.
func NoteSkippedPolicy(want render.Desired, seen facts.Observed) []manifest.Finding {
	o, skipped := inventory.SkippedPolicy(want, seen.Inventory.Record)
	if u, unread := unreadPolicies(want); unread && !skipped && seen.Terms.Deactivate {
		return []manifest.Finding{{
			Rule: "policy-unread", Severity: manifest.Warning, About: manifest.About{Subject: u.Source}, Origin: want.Placed(manifest.Finding{Origin: u.Origin}).Origin,
			Message: u.Err.Error() + "; policies may be in it, so nothing is deactivated",
			Fix:     "let Headgate read the package",
		}}
	}
	if !skipped || !seen.Terms.Deactivate {
		return nil
	}
	return []manifest.Finding{{
		Rule: "policy-skipped", Severity: manifest.Warning, Origin: o.Origin, About: manifest.About{Object: o.ID},
		Message: fmt.Sprintf("this declared a policy, and is skipped now: %s; what the policy names is not known, so nothing is deactivated", cmp.Or(string(o.Why), "skipped")),
		Fix:     "delete the file if the policy is to go",
	}}
}

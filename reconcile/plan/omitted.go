package plan

import (
	"cmp"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// PathOf returns the file that declared an object; "" where that is none of the commit. It is anywhere
// if the inventory does not tell: an older version wrote it, or it was lost.
func (o Observed) PathOf(id manifest.ID) string {
	e := o.Inventory.Entries[id]
	if e.Path == "" && !o.Offline && (o.Inventory.Record.Format == 0 || e.Rebuilt) {
		return inventory.Anywhere
	}
	return e.Path
}

// pathOf returns the file of the commit that declares the object of a step; "" where it is not known,
// or does not stay the same: a package of a registry has its version in the path.
func (p Plan) pathOf(s Step) string {
	if _, pulled := p.Want.Within(s.Origin); pulled {
		return ""
	}
	return s.Origin.Path
}

// locate records where the objects of the plan come from, and the policies of the commit.
func (p Plan) locate(next *inventory.Inventory) {
	for _, s := range p.Steps {
		e, owned := next.Entries[s.ID]
		if path := p.pathOf(s); owned && path != "" && path != e.Path {
			e.Path = path
			next.Entries[s.ID] = e
		}
	}
	if next.Record.Format == 0 { // from now on it has one, and an entry without a path came from no file
		declared := map[manifest.ID]bool{}
		for _, s := range p.Steps {
			declared[s.ID] = s.Origin.Path != "" || s.Action == Create || s.Action == Update
		}
		for id, e := range next.Entries {
			if e.Path == "" && !declared[id] {
				e.Path = inventory.Anywhere
				next.Entries[id] = e
			}
		}
	}
	if p.Ends == NoEnding && !p.partial {
		next.Record.Policies, next.Record.PolicyNames = p.policyFiles(next.Record), inventory.PolicyNames(p.Want, next.Record.PolicyNames)
	}
}

// locates reports whether the plan knows of a path that an inventory does not have.
func (p Plan) locates(have inventory.Inventory) bool {
	if p.Looks || p.Offline || p.Ends != NoEnding || len(have.Entries) == 0 {
		return false
	}
	return !slices.Equal(have.Record.Policies, p.policyFiles(have.Record)) ||
		!slices.Equal(have.Record.PolicyNames, inventory.PolicyNames(p.Want, have.Record.PolicyNames)) ||
		slices.ContainsFunc(p.Steps, func(s Step) bool {
			e, owned := have.Entries[s.ID]
			path := p.pathOf(s)
			return owned && path != "" && path != e.Path
		})
}

// policyFiles returns the files to record: those of the commit, and recorded files that the commit
// skips now or in which it declares a kind that no API serves.
func (p Plan) policyFiles(have inventory.Record) []string {
	files := inventory.PolicyFiles(p.Want, have.Policies)
	for _, path := range have.Policies {
		if !slices.Contains(files, path) && slices.ContainsFunc(p.Steps, func(s Step) bool { return s.IsUnserved() && inventory.Covers(path, s.Origin.Path) }) {
			files = append(files, path)
		}
	}
	slices.Sort(files)
	return files
}

// Deactivates reports whether definitions that no policy names are deactivated.
func (o Observed) Deactivates(want render.Desired) bool {
	if !o.Terms.Deactivate {
		return false
	}
	_, skipped := inventory.SkippedPolicy(want.Omitted, o.Inventory.Record)
	_, unread := unreadPolicies(want)
	return !skipped && !unread
}

// NoteSkippedPolicy returns a finding about a skipped policy, which prevents every deactivation.
func NoteSkippedPolicy(want render.Desired, seen Observed) []manifest.Finding {
	o, skipped := inventory.SkippedPolicy(want.Omitted, seen.Inventory.Record)
	if u, unread := unreadPolicies(want); unread && !skipped && seen.Terms.Deactivate {
		return []manifest.Finding{{
			Rule: "policy-unread", Severity: manifest.Warning, Origin: want.Placed(manifest.Finding{Origin: u.Origin}).Origin,
			Message: u.Err.Error() + "; policies may be in it, so nothing is deactivated",
			Fix:     "let Headgate read the package",
		}}
	}
	if !skipped || !seen.Terms.Deactivate {
		return nil
	}
	return []manifest.Finding{{
		Rule: "policy-skipped", Severity: manifest.Warning, Origin: o.Origin,
		Message: fmt.Sprintf("this declared a policy, and is skipped now: %s; what the policy names is not known, so nothing is deactivated", cmp.Or(string(o.Why), "skipped")),
		Fix:     "delete the file if the policy is to go",
	}}
}

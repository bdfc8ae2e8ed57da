package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// PathOf returns the file that declared an object; "" if no file of the commit did. It returns inventory.Anywhere if the inventory
// does not show it, because an older version wrote it or it was lost.
func (o Observed) PathOf(id manifest.ID) string {
	e := o.Inventory.Entries[id]
	if e.Path == "" && (o.Inventory.Record.Format == 0 || e.Rebuilt) {
		return inventory.Anywhere
	}
	return e.Path
}

// pathOf returns the file of the commit that declares a step's object; "" if it is not known or not stable, such as the path in a
// package from a registry, which contains the version.
func (p Plan) pathOf(s Step) string {
	if _, pulled := p.Want.Within(s.Origin); pulled {
		return ""
	}
	return s.Origin.Path
}

// locate records the files of the plan's objects, and the policies of the commit.
func (p Plan) locate(next *inventory.Inventory) {
	for _, s := range p.Steps {
		e, owned := next.Entries[s.ID]
		if path := p.pathOf(s); owned && path != "" && path != e.Path {
			e.Path = path
			next.Entries[s.ID] = e
		}
	}
	// The new record has a format. From then on, an entry without a path means that no file declared the object.
	if next.Record.Format == 0 {
		declared := map[manifest.ID]bool{}
		for _, s := range p.Steps {
			declared[s.ID] = s.Origin.Path != "" || s.writes()
		}
		for id, e := range next.Entries {
			if e.Path == "" && !declared[id] {
				e.Path = inventory.Anywhere
				next.Entries[id] = e
			}
		}
	}
	if p.Stance.In(Following) && !p.Partial {
		next.Record.Policies, next.Record.PolicyNames = p.policyFiles(next.Record), inventory.PolicyNames(p.Want, next.Record.PolicyNames)
	}
}

// locates reports whether the plan has a path that the inventory lacks.
func (p Plan) locates(have inventory.Inventory) bool {
	if len(have.Entries) == 0 {
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

// IsUnserved reports whether no API serves the kind of the object.
func (s Step) IsUnserved() bool { return s.Origin.Path != "" && errors.Is(s.Err, ErrUnserved) }

// policyFiles returns the policy files to record: those of the commit, and recorded ones that the commit skips now, or that now
// declare a kind which no API serves.
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

// Deactivates reports whether definitions that no policy names are to be deactivated.
func (o Observed) Deactivates(want render.Desired) bool {
	if !o.Terms.Deactivate {
		return false
	}
	_, skipped := inventory.SkippedPolicy(want, o.Inventory.Record)
	_, unread := unreadPolicies(want)
	return !skipped && !unread
}

// NoteSkippedPolicy returns a finding about a skipped policy, which prevents every deactivation.
func NoteSkippedPolicy(want render.Desired, seen Observed) []manifest.Finding {
	o, skipped := inventory.SkippedPolicy(want, seen.Inventory.Record)
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

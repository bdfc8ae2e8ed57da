package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// PathOf returns the file that declared an object; "" where that is none of the commit. It is anywhere
// if the inventory does not tell: an older version wrote it, or it was lost.
func (o Observed) PathOf(id manifest.ID) string {
	e := o.Inventory.Entries[id]
	if e.Path == "" && !o.Offline && (o.Inventory.Record.Format == 0 || e.Rebuilt) {
		return Anywhere
	}
	return e.Path
}

// Covers reports whether a path is that of a file, or lies below it. A file that changed only the case
// of its name is the same.
func Covers(of, path string) bool {
	if path == "" || len(path) < len(of) || !strings.EqualFold(path[:len(of)], of) {
		return false
	}
	below := path[len(of):]
	return below == "" || below[0] == '/'
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
				e.Path = Anywhere
				next.Entries[id] = e
			}
		}
	}
	if p.Ends == NoEnding && !p.partial {
		next.Record.Policies, next.Record.PolicyNames = p.policyFiles(next.Record), policyNames(p.Want, next.Record.PolicyNames)
	}
}

// locates reports whether the plan knows of a path that an inventory does not have.
func (p Plan) locates(have inventory.Inventory) bool {
	if p.Looks || p.Offline || p.Ends != NoEnding || len(have.Entries) == 0 {
		return false
	}
	return !slices.Equal(have.Record.Policies, p.policyFiles(have.Record)) ||
		!slices.Equal(have.Record.PolicyNames, policyNames(p.Want, have.Record.PolicyNames)) ||
		slices.ContainsFunc(p.Steps, func(s Step) bool {
			e, owned := have.Entries[s.ID]
			path := p.pathOf(s)
			return owned && path != "" && path != e.Path
		})
}

// mostPolicyFiles bounds the record, which is stored as an annotation.
const mostPolicyFiles = 500

// Anywhere stands for more files than are recorded.
const Anywhere = "."

// policyFiles returns the files to record: those of the commit, and recorded files that the commit
// skips now or in which it declares a kind that no API serves.
func (p Plan) policyFiles(have inventory.Record) []string {
	files := policyFiles(p.Want, have.Policies)
	for _, path := range have.Policies {
		if !slices.Contains(files, path) && slices.ContainsFunc(p.Steps, func(s Step) bool { return s.IsUnserved() && Covers(path, s.Origin.Path) }) {
			files = append(files, path)
		}
	}
	slices.Sort(files)
	return files
}

// policyNames returns the names of policies, sorted: those of the commit, and those that were recorded
// and that the commit skips now. It returns none if there are too many.
func policyNames(want render.Desired, recorded []string) []string {
	var names []string
	for _, name := range recorded {
		if _, found := SkippedPolicy(want.Omitted, inventory.Record{PolicyNames: []string{name}}); found {
			names = append(names, name)
		}
	}
	for _, policy := range want.Policies {
		if _, pulled := want.Within(policy.Origin); !pulled {
			names = append(names, policy.Name)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > mostPolicyFiles {
		return nil
	}
	return names
}

// policyFiles returns the files that declare policies, sorted: those of the commit, and those that
// were recorded and that the commit skips now.
func policyFiles(want render.Desired, recorded []string) []string {
	var files []string
	for _, path := range recorded {
		if _, found := SkippedPolicy(want.Omitted, inventory.Record{Policies: []string{path}}); found {
			files = append(files, path)
		}
	}
	for _, policy := range want.Policies {
		if _, pulled := want.Within(policy.Origin); !pulled {
			files = append(files, policy.Origin.Path)
		}
	}
	slices.Sort(files)
	files = slices.Compact(files)
	if len(files) > mostPolicyFiles {
		return []string{Anywhere}
	}
	return files
}

// SkippedPolicy returns what a commit skips of the files that declared policies. What a policy named
// that is skipped is not known, so nothing is deactivated. A policy is found by its name, too: its file
// may have moved.
func SkippedPolicy(all []catalogue.Omitted, have inventory.Record) (catalogue.Omitted, bool) {
	for _, o := range all {
		isPolicy := o.ID == crossplane.MRAP(o.ID.Name)
		if o.ID != (manifest.ID{}) && !isPolicy {
			continue
		}
		if isPolicy && slices.Contains(have.PolicyNames, o.ID.Name) {
			return o, true
		}
		if slices.ContainsFunc(have.Policies, func(path string) bool { return path == Anywhere || Covers(o.Origin.Path, path) }) {
			return o, true
		}
	}
	return catalogue.Omitted{}, false
}

// Deactivates reports whether definitions that no policy names are deactivated.
func (o Observed) Deactivates(want render.Desired) bool {
	if !o.Terms.Deactivate {
		return false
	}
	_, skipped := SkippedPolicy(want.Omitted, o.Inventory.Record)
	_, unread := unreadPolicies(want)
	return !skipped && !unread
}

// NoteSkippedPolicy tells why nothing is deactivated.
func NoteSkippedPolicy(want render.Desired, seen Observed) []manifest.Finding {
	o, skipped := SkippedPolicy(want.Omitted, seen.Inventory.Record)
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

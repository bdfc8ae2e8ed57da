// Package lint reads a commit as a reviewer would, and finds objects that do not work together although each one is valid. The
// package that reads an object finds the errors in it.
package lint

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/uses"
)

// The rules.
const (
	RuleInactive = "kind-inactive" // something uses a kind that no policy activates
	RuleUnread   = "kinds-unread"  // something may use kinds in a way that Headgate does not read
)

// Findings returns what Coverage and References find, without the notes of References about what another source may declare: a
// report of every pass and of every pull request would repeat them.
func Findings(want render.Desired, stays ...string) []manifest.Finding {
	return append(Coverage(want, stays...), slices.DeleteFunc(References(want), func(f manifest.Finding) bool { return f.Severity == manifest.Note })...)
}

// Coverage finds uses of kinds that the commit declares but does not activate, wherever package uses finds them. The definitions in
// stays remain active without a policy, so they are not reported. A commit without definitions has no findings. The findings are sorted.
func Coverage(want render.Desired, stays ...string) []manifest.Finding {
	if len(want.Definitions) == 0 {
		return nil
	}
	inactive := map[string]bool{}
	for _, d := range want.Definitions {
		inactive[d.Name] = !d.Active && !slices.Contains(stays, d.Name)
	}
	var found []manifest.Finding
	home := render.HomesOf(want).Complete()
	used, definitions := uses.Of(want), uses.DefinitionsOf(want)
	for _, u := range used.All {
		name, declared := definitions.Of(u.Name)
		if !declared || !inactive[name] {
			continue
		}
		verb := "uses"
		if u.Instance {
			verb = "is of"
		}
		found = append(found, manifest.Finding{
			Rule: RuleInactive, Severity: manifest.Warning, Origin: u.Origin(), About: manifest.About{Object: u.By, Subject: name},
			Message: fmt.Sprintf("%s %s %s, which no policy activates", by(u.By, u.Origin(), home), verb, name), Fix: fix(want, name),
		})
	}
	for _, u := range used.Unread {
		if u.Step {
			continue
		}
		found = append(found, manifest.Finding{
			Rule: RuleUnread, Severity: manifest.Note, Origin: u.Origin(), About: manifest.About{Object: u.By, Subject: u.Why},
			Message: fmt.Sprintf("whether all that %s composes is active is not known: %s", by(u.By, u.Origin(), home), u.Why),
		})
	}
	for i, f := range found {
		found[i] = want.Placed(f)
	}
	slices.SortFunc(found, manifest.Finding.Compare)
	return slices.Compact(found)
}

// by returns who uses a kind, for messages.
func by(id manifest.ID, at manifest.Origin, home func(manifest.ID) manifest.ID) string {
	if id == (manifest.ID{}) {
		return at.Path
	}
	return home(id).String()
}

// fix returns the line of a policy that would activate a definition.
func fix(want render.Desired, definition string) string {
	if p, found := uses.PolicyFor(want, definition); found {
		return fmt.Sprintf("add %q to spec.activate of policy %s (%s)", definition, p.Name, p.Origin)
	}
	return fmt.Sprintf("add %q to spec.activate of a policy", definition)
}

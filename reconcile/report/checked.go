package report

import (
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/lint"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// refusals checks the objects that a pass writes, or could not write. In a pass, the API server decides, so errors are only warnings.
// What an API server has accepted is not checked.
func (r Report) refusals(want render.Desired) check.Report {
	type spot struct {
		id manifest.ID
		at manifest.Origin
	}
	open := map[spot]bool{}
	for _, s := range r.Steps {
		refusable := s.Error != "" || !r.Applied && s.Action != plan.Keep
		if s.Origin != nil && refusable {
			open[spot{manifest.ID{Group: s.ID.Group, Kind: s.ID.Kind, Name: s.ID.Name}, *s.Origin}] = true
		}
	}
	of := lint.Checked(want, func(o render.Object) bool {
		return open[spot{manifest.ID{Group: o.ID.Group, Kind: o.ID.Kind, Name: o.ID.Name}, o.Origin}]
	})
	for i := range of.Findings {
		of.Findings[i].Severity = milder(of.Findings[i].Severity)
	}
	if r.Applied {
		of.Omitted = nil
	}
	return of
}

// milder returns the severity of an error that does not count.
func milder(s manifest.Severity) manifest.Severity {
	if s == manifest.Error {
		return manifest.Warning
	}
	return s
}

// comparison checks the objects of a head, and returns what is found of the base, and the kinds whose objects only the base checks.
// The omissions are about objects that the head adds or changes.
func comparison(before, want render.Desired) (of check.Report, known []manifest.Finding, lost []string) {
	of = lint.Checked(want, lint.Everything)
	base := lint.Checked(before, lint.Everything)
	lost = uncheckedKinds(before, base.Omitted, of.Omitted)
	of.Findings = append(of.Findings, lint.Updated(before, want)...)
	had := map[manifest.ID]string{}
	for _, o := range before.Objects {
		had[o.ID] = o.Digest
	}
	of.Omitted = lint.Checked(want, func(o render.Object) bool { return had[o.ID] != o.Digest }).Omitted
	return of, base.Findings, lost
}

// uncheckedKinds returns the kinds of objects of the base whose schemas the head does not have any more, so that nothing is found in
// these objects.
func uncheckedKinds(before render.Desired, base, head check.Omissions) []string {
	unchecked := map[schema.GroupKind]bool{}
	for _, o := range before.Objects {
		unchecked[o.ID.GroupKind()] = false // it is one of the base
	}
	for _, of := range []struct {
		omitted check.Omissions
		value   bool
	}{{head, true}, {base, false}} {
		for _, o := range of.omitted {
			for _, gk := range o.Kinds {
				if _, is := unchecked[gk]; is && o.Reason == check.NoSchema && !o.Composed {
					unchecked[gk] = of.value
				}
			}
		}
	}
	maps.DeleteFunc(unchecked, func(_ schema.GroupKind, lost bool) bool { return !lost })
	var names []string
	for gk := range unchecked {
		names = append(names, gk.String())
	}
	slices.Sort(names)
	return names
}

// divide separates the findings that the base does not have from those that it has. If the base has an identity twice and the head
// three times, one of them is new. A finding that is more severe than that of the base is new, too.
func divide(base, head []manifest.Finding) (added, known []manifest.Finding) {
	had := map[manifest.Identity][]manifest.Severity{}
	for _, f := range base {
		had[f.Identity()] = append(had[f.Identity()], f.Severity)
	}
	for _, f := range head {
		of := had[f.Identity()]
		i := slices.IndexFunc(of, func(s manifest.Severity) bool { return rank(s) <= rank(f.Severity) })
		if i < 0 {
			added = append(added, f)
			continue
		}
		had[f.Identity()] = slices.Delete(of, i, i+1)
		known = append(known, f)
	}
	return added, known
}

// ofSeverity counts findings.
func ofSeverity(of manifest.Severity, found []manifest.Finding) int {
	n := 0
	for _, f := range found {
		if f.Severity == of {
			n++
		}
	}
	return n
}

// older describes the findings that the base has, too: "5 older findings: 2 errors, 3 warnings"; "" if there are none.
func (r Report) older() string {
	if len(r.Known) == 0 {
		return ""
	}
	return moreOf(len(r.Known), "older finding", "older findings") + ": " + bySeverity(r.Known)
}

// bySeverity counts findings: "2 errors, 3 warnings".
func bySeverity(found []manifest.Finding) string {
	var counts []string
	for _, severity := range []manifest.Severity{manifest.Error, manifest.Warning, manifest.Note} {
		if n := ofSeverity(severity, found); n > 0 {
			counts = append(counts, manifest.Count(n, string(severity)))
		}
	}
	return strings.Join(counts, ", ")
}

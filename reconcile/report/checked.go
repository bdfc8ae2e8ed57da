package report

import (
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/lint"
	"headgate.dev/headgate/render/manifest"
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

// comparison checks the objects of a head. Errors that the base also has are only warnings. The omissions are about objects that the
// head adds or changes.
func comparison(before, want render.Desired) (of check.Report, known []manifest.Finding) {
	of, known = lint.Checked(want, lint.Everything), lint.Checked(before, lint.Everything).Findings
	old := counted(known)
	for i, f := range of.Findings {
		if old.take(f) {
			of.Findings[i].Severity = milder(f.Severity)
		}
	}
	of.Findings = append(of.Findings, lint.Updated(before, want)...)
	had := map[manifest.ID]string{}
	for _, o := range before.Objects {
		had[o.ID] = o.Digest
	}
	of.Omitted = lint.Checked(want, func(o render.Object) bool { return had[o.ID] != o.Digest }).Omitted
	return of, known
}

// counted counts findings. It ignores lines, because they move.
func counted(found []manifest.Finding) tally {
	all := tally{}
	for _, f := range found {
		all[keyOf(f)]++
	}
	return all
}

// tally counts findings by everything except their lines.
type tally map[findingKey]int

type findingKey struct{ rule, path, message string }

func keyOf(f manifest.Finding) findingKey { return findingKey{f.Rule, f.Origin.Path, f.Message} }

// take removes a finding, and reports whether it was there.
func (all tally) take(f manifest.Finding) bool {
	key := keyOf(f)
	if all[key] == 0 {
		return false
	}
	all[key]--
	return true
}

// newFindings counts the findings of a commit that its base does not have.
func newFindings(of manifest.Severity, before, after []manifest.Finding) int {
	known, n := counted(before), 0
	for _, f := range after {
		if f.Severity == of && !known.take(f) {
			n++
		}
	}
	return n
}

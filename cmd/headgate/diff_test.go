package main

import (
	"errors"
	"testing"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render/manifest"
)

func TestExitOf(t *testing.T) {
	changes := report.Report{Steps: []report.Step{{Action: plan.Create}}}
	retains := report.Report{Steps: []report.Step{{Action: plan.Keep, Guard: "final"}}}
	holds := report.Report{Steps: []report.Step{{Action: plan.Hold, Would: plan.Update}}}
	warns := report.Report{Findings: []manifest.Finding{{Severity: manifest.Warning}}}
	notes := report.Report{Findings: []manifest.Finding{{Severity: manifest.Note}}}
	fails := report.Report{Steps: changes.Steps, Summary: report.Summary{Failed: 1}}
	cases := map[string]struct {
		reason string
		report report.Report
		on     string
		want   int
	}{
		"Nothing":         {"As kubectl diff.", report.Report{}, "any", 0},
		"Changes":         {"As kubectl diff.", changes, "any", 1},
		"Retained":        {"A retained object is no change.", retains, "any", 0},
		"Held":            {"A held step waits for someone to change it.", holds, "any", 1},
		"Never":           {"For who only wants to read it.", changes, "never", 0},
		"HoldsOfChanges":  {"A change is no hold.", changes, "holds", 0},
		"HoldsOfHolds":    {"A gate for pull requests.", holds, "holds", 1},
		"FindingsOfWarns": {"A gate for pull requests.", warns, "findings", 1},
		"FindingsOfNotes": {"A note explains; it asks for nothing.", notes, "findings", 0},
		"Failed":          {"An error beats changes.", fails, "any", 2},
		"FailedNever":     {"And what the exit code is asked to be for.", fails, "never", 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := 0
			if e, ok := errors.AsType[exit](exitOf(tc.report, report.Threshold{tc.on})); ok {
				got = e.code
			}
			if got != tc.want {
				t.Errorf("%s\nexitOf(..., %q): want %d, got %d", tc.reason, tc.on, tc.want, got)
			}
		})
	}
}

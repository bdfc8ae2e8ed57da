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
		"Nothing":         {"Without changes, the exit code is 0, as in kubectl diff.", report.Report{}, "any", 0},
		"Changes":         {"With changes, the exit code is 1, as in kubectl diff.", changes, "any", 1},
		"Retained":        {"A retained object is not a change.", retains, "any", 0},
		"Held":            {"A held step is a change that waits for a user.", holds, "any", 1},
		"Never":           {"A user may only want to read the diff.", changes, "never", 0},
		"HoldsOfChanges":  {"A change is not a hold.", changes, "holds", 0},
		"HoldsOfHolds":    {"A pull request check may fail on holds only.", holds, "holds", 1},
		"FindingsOfWarns": {"A pull request check may fail on findings only.", warns, "findings", 1},
		"FindingsOfNotes": {"A note asks for no action.", notes, "findings", 0},
		"Failed":          {"Errors take precedence over changes.", fails, "any", 2},
		"FailedNever":     {"Errors take precedence over --exit-on.", fails, "never", 2},
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

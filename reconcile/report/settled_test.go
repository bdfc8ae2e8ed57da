package report

import (
	"testing"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A loop takes up a commit that changes nothing without a pass, and posts this report. What is not known to be over needs a pass.
func TestRepeated(t *testing.T) {
	passed := func() Report {
		r := blank(inventory.Sync{Name: "a"}, "a")
		r.Applied = true
		r.Summary = Summary{Unchanged: 3, Retained: 1, Active: 3, Inactive: 4, Definitions: 7}
		r.Verdict = verdict(r)
		return r
	}
	for name, tc := range map[string]struct {
		edit  func(*Report)
		known bool
	}{
		"Quiet":    {func(*Report) {}, true},
		"Forecast": {func(r *Report) { r.Applied = false }, false},
		"Stopped":  {func(r *Report) { r.Error = "boom" }, false},
		"Pending":  {func(r *Report) { r.Summary.Pending = 1 }, false},
		"Drift":    {func(r *Report) { r.Summary.Drifted, r.Summary.Reported = 1, 1 }, false},
		"Created": {func(r *Report) {
			r.Summary.Created, r.Summary.Activated, r.Summary.Unchanged = 1, 1, 2
			r.Steps = []Step{{Action: plan.Create}}
		}, true},
		"Updated": {func(r *Report) {
			r.Summary.Updated, r.Summary.Unchanged = 1, 2
			r.Steps = []Step{{Action: plan.Update}}
		}, true},
		"Failed": {func(r *Report) {
			r.Summary.Failed = 1
			r.Steps = []Step{{Action: plan.Create, Error: "boom"}}
		}, false},
		"NotReached": {func(r *Report) {
			r.Summary.NotReached = 1
			r.Steps = []Step{{Action: plan.Create, NotReached: true}}
		}, false},
		"Pruned": {func(r *Report) { r.Summary.Pruned = 1 }, false},
		"Adopted": {func(r *Report) {
			r.Summary.Updated, r.Summary.Unchanged = 1, 2
			r.Steps = []Step{{Action: plan.Update, Reason: "1 field left behind"}}
		}, false},
		"Deactivated": {func(r *Report) { r.Steps = []Step{{Action: plan.Update, Deactivates: true}} }, false},
		"Corrected":   {func(r *Report) { r.Summary.Corrected = 1 }, false},
		"Held":        {func(r *Report) { r.Summary.Held = 1 }, false},
		"NotReady":    {func(r *Report) { r.Summary.NotReady = 1 }, false},
		"UnreadOnes":  {func(r *Report) { r.Summary.Unknown = 1 }, false},
		"Fight":       {func(r *Report) { r.Fights = make([]facts.Fight, 1) }, false},
		"Bump":        {func(r *Report) { r.Bumps = make([]plan.Bump, 1) }, false},
		"Undone":      {func(r *Report) { r.Undone = inventory.Undone{manifest.ID{Name: "a"}: metav1.Time{}} }, false},
		"Approval":    {func(r *Report) { r.Approvals = make([]Approved, 1) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := passed()
			want := r
			tc.edit(&r)
			next, known := r.Repeated()
			if known != tc.known {
				t.Fatalf("known: %t, want %t", known, tc.known)
			}
			if known && (next.Verdict != want.Verdict || next.Summary != want.Summary || len(next.Steps) != 0) {
				t.Errorf("the next report has %+v and %+v, want %+v and %+v", next.Verdict, next.Summary, want.Verdict, want.Summary)
			}
		})
	}
}

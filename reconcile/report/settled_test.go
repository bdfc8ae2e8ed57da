package report

import (
	"testing"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSettled(t *testing.T) {
	settled := func() Report {
		r := blank(inventory.Sync{Name: "a"}, "a")
		r.Applied = true
		r.Verdict = Verdict{Activation: Status{Success, "3 active"}, Drift: Status{Success, "no drift"}}
		r.Summary = Summary{Unchanged: 3, Retained: 1, Active: 3, Inactive: 4, Definitions: 7}
		return r
	}
	for name, tc := range map[string]struct {
		edit func(*Report)
		want bool
	}{
		"Settled":    {func(*Report) {}, true},
		"Forecast":   {func(r *Report) { r.Applied = false }, false},
		"Stopped":    {func(r *Report) { r.Error = "boom" }, false},
		"Pending":    {func(r *Report) { r.Verdict.Activation.State = Pending }, false},
		"Drift":      {func(r *Report) { r.Verdict.Drift.State = Failure }, false},
		"Created":    {func(r *Report) { r.Summary.Created = 1 }, false},
		"Corrected":  {func(r *Report) { r.Summary.Corrected = 1 }, false},
		"Held":       {func(r *Report) { r.Summary.Held = 1 }, false},
		"NotReady":   {func(r *Report) { r.Summary.NotReady = 1 }, false},
		"UnreadOnes": {func(r *Report) { r.Summary.Unknown = 1 }, false},
		"Fight":      {func(r *Report) { r.Fights = make([]facts.Fight, 1) }, false},
		"Bump":       {func(r *Report) { r.Bumps = make([]plan.Bump, 1) }, false},
		"Undone":     {func(r *Report) { r.Undone = inventory.Undone{manifest.ID{Name: "a"}: metav1.Time{}} }, false},
		"Approval":   {func(r *Report) { r.Approvals = make([]Approved, 1) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := settled()
			tc.edit(&r)
			if got := r.Settled(); got != tc.want {
				t.Errorf("Settled() = %t, want %t", got, tc.want)
			}
		})
	}
}

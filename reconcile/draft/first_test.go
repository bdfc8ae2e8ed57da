package draft_test

import (
	"testing"
	"time"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A cluster that is made anew from Git comes up without a person: approvals that have expired count in the first pass of a sync. They
// never delete anything, and never count again.
func TestExpiredApprovals(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	asks := func(phase draft.Phase) draft.Guard {
		return draft.Guard{Name: "asks", Phase: phase, Approvable: true, Rule: draft.Each(func(plan.Step, draft.Case) plan.Ruling {
			return plan.Ruling{Judged: plan.Judged{Severity: plan.Block}}
		})}
	}
	object := given.Wanted(t, given.ConfigMap("a"))
	held := given.Computed(t, render.Desired{Revision: "1", Objects: []render.Object{object}}, facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync}, Kinds: given.Kinds}}, asks(draft.Writes))
	if held.Approval == nil {
		t.Fatal("nothing is held")
	}
	want := func(expires time.Duration) render.Desired {
		return render.Desired{Revision: "1", Objects: []render.Object{object}, Approvals: []render.Approval{{
			Digests: []string{held.Approval.Digest}, By: "alice", Why: "new", Expires: metav1.NewTime(now.Add(expires)),
		}}}
	}
	for name, tc := range map[string]struct {
		reason  string
		expires time.Duration
		edit    func(*facts.Observed)
		passes  bool
	}{
		"First":     {"Neither an inventory nor a mark is in the cluster.", -time.Hour, func(*facts.Observed) {}, true},
		"Valid":     {"The approval has not expired.", time.Hour, func(*facts.Observed) {}, true},
		"Inventory": {"A pass has stored an inventory.", -time.Hour, func(o *facts.Observed) { o.Inventory.ResourceVersion = "1" }, false},
		"Marks": {"A mark shows that there was an inventory.", -time.Hour, func(o *facts.Observed) {
			o.Copies = []manifest.ID{{Kind: "ConfigMap", Namespace: "default", Name: "b"}}
		}, false},
		"Used": {"The first pass has used it.", -time.Hour, func(o *facts.Observed) {
			o.Inventory.Grants = []inventory.Grant{{Digest: held.Approval.Digest, Of: approval.EntryID([]string{held.Approval.Digest}, "alice", "new", metav1.NewTime(now.Add(-time.Hour)), 0), Commit: "0", Given: true, On: []inventory.ApprovalPlace{inventory.InGit}}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			seen := facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync}, Kinds: given.Kinds}, Given: facts.Given{Now: now}}
			tc.edit(&seen)
			if p := given.Computed(t, want(tc.expires), seen, asks(draft.Writes)); (p.Count(plan.Create) == 1) != tc.passes {
				t.Errorf("%s\nit passes: %t, want %t", tc.reason, p.Count(plan.Create) == 1, tc.passes)
			}
		})
	}
}

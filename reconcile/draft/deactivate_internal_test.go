package draft

import (
	"slices"
	"testing"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// If Headgate makes the CRDs, a held definition is still updated.
func TestDeactivateOurs(t *testing.T) {
	id := plan.CRD("buckets.example.org")
	held := plan.Step{Action: plan.Hold, Would: plan.Prune, Judged: plan.Judged{Guard: "in use", Severity: plan.Block, Reason: reason.Failed.With("2 live objects")}, Deactivates: true, ID: id}
	update := plan.Step{Action: plan.Update, ID: id, Cause: plan.Retain}
	p := drafted{Plan: plan.Plan{Steps: []plan.Step{held}, Instead: map[manifest.ID]plan.Step{id: update}, Retained: []string{"buckets.example.org"}}}
	p.concludeDeactivation(nil)
	if s := p.Steps[0]; s.Action != plan.Update || s.Reason.String() != "Failed(2 live objects)" || len(p.Retained) != 1 {
		t.Errorf("a CRD that is in use gets the update of its provider: %s %q, %v", s.Action, s.Reason, p.Retained)
	}
	p.Steps[0], p.Instead[id] = held, update
	p.Steps[0].Action = plan.Prune
	if p.concludeDeactivation(nil); p.Steps[0].Action != plan.Prune || len(p.Retained) != 0 {
		t.Errorf("one that is not goes: %s, %v", p.Steps[0].Action, p.Retained)
	}
}

// A person who approves the update of a CRD in use has not approved its deletion, even if the same approval deletes its last user.
func TestApprovalOfAnUpdateIsNotOneOfItsPrune(t *testing.T) {
	crd, user := plan.CRD("buckets.example.org"), manifest.ID{Group: "example.org", Kind: "Bucket", Name: "logs"}
	on := func(id manifest.ID) func(plan.Step, Case) plan.Ruling {
		return func(s plan.Step, _ Case) plan.Ruling {
			return map[bool]plan.Ruling{s.ID == id: {Judged: plan.Judged{Severity: plan.Block}}}[true]
		}
	}
	guards := []Guard{
		{Name: "external", Phase: Prunes, Approvable: true, Rule: Each(on(user))},
		{Name: "in use", Phase: Prunes, Rule: Each(func(s plan.Step, c Case) plan.Ruling {
			stays := slices.ContainsFunc(c.Steps, func(s plan.Step) bool { return s.ID == user && s.Action != plan.Prune })
			return map[bool]plan.Ruling{s.ID == crd && stays: {Judged: plan.Judged{Severity: plan.Block}}}[true]
		})},
		{Name: "many", Phase: Prunes, Approvable: true, Rule: Each(on(crd))},
		{Name: "schema", Phase: Writes, Approvable: true, Rule: Each(on(crd))},
	}
	prunes := func() plan.Plan {
		return plan.Plan{
			Steps:   []plan.Step{{Action: plan.Prune, ID: user}, {Action: plan.Prune, ID: crd, Deactivates: true}},
			Instead: map[manifest.ID]plan.Step{crd: {Action: plan.Update, ID: crd}},
		}
	}
	asks := drafted{Plan: prunes()}
	asks.guard(facts.Observed{}, guards)
	if asks.Approval == nil || !slices.Equal(asks.Approval.Guards, []plan.GuardName{"external", "schema"}) {
		t.Fatalf("The user and the update can be approved: %+v", asks.Approval)
	}
	given := approval.Given{inventory.OnSync: approval.UpTo(asks.Approval.UpTo, asks.Approval.Digest)}
	p := drafted{Plan: prunes()}
	p.Given = given
	p.guard(facts.Observed{Given: facts.Given{Approvals: given}, Ground: facts.Ground{Inventory: inventory.Inventory{ResourceVersion: "1"}}}, guards)
	if s := p.Steps[0]; s.Action != plan.Prune || !s.Approved {
		t.Errorf("The user is deleted: %s", s.Action)
	}
	if s, update := p.Steps[1], p.Instead[crd]; s.Action != plan.Hold || s.Guard != "many" || update.Action != plan.Update || !update.Approved {
		t.Errorf("The CRD is updated and not deleted: %s by %q, otherwise %s", s.Action, s.Guard, update.Action)
	}
}

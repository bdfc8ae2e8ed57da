package plan

import (
	"slices"
	"testing"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"
)

// If Headgate makes the CRDs, a held definition is still updated.
func TestDeactivateOurs(t *testing.T) {
	id := CRD("buckets.example.org")
	held := Step{Action: Hold, Would: Prune, Guard: "in use", Reason: Failed.With("2 live objects"), Deactivates: true, ID: id}
	held.Otherwise = &Step{Action: Update, ID: id, Cause: Retain}
	p := drafted{Plan: Plan{Steps: []Step{held}, Retained: []string{"buckets.example.org"}}}
	p.concludeDeactivation(nil)
	if s := p.Steps[0]; s.Action != Update || s.Reason.String() != "Failed(2 live objects)" || len(p.Retained) != 1 {
		t.Errorf("a CRD that is in use gets the update of its provider: %s %q, %v", s.Action, s.Reason, p.Retained)
	}
	p.Steps[0] = held
	p.Steps[0].Action = Prune
	if p.concludeDeactivation(nil); p.Steps[0].Action != Prune || len(p.Retained) != 0 {
		t.Errorf("one that is not goes: %s, %v", p.Steps[0].Action, p.Retained)
	}
}

// A person who approves the update of a CRD in use has not approved its deletion, even if the same approval deletes its last user.
func TestApprovalOfAnUpdateIsNotOneOfItsPrune(t *testing.T) {
	crd, user := CRD("buckets.example.org"), manifest.ID{Group: "example.org", Kind: "Bucket", Name: "logs"}
	on := func(id manifest.ID) func(Step, Case) Ruling {
		return func(s Step, _ Case) Ruling { return map[bool]Ruling{s.ID == id: {Severity: Block}}[true] }
	}
	guards := []Guard{
		{Name: "external", Phase: Prunes, Approvable: true, Rule: Each(on(user))},
		{Name: "in use", Phase: Prunes, Rule: Each(func(s Step, c Case) Ruling {
			stays := slices.ContainsFunc(c.Steps, func(s Step) bool { return s.ID == user && s.Action != Prune })
			return map[bool]Ruling{s.ID == crd && stays: {Severity: Block}}[true]
		})},
		{Name: "many", Phase: Prunes, Approvable: true, Rule: Each(on(crd))},
		{Name: "schema", Phase: Writes, Approvable: true, Rule: Each(on(crd))},
	}
	steps := func() []Step {
		taken := Step{Action: Prune, ID: crd, Deactivates: true}
		taken.Otherwise = &Step{Action: Update, ID: crd}
		return []Step{{Action: Prune, ID: user}, taken}
	}
	asks := drafted{Plan: Plan{Steps: steps()}}
	asks.guard(Observed{}, guards)
	if asks.Approval == nil || !slices.Equal(asks.Approval.Guards, []GuardName{"external", "schema"}) {
		t.Fatalf("The user and the update can be approved: %+v", asks.Approval)
	}
	given := approval.Given{inventory.OnSync: approval.UpTo(asks.Approval.UpTo, asks.Approval.Digest)}
	p := drafted{Plan: Plan{Steps: steps(), Approvals: Approvals{Given: given}}}
	p.guard(Observed{Approvals: given, Inventory: inventory.Inventory{ResourceVersion: "1"}}, guards)
	if s := p.Steps[0]; s.Action != Prune || !s.Approved {
		t.Errorf("The user is deleted: %s", s.Action)
	}
	if s := p.Steps[1]; s.Action != Hold || s.Guard != "many" || s.Otherwise.Action != Update || !s.Otherwise.Approved {
		t.Errorf("The CRD is updated and not deleted: %s by %q, otherwise %s", s.Action, s.Guard, s.Otherwise.Action)
	}
}

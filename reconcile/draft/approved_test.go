package draft

import (
	"fmt"
	"slices"
	"testing"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A spent approval stays recorded for as long as it stands in Git or on the Sync, however many follow: otherwise it would count
// again. Only removed ones are dropped, oldest first.
func TestSpentApprovals(t *testing.T) {
	const placed, trailer = "g", "t"
	passes := func(stands []string, revision string, grants []inventory.Grant, n int) []inventory.Grant {
		for i := range n {
			p := plan.Plan{Want: render.Desired{Revision: revision}, Approvals: plan.Approvals{Given: approval.Given{inventory.OnSync: approval.Typed(stands...)}, Spent: []inventory.Grant{{Digest: fmt.Sprint("other ", i), Commit: fmt.Sprint(i)}}}}
			grants = record.Grants(p, grants)
		}
		return grants
	}
	grants := passes([]string{placed}, "now", []inventory.Grant{{Digest: placed, Commit: "then", Given: true, On: []inventory.ApprovalPlace{inventory.OnSync}}, {Digest: trailer, Commit: "now"}}, 3*inventory.MostGrants)
	if len(grants) != inventory.MostGrants || grants[0].Digest != placed || grants[1].Digest != trailer {
		t.Errorf("%d are remembered, first %v and %v", len(grants), grants[0], grants[1])
	}
	if last := grants[len(grants)-1].Digest; last != fmt.Sprint("other ", 3*inventory.MostGrants-1) {
		t.Errorf("the last one is %q", last)
	}
	if grants = passes(nil, "later", grants, inventory.MostGrants); slices.ContainsFunc(grants, func(g inventory.Grant) bool { return g.Digest == placed || g.Digest == trailer }) {
		t.Error("what stands nowhere is forgotten in the end")
	}

	// Even if more approvals stand than are normally recorded, none of them counts again.
	var all []string
	grants = nil
	for i := range 2 * inventory.MostGrants {
		all = append(all, fmt.Sprint(i))
		grants = append(grants, inventory.Grant{Digest: all[i], Given: true})
	}
	if n := len(passes(all, "now", grants, 5)); n < 2*inventory.MostGrants {
		t.Errorf("%d of %d that stand are remembered", n, 2*inventory.MostGrants)
	}
}

// An approval also covers the content of wanted objects.
func TestApprovedContent(t *testing.T) {
	one := plan.Step{Action: plan.Hold, Would: plan.Update, Judged: plan.Judged{Guard: "schema", Severity: plan.Block}, ID: plan.CRD("a"), Write: plan.Write{Wants: "1"}}
	other := one
	other.Wants = "2"
	if one.Approval().Digest == other.Approval().Digest {
		t.Error("another content has the same digest")
	}
	other = one
	other.ID = plan.CRD("b")
	if one.Approval().Digest == other.Approval().Digest {
		t.Error("another object has the same digest")
	}
}

// settledGrants returns the grants that the inventory has after the last write.
func settledGrants(p plan.Plan, grants []inventory.Grant, done []plan.Outcome) []inventory.Grant {
	return record.Settled(p, inventory.Inventory{Grants: grants}, done).Grants
}

// The approval of a create is spent with its last phase, which is an update. Otherwise it would count again after a user deletes
// the object.
func TestApprovalOfPhases(t *testing.T) {
	id := crossplane.MRD("boats.example.org")
	create := plan.Step{ID: id, Action: plan.Create, Approved: true, Write: plan.Write{Activates: true, Wants: "1"}}
	activate := plan.Step{ID: id, Action: plan.Update, Approved: true, Write: plan.Write{Activates: true, Wants: "1"}}
	left := []inventory.Grant{{Digest: "d", Left: []string{create.Claim("flood", "").Key()}}}
	left = settledGrants(plan.Plan{Steps: []plan.Step{create}}, left, []plan.Outcome{{ID: id, Action: plan.Create, More: true}})
	if len(left[0].Left) != 1 {
		t.Fatal("the next phase needs the approval")
	}
	for _, approved := range []bool{true, false} { // the guard may allow the last phase without the approval
		activate.Approved = approved
		if over := settledGrants((plan.Plan{Steps: []plan.Step{activate}}), slices.Clone(left), []plan.Outcome{{ID: id, Action: plan.Update}}); len(over[0].Left) > 0 {
			t.Errorf("approved %t: the approval counts again", approved)
		}
	}
}

// If an MRD is being deleted, an update that frees it precedes its re-creation. One approval covers both, each once. The approval
// of an ordinary update does not cover a create.
func TestApprovalOfWhatGoes(t *testing.T) {
	id := crossplane.MRD("boats.example.org")
	guards := []Guard{{Name: "asks", Approvable: true}}
	held := func(would plan.Action, frees, activates bool) plan.Step {
		return plan.Step{ID: id, Action: plan.Hold, Would: would, Judged: plan.Judged{Guard: "asks", Severity: plan.Block}, Terminating: frees, Write: plan.Write{Frees: frees, Activates: activates, Wants: "1"}}
	}
	pass := func(s plan.Step, grants []inventory.Grant, given string, o plan.Outcome) ([]inventory.Grant, bool) {
		p := drafted{Plan: plan.Plan{Want: render.Desired{Revision: "now"}, Steps: []plan.Step{s}}}
		seen := facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{ResourceVersion: "1", Grants: grants}}}
		if given != "" {
			seen.Approvals = approval.Given{inventory.OnSync: approval.Typed(given)}
		}
		p.Given = seen.Approvals
		all, _ := p.approve(seen, p.ledger(seen), guards)
		approved := all.Covers(approval.Ask{Claim: s.Claim("asks", "")})
		p.Steps[0].Action = s.Would
		o.ID, o.Action = id, s.Would
		return settledGrants(p.Plan, grants, []plan.Outcome{o}), approved
	}
	for _, activates := range []bool{false, true} {
		for _, frees := range []bool{true, false} {
			update := held(plan.Update, frees, false)
			grants, approved := pass(update, nil, update.Approval().Digest, plan.Outcome{More: frees})
			if !approved {
				t.Fatal("a person approved it")
			}
			create := held(plan.Create, false, activates)
			grants, approved = pass(create, grants, "", plan.Outcome{More: activates})
			if approved != frees {
				t.Errorf("frees %t: the create counts as approved: %t", frees, approved)
			}
			if frees && activates {
				if grants, approved = pass(held(plan.Update, false, true), grants, "", plan.Outcome{}); !approved {
					t.Error("the activation is the last phase of the create")
				}
			}
			if frees && len(grants[0].Left) > 0 {
				t.Errorf("activates %t: the approval counts again: %q", activates, grants[0].Left)
			}
		}
	}
}

// Freeing an MRD before its deletion or release does not remove it from the inventory.
func TestPhasesStayOwned(t *testing.T) {
	id := crossplane.MRD("boats.example.org")
	have := inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{id: {UID: "u", Digest: "d", Actuation: "Succeeded"}}}
	for _, action := range []plan.Action{plan.Prune, plan.Release, plan.Update} {
		p := plan.Plan{Steps: []plan.Step{{ID: id, Action: action, Phase: plan.DoDisown, Terminating: true}}}
		if e := record.Settled(p, have, []plan.Outcome{{ID: id, Action: action, Did: plan.DoDisown, More: true}}).Entries[id]; e.UID != "u" || e.Digest != "d" {
			t.Errorf("%s: %+v", action, e)
		}
	}
}

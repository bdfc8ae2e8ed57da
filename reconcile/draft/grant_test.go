package draft_test

import (
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// known compares grants only by the fields that this version knows.
var known = cmpopts.IgnoreUnexported(inventory.Grant{})

// A pass sees approvals only in the places that it reads. Records of other places stay.
func TestPlacesOfApprovals(t *testing.T) {
	want := render.Desired{Revision: "2", Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}}
	cluster := func() facts.Observed { return given.Owning(t, "a", "b", "c", "d", "e", "keep") }
	digest := given.Computed(t, want, cluster(), guard.Guarding{}.Guards()...).Approval.Digest
	spent := func(on ...inventory.ApprovalPlace) inventory.Grant {
		return inventory.Grant{Digest: digest, Commit: "1", Given: true, On: on}
	}
	cases := map[string]struct {
		reason string
		grant  inventory.Grant
		passes []approval.Given // approvals of successive passes; the test plans with the last
		counts bool
		on     []inventory.ApprovalPlace // places of the grant after the last pass
	}{
		"OtherPlace": {
			reason: "A command does not read the Sync, so an approval on the Sync stays spent.",
			grant:  spent(inventory.OnSync), passes: []approval.Given{{inventory.OnCommand: nil}, {inventory.OnSync: approval.Typed(digest), inventory.OnRun: nil}}, on: []inventory.ApprovalPlace{inventory.OnSync},
		},
		"FlagOfALoop": {
			reason: "The flag of a process applies for as long as the process runs, whatever other commands are given.",
			grant:  spent(inventory.OnRun), passes: []approval.Given{{inventory.OnCommand: nil}, {inventory.OnSync: nil, inventory.OnRun: approval.Typed(digest)}}, on: []inventory.ApprovalPlace{inventory.OnRun},
		},
		"UnreadSync": {
			reason: "If the file of the Sync cannot be read, the record stays.",
			grant:  spent(inventory.OnSync), passes: []approval.Given{{inventory.OnRun: nil}, {inventory.OnSync: approval.Typed(digest), inventory.OnRun: nil}}, on: []inventory.ApprovalPlace{inventory.OnSync},
		},
		"NothingRead": {
			reason: "A pass that reads no place forgets no record.",
			grant:  spent(inventory.OnSync), passes: []approval.Given{nil, {inventory.OnSync: approval.Typed(digest)}}, on: []inventory.ApprovalPlace{inventory.OnSync},
		},
		"TakenOut": {
			reason: "A user who removed an approval may give it again.",
			grant:  spent(inventory.OnSync), passes: []approval.Given{{inventory.OnSync: nil, inventory.OnRun: nil}, {inventory.OnSync: approval.Typed(digest), inventory.OnRun: nil}}, counts: true,
		},
		"TypedAnew": {
			reason: "A user who passes the flag approves this pass, whatever is on the Sync.",
			grant:  spent(inventory.OnSync), passes: []approval.Given{{inventory.OnCommand: approval.Typed(digest)}}, counts: true, on: []inventory.ApprovalPlace{inventory.OnCommand, inventory.OnSync},
		},
		"TypedBefore": {
			reason: "A pipeline passes the same flag for every commit.",
			grant:  spent(inventory.OnCommand), passes: []approval.Given{{inventory.OnCommand: approval.Typed(digest)}}, on: []inventory.ApprovalPlace{inventory.OnCommand},
		},
		"AlsoOnTheSync": {
			reason: "The same approval was given in two places, and a command used it first.",
			grant:  spent(inventory.OnCommand), passes: []approval.Given{{inventory.OnSync: approval.Typed(digest), inventory.OnRun: nil}}, on: []inventory.ApprovalPlace{inventory.OnCommand, inventory.OnSync},
		},
		"StaysOnTheSync": {
			reason: "The approval is removed from one place and stays in the other.",
			grant:  spent(inventory.OnCommand, inventory.OnSync), passes: []approval.Given{{inventory.OnCommand: nil}, {inventory.OnSync: approval.Typed(digest), inventory.OnRun: nil}}, on: []inventory.ApprovalPlace{inventory.OnSync},
		},
		"Old": {
			reason: "An older version did not record the place, so the approval is spent everywhere.",
			grant:  spent(), passes: []approval.Given{{inventory.OnSync: approval.Typed(digest), inventory.OnRun: nil}}, on: []inventory.ApprovalPlace{inventory.OnCommand, inventory.OnSync},
		},
		"OldAndCommand": {
			reason: "A command without the approval does not prove that the Sync has none.",
			grant:  spent(), passes: []approval.Given{{inventory.OnCommand: nil}, {inventory.OnSync: approval.Typed(digest), inventory.OnRun: nil}}, on: []inventory.ApprovalPlace{inventory.OnSync},
		},
		"OldAndTyped": {
			reason: "After a command without the flag, the next command with it is a new approval.",
			grant:  spent(), passes: []approval.Given{{inventory.OnCommand: nil}, {inventory.OnCommand: approval.Typed(digest)}}, counts: true, on: []inventory.ApprovalPlace{inventory.OnCommand, inventory.OnRun, inventory.OnSync},
		},
		"OldAndOut": {
			reason: "The approval is no longer in any place, so it may be given again.",
			grant:  spent(), passes: []approval.Given{{inventory.OnCommand: nil}, {inventory.OnSync: nil, inventory.OnRun: nil}, {inventory.OnSync: approval.Typed(digest)}}, counts: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			grants := []inventory.Grant{tc.grant}
			for i, placed := range tc.passes {
				seen := cluster()
				seen.Inventory.ResourceVersion, seen.Inventory.Grants, seen.Approvals = "1", grants, placed
				p := given.Computed(t, want, seen, guard.Guarding{}.Guards()...)
				if last := i == len(tc.passes)-1; last && (p.Count(plan.Prune) == 5) != tc.counts || !last && p.Count(plan.Prune) != 0 {
					t.Errorf("%s\nIn pass %d, %d are pruned", tc.reason, i+1, p.Count(plan.Prune))
				}
				next := record.Intent(p, seen.Inventory).Grants
				if again := record.Grants(p, next); !cmp.Equal(next, again, known) {
					t.Errorf("%s\nThe inventory is stored twice in a pass (-want +got):\n%s", tc.reason, cmp.Diff(next, again, known))
				}
				if moved := !cmp.Equal(grants, next, known); moved && !p.Remembers() && !p.Writes() {
					t.Errorf("%s\nPass %d knows of %+v, and does not store it", tc.reason, i+1, next)
				}
				grants = next
			}
			if diff := cmp.Diff(tc.on, grants[0].On); diff != "" {
				t.Errorf("%s\nIt stands on (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A lost inventory loses its grants. Approvals from before may have been used, so they do not count until a user gives them again.
func TestApprovalsOfALostInventory(t *testing.T) {
	want := render.Desired{Revision: "2", Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}}
	stored := func() inventory.Inventory { return given.Owning(t, "a", "b", "c", "d", "e", "keep").Inventory }
	rebuilt := func() inventory.Inventory {
		inv := stored()
		for id, e := range inv.Entries {
			e.Rebuilt = id.Name != "keep"
			inv.Entries[id] = e
		}
		return inv
	}
	seen := given.Owning(t, "a", "b", "c", "d", "e", "keep")
	seen.Inventory = rebuilt()
	digest := given.Computed(t, want, seen, guard.Guarding{}.Guards()...).Approval.Digest // for the steps that the plan holds with a stored inventory

	cases := map[string]struct {
		reason string
		lost   approval.Given   // of the pass that finds no inventory
		passes []approval.Given // after it
		counts []bool
	}{
		"StoodThere": {
			reason: "The approval was there before, perhaps since the last time the same steps were held.",
			lost:   approval.Given{inventory.OnSync: approval.Typed(digest)}, passes: []approval.Given{{inventory.OnSync: approval.Typed(digest)}, {inventory.OnSync: approval.Typed(digest)}}, counts: []bool{false, false},
		},
		"GivenAnew": {
			reason: "A user removes the approval and gives it again.",
			lost:   approval.Given{inventory.OnSync: approval.Typed(digest)}, passes: []approval.Given{{inventory.OnSync: nil}, {inventory.OnSync: approval.Typed(digest)}}, counts: []bool{false, true},
		},
		"GivenAfter": {
			reason: "The digest of rebuilt entries is known only after the loss, so the approval is new.",
			lost:   approval.Given{inventory.OnSync: nil}, passes: []approval.Given{{inventory.OnSync: approval.Typed(digest)}}, counts: []bool{true},
		},
		"TypedAfter": {
			reason: "Without a Sync, an approval by flag is also new.",
			lost:   approval.Given{inventory.OnCommand: nil}, passes: []approval.Given{{inventory.OnCommand: approval.Typed(digest)}}, counts: []bool{true},
		},
		"TypedLater": {
			reason: "A loop rebuilt the inventory, and a user then approved what it holds with a command.",
			lost:   approval.Given{inventory.OnSync: nil, inventory.OnRun: nil}, passes: []approval.Given{{inventory.OnCommand: approval.Typed(digest)}}, counts: []bool{true},
		},
		"TypedThen": {
			reason: "A pipeline passes the same flag in every pass.",
			lost:   approval.Given{inventory.OnCommand: approval.Typed(digest)}, passes: []approval.Given{{inventory.OnCommand: approval.Typed(digest)}, {inventory.OnCommand: nil}, {inventory.OnCommand: approval.Typed(digest)}}, counts: []bool{false, false, true},
		},
		"ReadLater": {
			reason: "A command rebuilt the inventory without reading the Sync, so the Sync's approvals may be old.",
			lost:   approval.Given{inventory.OnCommand: nil}, passes: []approval.Given{{inventory.OnCommand: nil}, {inventory.OnSync: approval.Typed(digest), inventory.OnRun: nil}, {inventory.OnSync: approval.Typed(digest), inventory.OnRun: nil}}, counts: []bool{false, false, false},
		},
		"ReadLaterAndGivenAnew": {
			reason: "An approval that is added to the Sync later is new.",
			lost:   approval.Given{inventory.OnCommand: nil}, passes: []approval.Given{{inventory.OnSync: approval.Typed("another"), inventory.OnRun: nil}, {inventory.OnSync: approval.Typed("another", digest), inventory.OnRun: nil}}, counts: []bool{false, true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := given.Owning(t, "a", "b", "c", "d", "e", "keep")
			seen.Inventory, seen.Approvals = rebuilt(), tc.lost
			seen.Inventory.Rebuilt, seen.Inventory.ResourceVersion = true, ""
			p := given.Computed(t, want, seen, guard.Guarding{}.Guards()...)
			if p.Count(plan.Prune) != 0 {
				t.Fatalf("%s\nThe pass that rebuilds prunes %d", tc.reason, p.Count(plan.Prune))
			}
			inv := record.Settled(p, seen.Inventory, nil)
			if diff := cmp.Diff(record.Intent(p, seen.Inventory).Grants, inv.Grants, known); diff != "" {
				t.Errorf("%s\nBefore and after the writes (-want +got):\n%s", tc.reason, diff)
			}
			for i, placed := range tc.passes {
				inv.ResourceVersion, inv.Rebuilt = "1", false
				seen := given.Owning(t, "a", "b", "c", "d", "e", "keep")
				seen.Inventory, seen.Approvals = inv, placed
				p := given.Computed(t, want, seen, guard.Guarding{}.Guards()...)
				if got := p.Count(plan.Prune) > 0; got != tc.counts[i] {
					t.Errorf("%s\nPass %d: it counts: %t, want %t", tc.reason, i+1, got, tc.counts[i])
				}
				if on := placed.Places(digest); len(on) > 0 && !tc.counts[i] && !slices.ContainsFunc(p.Notes, func(f manifest.Finding) bool { return strings.Contains(f.Message, "before the inventory was lost") }) {
					t.Errorf("%s\nPass %d does not give the reason: %v", tc.reason, i+1, p.Notes)
				}
				inv = record.Intent(p, seen.Inventory)
			}
		})
	}
}

// In a first pass nothing is lost, wherever its objects come from.
func TestIsLost(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(*facts.Observed)
		want   bool
	}{
		"Stored": {reason: "The inventory exists.", edit: func(o *facts.Observed) { o.Inventory.ResourceVersion = "1" }},
		"Siblings": {reason: "The remaining part of the inventory contains the grants.", edit: func(o *facts.Observed) {
			o.Inventory.ResourceVersion, o.Inventory.Rebuilt, o.Inventory.Lost = "1", true, true
		}},
		"Rebuilt": {reason: "Objects with marks show that an inventory existed.", edit: func(o *facts.Observed) { o.Inventory.Rebuilt = true }, want: true},
		"Copies": {reason: "Objects restored without managed fields show that an inventory existed.", edit: func(o *facts.Observed) {
			o.Copies = []manifest.ID{{Kind: "ConfigMap", Namespace: "default", Name: "x"}}
		}, want: true},
		"Marked":  {reason: "Wanted objects with marks show that an inventory existed.", edit: func(o *facts.Observed) { o.Objects = given.Owning(t, "a").Objects }, want: true},
		"First":   {reason: "No object shows that an inventory existed.", edit: func(*facts.Observed) {}},
		"Offline": {reason: "The base of a comparison has no inventory.", edit: func(o *facts.Observed) { o.Stance, o.Objects = plan.Comparing, given.Owning(t, "a").Objects }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync}}}
			tc.edit(&seen)
			if got := given.Computed(t, render.Desired{}, seen).Rebuilt; got != tc.want {
				t.Errorf("%s\nIt is lost: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

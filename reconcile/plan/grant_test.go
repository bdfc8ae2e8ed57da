package plan_test

import (
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// known compares grants by the fields that this version knows.
var known = cmpopts.IgnoreUnexported(inventory.Grant{})

// A pass sees approvals only in the places that it reads. Records about other places stay.
func TestPlacesOfApprovals(t *testing.T) {
	want := render.Desired{Revision: "2", Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}}
	cluster := func() plan.Observed { return given.Owning(t, "a", "b", "c", "d", "e", "keep") }
	digest := given.Computed(t, want, cluster(), guard.Guarding{}.Guards()...).Approval.Digest
	spent := func(on ...inventory.ApprovalPlace) inventory.Grant {
		return inventory.Grant{Digest: digest, Commit: "1", Given: true, On: on}
	}
	cases := map[string]struct {
		reason string
		grant  inventory.Grant
		passes []inventory.Approvals // one after the other; the last is of the plan
		counts bool
		on     []inventory.ApprovalPlace // after them, of the grant
	}{
		"OtherPlace": {
			reason: "A command does not read the Sync, so what stands there is still spent.",
			grant:  spent(inventory.OnSync), passes: []inventory.Approvals{{inventory.OnCommand: nil}, {inventory.OnSync: {digest}, inventory.OnRun: nil}}, on: []inventory.ApprovalPlace{inventory.OnSync},
		},
		"FlagOfALoop": {
			reason: "The flag of a process stands for as long as that runs, whatever other commands say.",
			grant:  spent(inventory.OnRun), passes: []inventory.Approvals{{inventory.OnCommand: nil}, {inventory.OnSync: nil, inventory.OnRun: {digest}}}, on: []inventory.ApprovalPlace{inventory.OnRun},
		},
		"UnreadSync": {
			reason: "If the file of the Sync cannot be read, nothing is forgotten.",
			grant:  spent(inventory.OnSync), passes: []inventory.Approvals{{inventory.OnRun: nil}, {inventory.OnSync: {digest}, inventory.OnRun: nil}}, on: []inventory.ApprovalPlace{inventory.OnSync},
		},
		"NothingRead": {
			reason: "A pass that reads no place forgets nothing.",
			grant:  spent(inventory.OnSync), passes: []inventory.Approvals{nil, {inventory.OnSync: {digest}}}, on: []inventory.ApprovalPlace{inventory.OnSync},
		},
		"TakenOut": {
			reason: "Who took it out may give it again.",
			grant:  spent(inventory.OnSync), passes: []inventory.Approvals{{inventory.OnSync: nil, inventory.OnRun: nil}, {inventory.OnSync: {digest}, inventory.OnRun: nil}}, counts: true,
		},
		"TypedAnew": {
			reason: "A person who types it for one pass means that pass, whatever stands on the Sync.",
			grant:  spent(inventory.OnSync), passes: []inventory.Approvals{{inventory.OnCommand: {digest}}}, counts: true, on: []inventory.ApprovalPlace{inventory.OnCommand, inventory.OnSync},
		},
		"TypedBefore": {
			reason: "A pipeline types the same for every commit.",
			grant:  spent(inventory.OnCommand), passes: []inventory.Approvals{{inventory.OnCommand: {digest}}}, on: []inventory.ApprovalPlace{inventory.OnCommand},
		},
		"AlsoOnTheSync": {
			reason: "It was placed twice for the same, and a command made use of it first.",
			grant:  spent(inventory.OnCommand), passes: []inventory.Approvals{{inventory.OnSync: {digest}, inventory.OnRun: nil}}, on: []inventory.ApprovalPlace{inventory.OnCommand, inventory.OnSync},
		},
		"StaysOnTheSync": {
			reason: "It is taken from one place, and still stands in the other.",
			grant:  spent(inventory.OnCommand, inventory.OnSync), passes: []inventory.Approvals{{inventory.OnCommand: nil}, {inventory.OnSync: {digest}, inventory.OnRun: nil}}, on: []inventory.ApprovalPlace{inventory.OnSync},
		},
		"Old": {
			reason: "An older version did not record where it stood: it is spent everywhere.",
			grant:  spent(), passes: []inventory.Approvals{{inventory.OnSync: {digest}, inventory.OnRun: nil}}, on: []inventory.ApprovalPlace{inventory.OnCommand, inventory.OnSync},
		},
		"OldAndCommand": {
			reason: "A command without the approval does not prove that the Sync has none.",
			grant:  spent(), passes: []inventory.Approvals{{inventory.OnCommand: nil}, {inventory.OnSync: {digest}, inventory.OnRun: nil}}, on: []inventory.ApprovalPlace{inventory.OnSync},
		},
		"OldAndTyped": {
			reason: "Once a command did not give it, the next that does means it.",
			grant:  spent(), passes: []inventory.Approvals{{inventory.OnCommand: nil}, {inventory.OnCommand: {digest}}}, counts: true, on: []inventory.ApprovalPlace{inventory.OnCommand, inventory.OnRun, inventory.OnSync},
		},
		"OldAndOut": {
			reason: "In the end, it stands nowhere.",
			grant:  spent(), passes: []inventory.Approvals{{inventory.OnCommand: nil}, {inventory.OnSync: nil, inventory.OnRun: nil}, {inventory.OnSync: {digest}}}, counts: true,
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
				next := p.Intent(seen.Inventory).Grants
				if again := p.Grants(next); !cmp.Equal(next, again, known) {
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

// A lost inventory loses its grants. Approvals from before may have been used, so they do not count until a person
// gives them again.
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
	digest := given.Computed(t, want, seen, guard.Guarding{}.Guards()...).Approval.Digest // for the steps that the stored plan holds

	cases := map[string]struct {
		reason  string
		message string                // of the commit
		lost    inventory.Approvals   // of the pass that finds the inventory missing
		passes  []inventory.Approvals // after it
		counts  []bool
	}{
		"StoodThere": {
			reason: "It stood there by then, perhaps since the same was held the last time.",
			lost:   inventory.Approvals{inventory.OnSync: {digest}}, passes: []inventory.Approvals{{inventory.OnSync: {digest}}, {inventory.OnSync: {digest}}}, counts: []bool{false, false},
		},
		"GivenAnew": {
			reason: "A person takes it out and gives it again.",
			lost:   inventory.Approvals{inventory.OnSync: {digest}}, passes: []inventory.Approvals{{inventory.OnSync: nil}, {inventory.OnSync: {digest}}}, counts: []bool{false, true},
		},
		"GivenAfter": {
			reason: "The digest of rebuilt entries is known only after that.",
			lost:   inventory.Approvals{inventory.OnSync: nil}, passes: []inventory.Approvals{{inventory.OnSync: {digest}}}, counts: []bool{true},
		},
		"TypedAfter": {
			reason: "So it is where no Sync is.",
			lost:   inventory.Approvals{inventory.OnCommand: nil}, passes: []inventory.Approvals{{inventory.OnCommand: {digest}}}, counts: []bool{true},
		},
		"TypedLater": {
			reason: "A loop rebuilt the inventory, and a person read there what it holds.",
			lost:   inventory.Approvals{inventory.OnSync: nil, inventory.OnRun: nil}, passes: []inventory.Approvals{{inventory.OnCommand: {digest}}}, counts: []bool{true},
		},
		"TypedThen": {
			reason: "A pipeline types the same for every pass.",
			lost:   inventory.Approvals{inventory.OnCommand: {digest}}, passes: []inventory.Approvals{{inventory.OnCommand: {digest}}, {inventory.OnCommand: nil}, {inventory.OnCommand: {digest}}}, counts: []bool{false, false, true},
		},
		"ReadLater": {
			reason: "A command rebuilt the inventory, and did not read what stands on the Sync.",
			lost:   inventory.Approvals{inventory.OnCommand: nil}, passes: []inventory.Approvals{{inventory.OnCommand: nil}, {inventory.OnSync: {digest}, inventory.OnRun: nil}, {inventory.OnSync: {digest}, inventory.OnRun: nil}}, counts: []bool{false, false, false},
		},
		"ReadLaterAndGivenAnew": {
			reason: "A later approval on the Sync is new.",
			lost:   inventory.Approvals{inventory.OnCommand: nil}, passes: []inventory.Approvals{{inventory.OnSync: {"another"}, inventory.OnRun: nil}, {inventory.OnSync: {"another", digest}, inventory.OnRun: nil}}, counts: []bool{false, true},
		},
		"Trailer": {
			reason: "A commit approves once, and may have done so.", message: "Headgate-Approve: " + digest,
			lost: inventory.Approvals{inventory.OnSync: nil}, passes: []inventory.Approvals{{inventory.OnSync: nil}}, counts: []bool{false},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := want
			want.Message = tc.message
			seen := given.Owning(t, "a", "b", "c", "d", "e", "keep")
			seen.Inventory, seen.Approvals = rebuilt(), tc.lost
			seen.Inventory.Rebuilt, seen.Inventory.ResourceVersion = true, ""
			p := given.Computed(t, want, seen, guard.Guarding{}.Guards()...)
			if p.Count(plan.Prune) != 0 {
				t.Fatalf("%s\nThe pass that rebuilds prunes %d", tc.reason, p.Count(plan.Prune))
			}
			inv := p.Settled(seen.Inventory, nil)
			if diff := cmp.Diff(p.Intent(seen.Inventory).Grants, inv.Grants, known); diff != "" {
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
				inv = p.Intent(seen.Inventory)
			}
		})
	}
}

// A first pass lost nothing, wherever its objects come from.
func TestIsLost(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(*plan.Observed)
		want   bool
	}{
		"Stored": {reason: "It is there.", edit: func(o *plan.Observed) { o.Inventory.ResourceVersion = "1" }},
		"Siblings": {reason: "The grants are in the part that is there.", edit: func(o *plan.Observed) {
			o.Inventory.ResourceVersion, o.Inventory.Rebuilt, o.Inventory.Lost = "1", true, true
		}},
		"Rebuilt": {reason: "Objects show that it existed.", edit: func(o *plan.Observed) { o.Inventory.Rebuilt = true }, want: true},
		"Copies":  {reason: "They were restored without managed fields.", edit: func(o *plan.Observed) { o.Copies = []manifest.ID{{Kind: "ConfigMap", Name: "x"}} }, want: true},
		"Marked":  {reason: "So were the wanted ones.", edit: func(o *plan.Observed) { o.Objects = given.Owning(t, "a").Objects }, want: true},
		"First":   {reason: "Nothing of the sync is there.", edit: func(*plan.Observed) {}},
		"Offline": {reason: "The base of a comparison has no inventory.", edit: func(o *plan.Observed) { o.Offline, o.Objects = true, given.Owning(t, "a").Objects }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := plan.Observed{Inventory: inventory.Inventory{Sync: given.Sync}}
			tc.edit(&seen)
			if got := seen.IsLost(); got != tc.want {
				t.Errorf("%s\nIt is lost: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

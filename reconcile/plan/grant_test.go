package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// A pass sees what stands in the places that it reads. What stands elsewhere is as before.
func TestPlacesOfApprovals(t *testing.T) {
	want := render.Desired{Revision: "2", Objects: []render.Object{wanted(t, configMap("keep"))}}
	cluster := func() Observed { return owning(t, "a", "b", "c", "d", "e", "keep") }
	digest := computed(t, want, cluster(), Guarding{}.Guards()...).Approval.Digest
	spent := func(on ...ApprovalPlace) Grant { return Grant{Digest: digest, Commit: "1", Given: true, On: on} }
	cases := map[string]struct {
		reason string
		grant  Grant
		passes []Approvals // one after the other; the last is of the plan
		counts bool
		on     []ApprovalPlace // after them, of the grant
	}{
		"OtherPlace": {
			reason: "A command does not read the Sync, so what stands there is still spent.",
			grant:  spent(OnSync), passes: []Approvals{{OnCommand: nil}, {OnSync: {digest}, OnRun: nil}}, on: []ApprovalPlace{OnSync},
		},
		"FlagOfALoop": {
			reason: "The flag of a process stands for as long as that runs, whatever other commands say.",
			grant:  spent(OnRun), passes: []Approvals{{OnCommand: nil}, {OnSync: nil, OnRun: {digest}}}, on: []ApprovalPlace{OnRun},
		},
		"UnreadSync": {
			reason: "Where the file of the Sync cannot be read, nothing is forgotten.",
			grant:  spent(OnSync), passes: []Approvals{{OnRun: nil}, {OnSync: {digest}, OnRun: nil}}, on: []ApprovalPlace{OnSync},
		},
		"NothingRead": {
			reason: "A pass that reads no place forgets nothing.",
			grant:  spent(OnSync), passes: []Approvals{nil, {OnSync: {digest}}}, on: []ApprovalPlace{OnSync},
		},
		"TakenOut": {
			reason: "Who took it out may give it again.",
			grant:  spent(OnSync), passes: []Approvals{{OnSync: nil, OnRun: nil}, {OnSync: {digest}, OnRun: nil}}, counts: true,
		},
		"TypedAnew": {
			reason: "A person who types it for one pass means that pass, whatever stands on the Sync.",
			grant:  spent(OnSync), passes: []Approvals{{OnCommand: {digest}}}, counts: true, on: []ApprovalPlace{OnCommand, OnSync},
		},
		"TypedBefore": {
			reason: "A pipeline types the same for every commit.",
			grant:  spent(OnCommand), passes: []Approvals{{OnCommand: {digest}}}, on: []ApprovalPlace{OnCommand},
		},
		"AlsoOnTheSync": {
			reason: "It was placed twice for the same, and a command made use of it first.",
			grant:  spent(OnCommand), passes: []Approvals{{OnSync: {digest}, OnRun: nil}}, on: []ApprovalPlace{OnCommand, OnSync},
		},
		"StaysOnTheSync": {
			reason: "It is taken from one place, and still stands in the other.",
			grant:  spent(OnCommand, OnSync), passes: []Approvals{{OnCommand: nil}, {OnSync: {digest}, OnRun: nil}}, on: []ApprovalPlace{OnSync},
		},
		"Old": {
			reason: "An older version did not record where it stood: it is spent everywhere.",
			grant:  spent(), passes: []Approvals{{OnSync: {digest}, OnRun: nil}}, on: []ApprovalPlace{OnCommand, OnSync},
		},
		"OldAndCommand": {
			reason: "That no command gives it does not tell that it does not stand on the Sync.",
			grant:  spent(), passes: []Approvals{{OnCommand: nil}, {OnSync: {digest}, OnRun: nil}}, on: []ApprovalPlace{OnSync},
		},
		"OldAndTyped": {
			reason: "Once a command did not give it, the next that does means it.",
			grant:  spent(), passes: []Approvals{{OnCommand: nil}, {OnCommand: {digest}}}, counts: true, on: []ApprovalPlace{OnCommand, OnRun, OnSync},
		},
		"OldAndOut": {
			reason: "In the end, it stands nowhere.",
			grant:  spent(), passes: []Approvals{{OnCommand: nil}, {OnSync: nil, OnRun: nil}, {OnSync: {digest}}}, counts: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			grants := []Grant{tc.grant}
			for i, placed := range tc.passes {
				seen := cluster()
				seen.Inventory.ResourceVersion, seen.Inventory.Grants, seen.Approvals = "1", grants, placed
				p := computed(t, want, seen, Guarding{}.Guards()...)
				if last := i == len(tc.passes)-1; last && (p.Count(Prune) == 5) != tc.counts || !last && p.Count(Prune) != 0 {
					t.Errorf("%s\nIn pass %d, %d are pruned", tc.reason, i+1, p.Count(Prune))
				}
				next := p.Intent(seen.Inventory).Grants
				if again := p.grants(next); !cmp.Equal(next, again) {
					t.Errorf("%s\nThe inventory is stored twice in a pass (-want +got):\n%s", tc.reason, cmp.Diff(next, again))
				}
				if moved := !cmp.Equal(grants, next); moved && !p.Remembers() && !p.Writes() {
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

// An inventory that is lost takes its grants along. What stood somewhere by then may have been made use
// of, so it does not count until a person gives it again.
func TestApprovalsOfALostInventory(t *testing.T) {
	want := render.Desired{Revision: "2", Objects: []render.Object{wanted(t, configMap("keep"))}}
	stored := func() Inventory { return owning(t, "a", "b", "c", "d", "e", "keep").Inventory }
	rebuilt := func() Inventory {
		inv := stored()
		for id, e := range inv.Entries {
			e.Rebuilt = id.Name != "keep"
			inv.Entries[id] = e
		}
		return inv
	}
	seen := owning(t, "a", "b", "c", "d", "e", "keep")
	seen.Inventory = rebuilt()
	digest := computed(t, want, seen, Guarding{}.Guards()...).Approval.Digest // of what the stored one holds

	cases := map[string]struct {
		reason  string
		message string      // of the commit
		lost    Approvals   // of the pass that finds the inventory missing
		passes  []Approvals // after it
		counts  []bool
	}{
		"StoodThere": {
			reason: "It stood there by then, perhaps since the same was held the last time.",
			lost:   Approvals{OnSync: {digest}}, passes: []Approvals{{OnSync: {digest}}, {OnSync: {digest}}}, counts: []bool{false, false},
		},
		"GivenAnew": {
			reason: "A person takes it out and gives it again.",
			lost:   Approvals{OnSync: {digest}}, passes: []Approvals{{OnSync: nil}, {OnSync: {digest}}}, counts: []bool{false, true},
		},
		"GivenAfter": {
			reason: "The digest of what is rebuilt is known only after that.",
			lost:   Approvals{OnSync: nil}, passes: []Approvals{{OnSync: {digest}}}, counts: []bool{true},
		},
		"TypedAfter": {
			reason: "So it is where no Sync is.",
			lost:   Approvals{OnCommand: nil}, passes: []Approvals{{OnCommand: {digest}}}, counts: []bool{true},
		},
		"TypedLater": {
			reason: "A loop rebuilt the inventory, and a person read there what it holds.",
			lost:   Approvals{OnSync: nil, OnRun: nil}, passes: []Approvals{{OnCommand: {digest}}}, counts: []bool{true},
		},
		"TypedThen": {
			reason: "A pipeline types the same for every pass.",
			lost:   Approvals{OnCommand: {digest}}, passes: []Approvals{{OnCommand: {digest}}, {OnCommand: nil}, {OnCommand: {digest}}}, counts: []bool{false, false, true},
		},
		"ReadLater": {
			reason: "A command rebuilt the inventory, and did not read what stands on the Sync.",
			lost:   Approvals{OnCommand: nil}, passes: []Approvals{{OnCommand: nil}, {OnSync: {digest}, OnRun: nil}, {OnSync: {digest}, OnRun: nil}}, counts: []bool{false, false, false},
		},
		"ReadLaterAndGivenAnew": {
			reason: "What the Sync says later is new.",
			lost:   Approvals{OnCommand: nil}, passes: []Approvals{{OnSync: {"another"}, OnRun: nil}, {OnSync: {"another", digest}, OnRun: nil}}, counts: []bool{false, true},
		},
		"Trailer": {
			reason: "A commit approves once, and may have done so.", message: "Headgate-Approve: " + digest,
			lost: Approvals{OnSync: nil}, passes: []Approvals{{OnSync: nil}}, counts: []bool{false},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := want
			want.Message = tc.message
			seen := owning(t, "a", "b", "c", "d", "e", "keep")
			seen.Inventory, seen.Approvals = rebuilt(), tc.lost
			seen.Inventory.Rebuilt, seen.Inventory.ResourceVersion = true, ""
			p := computed(t, want, seen, Guarding{}.Guards()...)
			if p.Count(Prune) != 0 {
				t.Fatalf("%s\nThe pass that rebuilds prunes %d", tc.reason, p.Count(Prune))
			}
			inv := p.Settled(seen.Inventory, nil)
			if diff := cmp.Diff(p.Intent(seen.Inventory).Grants, inv.Grants); diff != "" {
				t.Errorf("%s\nBefore and after the writes (-want +got):\n%s", tc.reason, diff)
			}
			for i, placed := range tc.passes {
				inv.ResourceVersion, inv.Rebuilt = "1", false
				seen := owning(t, "a", "b", "c", "d", "e", "keep")
				seen.Inventory, seen.Approvals = inv, placed
				p := computed(t, want, seen, Guarding{}.Guards()...)
				if got := p.Count(Prune) > 0; got != tc.counts[i] {
					t.Errorf("%s\nPass %d: it counts: %t, want %t", tc.reason, i+1, got, tc.counts[i])
				}
				if on := placed.of(digest); len(on) > 0 && !tc.counts[i] && !slices.ContainsFunc(p.Notes, func(f manifest.Finding) bool { return strings.Contains(f.Message, "before the inventory was lost") }) {
					t.Errorf("%s\nPass %d does not tell why: %v", tc.reason, i+1, p.Notes)
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
		edit   func(*Observed)
		want   bool
	}{
		"Stored": {reason: "It is there.", edit: func(o *Observed) { o.Inventory.ResourceVersion = "1" }},
		"Siblings": {reason: "The grants are in the part that is there.", edit: func(o *Observed) {
			o.Inventory.ResourceVersion, o.Inventory.Rebuilt, o.Inventory.Lost = "1", true, true
		}},
		"Rebuilt": {reason: "Objects say that it was there.", edit: func(o *Observed) { o.Inventory.Rebuilt = true }, want: true},
		"Copies":  {reason: "They were restored without managed fields.", edit: func(o *Observed) { o.Copies = []manifest.ID{{Kind: "ConfigMap", Name: "x"}} }, want: true},
		"Marked":  {reason: "So were those that the commit wants.", edit: func(o *Observed) { o.Objects = owning(t, "a").Objects }, want: true},
		"First":   {reason: "Nothing of the sync is there.", edit: func(*Observed) {}},
		"Offline": {reason: "The base of a comparison has no inventory.", edit: func(o *Observed) { o.Offline, o.Objects = true, owning(t, "a").Objects }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := Observed{Inventory: Inventory{Sync: sync}}
			tc.edit(&seen)
			if got := seen.isLost(); got != tc.want {
				t.Errorf("%s\nIt is lost: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

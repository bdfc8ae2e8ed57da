package guard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Many clusters read an approval in Git. Each of them holds only some of the steps, perhaps in another commit.
func TestApprovedInGit(t *testing.T) {
	five := []string{"a", "b", "c", "d", "e"}
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	later := metav1.NewTime(now.Add(time.Hour))
	desired := func(revision string, approvals ...render.Approval) render.Desired {
		return render.Desired{Revision: revision, Approvals: approvals, Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}}
	}
	holding := given.Computed(t, desired("1"), given.Owning(t, append(five, "keep")...), Guarding{}.Guards()...)
	digests := map[string]string{}
	var all []string
	for _, s := range holding.Steps {
		if s.Action == plan.Hold {
			digests[s.ID.Name] = s.Approval().Digest
			all = append(all, s.Approval().Digest)
		}
	}
	entry := func(expires metav1.Time, digests ...string) render.Approval {
		return render.Approval{Digests: digests, By: "alice", Why: "empty", Expires: expires}
	}
	used := inventory.Grant{Digest: digests["a"], Commit: "1", Given: true, On: []inventory.ApprovalPlace{inventory.InGit}}
	usedEntry := used
	usedEntry.Of = approval.EntryID(all, "alice", "empty", later, 0)
	removedEntry := usedEntry
	removedEntry.Given, removedEntry.On = false, nil
	left := func(name string) inventory.Grant {
		seen := given.Owning(t, append(five, "keep")...)
		seen.Now = now
		p := given.Computed(t, desired("1", entry(later, digests[name])), seen, Guarding{}.Guards()...)
		grants := record.Intent(p, seen.Inventory).Grants
		if len(grants) != 1 || len(grants[0].Left) != 1 || grants[0].By != "alice" {
			t.Fatalf("The intent remembers the approval, the step and who approved: %+v", grants)
		}
		return grants[0]
	}
	for name, tc := range map[string]struct {
		reason  string
		want    render.Desired
		owned   []string
		stance  plan.Stance
		inForce []render.Approval
		typed   []string
		grants  []inventory.Grant
		at      metav1.Time
		prunes  int
		held    int
		note    string
	}{
		"All":       {reason: "Each of the held steps is listed.", want: desired("1", entry(later, all...)), prunes: 5},
		"Whole":     {reason: "The digest of a report covers exactly the steps that it holds.", want: desired("1", entry(later, holding.Approval.Digest)), prunes: 5},
		"Descends":  {reason: "The file is also in every later commit.", want: desired("7", entry(later, all...)), prunes: 5},
		"Fewer":     {reason: "Another cluster never had all of the objects.", want: desired("1", entry(later, append(all, strings.Repeat("0", 32))...)), owned: []string{"a", "b", "c", "d"}, prunes: 4},
		"More":      {reason: "A step that is not listed is judged separately: a single prune is allowed.", want: desired("1", entry(later, all...)), owned: append(slices.Clone(five), "f"), prunes: 6},
		"ManyMore":  {reason: "Four prunes without an approval are too many.", want: desired("1", entry(later, all...)), owned: append(slices.Clone(five), "f", "g", "h", "i"), prunes: 5, held: 4},
		"Rest":      {reason: "A user approves the remaining steps by their digest.", want: desired("1", entry(later, digests["a"])), typed: []string{"rest"}, prunes: 5},
		"Expired":   {reason: "An expired approval was about an earlier state of the cluster.", want: desired("1", entry(later, all...)), at: later, held: 5, note: "expired at 2026-01-02T04:04:05Z"},
		"NoClock":   {reason: "Without a clock, no approval counts.", want: desired("1", entry(later, all...)), at: metav1.Time{}, held: 5, note: "expired"},
		"Directory": {reason: "A directory has no reviewed history.", want: desired("", entry(later, all...)), held: 5, note: "a directory is not a commit"},
		"PullRequest": {
			reason: "The author of a pull request can edit the file.", want: desired("1", entry(later, all...)), stance: plan.Comparing, held: 5, note: "which does not count: its author wrote it",
		},
		"PullRequestTakesOver": {
			reason: "The file of the target branch counts.", want: desired("1"), stance: plan.Comparing, inForce: []render.Approval{entry(later, all...)}, prunes: 5,
		},
		"Done": {
			reason: "Using a part of an entry uses the whole.", want: desired("2", entry(later, all...)), grants: []inventory.Grant{usedEntry}, held: 5, note: "was used already",
		},
		"DoneByAnOlderVersion": {
			reason: "An older version recorded the digest, and not the entry.", want: desired("2", entry(later, all...)), grants: []inventory.Grant{used}, held: 5, note: "was used already",
		},
		"Again": {
			reason: "Another entry is another approval.", want: desired("2", entry(metav1.NewTime(later.Add(time.Second)), all...)), grants: []inventory.Grant{usedEntry}, prunes: 5,
		},
		"AddedAgain": {
			reason: "A commit without the entry was applied, and a later one adds it.", want: desired("3", entry(later, all...)), grants: []inventory.Grant{removedEntry}, prunes: 5,
		},
		"DoneAmongMany": {
			reason: "An approval that was already used for one of five steps does not count, because a single prune needs none.", want: desired("2", entry(later, digests["a"])), grants: []inventory.Grant{used}, held: 5, note: "was used already",
		},
		"CarriesOn": {
			reason: "The pass died before the step, and the next commit continues it.", want: desired("2", entry(later, digests["a"])), grants: []inventory.Grant{left("a")}, prunes: 5 - 4, held: 4,
		},
		"TakenBack": {
			reason: "The next commit removed the approval before the step was executed.", want: desired("2"), grants: []inventory.Grant{left("a")}, held: 5,
		},
		"ExpiredMeanwhile": {
			reason: "The approval expired before the step was executed.", want: desired("2", entry(now, digests["a"])), grants: []inventory.Grant{left("a")}, held: 5, note: "expired",
		},
	} {
		t.Run(name, func(t *testing.T) {
			names := tc.owned
			if names == nil {
				names = five
			}
			seen := given.Owning(t, append(slices.Clone(names), "keep")...)
			seen.Stance, seen.InForce, seen.Inventory.Grants = tc.stance, tc.inForce, tc.grants
			seen.Now = now
			if tc.at != (metav1.Time{}) || name == "NoClock" {
				seen.Now = tc.at
			}
			guards := Guarding{}.Guards()
			if tc.typed != nil {
				rest := given.Computed(t, tc.want, seen, guards...).Approval
				seen.Approvals = approval.Given{inventory.OnCommand: approval.Typed(rest.Digest)}
			}
			p := given.Computed(t, tc.want, seen, guards...)
			if p.Count(plan.Prune) != tc.prunes || p.Count(plan.Hold) != tc.held {
				t.Errorf("%s\n%d prunes and %d holds, want %d and %d", tc.reason, p.Count(plan.Prune), p.Count(plan.Hold), tc.prunes, tc.held)
			}
			output := ""
			for _, f := range p.Notes {
				output += f.Message
			}
			if !strings.Contains(output, tc.note) || (tc.note == "") != (output == "") {
				t.Errorf("%s\nit notes %q, want %q", tc.reason, output, tc.note)
			}
		})
	}
}

// A lost inventory also loses the record of used approvals. All approvals that are in Git at that time may have been used.
func TestApprovedInGitBeforeLoss(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	seen := given.Owning(t, "a", "b", "c", "d", "keep")
	seen.Now, seen.Inventory.Rebuilt, seen.Inventory.ResourceVersion = now, true, ""
	for id, e := range seen.Inventory.Entries {
		e.Rebuilt = id.Name != "keep"
		seen.Inventory.Entries[id] = e
	}
	want := render.Desired{Revision: "2", Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}}
	asks := given.Computed(t, want, seen, Guarding{}.Guards()...).Approval
	if asks == nil {
		t.Fatal("nothing is held")
	}
	want.Approvals = []render.Approval{{Digests: []string{asks.Digest}, By: "alice", Why: "b", Expires: metav1.NewTime(now.Add(time.Hour))}}
	p := given.Computed(t, want, seen, Guarding{}.Guards()...)
	if p.Count(plan.Prune) != 0 {
		t.Errorf("It counts although it may have been used: %d prunes", p.Count(plan.Prune))
	}
	seen.Inventory = record.Intent(p, seen.Inventory)
	seen.Inventory.ResourceVersion, seen.Inventory.Rebuilt = "1", false
	if p = given.Computed(t, want, seen, Guarding{}.Guards()...); p.Count(plan.Prune) != 0 {
		t.Errorf("It counts in the next pass: %d prunes", p.Count(plan.Prune))
	}
	none := want
	none.Approvals = nil
	seen.Inventory = record.Intent(given.Computed(t, none, seen, Guarding{}.Guards()...), seen.Inventory)
	if p = given.Computed(t, want, seen, Guarding{}.Guards()...); p.Count(plan.Prune) != 4 {
		t.Errorf("Given anew, it counts: %d prunes", p.Count(plan.Prune))
	}
}

// A pass over a directory, or a destroy, does not read the file. Used approvals must stay recorded.
func TestApprovedInGitUnread(t *testing.T) {
	seen := given.Owning(t, "keep")
	seen.Now = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	seen.Inventory.Grants = []inventory.Grant{{Digest: strings.Repeat("a", 32), Commit: "1", Given: true, On: []inventory.ApprovalPlace{inventory.InGit}}}
	want := render.Desired{Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}}
	if g := record.Intent(given.Computed(t, want, seen, Guarding{}.Guards()...), seen.Inventory).Grants; len(g) != 1 || !g[0].Given {
		t.Errorf("The approval counts again: %+v", g)
	}
	want.Revision = "2"
	if g := record.Intent(given.Computed(t, want, seen, Guarding{}.Guards()...), seen.Inventory).Grants; len(g) != 1 || g[0].Given {
		t.Errorf("A commit without the entry took it out: %+v", g)
	}
}

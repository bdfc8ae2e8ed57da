package guard

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"

	"github.com/google/go-cmp/cmp"
)

func TestApprove(t *testing.T) {
	five := []string{"a", "b", "c", "d", "e"}
	keep := render.Desired{Revision: "1", Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}}
	cluster := func() facts.Observed { return given.Owning(t, append(five, "keep")...) }
	asks := given.Computed(t, keep, cluster(), Guarding{}.Guards()...).Approval
	if asks == nil || asks.Steps != 5 || !slices.Equal(asks.Guards, []plan.GuardName{"many"}) {
		t.Fatalf("five prunes of six objects are held, and can be approved: %+v", asks)
	}
	digest := asks.Digest
	commit := func(revision string) render.Desired {
		w := keep
		w.Revision = revision
		return w
	}
	cases := map[string]struct {
		reason   string
		want     render.Desired
		given    []string
		trailers bool
		grants   []inventory.Grant
		more     []string // further objects that are owned and no longer wanted
		prunes   int
		note     string
	}{
		"Given":      {reason: "A user reviewed exactly these steps.", want: keep, given: []string{digest}, prunes: 5},
		"OneMore":    {reason: "An approval covers exactly the reviewed steps.", want: keep, given: []string{digest}, more: []string{"f"}, prunes: 0, note: "does not fit the steps that are held now"},
		"Prefix":     {reason: "A truncated digest is a different digest.", want: keep, given: []string{digest[:12]}, prunes: 0, note: "does not fit the steps that are held now"},
		"Spent":      {reason: "An approval counts once, even if it is still on the Sync when another commit has the same hold.", want: commit("2"), given: []string{digest}, grants: []inventory.Grant{{Digest: digest, Commit: "1", Given: true}}, prunes: 0, note: "was spent on commit 1"},
		"Trailer":    {reason: "The author of a change writes the message, and forges copy it into merges.", want: keep, trailers: true, note: "have no effect any more"},
		"GivenAgain": {reason: "A user who removed an approval may give it again.", want: commit("2"), given: []string{digest}, grants: []inventory.Grant{{Digest: digest, Commit: "1"}}, prunes: 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := given.Owning(t, slices.Concat(five, []string{"keep"}, tc.more)...)
			seen.Approvals, seen.Inventory.Grants = approval.Given{inventory.OnSync: approval.Typed(tc.given...)}, tc.grants
			seen.Terms.Trailers = tc.trailers
			p := given.Computed(t, tc.want, seen, Guarding{}.Guards()...)
			if got := p.Count(plan.Prune); got != tc.prunes {
				t.Errorf("%s\n%d prunes, want %d", tc.reason, got, tc.prunes)
			}
			if (p.Approval == nil) != (tc.prunes > 0) {
				t.Errorf("%s\nit asks for %+v", tc.reason, p.Approval)
			}
			output := ""
			for _, f := range p.Notes {
				output += f.Message
			}
			if !strings.Contains(output, tc.note) || (tc.note == "") != (output == "") {
				t.Errorf("%s\nit says %q, want %q", tc.reason, output, tc.note)
			}
		})
	}
}

func TestApprovalDigest(t *testing.T) {
	many := func(seen facts.Observed, revision string) string {
		return given.Computed(t, render.Desired{Revision: revision, Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}}, seen, Guarding{}.Guards()...).Approval.Digest
	}
	names := []string{"a", "b", "c", "d", "keep"}
	one := many(given.Owning(t, names...), "1")
	restored := given.Owning(t, names...)
	for id, o := range restored.Objects {
		o.UID = "other-" + o.UID
		restored.Inventory.Entries[id] = plan.Applied(o, "another digest of the live object")
	}
	if other := many(restored, "2"); one != other {
		t.Errorf("a preview and every cluster print the same digest, whatever the UIDs and the commit are: %s, %s", one, other)
	}
	var base []render.Object
	for _, name := range names {
		u := given.ConfigMap(name)
		u.SetNamespace("") // a commit may omit what a cluster fills in
		base = append(base, given.Wanted(t, u))
	}
	baseline, err := baseline.Baseline{Base: render.Desired{Objects: base}, Sync: given.Sync}.Observe(t.Context(), render.Desired{})
	if err != nil {
		t.Fatal(err)
	}
	keep := given.ConfigMap("keep")
	keep.SetNamespace("")
	if offline := given.Computed(t, render.Desired{Objects: []render.Object{given.Wanted(t, keep)}}, baseline, Guarding{}.Guards()...).Approval; offline == nil || offline.Digest != one {
		t.Errorf("a preview prints %+v, the cluster %s", offline, one)
	}
	if other := many(given.Owning(t, "a", "b", "c", "x", "keep"), "1"); one == other {
		t.Error("other objects have another digest")
	}
}

// An approved step must still pass every other guard.
func TestApprovedPastOthers(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "keep"}
	want := render.Desired{Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}}
	guards := func(seen facts.Observed) plan.Plan {
		p, err := given.Compute(want, seen, append(Guarding{}.Guards(), draft.Guard{Name: "in use", Rule: draft.Each(func(s plan.Step, _ draft.Case) plan.Ruling {
			if s.ID.Name == "c" {
				return held(reason.UsersNotCounted.With())
			}
			return allowed
		})})...)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	seen := given.Owning(t, names...)
	seen.Approvals = approval.Given{inventory.OnSync: approval.Typed(guards(seen).Approval.Digest)}
	p := guards(seen)
	if p.Count(plan.Prune) != 4 || p.Count(plan.Hold) != 1 {
		t.Fatalf("four go, and the one that is in use stays: %d prunes", p.Count(plan.Prune))
	}
	for _, s := range p.Steps {
		if s.ID.Name == "c" && (s.Guard != "in use" || s.Approved) || s.Action == plan.Prune && (!s.Approved || s.Reason.Code != reason.Approved || s.Reason.Values[0] != "many") {
			t.Errorf("%s: %s %q %s", s.ID, s.Action, s.Guard, s.Reason)
		}
	}
	if p.Approval != nil {
		t.Errorf("nothing is left that could be approved: %+v", p.Approval)
	}
	seen = given.Owning(t, "a")
	seen.Objects[given.Wanted(t, given.ConfigMap("a")).ID].Labels = nil
	if p := given.Computed(t, want, seen, Guarding{}.Guards()...); p.Count(plan.Hold) != 1 || p.Approval != nil {
		t.Errorf("what is not ours cannot be approved: %+v", p.Approval)
	}
}

// A grant survives a crash, but does not apply to another commit.
func TestGrants(t *testing.T) {
	want := render.Desired{Revision: "1", Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}}
	seen := given.Owning(t, "a", "b", "c", "d", "e", "keep")
	seen.Approvals = approval.Given{inventory.OnSync: approval.Typed(given.Computed(t, want, seen, Guarding{}.Guards()...).Approval.Digest)}
	p := given.Computed(t, want, seen, Guarding{}.Guards()...)
	intent := record.Intent(p, seen.Inventory)
	if len(intent.Grants) != 1 || len(intent.Grants[0].Left) != 5 || !intent.Grants[0].Given {
		t.Fatalf("before the first write: %+v", intent.Grants)
	}

	// The process was killed after two of the steps.
	crashed := given.Owning(t, "c", "d", "e", "f", "g", "h", "i", "keep")
	crashed.Approvals, crashed.Inventory.Grants = seen.Approvals, intent.Grants
	rest := given.Computed(t, want, crashed, Guarding{}.Guards()...)
	if rest.Count(plan.Prune) != 3 || rest.Approval == nil || rest.Approval.Steps != 4 {
		t.Errorf("the pass after a crash carries on with the three that are left, and asks about the four that are not approved: %d prunes, %+v", rest.Count(plan.Prune), rest.Approval)
	}
	other := want
	other.Revision = "2"
	if later := given.Computed(t, other, crashed, Guarding{}.Guards()...); later.Count(plan.Prune) != 0 {
		t.Errorf("another commit was not approved: %d prunes", later.Count(plan.Prune))
	}

	var done []plan.Outcome
	for _, s := range p.Steps {
		if s.Action == plan.Prune {
			o := plan.Outcome{ID: s.ID, Action: plan.Prune}
			if s.ID.Name == "b" {
				o.Err = reason.ErrMoved
			}
			done = append(done, o)
		}
	}
	settled := record.Settled(p, seen.Inventory, done)
	if diff := cmp.Diff(1, len(settled.Grants[0].Left)); diff != "" {
		t.Errorf("what failed is still approved, and no more (-want +got):\n%s", diff)
	}

	// Once the approval is removed from the Sync, the inventory records that in one write.
	idle := given.Owning(t, "keep")
	idle.Inventory.Grants, idle.Approvals = settled.Grants, approval.Given{inventory.OnSync: nil}
	p = given.Computed(t, want, idle, Guarding{}.Guards()...)
	if !p.Remembers() {
		t.Error("that it was taken out has to be written down: it may be given again")
	}
	idle.Inventory = record.Intent(p, idle.Inventory)
	if p = given.Computed(t, want, idle, Guarding{}.Guards()...); p.Remembers() || idle.Inventory.Grants[0].Given {
		t.Errorf("once: %+v", idle.Inventory.Grants)
	}
}

// A spent approval stays on the Sync while hundreds of others are spent.
func TestSpentAmongMany(t *testing.T) {
	keep := render.Desired{Revision: "1", Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}}
	seen := given.Owning(t, "a", "b", "c", "d", "e", "keep")
	digest := given.Computed(t, keep, seen, Guarding{}.Guards()...).Approval.Digest
	seen.Approvals = approval.Given{inventory.OnSync: approval.Typed(digest)}
	seen.Inventory.Grants = []inventory.Grant{{Digest: digest, Commit: "0", Given: true}}
	for i := range 2 * inventory.MostGrants {
		seen.Inventory.Grants = append(seen.Inventory.Grants, inventory.Grant{Digest: fmt.Sprint("other ", i), Commit: fmt.Sprint(i)})
	}
	if p := given.Computed(t, keep, seen, Guarding{}.Guards()...); p.Count(plan.Prune) != 0 || p.Approval == nil {
		t.Errorf("it counts again: %d prunes", p.Count(plan.Prune))
	}
}

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// owning is a cluster that holds settings of ours, by name.
func owning(t *testing.T, names ...string) Observed {
	t.Helper()
	seen := Observed{Inventory: Inventory{Sync: sync, ResourceVersion: "1", Entries: map[manifest.ID]Entry{}}, Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}, Kinds: core}
	for _, name := range names {
		u := configMap(name)
		o := wanted(t, u)
		live := live(u, types.UID(name))
		seen.Objects[o.ID] = live
		seen.Inventory.Entries[o.ID] = applied(live, sync.Digest(o))
	}
	return seen
}

func computed(t *testing.T, want render.Desired, seen Observed, guards ...Guard) Plan {
	t.Helper()
	p, err := Compute(want, seen, guards...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestApprove(t *testing.T) {
	five := []string{"a", "b", "c", "d", "e"}
	keep := render.Desired{Revision: "1", Objects: []render.Object{wanted(t, configMap("keep"))}}
	cluster := func() Observed { return owning(t, append(five, "keep")...) }
	asks := computed(t, keep, cluster(), Guarding{}.Guards()...).Approval
	if asks == nil || asks.Steps != 5 || !slices.Equal(asks.Guards, []string{"many"}) {
		t.Fatalf("five prunes of six objects are held, and can be approved: %+v", asks)
	}
	digest := asks.Digest
	commit := func(revision, message string) render.Desired {
		w := keep
		w.Revision, w.Message = revision, message
		return w
	}
	cases := map[string]struct {
		reason string
		want   render.Desired
		given  []string
		grants []Grant
		more   []string // also owned, and wanted no more
		prunes int
		note   string
	}{
		"Given":        {reason: "A person looked at exactly these.", want: keep, given: []string{digest}, prunes: 5},
		"Trailer":      {reason: "So did whoever wrote the message of the commit.", want: commit("1", "Clean up\n\nNobody needs them.\n\nheadgate-approve:  "+digest+" \nSigned-off-by: A"), prunes: 5},
		"Squashed":     {reason: "A squash puts the messages of a branch behind each other.", want: commit("1", "Clean up (#7)\n\n* one\n\nHeadgate-Approve: "+digest+"\n\n* two"), prunes: 5},
		"Quoted":       {reason: "A message that quotes another approves nothing.", want: commit("1", "Revert\n\n> Headgate-Approve: "+digest), prunes: 0},
		"OneMore":      {reason: "It approves exactly those that were looked at.", want: keep, given: []string{digest}, more: []string{"f"}, prunes: 0, note: "is not of what is held now"},
		"Prefix":       {reason: "A digest that was cut is another.", want: keep, given: []string{digest[:12]}, prunes: 0, note: "is not of what is held now"},
		"Spent":        {reason: "It counts once, although it still stands on the Sync when another commit holds the same.", want: commit("2", ""), given: []string{digest}, grants: []Grant{{Digest: digest, Commit: "1", Given: true}}, prunes: 0, note: "was spent on commit 1"},
		"SpentTrailer": {reason: "A commit approves once.", want: commit("1", "Headgate-Approve: "+digest), grants: []Grant{{Digest: digest, Commit: "1"}}, prunes: 0, note: "was spent on commit 1"},
		"AnotherTrailer": {
			reason: "Another commit may approve the same once more.", want: commit("2", "Headgate-Approve: "+digest), grants: []Grant{{Digest: digest, Commit: "1"}}, prunes: 5,
		},
		"GivenAgain": {reason: "Who took it out may give it again.", want: commit("2", ""), given: []string{digest}, grants: []Grant{{Digest: digest, Commit: "1"}}, prunes: 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := owning(t, slices.Concat(five, []string{"keep"}, tc.more)...)
			seen.Approvals, seen.Inventory.Grants = Approvals{OnSync: tc.given}, tc.grants
			p := computed(t, tc.want, seen, Guarding{}.Guards()...)
			if got := p.Count(Prune); got != tc.prunes {
				t.Errorf("%s\n%d prunes, want %d", tc.reason, got, tc.prunes)
			}
			if (p.Approval == nil) != (tc.prunes > 0) {
				t.Errorf("%s\nit asks for %+v", tc.reason, p.Approval)
			}
			said := ""
			for _, f := range p.Notes {
				said += f.Message
			}
			if !strings.Contains(said, tc.note) || (tc.note == "") != (said == "") {
				t.Errorf("%s\nit says %q, want %q", tc.reason, said, tc.note)
			}
		})
	}
}

func TestApprovalDigest(t *testing.T) {
	many := func(seen Observed, revision string) string {
		return computed(t, render.Desired{Revision: revision, Objects: []render.Object{wanted(t, configMap("keep"))}}, seen, Guarding{}.Guards()...).Approval.Digest
	}
	names := []string{"a", "b", "c", "d", "keep"}
	one := many(owning(t, names...), "1")
	restored := owning(t, names...)
	for id, o := range restored.Objects {
		o.UID = "other-" + o.UID
		restored.Inventory.Entries[id] = applied(o, "another digest of what was there")
	}
	if other := many(restored, "2"); one != other {
		t.Errorf("a preview and every cluster print the same digest, whatever the UIDs and the commit are: %s, %s", one, other)
	}
	var base []render.Object
	for _, name := range names {
		u := configMap(name)
		u.SetNamespace("") // a commit may leave out what a cluster fills in
		base = append(base, wanted(t, u))
	}
	baseline, err := Baseline{Base: render.Desired{Objects: base}, Sync: sync}.Observe(t.Context(), render.Desired{})
	if err != nil {
		t.Fatal(err)
	}
	keep := configMap("keep")
	keep.SetNamespace("")
	if offline := computed(t, render.Desired{Objects: []render.Object{wanted(t, keep)}}, baseline, Guarding{}.Guards()...).Approval; offline == nil || offline.Digest != one {
		t.Errorf("a preview prints %+v, the cluster %s", offline, one)
	}
	if other := many(owning(t, "a", "b", "c", "x", "keep"), "1"); one == other {
		t.Error("other objects have another digest")
	}
}

// What approval cannot reach: an approved step still passes every other guard.
func TestApprovedPastOthers(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "keep"}
	want := render.Desired{Objects: []render.Object{wanted(t, configMap("keep"))}}
	guards := func(seen Observed) Plan {
		p, err := Compute(want, seen, append(Guarding{}.Guards(), Guard{Name: "in use", Rule: Each(func(s Step, _ Case) Ruling {
			if s.ID.Name == "c" {
				return held("it is in use")
			}
			return allowed
		})})...)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	seen := owning(t, names...)
	seen.Approvals = Approvals{OnSync: {guards(seen).Approval.Digest}}
	p := guards(seen)
	if p.Count(Prune) != 4 || p.Count(Hold) != 1 {
		t.Fatalf("four go, and the one that is in use stays: %d prunes", p.Count(Prune))
	}
	for _, s := range p.Steps {
		if s.ID.Name == "c" && (s.Guard != "in use" || s.Approved) || s.Action == Prune && (!s.Approved || !strings.Contains(s.Reason, `approved past the guard "many"`)) {
			t.Errorf("%s: %s %q %s", s.ID, s.Action, s.Guard, s.Reason)
		}
	}
	if p.Approval != nil {
		t.Errorf("nothing is left that could be approved: %+v", p.Approval)
	}
	seen = owning(t, "a")
	seen.Objects[wanted(t, configMap("a")).ID].Labels = nil
	if p := computed(t, want, seen, Guarding{}.Guards()...); p.Count(Hold) != 1 || p.Approval != nil {
		t.Errorf("what is not ours cannot be approved: %+v", p.Approval)
	}
}

// A grant is a promise that survives a crash, and no other commit.
func TestGrants(t *testing.T) {
	want := render.Desired{Revision: "1", Objects: []render.Object{wanted(t, configMap("keep"))}}
	seen := owning(t, "a", "b", "c", "d", "e", "keep")
	seen.Approvals = Approvals{OnSync: {computed(t, want, seen, Guarding{}.Guards()...).Approval.Digest}}
	p := computed(t, want, seen, Guarding{}.Guards()...)
	intent := p.Intent(seen.Inventory)
	if len(intent.Grants) != 1 || len(intent.Grants[0].Left) != 5 || !intent.Grants[0].Given {
		t.Fatalf("before the first write: %+v", intent.Grants)
	}

	// Killed after two of them.
	crashed := owning(t, "c", "d", "e", "f", "g", "h", "i", "keep")
	crashed.Approvals, crashed.Inventory.Grants = seen.Approvals, intent.Grants
	rest := computed(t, want, crashed, Guarding{}.Guards()...)
	if rest.Count(Prune) != 3 || rest.Approval == nil || rest.Approval.Steps != 4 {
		t.Errorf("the pass after a crash carries on with the three that are left, and asks about the four that nobody approved: %d prunes, %+v", rest.Count(Prune), rest.Approval)
	}
	other := want
	other.Revision = "2"
	if later := computed(t, other, crashed, Guarding{}.Guards()...); later.Count(Prune) != 0 {
		t.Errorf("another commit was not approved: %d prunes", later.Count(Prune))
	}

	var done []Outcome
	for _, s := range p.Steps {
		if s.Action == Prune {
			o := Outcome{ID: s.ID, Action: Prune}
			if s.ID.Name == "b" {
				o.Err = ErrMoved
			}
			done = append(done, o)
		}
	}
	settled := p.Settled(seen.Inventory, done)
	if diff := cmp.Diff(1, len(settled.Grants[0].Left)); diff != "" {
		t.Errorf("what failed is still approved, and no more (-want +got):\n%s", diff)
	}

	// Taken out again, it is forgotten that it stood there, once.
	idle := owning(t, "keep")
	idle.Inventory.Grants, idle.Approvals = settled.Grants, Approvals{OnSync: nil}
	p = computed(t, want, idle, Guarding{}.Guards()...)
	if !p.Remembers() {
		t.Error("that it was taken out has to be written down: it may be given again")
	}
	idle.Inventory = p.Intent(idle.Inventory)
	if p = computed(t, want, idle, Guarding{}.Guards()...); p.Remembers() || idle.Inventory.Grants[0].Given {
		t.Errorf("once: %+v", idle.Inventory.Grants)
	}
}

// A spent approval is remembered for as long as it stands, however many come after it: else it would
// count once more. Only those that stand nowhere are forgotten, the oldest first.
func TestSpentApprovals(t *testing.T) {
	const placed, trailer = "g", "t"
	passes := func(stands []string, revision string, grants []Grant, n int) []Grant {
		for i := range n {
			p := Plan{Want: render.Desired{Revision: revision}, given: Approvals{OnSync: stands}, grant: &Grant{Digest: fmt.Sprint("other ", i), Commit: fmt.Sprint(i)}}
			grants = p.grants(grants)
		}
		return grants
	}
	grants := passes([]string{placed}, "now", []Grant{{Digest: placed, Commit: "then", Given: true, On: []ApprovalPlace{OnSync}}, {Digest: trailer, Commit: "now"}}, 3*mostGrants)
	if len(grants) != mostGrants || grants[0].Digest != placed || grants[1].Digest != trailer {
		t.Errorf("%d are remembered, first %v and %v", len(grants), grants[0], grants[1])
	}
	if last := grants[len(grants)-1].Digest; last != fmt.Sprint("other ", 3*mostGrants-1) {
		t.Errorf("the last one is %q", last)
	}
	if grants = passes(nil, "later", grants, mostGrants); slices.ContainsFunc(grants, func(g Grant) bool { return g.Digest == placed || g.Digest == trailer }) {
		t.Error("what stands nowhere is forgotten in the end")
	}

	// More than are remembered may stand: none of them counts again.
	var all []string
	grants = nil
	for i := range 2 * mostGrants {
		all = append(all, fmt.Sprint(i))
		grants = append(grants, Grant{Digest: all[i], Given: true})
	}
	if n := len(passes(all, "now", grants, 5)); n < 2*mostGrants {
		t.Errorf("%d of %d that stand are remembered", n, 2*mostGrants)
	}

}

// It stands, and hundreds of others are spent meanwhile.
func TestSpentAmongMany(t *testing.T) {
	keep := render.Desired{Revision: "1", Objects: []render.Object{wanted(t, configMap("keep"))}}
	seen := owning(t, "a", "b", "c", "d", "e", "keep")
	digest := computed(t, keep, seen, Guarding{}.Guards()...).Approval.Digest
	seen.Approvals = Approvals{OnSync: {digest}}
	seen.Inventory.Grants = []Grant{{Digest: digest, Commit: "0", Given: true}}
	for i := range 2 * mostGrants {
		seen.Inventory.Grants = append(seen.Inventory.Grants, Grant{Digest: fmt.Sprint("other ", i), Commit: fmt.Sprint(i)})
	}
	if p := computed(t, keep, seen, Guarding{}.Guards()...); p.Count(Prune) != 0 || p.Approval == nil {
		t.Errorf("it counts again: %d prunes", p.Count(Prune))
	}
}

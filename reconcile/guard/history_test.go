package guard

import (
	"errors"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A rewritten branch may drop other people's work. Its changes are held until a user approves them by digest. Until then, the
// inventory keeps the commit that was applied: otherwise a second push would pass as a descendant of the first.
func TestHistory(t *testing.T) {
	const (
		first  = "1111111111111111111111111111111111111111"
		second = "2222222222222222222222222222222222222222"
	)
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	source := render.SourceID{Repository: "example.org/team/platform", Path: "prod", Commit: second}
	wanted := func(names ...string) []render.Object {
		var all []render.Object
		for _, name := range names {
			all = append(all, given.Wanted(t, given.ConfigMap(name)))
		}
		return all
	}
	start := func() facts.Observed {
		seen := given.Owning(t, "a", "b")
		seen.Inventory.ResourceVersion, seen.Now = "7", now
		seen.Inventory.Record.Source = inventory.SourceRecord{Repository: source.Repository, Path: source.Path, Commit: first}
		seen.Terms.FastForward = true
		return seen
	}
	unrelated := func(string) (bool, error) { return false, nil }
	// This is the digest of the held steps, for approvals.
	rewritten := source
	rewritten.Descends = unrelated
	before := given.Computed(t, render.Desired{Revision: second, Source: rewritten, Objects: wanted("a", "c")}, start(), Guarding{}.Guards()...)
	if before.Approval == nil || before.Approval.Steps != 2 {
		t.Fatalf("the create and the prune are held together: %+v", before.Approval)
	}
	digest := before.Approval.Digest
	var each []string
	for _, s := range before.Steps {
		if s.Action == plan.Hold {
			each = append(each, s.Approval().Digest)
		}
	}
	inGit := []render.Approval{{Digests: append(each, digest), By: "mallory", Expires: metav1.NewTime(now.Add(time.Hour))}}

	for name, tc := range map[string]struct {
		reason   string
		names    []string // names of the wanted objects; nil means a and c
		descends func(string) (bool, error)
		edit     func(*facts.Observed, *render.Desired)
		held     int
		commit   string // that is recorded
		note     bool
	}{
		"Descends":  {reason: "The branch only moved forward.", descends: func(c string) (bool, error) { return c == first, nil }, commit: second},
		"Unrelated": {reason: "The branch was rewritten.", descends: unrelated, held: 2, commit: first},
		"NoHistory": {reason: "A directory outside any repository has no history.", held: 2, commit: first},
		"Any":       {reason: "Without the option, any commit may follow.", descends: unrelated, edit: func(o *facts.Observed, _ *render.Desired) { o.Terms.FastForward = false }, commit: second},
		"FirstSync": {reason: "Nothing was applied before, so nothing can be lost.", descends: unrelated, edit: func(o *facts.Observed, _ *render.Desired) { o.Inventory.Record.Source = inventory.SourceRecord{} }, commit: second},
		"TakenOver": {reason: "A user named the source that is replaced, and thereby accepted the new history.", descends: unrelated, edit: func(o *facts.Observed, w *render.Desired) {
			w.Source.Path, o.Terms.TakeOver = "test", "example.org/team/platform//prod"
		}, commit: second},
		"TakesOver":  {reason: "A takeover concerns only another source.", descends: unrelated, edit: func(o *facts.Observed, _ *render.Desired) { o.Terms.TakeOver = o.Inventory.Record.Source.String() }, held: 2, commit: first},
		"Preview":    {reason: "A comparison applies nothing.", descends: unrelated, edit: func(o *facts.Observed, _ *render.Desired) { o.Stance = plan.Comparing }, commit: second},
		"Destroy":    {reason: "A destroy belongs to no commit.", descends: unrelated, edit: func(o *facts.Observed, w *render.Desired) { o.Stance, w.Objects = plan.Destroying, nil }, commit: first},
		"SameThings": {reason: "A rewrite without changes must not clear the way for the next push.", names: []string{"a", "b"}, descends: unrelated, commit: first, note: true},
		"Approved": {
			reason: "A user reviewed exactly these changes.", descends: unrelated, commit: second,
			edit: func(o *facts.Observed, _ *render.Desired) {
				o.Approvals = approval.Given{inventory.OnSync: approval.Typed(digest)}
			},
		},
		"ApprovedByItself": {
			reason: "The user who rewrites the branch can also edit its approvals file.", descends: unrelated, held: 2, commit: first, note: true,
			edit: func(_ *facts.Observed, w *render.Desired) { w.Approvals = inGit },
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := start()
			names := tc.names
			if names == nil {
				names = []string{"a", "c"}
			}
			want := render.Desired{Revision: second, Source: source, Objects: wanted(names...)}
			want.Source.Descends = tc.descends
			if tc.edit != nil {
				tc.edit(&seen, &want)
			}
			p := given.Computed(t, want, seen, Guarding{}.Guards()...)
			held := 0
			for _, s := range p.Steps {
				if s.Action == plan.Hold && s.Guard == draft.History {
					held++
				}
			}
			if held != tc.held {
				t.Errorf("%s\n%d steps are held, want %d: %+v", tc.reason, held, tc.held, p.Steps)
			}
			for when, next := range map[string]inventory.Inventory{"before the first write": record.Intent(p, seen.Inventory), "after the last": record.Settled(p, seen.Inventory, nil)} {
				if got := next.Record.Source.Commit; got != tc.commit && seen.Stance != plan.Comparing {
					t.Errorf("%s\n%s, the commit %.7s is recorded, want %.7s", tc.reason, when, got, tc.commit)
				}
			}
			if noted := len(p.Notes) > 0; noted != tc.note {
				t.Errorf("%s\nnotes: %v", tc.reason, p.Notes)
			}
			if tc.held > 0 && (p.Approval == nil || p.Approval.Digest != digest) {
				t.Errorf("%s\nthe way out is the digest %s: %+v", tc.reason, digest, p.Approval)
			}
		})
	}
}

// If the history cannot be read at the moment, because a clone is shallow or a disk is busy, that says nothing about the commit.
// The pass fails, and the next one checks again. It neither holds steps, which a user would have to approve, nor accepts the
// commit.
func TestHistoryUnread(t *testing.T) {
	seen := given.Owning(t, "a", "b")
	seen.Terms.FastForward, seen.Inventory.ResourceVersion = true, "7"
	seen.Inventory.Record.Source = inventory.SourceRecord{Repository: "r", Commit: "1111111111111111111111111111111111111111"}
	boom := errors.New("boom")
	want := render.Desired{Revision: "2", Source: render.SourceID{Repository: "r", Commit: "2", Descends: func(string) (bool, error) { return false, boom }}, Objects: []render.Object{given.Wanted(t, given.ConfigMap("a"))}}
	if _, err := given.Compute(want, seen, Guarding{}.Guards()...); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}

// An approval of many prunes does not mention the rewritten branch, so it does not accept the new history.
func TestHistoryIsApprovedByName(t *testing.T) {
	const first = "1111111111111111111111111111111111111111"
	seen := given.Owning(t, "a", "b", "c", "d", "e", "f")
	seen.Terms.FastForward, seen.Inventory.ResourceVersion = true, "7"
	seen.Inventory.Record.Source = inventory.SourceRecord{Repository: "r", Commit: first}
	want := render.Desired{Revision: "2", Source: render.SourceID{Repository: "r", Commit: "2"}, Objects: []render.Object{given.Wanted(t, given.ConfigMap("a"))}}
	held := given.Computed(t, want, seen, Guarding{}.Guards()...)
	if held.Approval == nil || !slices.Equal(held.Approval.Guards, []plan.GuardName{draft.History, Many}) || held.Steps[1].Guard != Many {
		t.Fatalf("the guard that names the greater trouble comes first, and both are approved at once: %+v", held.Approval)
	}
	seen.Approvals = approval.Given{inventory.InComment: nil}
	for _, c := range held.Approval.Claims {
		if c.Guard == string(Many) {
			seen.Approvals[inventory.InComment] = append(seen.Approvals[inventory.InComment], approval.Typed(c.Digest())...)
		}
	}
	p := given.Computed(t, want, seen, Guarding{}.Guards()...)
	if got := record.Intent(p, seen.Inventory).Record.Source.Commit; p.Count(plan.Prune) != 0 || got != first {
		t.Errorf("only many prunes are approved: %d prunes, %s is recorded", p.Count(plan.Prune), got)
	}
	seen.Approvals = approval.Given{inventory.OnSync: approval.UpTo(held.Approval.UpTo, held.Approval.Digest)}
	p = given.Computed(t, want, seen, Guarding{}.Guards()...)
	if got := record.Intent(p, seen.Inventory).Record.Source.Commit; p.Count(plan.Prune) != 5 || got != "2" {
		t.Errorf("everything is approved: %d prunes, %s is recorded", p.Count(plan.Prune), got)
	}
}

// A rewritten branch must not renew a used approval by omitting it for one pass.
func TestHistoryKeepsUsedApprovals(t *testing.T) {
	const digest = "dddddddddddddddddddddddddddddddd"
	seen := given.Owning(t, "a")
	seen.Terms.FastForward, seen.Inventory.ResourceVersion = true, "7"
	seen.Inventory.Record.Source = inventory.SourceRecord{Repository: "r", Commit: "1111111111111111111111111111111111111111"}
	seen.Inventory.Grants = []inventory.Grant{{Digest: digest, Commit: "1", Given: true, On: []inventory.ApprovalPlace{inventory.InGit}}}
	want := render.Desired{Revision: "2", Source: render.SourceID{Repository: "r", Commit: "2"}, Objects: []render.Object{given.Wanted(t, given.ConfigMap("a"))}}
	p := given.Computed(t, want, seen, Guarding{}.Guards()...)
	grants := record.Intent(p, seen.Inventory).Grants
	if len(grants) != 1 || len(grants[0].On) != 1 {
		t.Errorf("the file of a rewritten branch was taken for the file without the entry: %+v", grants)
	}
}

package guard

import (
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An approval on a pull request counts like one in Git: for the listed steps, once, and with the person's name in the record.
func TestApprovedOnForge(t *testing.T) {
	five := []string{"a", "b", "c", "d", "e"}
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	desired := func(revision string) render.Desired {
		return render.Desired{Revision: revision, Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}}
	}
	owning := func(names ...string) facts.Observed {
		seen := given.Owning(t, append(slices.Clone(names), "keep")...)
		seen.Now = now
		return seen
	}
	guards := Guarding{}.Guards()
	holding := given.Computed(t, desired("1"), owning(five...), guards...)
	var each []string
	for _, s := range holding.Steps {
		if s.Action == plan.Hold {
			each = append(each, s.Approval().Digest)
		}
	}
	whole := approval.DigestOf(each)
	if whole != holding.Approval.Digest {
		t.Fatalf("the digest of a report is that of its steps: %s, %s", whole, holding.Approval.Digest)
	}
	on := func(expires metav1.Time) approval.Given {
		return approval.Given{
			inventory.InComment: {{ID: "comment 7", Digests: append([]string{whole}, each...), By: "@bob", Expires: expires}}, inventory.InReview: nil,
		}
	}
	answered := func(revision string, given approval.Given) question.Answers {
		return question.Answers{question.Approvals{Revision: revision}: given}
	}
	valid := metav1.NewTime(now.Add(time.Hour))
	seen := owning(five...)
	seen.Answers = answered("1", on(valid))
	p := given.Computed(t, desired("1"), seen, guards...)
	if p.Count(plan.Prune) != 5 {
		t.Errorf("%d prunes: the preview and this cluster hold the same", p.Count(plan.Prune))
	}
	grants := record.Intent(p, seen.Inventory).Grants
	if len(grants) != 1 || grants[0].By != "@bob" || !slices.Equal(grants[0].How, []inventory.ApprovalPlace{inventory.InComment}) || grants[0].Commit != "1" || !grants[0].At.Equal(&now) || grants[0].Digest != whole {
		t.Errorf("the record: %+v", grants)
	}

	fewer := owning("a", "b", "c", "d")
	fewer.Answers = answered("2", on(valid))
	other := given.Computed(t, desired("2"), fewer, guards...)
	if other.Count(plan.Prune) != 4 {
		t.Errorf("%d prunes: another cluster never had e", other.Count(plan.Prune))
	}
	recorded := record.Intent(other, fewer.Inventory).Grants

	expired := owning(five...)
	expired.Answers = answered("1", on(now))
	if p := given.Computed(t, desired("1"), expired, guards...); p.Count(plan.Hold) != 5 {
		t.Errorf("%d holds after seven days", p.Count(plan.Hold))
	}

	for i := range recorded {
		recorded[i].Left = nil // the steps were executed
	}
	again := owning("a", "b", "c", "d")
	again.Answers, again.Inventory.Grants = answered("3", on(valid)), recorded
	if p := given.Computed(t, desired("3"), again, guards...); p.Count(plan.Hold) != 4 {
		t.Errorf("%d holds: an approval counts once", p.Count(plan.Hold))
	}
	again = owning(five...)
	again.Answers, again.Inventory.Grants = answered("3", on(valid)), recorded
	if p := given.Computed(t, desired("3"), again, guards...); p.Count(plan.Hold) != 5 {
		t.Errorf("%d holds: a part of the comment was used, and so the whole", p.Count(plan.Hold))
	}
	// Somebody reverts the commit, and later removes the same objects with a plain push.
	for i := range grants {
		grants[i].Left = nil
	}
	again = owning(five...)
	again.Answers, again.Inventory.Grants = answered("4", on(valid)), grants
	if p := given.Computed(t, desired("4"), again, guards...); p.Count(plan.Hold) != 5 {
		t.Errorf("%d holds: the comment was used", p.Count(plan.Hold))
	}
	another := on(valid)
	another[inventory.InComment][0].ID = "comment 8"
	again.Answers = answered("4", another)
	if p := given.Computed(t, desired("4"), again, guards...); p.Count(plan.Prune) != 5 {
		t.Errorf("%d prunes: a person approved it again", p.Count(plan.Prune))
	}

	unread := owning("a", "b", "c", "d")
	unread.Inventory.Grants = recorded
	for _, g := range record.Intent(given.Computed(t, desired("3"), unread, guards...), unread.Inventory).Grants {
		if !g.Given {
			t.Errorf("a pass that did not ask the forge forgets %+v", g)
		}
	}
	unread.Now = metav1.NewTime(now.Add(9 * 24 * time.Hour))
	for _, g := range record.Intent(given.Computed(t, desired("3"), unread, guards...), unread.Inventory).Grants {
		if g.Given {
			t.Errorf("it has expired on the forge, and would be remembered for ever: %+v", g)
		}
	}

	lost := owning(five...)
	lost.Inventory.ResourceVersion, lost.Inventory.Rebuilt, lost.Answers = "", true, answered("1", on(valid))
	if p := given.Computed(t, desired("1"), lost, guards...); p.Count(plan.Prune) != 0 {
		t.Errorf("%d prunes: an inventory that was lost may have used it", p.Count(plan.Prune))
	}
}

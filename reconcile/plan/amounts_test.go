package plan

import (
	"testing"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"
)

// A package breaks several definitions. The approver is asked about all of their objects, not about those of one definition.
func TestAmountOfEffects(t *testing.T) {
	effects := []Effect{{On: obj("a"), Change: &Step{}}, {On: obj("b"), Change: &Step{}}}
	counts := []Ruling{
		{Severity: Block, Reason: Failed.With("a"), Cause: "breaks", Amount: approval.Count(2)},
		{Severity: Block, Reason: Failed.With("b"), Cause: "breaks", Amount: approval.Count(3)},
	}
	next := func(rulings []Ruling) func(Step) Ruling {
		i := -1
		return func(Step) Ruling { i++; return rulings[i] }
	}
	if all := onAll(effects, next(counts)); all.Amount != approval.Count(5) || all.Cause != "breaks" {
		t.Errorf("%s %s", all.Cause, all.Amount)
	}
	counts[1].Cause, counts[1].Amount = approval.Uncounted, approval.Amount{}
	if all := onAll(effects, next(counts)); all.Cause != approval.Uncounted {
		t.Errorf("what is counted hides what is not: %s %s", all.Cause, all.Amount)
	}
}

// A guard counts what the others let pass. Once an approval lets more pass, the amount is larger than a person saw.
func TestAmountGrowsWithApprovals(t *testing.T) {
	asks := Guard{Name: "asks", Phase: Writes, Approvable: true, Rule: Each(func(s Step, _ Case) Ruling {
		return map[bool]Ruling{s.ID.Name == "a": {Severity: Block}}[true]
	})}
	counts := Guard{Name: "counts", Phase: Writes, Approvable: true, Counts: true, Rule: func(c Case) func(Step) Ruling {
		passing := 0
		for _, s := range c.Steps {
			if s.Action == Create {
				passing++
			}
		}
		return func(s Step) Ruling {
			return map[bool]Ruling{s.ID.Name == "b": {Severity: Block, Amount: approval.Count(passing)}}[true]
		}
	}}
	a, b := Step{ID: obj("a"), Action: Create}, Step{ID: obj("b"), Action: Create}
	for upTo, want := range map[int]Action{1: Hold, 2: Create} {
		given := approval.Given{inventory.InGit: {{ID: "entry", UpTo: upTo, Digests: []string{a.claim("asks", "").Digest(), b.claim("counts", "").Digest()}}}}
		p := drafted{Plan: Plan{Steps: []Step{a, b}, Approvals: Approvals{Given: given}}}
		p.guard(Observed{Approvals: given, Inventory: inventory.Inventory{ResourceVersion: "1"}}, []Guard{asks, counts})
		if p.Steps[0].Action != Create || p.Steps[1].Action != want {
			t.Errorf("up to %d: %s and %s", upTo, p.Steps[0].Action, p.Steps[1].Action)
		}
	}
}

// A claim that an approval let pass is over once its object is as wanted, or wanted otherwise. A process may have carried it out and
// died before it stored that. What is left for later stays.
func TestClaimsEnd(t *testing.T) {
	id := obj("a")
	claim := func(action Action, wants string) string {
		return approval.Left(Step{ID: id, Action: action, Write: Write{Wants: wants}}.claim("asks", "").Key(), approval.Count(2))
	}
	for _, tc := range []struct {
		reason string
		now    Step
		left   string
		stays  bool
	}{
		{"The object is as wanted.", Step{Action: Keep, Write: Write{Wants: "1"}}, claim(Update, "1"), false},
		{"The object is kept on purpose.", Step{Action: Keep, Cause: Retain, Write: Write{Wants: "1"}}, claim(Prune, ""), true},
		{"The update waits.", Step{Action: Update, Write: Write{Wants: "1"}}, claim(Update, "1"), true},
		{"The update is held again.", Step{Action: Hold, Would: Update, Write: Write{Wants: "1"}}, claim(Update, "1"), true},
		{"The create follows the update that freed the object.", Step{Action: Create, Write: Write{Wants: "1"}}, claim(Update, "1"), true},
		{"The commit wants other content.", Step{Action: Update, Write: Write{Wants: "2"}}, claim(Update, "1"), false},
		{"The commit wants the object again.", Step{Action: Create, Write: Write{Wants: "1"}}, claim(Prune, ""), false},
		{"The commit does not want the object any more.", Step{Action: Prune}, claim(Update, "1"), false},
		{"The prune waits.", Step{Action: Hold, Would: Prune}, claim(Prune, ""), true},
		{"The deactivation has several phases.", Step{Action: Update, Deactivates: true, Write: Write{Wants: "2"}}, claim(Update, "1"), true},
	} {
		tc.now.ID = id
		got := Plan{Steps: []Step{tc.now}}.current([]inventory.Grant{{Digest: "d", Left: []string{tc.left}}})
		if stays := len(got[0].Left) == 1; stays != tc.stays {
			t.Errorf("%s The claim stays: %t", tc.reason, stays)
		}
	}
	other := Step{ID: manifest.ID{Kind: "ConfigMap", Name: "other"}, Action: Update, Write: Write{Wants: "2"}}
	if got := (Plan{Steps: []Step{other}}).current([]inventory.Grant{{Left: []string{claim(Update, "1")}}}); len(got[0].Left) != 1 {
		t.Error("another object ends the claim")
	}
}

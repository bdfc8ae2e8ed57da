package draft

import (
	"testing"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render/manifest"
)

// A package breaks several definitions. The approver is asked about all of their objects, not about those of one definition.
func TestAmountOfEffects(t *testing.T) {
	effects := []plan.Effect{{On: obj("a"), Change: &plan.Step{}}, {On: obj("b"), Change: &plan.Step{}}}
	counts := []plan.Ruling{
		{Judged: plan.Judged{Severity: plan.Block, Reason: reason.Failed.With("a"), Cause: "breaks", Amount: approval.Count(2)}},
		{Judged: plan.Judged{Severity: plan.Block, Reason: reason.Failed.With("b"), Cause: "breaks", Amount: approval.Count(3)}},
	}
	next := func(rulings []plan.Ruling) func(plan.Step) plan.Ruling {
		i := -1
		return func(plan.Step) plan.Ruling { i++; return rulings[i] }
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
	asks := Guard{Name: "asks", Phase: Writes, Approvable: true, Rule: Each(func(s plan.Step, _ Case) plan.Ruling {
		return map[bool]plan.Ruling{s.ID.Name == "a": {Judged: plan.Judged{Severity: plan.Block}}}[true]
	})}
	counts := Guard{Name: "counts", Phase: Writes, Approvable: true, Counts: true, Rule: func(c Case) func(plan.Step) plan.Ruling {
		passing := 0
		for _, s := range c.Steps {
			if s.Action == plan.Create {
				passing++
			}
		}
		return func(s plan.Step) plan.Ruling {
			return map[bool]plan.Ruling{s.ID.Name == "b": {Judged: plan.Judged{Severity: plan.Block, Amount: approval.Count(passing)}}}[true]
		}
	}}
	a, b := plan.Step{ID: obj("a"), Action: plan.Create}, plan.Step{ID: obj("b"), Action: plan.Create}
	for upTo, want := range map[int]plan.Action{1: plan.Hold, 2: plan.Create} {
		given := approval.Given{inventory.InGit: {{ID: "entry", UpTo: upTo, Digests: []string{a.Claim("asks", "").Digest(), b.Claim("counts", "").Digest()}}}}
		p := drafted{Plan: plan.Plan{Steps: []plan.Step{a, b}, Approvals: plan.Approvals{Given: given}}}
		p.guard(facts.Observed{Given: facts.Given{Approvals: given}, Ground: facts.Ground{Inventory: inventory.Inventory{ResourceVersion: "1"}}}, []Guard{asks, counts})
		if p.Steps[0].Action != plan.Create || p.Steps[1].Action != want {
			t.Errorf("up to %d: %s and %s", upTo, p.Steps[0].Action, p.Steps[1].Action)
		}
	}
}

// A claim that an approval let pass is over once its object is as wanted, or wanted otherwise. A process may have carried it out and
// died before it stored that. What is left for later stays.
func TestClaimsEnd(t *testing.T) {
	id := obj("a")
	claim := func(action plan.Action, wants string) string {
		return approval.Left(plan.Step{ID: id, Action: action, Write: plan.Write{Wants: wants}}.Claim("asks", "").Key(), approval.Count(2))
	}
	for _, tc := range []struct {
		reason string
		now    plan.Step
		left   string
		stays  bool
	}{
		{"The object is as wanted.", plan.Step{Action: plan.Keep, Write: plan.Write{Wants: "1"}}, claim(plan.Update, "1"), false},
		{"The object is kept on purpose.", plan.Step{Action: plan.Keep, Cause: plan.Retain, Write: plan.Write{Wants: "1"}}, claim(plan.Prune, ""), true},
		{"The update waits.", plan.Step{Action: plan.Update, Write: plan.Write{Wants: "1"}}, claim(plan.Update, "1"), true},
		{"The update is held again.", plan.Step{Action: plan.Hold, Would: plan.Update, Write: plan.Write{Wants: "1"}}, claim(plan.Update, "1"), true},
		{"The create follows the update that freed the object.", plan.Step{Action: plan.Create, Write: plan.Write{Wants: "1"}}, claim(plan.Update, "1"), true},
		{"The commit wants other content.", plan.Step{Action: plan.Update, Write: plan.Write{Wants: "2"}}, claim(plan.Update, "1"), false},
		{"The commit wants the object again.", plan.Step{Action: plan.Create, Write: plan.Write{Wants: "1"}}, claim(plan.Prune, ""), false},
		{"The commit does not want the object any more.", plan.Step{Action: plan.Prune}, claim(plan.Update, "1"), false},
		{"The prune waits.", plan.Step{Action: plan.Hold, Would: plan.Prune}, claim(plan.Prune, ""), true},
		{"The deactivation has several phases.", plan.Step{Action: plan.Update, Deactivates: true, Write: plan.Write{Wants: "2"}}, claim(plan.Update, "1"), true},
	} {
		tc.now.ID = id
		got := record.Current(plan.Plan{Steps: []plan.Step{tc.now}}, []inventory.Grant{{Digest: "d", Left: []string{tc.left}}})
		if stays := len(got[0].Left) == 1; stays != tc.stays {
			t.Errorf("%s The claim stays: %t", tc.reason, stays)
		}
	}
	other := plan.Step{ID: manifest.ID{Kind: "ConfigMap", Name: "other"}, Action: plan.Update, Write: plan.Write{Wants: "2"}}
	if got := record.Current((plan.Plan{Steps: []plan.Step{other}}), []inventory.Grant{{Left: []string{claim(plan.Update, "1")}}}); len(got[0].Left) != 1 {
		t.Error("another object ends the claim")
	}
}

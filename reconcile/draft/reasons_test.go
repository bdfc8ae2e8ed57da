package draft

import (
	"maps"
	"slices"
	"testing"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Every pair of guards on one step: both reasons are shown, and an approval past one of them does not lift the other.
func TestPairsOfGuards(t *testing.T) {
	guard := func(name plan.GuardName, phase Phase, counts, approvable bool) Guard {
		return Guard{Name: name, Phase: phase, Counts: counts, Approvable: approvable, Rule: Each(func(plan.Step, Case) plan.Ruling {
			return plan.Ruling{Judged: plan.Judged{Severity: plan.Block, Reason: reason.Failed.With(string(name))}}
		})}
	}
	for _, action := range []plan.Action{plan.Create, plan.Update, plan.Prune} {
		phase := Writes
		if action == plan.Prune {
			phase = Prunes
		}
		for _, counts := range [][]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
			for _, approvable := range [][]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
				guards := []Guard{guard("first", phase, counts[0], approvable[0]), guard("second", phase, counts[1], approvable[1])}
				step := plan.Step{ID: obj("a"), Action: action}
				ruled := func(approved ...plan.GuardName) (plan.Step, *plan.Approval) {
					given := approval.Given{inventory.InComment: nil}
					for _, g := range approved {
						given[inventory.InComment] = append(given[inventory.InComment], approval.Typed(step.Claim(g, "").Digest())...)
					}
					p := drafted{Plan: plan.Plan{Steps: []plan.Step{step}, Approvals: plan.Approvals{Given: given}}}
					p.guard(facts.Observed{Given: facts.Given{Approvals: given}, Ground: facts.Ground{Inventory: inventory.Inventory{ResourceVersion: "1"}}}, guards)
					return p.Steps[0], p.Approval
				}
				all := approvable[0] && approvable[1]
				none, asks := ruled()
				sees := none.IsHeldBy("first") && none.IsHeldBy("second")
				if counted := counts[0] || counts[1]; !sees && (all || !counted) {
					t.Errorf("%s, counts %t, approvable %t: the step shows only %s", action, counts, approvable, none.Why())
				}
				if all != (asks != nil && len(asks.Guards) == 2) {
					t.Errorf("%s, counts %t, approvable %t: the plan asks for %+v", action, counts, approvable, asks)
				}
				if one, _ := ruled("first"); one.Action != plan.Hold || all && (one.IsHeldBy("first") || !one.IsHeldBy("second")) {
					t.Errorf("%s, counts %t, approvable %t: approved past the first: %s by %s", action, counts, approvable, one.Action, one.Why())
				}
				if one, _ := ruled("second"); one.Action != plan.Hold || all && (!one.IsHeldBy("first") || one.IsHeldBy("second")) {
					t.Errorf("%s, counts %t, approvable %t: approved past the second: %s by %s", action, counts, approvable, one.Action, one.Why())
				}
				if both, asks := ruled("first", "second"); (both.Action == action) != all || all && (asks != nil || !both.Approved || len(both.Claims()) != 2) {
					t.Errorf("%s, counts %t, approvable %t: approved past both: %s by %s", action, counts, approvable, both.Action, both.Why())
				}
			}
		}
	}
}

// A guard that keeps a step decides, unless an earlier one holds it.
func TestHoldThenKeep(t *testing.T) {
	rules := func(name plan.GuardName, r plan.Ruling) Guard {
		r.Reason = reason.Failed.With(string(name))
		return Guard{Name: name, Phase: Prunes, Approvable: true, Rule: Each(func(plan.Step, Case) plan.Ruling { return r })}
	}
	keeps, holds, reports := rules("keeps", plan.Ruling{Judged: plan.Judged{Answer: plan.Retained}}), rules("holds", plan.Ruling{Judged: plan.Judged{Severity: plan.Block}}), rules("reports", plan.Ruling{Judged: plan.Judged{Answer: plan.Reported}})
	step := plan.Step{ID: obj("a"), Action: plan.Prune}
	for _, tc := range []struct {
		guards   []Guard
		approved []plan.GuardName
		want     map[plan.Action]plan.GuardName
	}{
		{[]Guard{keeps, holds}, nil, map[plan.Action]plan.GuardName{plan.Keep: "keeps"}},
		{[]Guard{holds, keeps}, nil, map[plan.Action]plan.GuardName{plan.Hold: "holds"}},
		{[]Guard{holds, keeps}, []plan.GuardName{"holds"}, map[plan.Action]plan.GuardName{plan.Keep: "keeps"}},
		{[]Guard{holds, reports}, []plan.GuardName{"holds"}, map[plan.Action]plan.GuardName{plan.Keep: "reports"}},
	} {
		given := approval.Given{inventory.InComment: nil}
		for _, g := range tc.approved {
			given[inventory.InComment] = append(given[inventory.InComment], approval.Typed(step.Claim(g, "").Digest())...)
		}
		p := drafted{Plan: plan.Plan{Steps: []plan.Step{step}, Approvals: plan.Approvals{Given: given}}}
		p.guard(facts.Observed{Given: facts.Given{Approvals: given}, Ground: facts.Ground{Inventory: inventory.Inventory{ResourceVersion: "1"}}}, tc.guards)
		if got := (map[plan.Action]plan.GuardName{p.Steps[0].Action: p.Steps[0].Guard}); !maps.Equal(got, tc.want) || p.Steps[0].Approved {
			t.Errorf("got %v, want %v", got, tc.want)
		}
	}
}

// The digest of a step with several reasons approves each of them.
func TestDigestOfAStep(t *testing.T) {
	step := plan.Step{ID: obj("a"), Action: plan.Hold, Would: plan.Prune, Judged: plan.Judged{Guard: "first", Severity: plan.Block}, Also: []plan.Ruling{{Judged: plan.Judged{Guard: "second", Severity: plan.Block}}, {Judged: plan.Judged{Guard: "second", Severity: plan.Block}}}}
	if len(step.ClaimsHeld()) != 2 || slices.Contains([]string{step.ClaimsHeld()[0].Digest(), step.ClaimsHeld()[1].Digest()}, step.Approval().Digest) {
		t.Errorf("%v", step.ClaimsHeld())
	}
	given := approval.Given{inventory.InGit: approval.Typed(step.Approval().Digest)}
	p := drafted{Plan: plan.Plan{Steps: []plan.Step{step, {ID: obj("b"), Action: plan.Hold, Would: plan.Prune, Judged: plan.Judged{Guard: "first", Severity: plan.Block}}}, Approvals: plan.Approvals{Given: given}}}
	seen := facts.Observed{Given: facts.Given{Approvals: given}, Ground: facts.Ground{Inventory: inventory.Inventory{ResourceVersion: "1"}}}
	approved, _ := p.approve(seen, p.ledger(seen), []Guard{{Name: "first", Approvable: true}, {Name: "second", Approvable: true}})
	if len(approved) != 2 || p.Approval == nil || p.Approval.Steps != 1 {
		t.Errorf("approved %v, and asks for %+v", approved, p.Approval)
	}
}

// Only an approval past the guard history accepts a rewritten branch, and only if it covers each step that the guard holds.
func TestApprovedHistory(t *testing.T) {
	holds := func(name plan.GuardName, of ...string) Guard {
		return Guard{Name: name, Phase: Prunes, Approvable: true, Rule: Each(func(s plan.Step, _ Case) plan.Ruling {
			return map[bool]plan.Ruling{slices.Contains(of, s.ID.Name): {Judged: plan.Judged{Severity: plan.Block}}}[true]
		})}
	}
	a, b := plan.Step{ID: obj("a"), Action: plan.Prune}, plan.Step{ID: obj("b"), Action: plan.Prune}
	for _, tc := range []struct {
		reason    string
		approved  []string
		rewritten bool
	}{
		{"Nothing is approved.", nil, true},
		{"The approval is for another reason.", []string{b.Claim("many", "").Digest()}, true},
		{"One of two is approved.", []string{a.Claim(History, "").Digest()}, true},
		{"Both are approved.", []string{a.Claim(History, "").Digest(), b.Claim(History, "").Digest()}, false},
	} {
		given := approval.Given{inventory.InComment: approval.Typed(tc.approved...)}
		p := drafted{Plan: plan.Plan{Steps: []plan.Step{a, b}, Approvals: plan.Approvals{Given: given}, Memory: plan.Memory{Rewritten: true}}}
		guards := []Guard{holds(History, "a", "b"), holds("many", "b")}
		if tc.reason == "The approval is for another reason." {
			guards[0] = holds(History)
		}
		p.guard(facts.Observed{Given: facts.Given{Approvals: given}, Ground: facts.Ground{Inventory: inventory.Inventory{ResourceVersion: "1"}}}, guards)
		if p.Rewritten != tc.rewritten {
			t.Errorf("%s The branch still counts as rewritten: %t", tc.reason, p.Rewritten)
		}
	}
}

// An approval that has expired never deletes anything.
func TestExpiredApprovalOfAPrune(t *testing.T) {
	now := metav1.Unix(1_800_000_000, 0)
	for _, tc := range []struct {
		action  plan.Action
		expires metav1.Time
		counts  bool
	}{
		{plan.Create, metav1.Unix(1_700_000_000, 0), true},
		{plan.Update, metav1.Unix(1_700_000_000, 0), true},
		{plan.Prune, metav1.Unix(1_700_000_000, 0), false},
		{plan.Prune, metav1.Unix(1_900_000_000, 0), true},
	} {
		s := plan.Step{ID: obj("a"), Action: plan.Hold, Would: tc.action, Judged: plan.Judged{Guard: "asks", Severity: plan.Block}}
		for _, digest := range []string{s.Approval().Digest, s.ClaimsHeld()[0].Digest()} {
			seen := facts.Observed{Given: facts.Given{Now: now, Approvals: approval.Given{inventory.InGit: {{ID: "e", Digests: []string{digest}, Expires: tc.expires}}}}, Standing: facts.Standing{First: true}}
			p := drafted{Plan: plan.Plan{Steps: []plan.Step{s}}}
			if approved, _ := p.approve(seen, p.ledger(seen), []Guard{{Name: "asks", Approvable: true}}); (len(approved) == 1) != tc.counts {
				t.Errorf("%s, expires %s: it counts: %t", tc.action, tc.expires, len(approved) == 1)
			}
		}
	}
}

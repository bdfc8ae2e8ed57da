package plan

import (
	"maps"
	"slices"
	"testing"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Every pair of guards on one step: both reasons are shown, and an approval past one of them does not lift the other.
func TestPairsOfGuards(t *testing.T) {
	guard := func(name GuardName, phase Phase, counts, approvable bool) Guard {
		return Guard{Name: name, Phase: phase, Counts: counts, Approvable: approvable, Rule: Each(func(Step, Case) Ruling {
			return Ruling{Severity: Block, Reason: Failed.With(string(name))}
		})}
	}
	for _, action := range []Action{Create, Update, Prune} {
		phase := Writes
		if action == Prune {
			phase = Prunes
		}
		for _, counts := range [][]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
			for _, approvable := range [][]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
				guards := []Guard{guard("first", phase, counts[0], approvable[0]), guard("second", phase, counts[1], approvable[1])}
				step := Step{ID: obj("a"), Action: action}
				ruled := func(approved ...GuardName) (Step, *Approval) {
					given := approval.Given{inventory.InComment: nil}
					for _, g := range approved {
						given[inventory.InComment] = append(given[inventory.InComment], approval.Typed(step.claim(g, "").Digest())...)
					}
					p := drafted{Plan: Plan{Steps: []Step{step}, Approvals: Approvals{Given: given}}}
					p.guard(Observed{Approvals: given, Inventory: inventory.Inventory{ResourceVersion: "1"}}, guards)
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
				if one, _ := ruled("first"); one.Action != Hold || all && (one.IsHeldBy("first") || !one.IsHeldBy("second")) {
					t.Errorf("%s, counts %t, approvable %t: approved past the first: %s by %s", action, counts, approvable, one.Action, one.Why())
				}
				if one, _ := ruled("second"); one.Action != Hold || all && (!one.IsHeldBy("first") || one.IsHeldBy("second")) {
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
	rules := func(name GuardName, r Ruling) Guard {
		r.Reason = Failed.With(string(name))
		return Guard{Name: name, Phase: Prunes, Approvable: true, Rule: Each(func(Step, Case) Ruling { return r })}
	}
	keeps, holds, reports := rules("keeps", Ruling{Answer: Retained}), rules("holds", Ruling{Severity: Block}), rules("reports", Ruling{Answer: Reported})
	step := Step{ID: obj("a"), Action: Prune}
	for _, tc := range []struct {
		guards   []Guard
		approved []GuardName
		want     map[Action]GuardName
	}{
		{[]Guard{keeps, holds}, nil, map[Action]GuardName{Keep: "keeps"}},
		{[]Guard{holds, keeps}, nil, map[Action]GuardName{Hold: "holds"}},
		{[]Guard{holds, keeps}, []GuardName{"holds"}, map[Action]GuardName{Keep: "keeps"}},
		{[]Guard{holds, reports}, []GuardName{"holds"}, map[Action]GuardName{Keep: "reports"}},
	} {
		given := approval.Given{inventory.InComment: nil}
		for _, g := range tc.approved {
			given[inventory.InComment] = append(given[inventory.InComment], approval.Typed(step.claim(g, "").Digest())...)
		}
		p := drafted{Plan: Plan{Steps: []Step{step}, Approvals: Approvals{Given: given}}}
		p.guard(Observed{Approvals: given, Inventory: inventory.Inventory{ResourceVersion: "1"}}, tc.guards)
		if got := (map[Action]GuardName{p.Steps[0].Action: p.Steps[0].Guard}); !maps.Equal(got, tc.want) || p.Steps[0].Approved {
			t.Errorf("got %v, want %v", got, tc.want)
		}
	}
}

// The digest of a step with several reasons approves each of them.
func TestDigestOfAStep(t *testing.T) {
	step := Step{ID: obj("a"), Action: Hold, Would: Prune, Guard: "first", Also: []Ruling{{Guard: "second", Severity: Block}, {Guard: "second", Severity: Block}}}
	if len(step.claims()) != 2 || slices.Contains([]string{step.claims()[0].Digest(), step.claims()[1].Digest()}, step.Approval().Digest) {
		t.Errorf("%v", step.claims())
	}
	given := approval.Given{inventory.InGit: approval.Typed(step.Approval().Digest)}
	p := drafted{Plan: Plan{Steps: []Step{step, {ID: obj("b"), Action: Hold, Would: Prune, Guard: "first"}}, Approvals: Approvals{Given: given}}}
	seen := Observed{Approvals: given, Inventory: inventory.Inventory{ResourceVersion: "1"}}
	approved, _ := p.approve(seen, p.ledger(seen), []Guard{{Name: "first", Approvable: true}, {Name: "second", Approvable: true}})
	if len(approved) != 2 || p.Approval == nil || p.Approval.Steps != 1 {
		t.Errorf("approved %v, and asks for %+v", approved, p.Approval)
	}
}

// Only an approval past the guard history accepts a rewritten branch, and only if it covers each step that the guard holds.
func TestApprovedHistory(t *testing.T) {
	holds := func(name GuardName, of ...string) Guard {
		return Guard{Name: name, Phase: Prunes, Approvable: true, Rule: Each(func(s Step, _ Case) Ruling {
			return map[bool]Ruling{slices.Contains(of, s.ID.Name): {Severity: Block}}[true]
		})}
	}
	a, b := Step{ID: obj("a"), Action: Prune}, Step{ID: obj("b"), Action: Prune}
	for _, tc := range []struct {
		reason    string
		approved  []string
		rewritten bool
	}{
		{"Nothing is approved.", nil, true},
		{"The approval is for another reason.", []string{b.claim("many", "").Digest()}, true},
		{"One of two is approved.", []string{a.claim(History, "").Digest()}, true},
		{"Both are approved.", []string{a.claim(History, "").Digest(), b.claim(History, "").Digest()}, false},
	} {
		given := approval.Given{inventory.InComment: approval.Typed(tc.approved...)}
		p := drafted{Plan: Plan{Steps: []Step{a, b}, Approvals: Approvals{Given: given}, Memory: Memory{Rewritten: true}}}
		guards := []Guard{holds(History, "a", "b"), holds("many", "b")}
		if tc.reason == "The approval is for another reason." {
			guards[0] = holds(History)
		}
		p.guard(Observed{Approvals: given, Inventory: inventory.Inventory{ResourceVersion: "1"}}, guards)
		if p.Rewritten != tc.rewritten {
			t.Errorf("%s The branch still counts as rewritten: %t", tc.reason, p.Rewritten)
		}
	}
}

// An approval that has expired never deletes anything.
func TestExpiredApprovalOfAPrune(t *testing.T) {
	now := metav1.Unix(1_800_000_000, 0)
	for _, tc := range []struct {
		action  Action
		expires metav1.Time
		counts  bool
	}{
		{Create, metav1.Unix(1_700_000_000, 0), true},
		{Update, metav1.Unix(1_700_000_000, 0), true},
		{Prune, metav1.Unix(1_700_000_000, 0), false},
		{Prune, metav1.Unix(1_900_000_000, 0), true},
	} {
		s := Step{ID: obj("a"), Action: Hold, Would: tc.action, Guard: "asks"}
		for _, digest := range []string{s.Approval().Digest, s.claims()[0].Digest()} {
			seen := Observed{Now: now, first: true, Approvals: approval.Given{inventory.InGit: {{ID: "e", Digests: []string{digest}, Expires: tc.expires}}}}
			p := drafted{Plan: Plan{Steps: []Step{s}}}
			if approved, _ := p.approve(seen, p.ledger(seen), []Guard{{Name: "asks", Approvable: true}}); (len(approved) == 1) != tc.counts {
				t.Errorf("%s, expires %s: it counts: %t", tc.action, tc.expires, len(approved) == 1)
			}
		}
	}
}

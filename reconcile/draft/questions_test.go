package draft

import (
	"testing"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
)

// While an approval lets a step pass, the questions that were asked before the guards stay open.
func TestApprovalsKeepQuestions(t *testing.T) {
	asks := Guard{Name: "asks", Phase: Writes, Approvable: true, Rule: Each(func(s plan.Step, c Case) plan.Ruling {
		question.Get(c.Seen.Known(), question.Stored{Of: s.ID})
		return plan.Ruling{Judged: plan.Judged{Answer: plan.Held}}
	})}
	a := plan.Step{ID: obj("a"), Action: plan.Create}
	given := approval.Given{inventory.InGit: {{ID: "entry", Digests: []string{a.Claim("asks", "").Digest()}}}}
	open := []question.Any{question.AppliedBefore{Of: obj("b")}}
	p := drafted{Plan: plan.Plan{Steps: []plan.Step{a}, Approvals: plan.Approvals{Given: given}}}
	p.guard(facts.Observed{Given: facts.Given{Approvals: given}, Ground: facts.Ground{Inventory: inventory.Inventory{ResourceVersion: "1"}}, Asks: &open}, []Guard{asks})
	if p.Steps[0].Action != plan.Create || question.Text(open) != "applied before of ConfigMap d/b, stored of ConfigMap d/a" {
		t.Errorf("%s; open: %s", p.Steps[0].Action, question.Text(open))
	}
}

// A guard that rules on what a step will be once a person has approved it may ask, too. Without the answer, one more approval would be
// asked for than is needed.
func TestForeseenGuardsAsk(t *testing.T) {
	holds := Guard{Name: "holds", Phase: Writes, Approvable: true, Rule: Each(func(plan.Step, Case) plan.Ruling { return plan.Ruling{Judged: plan.Judged{Severity: plan.Block}} })}
	counts := Guard{Name: "counts", Phase: Writes, Approvable: true, Counts: true, Rule: Each(func(s plan.Step, c Case) plan.Ruling {
		if ready, _ := question.Get(c.Seen.Known(), question.Ready{Of: s.ID}); ready.Exists {
			return plan.Ruling{}
		}
		return plan.Ruling{Judged: plan.Judged{Severity: plan.Block}}
	})}
	a := plan.Step{ID: obj("a"), Action: plan.Create}
	for _, tc := range []struct {
		answers question.Answers
		open    string
		claims  int
	}{
		{nil, "ready of ConfigMap d/a", 2},
		{question.Answers{question.Ready{Of: a.ID}: question.Readiness{Exists: true}}, "", 1},
	} {
		p := drafted{Plan: plan.Plan{Steps: []plan.Step{a}}}
		var open []question.Any
		p.guard(facts.Observed{Answers: tc.answers, Asks: &open}, []Guard{holds, counts})
		if got := question.Text(open); got != tc.open || p.Approval == nil || len(p.Approval.Claims) != tc.claims {
			t.Errorf("open: %q, and a person is asked for %+v; want %q and %d claims", got, p.Approval, tc.open, tc.claims)
		}
	}
}

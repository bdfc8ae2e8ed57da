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
		return plan.Ruling{Answer: plan.Held}
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

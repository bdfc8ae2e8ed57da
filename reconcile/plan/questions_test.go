package plan

import (
	"testing"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/question"
)

// While an approval lets a step pass, the questions that were asked before the guards stay open.
func TestApprovalsKeepQuestions(t *testing.T) {
	asks := Guard{Name: "asks", Phase: Writes, Approvable: true, Rule: Each(func(s Step, c Case) Ruling {
		question.Get(c.Seen.Known(), question.Stored{Of: s.ID})
		return Ruling{Answer: Held}
	})}
	a := Step{ID: obj("a"), Action: Create}
	given := approval.Given{inventory.InGit: {{ID: "entry", Digests: []string{a.claim("asks", "").Digest()}}}}
	open := []question.Any{question.AppliedBefore{Of: obj("b")}}
	p := drafted{Plan: Plan{Steps: []Step{a}, Approvals: Approvals{Given: given}}}
	p.guard(Observed{Approvals: given, Inventory: inventory.Inventory{ResourceVersion: "1"}, asks: &open}, []Guard{asks})
	if p.Steps[0].Action != Create || question.Text(open) != "applied before of ConfigMap d/b, stored of ConfigMap d/a" {
		t.Errorf("%s; open: %s", p.Steps[0].Action, question.Text(open))
	}
}

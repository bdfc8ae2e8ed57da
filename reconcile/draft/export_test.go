package draft

import (
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// These functions export what package draft_test calls.

func RuleOn(p *plan.Plan, seen facts.Observed, guard Guard, approved []plan.Step) {
	lifted := plan.Lifting{}
	for _, s := range approved {
		lifted.Add(s.Ask(plan.Ruling{Judged: plan.Judged{Guard: guard.Name}}))
	}
	draft(p, func(d *drafted) { d.rule(seen, []Guard{guard}, lifted) })
}

func Deactivate(p *plan.Plan, seen facts.Observed) { draft(p, func(d *drafted) { d.deactivate(seen) }) }

func Unnamed(p *plan.Plan, up facts.Upstream) []string { return (&drafted{Plan: *p}).unnamed(up) }

func ClaimKey(s plan.Step, guard plan.GuardName) string { return s.Claim(guard, "").Key() }

func SettleBy(p *plan.Plan, guards []Guard) {
	draft(p, func(d *drafted) { d.settle(facts.Observed{}, guards) })
}

// draft changes a plan as Compute does while the plan is a draft.
func draft(p *plan.Plan, change func(*drafted)) {
	d := drafted{Plan: *p}
	change(&d)
	*p = d.Plan
}

func obj(name string) manifest.ID { return manifest.ID{Kind: "ConfigMap", Namespace: "d", Name: name} }

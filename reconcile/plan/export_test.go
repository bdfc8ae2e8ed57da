package plan

import (
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// These functions export what package plan_test calls.

func (o Observed) IsLost() bool                           { return o.isLost() }
func (p Pass) Resumed(now Plan, patient bool) Plan        { return p.resumed(now, patient) }
func (p Plan) Continued(before Plan, done []Outcome) Plan { return p.continued(before, done) }
func (p Plan) Fulfilled(grants []inventory.Grant, done []Outcome) []inventory.Grant {
	return p.fulfilled(grants, done)
}
func (p Plan) Grants(have []inventory.Grant) []inventory.Grant { return p.grants(have) }
func (p Plan) Leaving(s Step, live *metav1.PartialObjectMetadata, released bool) (Step, bool) {
	return p.leaving(s, live, released)
}
func (p Plan) Overdue(t Times, late map[manifest.ID]bool) Plan { return p.overdue(t, late) }
func (p Plan) Refreshed(now Plan) Plan                         { return p.refreshed(now) }
func (p Plan) Replaced(by Plan) Plan                           { return p.replaced(by, nil) }
func (p *Plan) Rule(seen Observed, guard Guard, approved []Step) {
	lifted := Lifting{}
	for _, s := range approved {
		lifted.Add(s.ask(Ruling{Guard: guard.Name}))
	}
	p.draft(func(d *drafted) { d.rule(seen, []Guard{guard}, lifted) })
}
func (p *Plan) Deactivate(seen Observed)       { p.draft(func(d *drafted) { d.deactivate(seen) }) }
func (p *Plan) Unnamed(up Upstream) []string   { return (&drafted{Plan: *p}).unnamed(up) }
func (s Step) ClaimKey(guard GuardName) string { return s.claim(guard, "").Key() }

func (p *Plan) SettleBy(guards []Guard) { p.draft(func(d *drafted) { d.settle(Observed{}, guards) }) }

// draft changes a plan as Compute does while the plan is a draft.
func (p *Plan) draft(change func(*drafted)) {
	d := drafted{Plan: *p}
	change(&d)
	*p = d.Plan
}

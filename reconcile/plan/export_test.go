package plan

import (
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What tests look at from outside.

func (b Baseline) Upgrades(a0 render.Desired) ([]Bump, []Effect) { return b.upgrades(a0) }
func (o Observed) Digest(a0 render.Object) string                { return o.digest(a0) }
func (o Observed) IsLost() bool                                  { return o.isLost() }
func (p Pass) Resumed(a0 Plan, a1 bool) Plan                     { return p.resumed(a0, a1) }
func (p Plan) Continued(a0 Plan, a1 []Outcome) Plan              { return p.continued(a0, a1) }
func (p Plan) Fulfilled(a0 []inventory.Grant, a1 []Outcome) []inventory.Grant {
	return p.fulfilled(a0, a1)
}
func (p Plan) Grants(a0 []inventory.Grant) []inventory.Grant { return p.grants(a0) }
func (p Plan) Leaving(a0 Step, a1 *metav1.PartialObjectMetadata, a2 bool) (Step, bool) {
	return p.leaving(a0, a1, a2)
}
func (p Plan) Overdue(a0 string, a1 map[manifest.ID]bool) Plan        { return p.overdue(a0, a1) }
func (p Plan) Refreshed(a0 Plan) Plan                                 { return p.refreshed(a0) }
func (p Plan) Replaced(a0 Plan) Plan                                  { return p.replaced(a0) }
func (p *Plan) Rule(a0 Observed, a1 []Guard, a2 map[manifest.ID]bool) { p.rule(a0, a1, a2) }
func (p *Plan) Deactivate(a0 Observed)                                { p.deactivate(a0) }
func (p *Plan) Unnamed(a0 Upstream) []string                          { return p.unnamed(a0) }
func (s Step) ApprovalKey() string                                    { return s.approvalKey() }

var ApprovalOf = approvalOf
var Find = find
var Get = get

var OnePlace = onePlace
var Put = put

func (p *Plan) SettleBy(guards []Guard) { p.settle(Observed{}, guards) }

package plan

import (
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What tests look at from outside.

func (x Baseline) Upgrades(a0 render.Desired) Upgrades { return x.upgrades(a0) }
func (x Observed) Digest(a0 render.Object) string      { return x.digest(a0) }
func (x Observed) IsLost() bool                        { return x.isLost() }
func (x Pass) Resumed(a0 Plan, a1 bool) Plan           { return x.resumed(a0, a1) }
func (x Plan) ComesBack(a0 string) bool                { return x.comesBack(a0) }
func (x Plan) Continued(a0 Plan, a1 []Outcome) Plan    { return x.continued(a0, a1) }
func (x Plan) Fulfilled(a0 []inventory.Grant, a1 []Outcome) []inventory.Grant {
	return x.fulfilled(a0, a1)
}
func (x Plan) Grants(a0 []inventory.Grant) []inventory.Grant { return x.grants(a0) }
func (x *Plan) KeepHomes()                                   { x.keepHomes() }
func (x Plan) Leaving(a0 Step, a1 *metav1.PartialObjectMetadata, a2 bool) (Step, bool) {
	return x.leaving(a0, a1, a2)
}
func (x Plan) Overdue(a0 string, a1 map[manifest.ID]bool) Plan        { return x.overdue(a0, a1) }
func (x Plan) Refreshed(a0 Plan) Plan                                 { return x.refreshed(a0) }
func (x Plan) Replaced(a0 Plan) Plan                                  { return x.replaced(a0) }
func (x *Plan) Rule(a0 Observed, a1 []Guard, a2 map[manifest.ID]bool) { x.rule(a0, a1, a2) }
func (x *Plan) TakeBack(a0 Observed)                                  { x.takeBack(a0) }
func (x *Plan) Unnamed(a0 Upstream) []string                          { return x.unnamed(a0) }
func (x Step) ApprovalKey() string                                    { return x.approvalKey() }
func (x Step) Sends() bool                                            { return x.sends() }

var ApprovalOf = approvalOf
var Find = find
var Get = get

const GuardInstalled = guardInstalled

var OnePlace = onePlace
var Put = put

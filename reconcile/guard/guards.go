// Package guard holds the guards that every step of a plan passes, a file for each. A guard allows a step, retains the
// object or holds the step, with a reason on which a person can act.
package guard

import (
	"fmt"

	"headgate.dev/headgate/reconcile/plan"
)

// allowed lets a prune pass.
var allowed = plan.Ruling{}

func held(format string, args ...any) plan.Ruling {
	return plan.Ruling{Answer: plan.Held, Reason: fmt.Sprintf(format, args...)}
}

// Guarding says how strict the guards are. The zero value is the default.
type Guarding struct {
	MaxPrunes      int  // prunes of one pass; 0 is a fifth of what we own, at least 3 and at most 20
	MaxActivations int  // definitions that one policy or package may newly activate without naming them; 0 is 100
	PruneInstances bool // managed resources, XRs and claims may be pruned: the cloud resource goes too
	ReportDrift    bool // drift is said and not corrected
	OwnerIsSet     bool // a person said who makes the CRDs: a cluster that looks otherwise holds nothing
}

// Guards are those that every step passes, in the order in which they are named.
func (g Guarding) Guards() []plan.Guard {
	return []plan.Guard{
		{Name: "owner", Writes: true, Rule: plan.Each(owner(g.OwnerIsSet))},
		{Name: "inventory", Writes: true, Rule: plan.Each(notOurBooks)},
		{Name: plan.GuardLost, Writes: true, Approvable: true, Rule: plan.Each(packageLost)},
		{Name: "paused", Writes: true, Rule: plan.Each(paused)},
		{Name: "asked", Writes: true, Rule: plan.Each(left)},
		{Name: "drift", Writes: true, Rule: plan.Each(onlyReported(g.ReportDrift))},
		{Name: guardImpossible, Writes: true, Rule: plan.Each(impossible)},
		{Name: "schema", Writes: true, Approvable: true, Rule: plan.Each(schemas)},
		{Name: "fight", Writes: true, Rule: plan.Each(fight)},
		{Name: guardFlood, Writes: true, Approvable: true, Rule: flood(g.MaxActivations)}, // it counts what the others let pass
		{Name: "owner", Rule: plan.Each(owner(g.OwnerIsSet))},
		{Name: plan.GuardLost, Approvable: true, Rule: plan.Each(packageLost)},
		{Name: guardOmitted, Rule: plan.Each(omitted)},
		{Name: "asked", Rule: plan.Each(asked)},
		{Name: "inventory", Rule: plan.Each(home)},
		{Name: "paused", Rule: plan.Each(paused)},
		{Name: plan.GuardFinal, Rule: plan.Each(final)},
		{Name: plan.GuardNotOurs, Rule: plan.Each(notOurs)},
		{Name: plan.GuardProtected, Rule: plan.Each(protected)},
		{Name: "external", Approvable: true, Rule: plan.Each(external(g.PruneInstances))},
		{Name: "in use", Rule: plan.Each(inUse)},
		{Name: plan.GuardInside, Rule: plan.Each(othersInside)},
		{Name: guardRebuilt, Approvable: true, Rule: plan.Each(rebuilt)},
		{Name: "empty", Approvable: true, Rule: plan.Each(empty)},
		{Name: "many", Approvable: true, Rule: plan.Each(many(g.MaxPrunes))},
	}
}

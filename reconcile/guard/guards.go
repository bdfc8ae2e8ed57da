// Package guard holds the guards that every step of a plan passes, one file for each. A guard allows a step, retains the object or
// holds the step, with a reason on which a person can act.
package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/plan"
)

// allowed lets a step pass.
var allowed = plan.Ruling{}

func held(why plan.Reason) plan.Ruling { return plan.Ruling{Severity: plan.Block, Reason: why} }

// asks holds a step until a person approves it: for which of the guard's causes, and how much it concerns.
func asks(cause approval.Cause, amount approval.Amount, why plan.Reason) plan.Ruling {
	return plan.Ruling{Severity: plan.Block, Cause: cause, Amount: amount, Reason: why}
}

func retained(why plan.Reason) plan.Ruling { return plan.Ruling{Answer: plan.Retained, Reason: why} }

func reported(why plan.Reason) plan.Ruling { return plan.Ruling{Answer: plan.Reported, Reason: why} }

// noted lets a step pass with a note.
func noted(why plan.Reason) plan.Ruling { return plan.Ruling{Reason: why} }

// The names of the guards. Package plan has four more: Final, History, OnlyObserved and Unfinished.
const (
	Allowed      plan.GuardName = "allowed"
	Asked        plan.GuardName = "asked"
	DependedOn   plan.GuardName = "depended on"
	Drift        plan.GuardName = "drift"
	Empty        plan.GuardName = "empty"
	External     plan.GuardName = "external"
	Fight        plan.GuardName = "fight"
	Flood        plan.GuardName = "flood"
	Impossible   plan.GuardName = "impossible"
	InUse        plan.GuardName = "in use"
	Installed    plan.GuardName = "installed"
	Inventory    plan.GuardName = "inventory"
	Many         plan.GuardName = "many"
	NotOurs      plan.GuardName = "not ours"
	Omitted      plan.GuardName = "omitted"
	OthersInside plan.GuardName = "others inside"
	Owner        plan.GuardName = "owner"
	PackageLost  plan.GuardName = "package lost"
	Paused       plan.GuardName = "paused"
	Protected    plan.GuardName = "protected"
	Rebuilt      plan.GuardName = "rebuilt"
	Schema       plan.GuardName = "schema"
)

// Guarding configures how strict the guards are. The zero value selects the defaults.
type Guarding struct {
	MaxPrunes      int  // maximum number of prunes in one pass; 0 means a fifth of the owned objects, at least 3 and at most 20
	MaxActivations int  // maximum number of definitions that one policy or package may activate without naming them; 0 means 100
	PruneInstances bool // allow pruning managed resources, XRs and claims, which deletes their cloud resources
	ReportDrift    bool // report drift and do not correct it
	OwnerIsSet     bool // the user has chosen the owner of CRDs, so a different state of the cluster holds nothing

	AllowedKinds []AllowedKind   // objects that may be applied and pruned; all if empty
	Activation   ActivationLimit // what may be activated
}

// OfCommit returns the guards that depend only on the commit and the Sync, not on the cluster.
func (g Guarding) OfCommit() []plan.Guard {
	return []plan.Guard{
		{Name: Installed, Phase: plan.Writes, Rule: plan.Each(onlyByCrossplane)},
		{Name: Allowed, Phase: plan.Writes, Rule: onlyAllowed(g.AllowedKinds)},
		{Name: Allowed, Phase: plan.Writes, Rule: onlyActivates(g.Activation)},
		{Name: Allowed, Phase: plan.Prunes, Rule: onlyAllowed(g.AllowedKinds)},
	}
}

// Guards returns the guards that every step passes, in the order in which reports name them.
func (g Guarding) Guards() []plan.Guard {
	return slices.Concat([]plan.Guard{
		{Name: plan.OnlyObserved, Phase: plan.Writes, In: plan.Except(plan.Looking), Rule: plan.Each(observed)},
		{Name: Installed, Phase: plan.Writes, Rule: plan.Each(installed)},
	}, g.OfCommit(), []plan.Guard{
		{Name: NotOurs, Phase: plan.Writes, Rule: plan.Each(ownedByAnother)},
		{Name: Owner, Phase: plan.Writes, Rule: plan.Each(owner(g.OwnerIsSet))},
		{Name: Inventory, Phase: plan.Writes, Rule: plan.Each(notOurBooks)},
		{Name: PackageLost, Phase: plan.Writes, In: plan.Following, Approvable: true, Rule: plan.Each(packageLost)},
		{Name: Paused, Phase: plan.Writes, In: plan.OnCluster, Rule: plan.Each(paused)},
		{Name: Asked, Phase: plan.Writes, Rule: plan.Each(left)},
		{Name: Drift, Phase: plan.Writes, Rule: plan.Each(onlyReported(g.ReportDrift))},
		{Name: Impossible, Phase: plan.Writes, Rule: plan.Each(impossible)},
		{Name: Impossible, Phase: plan.Effects, Rule: plan.Each(impossible)},
		{Name: Schema, Phase: plan.Writes, Approvable: true, Rule: plan.Each(stored)},
		{Name: Schema, Phase: plan.Effects, Approvable: true, Rule: plan.Each(stored)},
		{Name: Schema, Phase: plan.Writes, Approvable: true, Rule: plan.Each(broken)},
		{Name: Schema, Phase: plan.Effects, Approvable: true, Rule: plan.Each(broken)},
		{Name: Fight, Phase: plan.Writes, Rule: plan.Each(fight)},
		{Name: Flood, Phase: plan.Writes, Approvable: true, Counts: true, Rule: flood(g.MaxActivations)}, // it counts the steps that the other guards let pass
		{Name: plan.History, Phase: plan.Writes, Approvable: true, Counts: true, Rule: history},

		{Name: Owner, Phase: plan.Prunes, Rule: plan.Each(owner(g.OwnerIsSet))},
		{Name: PackageLost, Phase: plan.Prunes, In: plan.Following, Approvable: true, Rule: plan.Each(packageLost)},
		{Name: Omitted, Phase: plan.Prunes, In: plan.Following, Rule: plan.Each(omitted)},
		{Name: Asked, Phase: plan.Prunes, Rule: plan.Each(asked)},
		{Name: Inventory, Phase: plan.Prunes, Rule: plan.Each(home)},
		{Name: Paused, Phase: plan.Prunes, In: plan.OnCluster, Rule: plan.Each(paused)},
		{Name: plan.Final, Phase: plan.Prunes, Rule: plan.Each(final)},
		{Name: NotOurs, Phase: plan.Prunes, In: plan.OnCluster, Rule: plan.Each(notOurs)},
		{Name: Protected, Phase: plan.Prunes, Rule: plan.Each(protected)},
		{Name: External, Phase: plan.Prunes, Approvable: true, Rule: plan.Each(external(g.PruneInstances))},
		{Name: InUse, Phase: plan.Prunes, Rule: plan.Each(inUse)},
		{Name: OthersInside, Phase: plan.Prunes, Rule: plan.Each(othersInside)},
		{Name: Rebuilt, Phase: plan.Prunes, In: plan.Following, Approvable: true, Rule: plan.Each(rebuilt(retained(Rebuilds.With())))},
		{Name: Rebuilt, Phase: plan.Prunes, In: plan.Ending, Approvable: true, Rule: plan.Each(rebuilt(held(RebuildsBeforeEnd.With())))},
		{Name: Empty, Phase: plan.Prunes, In: plan.Following, Approvable: true, Rule: plan.Each(empty)},
		{Name: Many, Phase: plan.Prunes, In: plan.Following, Approvable: true, Counts: true, Rule: plan.Each(many(g.MaxPrunes))},
		{Name: plan.History, Phase: plan.Prunes, Approvable: true, Counts: true, Rule: history},
		{Name: plan.Unfinished, Phase: plan.Prunes, In: plan.Following, Approvable: true, Counts: true, Rule: unfinished}, // it sees the writes that other guards hold

		{Name: DependedOn, Phase: plan.Settled, Rule: plan.Each(dependedOn)},
		{Name: OthersInside, Phase: plan.Settled, Rule: plan.Each(someInside)},
	}, g.OfMerge())
}

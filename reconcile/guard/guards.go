// Package guard holds the guards that every step of a plan passes, one file for each. A guard allows a step, retains the object or
// holds the step, with a reason on which a person can act.
package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/impact"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/schema"
)

// allowed lets a step pass.
var allowed = plan.Ruling{}

func held(why reason.Reason) plan.Ruling {
	return plan.Ruling{Judged: plan.Judged{Severity: plan.Block, Reason: why}}
}

// asks holds a step until a person approves it: for which of the guard's causes, and how much it concerns.
func asks(cause approval.Cause, amount approval.Amount, why reason.Reason) plan.Ruling {
	return plan.Ruling{Judged: plan.Judged{Severity: plan.Block, Cause: cause, Amount: amount, Reason: why}}
}

func retained(why reason.Reason) plan.Ruling {
	return plan.Ruling{Judged: plan.Judged{Answer: plan.Retained, Reason: why}}
}

func reported(why reason.Reason) plan.Ruling {
	return plan.Ruling{Judged: plan.Judged{Answer: plan.Reported, Reason: why}}
}

// noted lets a step pass with a note.
func noted(why reason.Reason) plan.Ruling { return plan.Ruling{Judged: plan.Judged{Reason: why}} }

// The names of the guards. Packages plan and draft have those that they need themselves.
const (
	Allowed      plan.GuardName = "allowed"
	Asked        plan.GuardName = "asked"
	Controller   plan.GuardName = "controller"
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
	MaxPrunes      int    // maximum number of prunes in one pass; 0 means a fifth of the owned objects, at least 3 and at most 20
	MaxActivations int    // maximum number of definitions that one policy or package may activate without naming them; 0 means 100
	PruneInstances bool   // allow pruning managed resources, XRs and claims, which deletes their cloud resources
	ReportDrift    bool   // report drift and do not correct it
	Home           string // the namespace of the controller; "" for headgate-system
	OwnerIsSet     bool   // the user has chosen the owner of CRDs, so a different state of the cluster holds nothing

	Trust []impact.Trust // the new versions of packages that need no look before a merge; nil means impact.DefaultTrust

	AllowedKinds []AllowedKind   // objects that may be applied and pruned; all if empty
	Activation   ActivationLimit // what may be activated
}

func (g Guarding) trust() []impact.Trust {
	if g.Trust == nil {
		return impact.DefaultTrust()
	}
	return g.Trust
}

// OfCommit returns the guards that depend only on the commit and the Sync, not on the cluster.
func (g Guarding) OfCommit() []draft.Guard {
	return []draft.Guard{
		{Name: Installed, Phase: draft.Writes, Rule: draft.Each(onlyByCrossplane)},
		{Name: Allowed, Phase: draft.Writes, Rule: onlyAllowed(g.AllowedKinds)},
		{Name: Allowed, Phase: draft.Writes, Rule: onlyActivates(g.Activation)},
		{Name: Allowed, Phase: draft.Prunes, Rule: onlyAllowed(g.AllowedKinds)},
	}
}

// Guards returns the guards that every step passes, in the order in which reports name them.
func (g Guarding) Guards() []draft.Guard {
	return slices.Concat([]draft.Guard{
		{Name: draft.OnlyObserved, Phase: draft.Writes, In: plan.Except(plan.Looking), Rule: draft.Each(observed)},
		{Name: Installed, Phase: draft.Writes, Rule: draft.Each(installed)},
	}, g.OfCommit(), []draft.Guard{
		{Name: NotOurs, Phase: draft.Writes, Rule: draft.Each(ownedByAnother)},
		{Name: Owner, Phase: draft.Writes, Rule: draft.Each(owner(g.OwnerIsSet))},
		{Name: Inventory, Phase: draft.Writes, Rule: draft.Each(notOurBooks)},
		{Name: Controller, Phase: draft.Writes, Rule: draft.Each(notController(g.Home))},
		{Name: PackageLost, Phase: draft.Writes, In: plan.Following, Approvable: true, Rule: draft.Each(packageLost)},
		{Name: Paused, Phase: draft.Writes, In: plan.OnCluster, Rule: draft.Each(paused)},
		{Name: Asked, Phase: draft.Writes, Rule: draft.Each(left)},
		{Name: Drift, Phase: draft.Writes, Rule: draft.Each(onlyReported(g.ReportDrift))},
		{Name: Impossible, Phase: draft.Writes, In: plan.OnCluster, Rule: draft.Each(impossible())}, // the dry run decides about CEL rules
		{Name: Impossible, Phase: draft.Writes, In: plan.OnCommit, Rule: draft.Each(impossible(schema.Refused))},
		{Name: Impossible, Phase: draft.Effects, In: plan.OnCluster, Rule: draft.Each(impossible())},
		{Name: Impossible, Phase: draft.Effects, In: plan.OnCommit, Rule: draft.Each(impossible(schema.Refused))},
		{Name: Schema, Phase: draft.Writes, Approvable: true, Rule: draft.Each(stored)},
		{Name: Schema, Phase: draft.Effects, Approvable: true, Rule: draft.Each(stored)},
		{Name: Schema, Phase: draft.Writes, Approvable: true, Rule: draft.Each(broken)},
		{Name: Schema, Phase: draft.Effects, Approvable: true, Rule: draft.Each(broken)},
		{Name: Fight, Phase: draft.Writes, Rule: draft.Each(fight)},
		{Name: Flood, Phase: draft.Writes, Approvable: true, Counts: true, Rule: flood(g.MaxActivations)}, // it counts the steps that the other guards let pass
		{Name: draft.History, Phase: draft.Writes, Approvable: true, Counts: true, Rule: history},

		{Name: Owner, Phase: draft.Prunes, Rule: draft.Each(owner(g.OwnerIsSet))},
		{Name: PackageLost, Phase: draft.Prunes, In: plan.Following, Approvable: true, Rule: draft.Each(packageLost)},
		{Name: Omitted, Phase: draft.Prunes, In: plan.Following, Rule: draft.Each(omitted)},
		{Name: Asked, Phase: draft.Prunes, Rule: draft.Each(takenOver)},
		{Name: Asked, Phase: draft.Prunes, Rule: draft.Each(asked)},
		{Name: Inventory, Phase: draft.Prunes, Rule: draft.Each(home)},
		{Name: Controller, Phase: draft.Prunes, Rule: draft.Each(keepsController(g.Home))},
		{Name: Paused, Phase: draft.Prunes, In: plan.OnCluster, Rule: draft.Each(paused)},
		{Name: plan.Final, Phase: draft.Prunes, Rule: draft.Each(final)},
		{Name: NotOurs, Phase: draft.Prunes, In: plan.OnCluster, Rule: draft.Each(notOurs)},
		{Name: Protected, Phase: draft.Prunes, Rule: draft.Each(protected)},
		{Name: External, Phase: draft.Prunes, Approvable: true, Rule: draft.Each(external(g.PruneInstances))},
		{Name: InUse, Phase: draft.Prunes, Rule: draft.Each(inUse)},
		{Name: OthersInside, Phase: draft.Prunes, Rule: draft.Each(othersInside)},
		{Name: Rebuilt, Phase: draft.Prunes, In: plan.Following, Approvable: true, Rule: draft.Each(rebuilt(retained(reason.Rebuilds.With())))},
		{Name: Rebuilt, Phase: draft.Prunes, In: plan.Ending, Approvable: true, Rule: draft.Each(rebuilt(held(reason.RebuildsBeforeEnd.With())))},
		{Name: Empty, Phase: draft.Prunes, In: plan.Following, Approvable: true, Rule: draft.Each(empty)},
		{Name: Many, Phase: draft.Prunes, In: plan.Following, Approvable: true, Counts: true, Rule: draft.Each(many(g.MaxPrunes))},
		{Name: draft.History, Phase: draft.Prunes, Approvable: true, Counts: true, Rule: history},
		{Name: plan.Unfinished, Phase: draft.Prunes, In: plan.Following, Approvable: true, Counts: true, Passes: true, Rule: unfinished}, // it sees the writes that other guards hold

		{Name: DependedOn, Phase: draft.Settled, In: plan.Following, Rule: draft.Each(dependedOnOrUsed)},
		{Name: DependedOn, Phase: draft.Settled, In: plan.Ending, Rule: draft.Each(dependedOn)}, // an ending deletes tier by tier
		{Name: OthersInside, Phase: draft.Settled, Rule: draft.Each(someInside)},
	}, g.OfMerge())
}

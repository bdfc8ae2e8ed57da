package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// The names of the guards of the phase Merge. Schema, In use and Owner rule there, too.
const (
	Activates   plan.GuardName = "activates"
	Adds        plan.GuardName = "adds"
	Composes    plan.GuardName = "composes"
	Controls    plan.GuardName = "controls"
	Deletes     plan.GuardName = "deletes"
	Dropped     plan.GuardName = "dropped"
	Grants      plan.GuardName = "grants"
	Inactive    plan.GuardName = "inactive"
	Keys        plan.GuardName = "keys"
	NameInCloud plan.GuardName = "name in cloud"
	Settings    plan.GuardName = "settings"
	Signatures  plan.GuardName = "signatures"
	Skips       plan.GuardName = "skips"
	StaysActive plan.GuardName = "stays active"
	Trust       plan.GuardName = "trust"
	Unconfirmed plan.GuardName = "unconfirmed"
	Unjudged    plan.GuardName = "unjudged"
	Unread      plan.GuardName = "unread"
	Used        plan.GuardName = "used"
	Wildcards   plan.GuardName = "wildcards"
)

// OfMerge returns the guards that rule for the person who decides whether to merge, the worst first: a change has one ruling that is
// more than a note.
func (g Guarding) OfMerge() []draft.Guard {
	all := []draft.Guard{
		{Name: Used, Phase: draft.Merge, Rule: usedBySteps},
		{Name: Used, Phase: draft.MergeEffects, Rule: usedByEffects},
		{Name: Inactive, Phase: draft.Merge, Rule: draft.Each(inactive)},
		{Name: Inactive, Phase: draft.MergeEffects, Rule: draft.Each(inactiveEffect)},
		{Name: Schema, Phase: draft.Merge, Rule: draft.Each(mergesSchema)},
		{Name: Schema, Phase: draft.MergeEffects, Rule: draft.Each(installsSchema)},
		{Name: Dropped, Phase: draft.MergeEffects, Rule: draft.Each(dropped)},
		{Name: InUse, Phase: draft.Merge, Rule: draft.Each(deletesKind)},
		{Name: NameInCloud, Phase: draft.Merge, Rule: draft.Each(keepsExternalName)},
		{Name: Composes, Phase: draft.Merge, Rule: composes},
		{Name: Deletes, Phase: draft.Merge, Rule: draft.Each(deletes)},
		{Name: Grants, Phase: draft.Merge, Rule: draft.Each(grants)},
		{Name: Adds, Phase: draft.Merge, Rule: adds},
		{Name: Keys, Phase: draft.Merge, Rule: draft.Each(keys)},
		{Name: Unjudged, Phase: draft.Merge, Rule: unjudged},
		{Name: Unjudged, Phase: draft.MergeEffects, Rule: draft.Each(unjudgedOfPackages)},

		{Name: Unread, Phase: draft.Merge, Commit: unreadPackages},
		{Name: Composes, Phase: draft.Merge, Commit: composesInPackages},
		{Name: Trust, Phase: draft.Merge, Commit: trusts(g.trust())},
		{Name: Wildcards, Phase: draft.Merge, Commit: newWildcards},
		{Name: Settings, Phase: draft.Merge, Commit: asksOtherwise},
		{Name: Skips, Phase: draft.Merge, Commit: skips},
		{Name: Activates, Phase: draft.Merge, Commit: activates},
		{Name: Signatures, Phase: draft.Merge, Commit: signatures},
		{Name: Controls, Phase: draft.Merge, Commit: controls},
		{Name: Unconfirmed, Phase: draft.Merge, Commit: unconfirmed},
		{Name: StaysActive, Phase: draft.Merge, Commit: staysActive},
		{Name: Owner, Phase: draft.Merge, Commit: handsOver(g.OwnerIsSet)},
	}
	for i := range all {
		all[i].In = plan.OnCommit
	}
	return all
}

func looks(why reason.Reason) plan.Ruling {
	return plan.Ruling{Judged: plan.Judged{Severity: plan.Look, Reason: why}}
}

// applied reports whether a comparison shows the step as carried out: it neither fails nor is held.
func applied(s plan.Step) bool { return s.Err == nil && s.Action != plan.Hold }

// gives reports whether the reason of a step has one of these codes.
func gives(s plan.Step, codes ...reason.Code) bool { return s.Why().Has(codes...) }

// isNoted reports whether an earlier guard of the phase Merge noted this about a step.
func isNoted(s plan.Step, code reason.Code) bool {
	return slices.ContainsFunc(s.Rulings, func(r plan.Ruling) bool { return r.Reason.Code == code })
}

package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/plan"
)

// The names of the guards of the phase Merge. Schema, In use and Owner rule there, too.
const (
	Activates   plan.GuardName = "activates"
	Controls    plan.GuardName = "controls"
	Deletes     plan.GuardName = "deletes"
	Dropped     plan.GuardName = "dropped"
	Inactive    plan.GuardName = "inactive"
	Signatures  plan.GuardName = "signatures"
	StaysActive plan.GuardName = "stays active"
	Unconfirmed plan.GuardName = "unconfirmed"
	Unjudged    plan.GuardName = "unjudged"
	Unread      plan.GuardName = "unread"
	Used        plan.GuardName = "used"
)

// OfMerge returns the guards that rule for the person who decides whether to merge, the worst first: a change has one ruling that is
// more than a note.
func (g Guarding) OfMerge() []plan.Guard {
	return []plan.Guard{
		{Name: Used, Phase: plan.Merge, Rule: usedBySteps},
		{Name: Used, Phase: plan.MergeEffects, Rule: usedByEffects},
		{Name: Inactive, Phase: plan.Merge, Rule: plan.Each(inactive)},
		{Name: Inactive, Phase: plan.MergeEffects, Rule: plan.Each(inactiveEffect)},
		{Name: Schema, Phase: plan.Merge, Rule: plan.Each(mergesSchema)},
		{Name: Schema, Phase: plan.MergeEffects, Rule: plan.Each(installsSchema)},
		{Name: Dropped, Phase: plan.MergeEffects, Rule: plan.Each(dropped)},
		{Name: InUse, Phase: plan.Merge, Rule: plan.Each(deletesKind)},
		{Name: Deletes, Phase: plan.Merge, Rule: plan.Each(deletes)},
		{Name: Unjudged, Phase: plan.Merge, Rule: plan.Each(unjudged)},

		{Name: Unread, Phase: plan.Merge, Commit: unreadPackages},
		{Name: Activates, Phase: plan.Merge, Commit: activates},
		{Name: Signatures, Phase: plan.Merge, Commit: signatures},
		{Name: Controls, Phase: plan.Merge, Commit: controls},
		{Name: Unconfirmed, Phase: plan.Merge, Commit: unconfirmed},
		{Name: StaysActive, Phase: plan.Merge, Commit: staysActive},
		{Name: Owner, Phase: plan.Merge, Commit: handsOver(g.OwnerIsSet)},
	}
}

func blocks(why plan.Reason) plan.Ruling { return plan.Ruling{Severity: plan.Block, Reason: why} }

func looks(why plan.Reason) plan.Ruling { return plan.Ruling{Severity: plan.Look, Reason: why} }

// applied reports whether a comparison shows the step as carried out: it neither fails nor is held.
func applied(s plan.Step) bool { return s.Err == nil && s.Action != plan.Hold }

// gives reports whether the reason of a step has one of these codes.
func gives(s plan.Step, codes ...plan.Code) bool { return Has(s.Why(), codes...) }

// Has reports whether a reason, or a reason in it, has one of these codes.
func Has(why plan.Reason, codes ...plan.Code) bool {
	if slices.Contains(codes, why.Code) {
		return true
	}
	return slices.ContainsFunc(why.Values, func(v any) bool {
		switch v := v.(type) {
		case plan.Reason:
			return Has(v, codes...)
		case []plan.Reason:
			return slices.ContainsFunc(v, func(r plan.Reason) bool { return Has(r, codes...) })
		}
		return false
	})
}

// isNoted reports whether an earlier guard of the phase Merge noted this about a step.
func isNoted(s plan.Step, code plan.Code) bool {
	return slices.ContainsFunc(s.Rulings, func(r plan.Ruling) bool { return r.Reason.Code == code })
}

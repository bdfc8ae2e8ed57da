package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
)

// notOurs holds the prune of an object that is not the one that we applied.
func notOurs(s plan.Step, c draft.Case) plan.Ruling {
	live := c.Live(s)
	if s.Deactivates && c.Want.Owner == render.OwnerCrossplane {
		return allowed // its only owner is Crossplane, which activated it
	}
	if freesOurs(s, c) {
		return allowed
	}
	if by := c.Seen.ClaimOn(s.ID, live).By; by != "" {
		return held(reason.OwnedByAnother.With(by))
	}
	if draft.IsObserved(c.Seen, s.ID, live) {
		return allowed // it was never ours, and a person configured that it is deleted with the commit
	}
	if !inventory.Ours(live, c.Seen.Inventory.Sync) {
		return held(reason.MarkMissing.With())
	}
	if !c.Seen.Inventory.Holds(s.ID, live) && !c.Seen.Restored(s.ID, live) { // the guard rebuilt holds a restored object
		return held(reason.NotProven.With())
	}
	return allowed
}

// freesOurs reports whether a step only removes our finalizer from an object that we applied and that is being deleted. Missing or
// changed marks must not keep that object forever: its deletion cannot be undone, and only Headgate removes this finalizer.
func freesOurs(s plan.Step, c draft.Case) bool {
	return s.OnlyFrees() && s.UID != "" && c.Seen.Inventory.Entries[s.ID].UID == s.UID
}

// ownedByAnother holds the update of an object that has another owner, or that the sync may not adopt.
func ownedByAnother(s plan.Step, c draft.Case) plan.Ruling {
	live := c.Live(s)
	if live == nil || c.Seen.Objects[s.ID] == nil || freesOurs(s, c) {
		return allowed
	}
	why := c.Seen.Refused(s.ID, live)
	if why.None() {
		return allowed
	}
	switch claim := c.Seen.ClaimOn(s.ID, live); {
	case !claim.Final || !s.ID.IsCRD():
	case leavesMRD(s, c):
		why = reason.MadeForMRD.With(s.ID.Name)
	case s.Definition:
		why = reason.StillMade.With(claim.By)
	}
	return held(why)
}

// leavesMRD reports whether a step applies the CRD that Crossplane made for an MRD of this sync, and the sync prunes or has pruned
// that MRD.
func leavesMRD(s plan.Step, c draft.Case) bool {
	return c.Seen.Inventory.Entries[s.ID].IsLeft(s.ID) || slices.ContainsFunc(c.Steps, func(by plan.Step) bool {
		return by.ID == crossplane.MRD(s.ID.Name) && by.Action == plan.Prune
	})
}

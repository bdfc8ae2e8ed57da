package guard

import (
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
)

// The codes of the guard not ours. Package plan has those of an object that a sync does not take over.
const (
	StillMade      plan.Code = "StillMade"      // the package revision that owns the CRD and goes on making it
	OwnedByAnother plan.Code = "OwnedByAnother" // the other owner
	MarkMissing    plan.Code = "MarkMissing"    // the mark of the sync is not on it any more
	NotProven      plan.Code = "NotProven"      // nothing but its marks proves that Headgate applied it
	AnotherUID     plan.Code = "AnotherUID"     // it is another object than the one that was applied
)

// notOurs holds what is not the object that we applied.
func notOurs(s plan.Step, c plan.Case) plan.Ruling {
	live := c.Live(s)
	if c.Seen.Offline {
		return allowed // what was applied from a commit is ours
	}
	if s.Deactivates && c.Want.Owner == render.OwnerCrossplane {
		return allowed // only Crossplane, which activated it, owns it
	}
	if freesOurs(s, c) {
		return allowed
	}
	if by := c.Seen.ClaimOn(s.ID, live).By; by != "" {
		return held(OwnedByAnother.With(by))
	}
	if c.Seen.IsObserved(s.ID, live) {
		return allowed // it was never ours, and a person wrote that it goes with the commit
	}
	if !inventory.Ours(live, c.Seen.Inventory.Sync) {
		return held(MarkMissing.With())
	}
	switch uid := c.Seen.Inventory.Entries[s.ID].UID; {
	case c.Seen.Inventory.Holds(s.ID, live):
		return allowed
	case uid == "":
		return held(NotProven.With())
	}
	return held(AnotherUID.With())
}

// freesOurs reports whether a step only takes our finalizer from an object that we applied and that is being deleted. Marks that
// are lost, or that say otherwise by now, must not keep it for ever: it goes in any case, and only Headgate removes this finalizer.
func freesOurs(s plan.Step, c plan.Case) bool {
	return s.OnlyFrees() && s.UID != "" && c.Seen.Inventory.Entries[s.ID].UID == s.UID
}

// ownedByAnother holds the update of an object that another owner has, or that the sync does not adopt.
func ownedByAnother(s plan.Step, c plan.Case) plan.Ruling {
	live := c.Live(s)
	if live == nil || c.Seen.Objects[s.ID] == nil || freesOurs(s, c) {
		return allowed
	}
	reason := c.Seen.Refused(s.ID, live)
	if reason.None() {
		return allowed
	}
	if claim := c.Seen.ClaimOn(s.ID, live); claim.Final && s.Definition && s.ID.IsCRD() {
		reason = StillMade.With(claim.By)
	}
	return held(reason)
}

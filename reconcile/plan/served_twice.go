package plan

import (
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/types"
)

// An API server can serve one object under two identities: an Event in "" and in events.k8s.io, or a Project and a Namespace of
// OpenShift. If a commit changes from one identity to the other, a prune of the old one would delete the wanted object.

// SameObject is the guard that keeps objects which the commit wants under another identity.
const SameObject GuardName = "same object"

// The codes of the guard same object.
const (
	ServedTwice Code = "ServedTwice" // the identity under which the commit wants the object
)

// wantedUIDs returns the UIDs of the live objects that the commit wants.
func wantedUIDs(seen Observed) map[types.UID]manifest.ID {
	uids := map[types.UID]manifest.ID{}
	for _, a := range seen.Asked {
		if uid := seen.uidOf(a.ID); uid != "" {
			uids[uid] = a.ID
		}
	}
	return uids
}

// uidOf returns the UID of a live object; "" if it does not exist.
func (o Observed) uidOf(id manifest.ID) types.UID {
	live, exists := o.Objects[id]
	if !exists {
		return ""
	}
	return live.GetUID()
}

// keptAs returns the step that keeps an object because the commit wants it under another identity.
func (s Step) keptAs(wanted manifest.ID) Step {
	s.Action, s.Would, s.Cause, s.Guard, s.Reason = Keep, Prune, Retain, SameObject, ServedTwice.With(wanted)
	s.SameAs = wanted
	return s.free()
}

// isOld reports whether a step keeps an object that an inventory has under the wanted identity, too. Then the old one is forgotten.
func (s Step) isOld(have inventory.Inventory) bool {
	return s.Guard == SameObject && have.Entries[s.SameAs].UID == s.UID
}

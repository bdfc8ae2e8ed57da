package facts

import (
	"cmp"
	"fmt"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Mine reports whether this sync applied a live object, or whether it is such an object that a backup restored under another UID,
// possibly without managed fields.
func (o Ground) Mine(id manifest.ID, live metav1.Object) bool {
	if _, held := o.Inventory.Entries[id]; !held {
		return inventory.AppliedByUs(live, o.Inventory.Sync)
	}
	return o.Inventory.Holds(id, live) || inventory.Ours(live, o.Inventory.Sync)
}

// Restored reports whether a live object is one of the inventory under another UID but with both marks, and so was restored from a
// backup.
func (o Ground) Restored(id manifest.ID, live metav1.Object) bool {
	uid := o.Inventory.Entries[id].UID
	return uid != "" && uid != live.GetUID() && inventory.Ours(live, o.Inventory.Sync)
}

// ClaimOn returns the claim of another owner on a live object. A mark that Headgate sent, according to the inventory, is not a
// claim.
func (o Ground) ClaimOn(id manifest.ID, live metav1.Object) ownership.Claim {
	if !o.mindsOwners() {
		return ownership.Claim{}
	}
	return ownership.Of(live, o.Inventory.Sync, o.Inventory.Entries[id].Foreign)
}

// SentByUs reports whether this sync set an annotation or a label of a live object.
func (o Ground) SentByUs(id manifest.ID, live metav1.Object, annotation bool, key string) bool {
	return !o.mindsOwners() || ownership.SentByUs(live, o.Inventory.Entries[id].Foreign, annotation, key)
}

// mindsOwners reports whether it matters who else owns objects of the place: only where the pass may write. Of two commits, all objects
// of the first one count as ours.
func (o Ground) mindsOwners() bool { return o.Stance.In(plan.Writing) }

// Hides returns why an owned object may exist although it was not read: the API server does not serve its kind, or the objects of
// the kind could not be read. It returns nil if the object was read, or is gone.
func (o Ground) Hides(id manifest.ID) error {
	if _, owned := o.Inventory.Entries[id]; !owned {
		return nil
	}
	return cmp.Or(o.Unread(id), o.Hidden[id.GroupKind()])
}

// Unread returns why an object could not be read; nil if it was, or if it does not exist.
func (o Ground) Unread(id manifest.ID) error {
	return cmp.Or(o.Unreadable[id.GroupKind()], o.Denied[id])
}

// Unreadable returns the error for every object of a kind that could not be read.
func Unreadable(gk schema.GroupKind, why error) error {
	return reason.CodedError{Reason: reason.KindUnreadable.With(gk.String(), reason.Of(why))}
}

// Denied returns the error for an object that may not be read.
func Denied(why error) error {
	return reason.CodedError{Reason: reason.ObjectUnreadable.With(reason.Of(why))}
}

// Copies returns a note on objects that carry our marks although nothing proves that Headgate applied them.
func Copies(seen Live) []manifest.Finding {
	if len(seen.Copies) == 0 {
		return nil
	}
	return []manifest.Finding{{
		Rule: "marks-copied", Severity: manifest.Note, About: manifest.About{},
		Message: fmt.Sprintf("%s, for example %s, carry the marks of this sync, and another field manager set them: copies, or restored without managed fields; Headgate does not own them",
			manifest.Count(len(seen.Copies), "object"), seen.Copies[0]),
		Fix: "delete those that you do not need by hand",
	}}
}

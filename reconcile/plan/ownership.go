package plan

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ours reports whether a live object carries both marks of a sync. Marks get copied along with the
// object that carries them, so they alone do not prove that Headgate applied it: see Holds.
func Ours(o metav1.Object, s Sync) bool {
	return o.GetLabels()[SyncLabel] == s.Key() && o.GetAnnotations()[InventoryAnnotation] == s.Key()
}

// AppliedByUs reports whether a live object carries both marks of a sync, and our field manager owns
// them. In a copy, another field manager owns them.
func AppliedByUs(o metav1.Object, s Sync) bool {
	return Ours(o, s) && appliedByUs(o, false, SyncLabel) && appliedByUs(o, true, InventoryAnnotation)
}

// Missing reports whether no inventory is stored and none was rebuilt.
func (inv Inventory) Missing() bool { return inv.ResourceVersion == "" && len(inv.Entries) == 0 }

// AnyRebuilt reports whether an entry is known only by the marks on its object.
func (inv Inventory) AnyRebuilt() bool {
	for _, e := range inv.Entries {
		if e.Rebuilt {
			return true
		}
	}
	return false
}

// Holds reports whether the inventory holds exactly this live object: by its UID or, where a pass
// ended between a write and its answer, because our field manager owns the marks on it.
func (inv Inventory) Holds(id manifest.ID, live metav1.Object) bool {
	e, held := inv.Entries[id]
	switch {
	case !held:
		return false
	case e.UID != "":
		return e.UID == live.GetUID()
	}
	return AppliedByUs(live, inv.Sync)
}

// GoesAlong reports whether an object may be deleted together with the namespace that it is in: the
// sync applied it, and may delete it. While no inventory is stored, only managed fields prove that.
func (inv Inventory) GoesAlong(id manifest.ID, live metav1.Object) bool {
	switch {
	case inv.Missing():
		return AppliedByUs(live, inv.Sync)
	case live.GetDeletionTimestamp() != nil:
		return Ours(live, inv.Sync) // it goes already, and the inventory may have forgotten it
	}
	return Ours(live, inv.Sync) && inv.Holds(id, live) && !inv.Entries[id].Policy.Observes()
}

// neverApplied reports whether an entry is an intent that was not carried out, as an adoption that was
// refused: the live object carries no mark, and our field manager never wrote to it.
func (e Entry) neverApplied(live *metav1.PartialObjectMetadata) bool {
	if e.UID != "" || e.Actuation != "Pending" && e.Actuation != "Failed" {
		return false
	}
	_, labelled := live.Labels[SyncLabel]
	_, annotated := live.Annotations[InventoryAnnotation]
	return !labelled && !annotated && !slices.ContainsFunc(live.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == Manager || f.Manager == ActivationManager
	})
}

// Mine reports whether a live object is the one that this sync applied, or that object as a backup
// restored it: under another UID, and maybe without managed fields.
func (o Observed) Mine(id manifest.ID, live metav1.Object) bool {
	if _, held := o.Inventory.Entries[id]; !held {
		return AppliedByUs(live, o.Inventory.Sync)
	}
	return o.Inventory.Holds(id, live) || Ours(live, o.Inventory.Sync)
}

// Restored reports whether a live object is one of the inventory under another UID, with both marks:
// somebody restored it from a backup.
func (o Observed) Restored(id manifest.ID, live metav1.Object) bool {
	uid := o.Inventory.Entries[id].UID
	return uid != "" && uid != live.GetUID() && Ours(live, o.Inventory.Sync)
}

// WroteMarks reports whether a field manager wrote both our marks to a live object by an update, as a
// tool does that restores objects.
func WroteMarks(live metav1.Object, manager string) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == manager && f.Operation == metav1.ManagedFieldsOperationUpdate && f.Subresource == "" &&
			hasField(f, false, SyncLabel) && hasField(f, true, InventoryAnnotation)
	})
}

// claim returns who else owns a live object. A mark that the inventory remembers as sent by Headgate
// is no claim.
func (o Observed) claim(id manifest.ID, live metav1.Object) Claim {
	return Foreign(live, o.Inventory.Sync, o.Inventory.Entries[id].Foreign)
}

// SentMarks returns the marks of other tools that our field manager applied to a live object, and the
// annotations by which people stop Headgate: "key=hash of the value", sorted and separated by commas.
// The inventory remembers them for the day on which the managed fields are gone.
func SentMarks(live metav1.Object) string {
	var sent []string
	look := func(annotation bool, key string) {
		keys := live.GetLabels()
		if annotation {
			keys = live.GetAnnotations()
		}
		if value, there := keys[key]; there && appliedByUs(live, annotation, key) {
			sent = append(sent, sentMark(key, value))
		}
	}
	for _, m := range slices.Concat(crossplaneMarks, marks) {
		if m.annotation != "" {
			look(true, m.in(live.GetAnnotations()))
		} else {
			look(false, m.in(live.GetLabels()))
		}
	}
	look(true, pauseAnnotation)
	for _, be := range render.LeaveBe {
		look(true, be.Key)
		look(false, be.Key)
	}
	slices.Sort(sent)
	return strings.Join(slices.Compact(sent), ",")
}

// sentMark is a mark as an inventory remembers it. A value may be long, and a key has neither "=" nor ",".
func sentMark(key, value string) string { return key + "=" + short([]byte(value))[:8] }

// sentByUs reports whether Headgate sent a label or annotation of a live object: its managed fields
// tell, or the inventory remembers this value.
func sentByUs(o metav1.Object, remembered string, annotation bool, key string) bool {
	if appliedByUs(o, annotation, key) {
		return true
	}
	if remembered == "" {
		return false
	}
	value := o.GetLabels()[key]
	if annotation {
		value = o.GetAnnotations()[key]
	}
	return slices.Contains(strings.Split(remembered, ","), sentMark(key, value))
}

// hides returns why an owned object may exist although the API server does not serve its kind; nil if
// it is served, or the object is gone.
func (o Observed) hides(id manifest.ID) error {
	if _, owned := o.Inventory.Entries[id]; !owned {
		return nil
	}
	return o.Hidden[id.GroupKind()]
}

// outOfReach is the step on an owned object that nobody can look at. It fails, and the inventory keeps
// the object.
func (p *Plan) outOfReach(id manifest.ID, seen Observed) Step {
	s := Step{Action: Prune, Cause: Commit, ID: id, Digest: seen.Inventory.Entries[id].Digest, Err: seen.hides(id)}
	if p.Ends == Orphan {
		s.Action = Release
	}
	return s
}

// copies notes what carries our marks although nothing proves that Headgate applied it.
func copies(seen Observed) []manifest.Finding {
	if len(seen.Copies) == 0 {
		return nil
	}
	return []manifest.Finding{{
		Rule: "marks-copied", Severity: manifest.Note,
		Message: fmt.Sprintf("%s, for example %s, carry the marks of this sync, and another field manager set them: copies, or restored without managed fields; Headgate does not own them",
			plural(int64(len(seen.Copies)), "object"), seen.Copies[0]),
		Fix: "delete those that nobody needs by hand",
	}}
}

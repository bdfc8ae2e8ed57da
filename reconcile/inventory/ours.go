package inventory

import (
	"encoding/json"
	"slices"

	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsApplied reports whether an entry of managed fields holds what Headgate applied to the object itself.
func IsApplied(f metav1.ManagedFieldsEntry) bool {
	return f.Manager == Manager && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == ""
}

// AppliedKey reports whether our field manager applied a label or annotation. Manifests that another tool rendered
// bring its marks into a commit, although that tool does not own the objects.
func AppliedKey(o metav1.Object, annotation bool, key string) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return IsApplied(f) && hasField(f, annotation, key)
	})
}

// hasField reports whether an entry of managed fields contains a label or annotation.
func hasField(f metav1.ManagedFieldsEntry, annotation bool, key string) bool {
	if f.FieldsV1 == nil {
		return false
	}
	var fields struct {
		Metadata struct {
			Labels      map[string]any `json:"f:labels"`
			Annotations map[string]any `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields) != nil {
		return false // unreadable fields count as not ours
	}
	of := fields.Metadata.Labels
	if annotation {
		of = fields.Metadata.Annotations
	}
	_, has := of["f:"+key]
	return has
}

// Ours reports whether a live object has both marks of a sync. Marks are copied along with an object, so they alone
// do not prove that Headgate applied it: see Holds.
func Ours(o metav1.Object, s Sync) bool {
	return o.GetLabels()[SyncLabel] == s.Key() && o.GetAnnotations()[InventoryAnnotation] == s.Key()
}

// AppliedByUs reports whether a live object has both marks of a sync and our field manager owns them. In a copy,
// another field manager owns them.
func AppliedByUs(o metav1.Object, s Sync) bool {
	return Ours(o, s) && appliedMarks(o)
}

// appliedMarks reports whether our field manager owns both marks of a live object, whatever sync they name.
func appliedMarks(o metav1.Object) bool {
	return AppliedKey(o, false, SyncLabel) && AppliedKey(o, true, InventoryAnnotation)
}

// Missing reports whether no inventory is stored and none was rebuilt.
func (inv Inventory) Missing() bool { return inv.ResourceVersion == "" && len(inv.Entries) == 0 }

// Holds reports whether the inventory contains exactly this live object. It compares UIDs. If a pass ended between a
// write and its answer, our field manager must own the marks instead.
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

// GoesAlong reports whether an object may be deleted together with its namespace, because the sync applied it and may
// delete it. While no inventory is stored, only managed fields prove that.
func (inv Inventory) GoesAlong(id manifest.ID, live metav1.Object) bool {
	switch {
	case inv.Missing():
		return AppliedByUs(live, inv.Sync)
	case live.GetDeletionTimestamp() != nil:
		return Ours(live, inv.Sync) // it is already being deleted, and the inventory may have forgotten it
	}
	return Ours(live, inv.Sync) && inv.Holds(id, live) && !inv.Entries[id].Policy.Observes()
}

// NeverApplied reports whether an entry is an intent that was not carried out, such as a refused adoption: the live
// object has no mark, and our field manager never wrote to it.
func (e Entry) NeverApplied(live *metav1.PartialObjectMetadata) bool {
	if e.UID != "" || e.Actuation != "Pending" && e.Actuation != "Failed" {
		return false
	}
	_, labelled := live.Labels[SyncLabel]
	_, annotated := live.Annotations[InventoryAnnotation]
	return !labelled && !annotated && !slices.ContainsFunc(live.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == Manager || f.Manager == ActivationManager
	})
}

// WroteMarks reports whether a field manager wrote both our marks to a live object with an update, as tools do that
// restore objects.
func WroteMarks(live metav1.Object, manager string) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == manager && f.Operation == metav1.ManagedFieldsOperationUpdate && f.Subresource == "" &&
			hasField(f, false, SyncLabel) && hasField(f, true, InventoryAnnotation)
	})
}

package plan

import (
	"encoding/json"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Releasing returns the merge patch that removes our marks and our finalizer from a live object, and our field managers from its
// managed fields. The next tool that applies the object then has no conflict with Headgate. The patch is nil if the object has no
// traces of the sync, or if another sync took it over, which uses the same field manager. An announced move stays announced. The
// patch also removes owners that the plan prunes, because the garbage collector would delete the object with them.
func (s Step) Releasing(live *metav1.PartialObjectMetadata, of inventory.Sync) ([]byte, error) {
	mark := live.Labels[inventory.SyncLabel]
	if mark != "" && mark != of.Key() {
		return nil, nil
	}
	left := make([]metav1.ManagedFieldsEntry, 0, len(live.ManagedFields))
	var own metav1.ManagedFieldsEntry
	for _, f := range live.ManagedFields {
		if f.Manager != inventory.Manager && f.Manager != inventory.ActivationManager {
			left = append(left, f)
			continue
		}
		own = f
	}
	finalizers := WithoutProtection(live.Finalizers)
	annotations := map[string]any{}
	if live.Annotations[inventory.InventoryAnnotation] == of.Key() {
		annotations[inventory.InventoryAnnotation] = nil
	}
	traces := len(annotations) + len(live.ManagedFields) - len(left) + len(live.Finalizers) - len(finalizers) + len(s.Disowns)
	if mark == "" && traces == 0 {
		return nil, nil
	}
	if !ownership.Moves(live) {
		annotations[ownership.ReleaseAnnotation] = nil
	}
	if len(left) == 0 {
		left = append(left, withoutManager(own))
	}
	metadata := map[string]any{
		"uid":             live.UID,
		"resourceVersion": live.ResourceVersion,
		"labels":          map[string]any{inventory.SyncLabel: nil},
		"annotations":     annotations,
		"managedFields":   left,
		"finalizers":      finalizers,
	}
	if len(s.Disowns) > 0 {
		metadata["ownerReferences"] = slices.DeleteFunc(slices.Clone(live.OwnerReferences), func(o metav1.OwnerReference) bool { return slices.Contains(s.Disowns, o.UID) })
	}
	return json.Marshal(map[string]any{"metadata": metadata})
}

// withoutManager returns the only managed fields of an object that is released. The API server gives the fields of an object without managed
// fields to before-first-apply, with which every later apply is in conflict. So this entry stays: it owns an annotation that no object has.
func withoutManager(own metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	if own.FieldsV1 == nil {
		return metav1.ManagedFieldsEntry{} // an empty list would not change anything; this entry clears them
	}
	own.Manager, own.Operation, own.Subresource = inventory.Released, metav1.ManagedFieldsOperationUpdate, ""
	own.FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:headgate.dev/released":{}}}}`)
	return own
}

// Foremost returns the part of an ending that can be carried out now: its first tier, and the objects that this tier waits for.
// Later tiers may be needed for these deletions. Without a deletion, it is everything.
func Foremost(p Plan) Plan {
	due := map[manifest.ID]bool{}
	deletes := slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Change().Action == Prune })
	for _, s := range p.Steps {
		due[s.ID] = !deletes || s.Tier() == p.Steps[0].Tier()
	}
	for again := true; again; { // a dependant is deleted before its dependency, regardless of its tier
		again = false
		for _, s := range p.Steps {
			for _, id := range s.AwaitsAll {
				again = again || due[s.ID] && !due[id]
				due[id] = due[id] || due[s.ID]
			}
		}
	}
	return p.Select(func(s Step) bool { return due[s.ID] })
}

package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The codes of deletions.
const (
	DeletionUnknown      Code = "DeletionUnknown"      // why it is not known whether the object is gone
	NotDeleting          Code = "NotDeleting"          // the object is not being deleted
	Deleting             Code = "Deleting"             // since when the object is being deleted
	DeletingInstances    Code = "DeletingInstances"    // since when a CRD is being deleted, which waits for its custom resources
	DeletingFinalizers   Code = "DeletingFinalizers"   // since when the object is being deleted, and the finalizers on it
	DeletingByCrossplane Code = "DeletingByCrossplane" // since when the object is being deleted, and its finalizers, some of Crossplane or a provider
	DeletingContents     Code = "DeletingContents"     // since when a namespace is being deleted, which waits for the objects in it
)

// leaving returns the step for an object that the commit does not want and whose prune is s. It returns false if the inventory only
// has to forget the object. released is set if another tool makes the object now. Nothing is sent for a deletion that has begun,
// unless that waits for our finalizer.
func (p Plan) leaving(s Step, live *metav1.PartialObjectMetadata, released bool) (Step, bool) {
	switch {
	case released || p.Stance == Orphaning:
		s.Action = Release
		return s, inventory.Ours(live, p.Sync)
	case s.Terminating && !s.Protected:
		s.Deleting, s.Since, s.Reason = true, *live.DeletionTimestamp, WhyDeleting(live)
	}
	return s, true
}

// WhyDeleting returns what a deletion waits for, as far as the object itself shows.
func WhyDeleting(live *metav1.PartialObjectMetadata) Reason {
	if live.GetDeletionTimestamp() == nil {
		return NotDeleting.With()
	}
	since := live.GetDeletionTimestamp().UTC().Format("2006-01-02T15:04:05Z")
	finalizers := live.GetFinalizers()
	switch {
	case slices.Contains(finalizers, "customresourcecleanup.apiextensions.k8s.io"):
		return DeletingInstances.With(since)
	case slices.ContainsFunc(finalizers, crossplane.IsFinalizer):
		return DeletingByCrossplane.With(since, finalizers)
	case len(finalizers) > 0:
		return DeletingFinalizers.With(since, finalizers)
	case live.Kind == "Namespace":
		return DeletingContents.With(since)
	}
	return Deleting.With(since)
}

// releaseRetained changes the steps that guards retain into releases, because the sync ends.
func (p *drafted) releaseRetained() {
	for i, s := range p.Steps {
		if s.Action == Keep && s.Cause == Retain {
			p.Steps[i].Action = Release
		}
	}
}

// foremost returns the part of an ending that can be carried out now: its first tier, and the objects that this tier waits for.
// Later tiers may be needed for these deletions.
func (p Plan) foremost() Plan {
	due := map[manifest.ID]bool{}
	for _, s := range p.Steps {
		due[s.ID] = p.Stance == Orphaning || s.Tier() == p.Steps[0].Tier()
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

// OpenForemost returns the open questions about steps that can be carried out now.
func (p Plan) OpenForemost() []question.Any {
	first := map[manifest.ID]bool{}
	for _, s := range p.foremost().Steps {
		first[s.ID] = true
	}
	return slices.DeleteFunc(p.Open(), func(q question.Any) bool { return !first[q.About()] })
}

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
	for _, f := range live.ManagedFields {
		if f.Manager != inventory.Manager && f.Manager != inventory.ActivationManager {
			left = append(left, f)
		}
	}
	finalizers := WithoutProtection(live.Finalizers)
	annotations := map[string]any{}
	if live.Annotations[inventory.InventoryAnnotation] == of.Key() {
		annotations[inventory.InventoryAnnotation] = nil
	}
	if mark == "" && len(annotations) == 0 && len(left) == len(live.ManagedFields) && len(finalizers) == len(live.Finalizers) && len(s.Disowns) == 0 {
		return nil, nil
	}
	if !ownership.Moves(live) {
		annotations[ownership.ReleaseAnnotation] = nil
	}
	if len(left) == 0 {
		left = append(left, metav1.ManagedFieldsEntry{}) // an empty list would not change anything; this entry clears them
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

// notesOnEnding returns notes about objects that an ending unexpectedly leaves.
func (p Plan) notesOnEnding(seen Observed) []manifest.Finding {
	if len(seen.Inventory.Entries) == 0 && p.Version == "" {
		return []manifest.Finding{{
			Rule: "nothing-owned", Severity: manifest.Note,
			Message: fmt.Sprintf("the sync %s owns nothing in this cluster", p.Sync),
			Fix:     "name the sync with --name and --namespace",
		}}
	}
	var names []string
	for _, s := range p.Steps {
		if crossplane.IsMRD(s.ID) && s.Action == Prune {
			names = append(names, s.ID.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []manifest.Finding{{
		Rule: ruleLeft, Severity: manifest.Note,
		Message: fmt.Sprintf("Crossplane made CRDs of %s that will be deleted, for example %s: the CRDs stay, and nothing updates them", manifest.Count(len(names), "definition"), names[0]),
		Fix:     "delete those that you do not need by hand",
	}}
}

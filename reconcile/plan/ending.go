package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The codes of deletions.
const (
	NotDeleting        Code = "NotDeleting"        // the object is not being deleted
	Deleting           Code = "Deleting"           // since when the object is being deleted
	DeletingInstances  Code = "DeletingInstances"  // since when a CRD is being deleted, which waits for its custom resources
	DeletingFinalizers Code = "DeletingFinalizers" // since when the object is being deleted, and the finalizers on it
	DeletingContents   Code = "DeletingContents"   // since when a namespace is being deleted, which waits for the objects in it
)

// An Ending is what becomes of what a sync owns when it is to own nothing any more. Its plan
// is that of a commit that wants nothing. Who asks for it means it, so the guards that ask
// whether the emptiness is meant have no say; all others have.
type Ending string

// The endings.
const (
	NoEnding Ending = ""       // the sync goes on
	Delete   Ending = "Delete" // it is deleted
	Orphan   Ending = "Orphan" // it stays, and is nobody's
)

// leaving is the step for an object that nobody wants, whose prune it was; false is that there is
// nothing to do but to forget it. released are those that somebody else makes now. What is being
// deleted already is waited for, unless it waits for us.
func (p Plan) leaving(s Step, live *metav1.PartialObjectMetadata, released bool) (Step, bool) {
	switch {
	case released || p.Ends == Orphan:
		s.Action = Release
		return s, inventory.Ours(live, p.Sync)
	case s.going && !s.protected:
		s.Deleting, s.Reason = true, WhyDeleting(live)
	}
	return s, true
}

// WhyDeleting returns what a deletion waits for, as far as the object itself tells.
func WhyDeleting(live *metav1.PartialObjectMetadata) Reason {
	if live.GetDeletionTimestamp() == nil {
		return NotDeleting.With()
	}
	since := live.GetDeletionTimestamp().UTC().Format("2006-01-02T15:04:05Z")
	finalizers := live.GetFinalizers()
	switch {
	case slices.Contains(finalizers, "customresourcecleanup.apiextensions.k8s.io"):
		return DeletingInstances.With(since)
	case len(finalizers) > 0:
		return DeletingFinalizers.With(since, finalizers)
	case live.Kind == "Namespace":
		return DeletingContents.With(since)
	}
	return Deleting.With(since)
}

// releaseRetained makes of what guards keep on purpose what stays when the sync ends: nobody's.
func (p *Plan) releaseRetained() {
	for i, s := range p.Steps {
		if s.Action == Keep && s.Cause == Retain {
			p.Steps[i].Action = Release
		}
	}
}

// foremost is what of an ending can be done now: its first tier, and what that waits for. What
// comes after it may be what that needs to go away.
func (p Plan) foremost() Plan {
	due := map[manifest.ID]bool{}
	for _, s := range p.Steps {
		due[s.ID] = p.Ends == Orphan || s.Tier() == p.Steps[0].Tier()
	}
	for again := true; again; { // what says that it depends on something goes before that, whatever its tier
		again = false
		for _, s := range p.Steps {
			for _, id := range s.after {
				again = again || due[s.ID] && !due[id]
				due[id] = due[id] || due[s.ID]
			}
		}
	}
	return p.Select(func(s Step) bool { return due[s.ID] })
}

// OpenForemost lists the counts that guards still need of what can be done now.
func (p Plan) OpenForemost() []Question {
	first := map[manifest.ID]bool{}
	for _, s := range p.foremost().Steps {
		first[s.ID] = true
	}
	return slices.DeleteFunc(p.Open(), func(q Question) bool { return !first[q.Of] })
}

// Releasing returns the merge patch that removes our marks and our finalizer from a live object, and our name from its
// managed fields. The next tool that applies the object has no conflict with Headgate then.
func Releasing(live *metav1.PartialObjectMetadata) ([]byte, error) {
	left := make([]metav1.ManagedFieldsEntry, 0, len(live.ManagedFields))
	for _, f := range live.ManagedFields {
		if f.Manager != inventory.Manager && f.Manager != inventory.ActivationManager {
			left = append(left, f)
		}
	}
	if len(left) == 0 {
		left = append(left, metav1.ManagedFieldsEntry{}) // that there are none; an empty list would change nothing
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             live.UID,
		"resourceVersion": live.ResourceVersion,
		"labels":          map[string]any{inventory.SyncLabel: nil},
		"annotations":     map[string]any{inventory.InventoryAnnotation: nil},
		"managedFields":   left,
		"finalizers":      WithoutProtection(live.Finalizers),
	}})
}

// notesOnEnding tell what an ending leaves that people may not expect.
func (p Plan) notesOnEnding(seen Observed) []manifest.Finding {
	switch {
	case p.Ends == NoEnding:
		return nil
	case len(seen.Inventory.Entries) == 0 && p.Version == "":
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
		Message: fmt.Sprintf("Crossplane made CRDs of %s that go, for example %s: the CRDs stay, and nothing updates them", manifest.Count(len(names), "definition"), names[0]),
		Fix:     "delete those that you do not need by hand",
	}}
}

package facts

import (
	"cmp"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A release takes the place of a prune: only an owned object that the commit does not declare any more is released. Therefore, a
// release is announced first, and happens with the commit that drops the object. An object in the commit is not released, because
// the next pass would adopt it again.

// Released returns the reason to release, and not to prune, an object that the commit does not want any more; no reason if it is to
// be pruned.
func (o Observed) Released(id manifest.ID, live metav1.Object) reason.Reason {
	e := o.Inventory.Entries[id]
	if why := o.AsksRelease(id, live); !why.None() {
		return why
	}
	if live.GetDeletionTimestamp() != nil && live.GetUID() == e.UID && slices.Contains(live.GetFinalizers(), plan.ProtectFinalizer) {
		return reason.Reason{} // its prune removes our finalizer, even if its marks have changed
	}
	if claim := o.ClaimOn(id, live); claim.By != "" && !e.IsLeft(id) {
		return reason.OwnedElsewhere.With(claim.By)
	}
	return reason.Reason{}
}

// AsksRelease returns which request releases an object once the commit does not want it any more; no reason if there is no request.
func (o Observed) AsksRelease(id manifest.ID, live metav1.Object) reason.Reason {
	value, announced := ownership.Releases(live, o.Inventory.Sync)
	switch {
	case o.Inventory.Entries[id].Releasing:
		return reason.ReleaseBegun.With()
	case o.lists(id):
		return reason.ReleaseListed.With()
	case announced:
		return reason.ReleaseAnnounced.With(ownership.ReleaseAnnotation, value)
	}
	return reason.Reason{}
}

// lists reports whether the Sync lists an object for release.
func (o Observed) lists(id manifest.ID) bool {
	return len(o.Terms.Release) > 0 && slices.ContainsFunc(o.Spellings(id), func(text string) bool { return slices.Contains(o.Terms.Release, text) })
}

// Spellings returns the texts with which users may name an object: first as reports show it, then without its namespace if a commit
// may omit that.
func (o Observed) Spellings(id manifest.ID) []string {
	space := cmp.Or(o.Space, "default")
	if namespaced, _ := HomesOf(o).Scope(id.GroupKind()); namespaced && id.Namespace == "" {
		id.Namespace = space
	}
	all := []string{id.String()}
	if id.Namespace == space {
		id.Namespace = ""
		all = append(all, id.String())
	}
	return all
}

// MovedTo returns the sync to which an object moves, as announced, or has moved; "" if there is none. This sync then leaves the
// object alone, even while its commit still declares it.
func (o Observed) MovedTo(id manifest.ID) string {
	live, exists := o.Objects[id]
	if !exists || !o.mindsOwners() {
		return ""
	}
	to, moved := ownership.MovedFrom(live, o.Inventory.Sync)
	// Our mark was lost before the object moved.
	if _, owned := o.Inventory.Entries[id]; !moved || owned && live.GetLabels()[inventory.SyncLabel] == "" {
		return ""
	}
	return to
}

// GaveAway reports whether a wanted object is not applied because it has moved to another sync.
func (o Observed) GaveAway(a Asked) bool {
	return !a.Paused && !a.Policy.Observes() && o.MovedTo(a.ID) != ""
}

// ListedInVain returns notes on names that the Sync lists for release although this sync neither owns nor declares such an object.
// A misspelt name would not keep its object from being pruned.
func (o Observed) ListedInVain() []manifest.Finding {
	if len(o.Terms.Release) == 0 {
		return nil
	}
	known := map[string]bool{}
	var names []string
	note := func(id manifest.ID) {
		for i, text := range o.Spellings(id) {
			if i == 0 {
				names = append(names, text)
			}
			known[text] = true
		}
	}
	for id := range o.Inventory.Entries {
		note(id)
	}
	for _, a := range o.Asked {
		note(a.ID)
	}
	var notes []manifest.Finding
	for _, listed := range o.Terms.Release {
		if known[listed] {
			continue
		}
		notes = append(notes, noteInVain(listed, manifest.Meant(listed, names)))
	}
	return notes
}

// noteInVain returns the note on a listed name that is not an object of this sync. meant is the most similar one, or "".
func noteInVain(listed, meant string) manifest.Finding {
	f := manifest.Finding{
		Rule: "release-of-nothing", Severity: manifest.Note, About: manifest.About{Subject: listed},
		Message: fmt.Sprintf("release of the Sync lists %s, which this sync does not own", listed),
		Fix:     "remove it from the list",
	}
	if meant != "" {
		f.Severity = manifest.Warning
		f.Fix = fmt.Sprintf("write %s if that is meant, or remove it from the list", meant)
	}
	return f
}

// NotOwned is the error of a release of an object that the sync does not own.
func NotOwned(sync inventory.Sync, name, meant string) error {
	if meant != "" {
		return fmt.Errorf("the sync %s does not own %s; write %s if that is meant", sync, name, meant)
	}
	return fmt.Errorf("the sync %s does not own %s; run 'headgate status --full' to see what it owns, and write identities as shown there", sync, name)
}

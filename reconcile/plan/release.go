package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The codes of releases.
const (
	ReleaseListed    Code = "ReleaseListed"    // the Sync lists the object
	ReleaseAnnounced Code = "ReleaseAnnounced" // the annotation of the live object, and its value
	ReleaseBegun     Code = "ReleaseBegun"     // a pass, or the verb release, began the release and did not finish it
	ReleaseByHand    Code = "ReleaseByHand"    // a user releases the object with the verb release
	OwnedElsewhere   Code = "OwnedElsewhere"   // the owner of an object that the commit does not declare any more
)

// A release takes the place of a prune: only an owned object that the commit does not declare any more is released. Therefore, a
// release is announced first, and happens with the commit that drops the object. An object in the commit is not released, because
// the next pass would adopt it again.

// released returns the reason to release, and not to prune, an object that the commit does not want any more; no reason if it is to
// be pruned.
func (o Observed) released(id manifest.ID, live metav1.Object) Reason {
	e := o.Inventory.Entries[id]
	if why := o.asksRelease(id, live); !why.None() {
		return why
	}
	if live.GetDeletionTimestamp() != nil && live.GetUID() == e.UID && slices.Contains(live.GetFinalizers(), ProtectFinalizer) {
		return Reason{} // its prune removes our finalizer, even if its marks have changed
	}
	if claim := o.ClaimOn(id, live); claim.By != "" && !e.IsLeft(id) {
		return OwnedElsewhere.With(claim.By)
	}
	return Reason{}
}

// asksRelease returns which request releases an object once the commit does not want it any more; no reason if there is no request.
func (o Observed) asksRelease(id manifest.ID, live metav1.Object) Reason {
	value, announced := ownership.Releases(live, o.Inventory.Sync)
	switch {
	case o.Inventory.Entries[id].Releasing:
		return ReleaseBegun.With()
	case o.lists(id):
		return ReleaseListed.With()
	case announced:
		return ReleaseAnnounced.With(ownership.ReleaseAnnotation, value)
	}
	return Reason{}
}

// lists reports whether the Sync lists an object for release.
func (o Observed) lists(id manifest.ID) bool {
	return len(o.Terms.Release) > 0 && slices.ContainsFunc(o.spellings(id), func(text string) bool { return slices.Contains(o.Terms.Release, text) })
}

// spellings returns the texts with which users may name an object: first as reports show it, then without its namespace if a commit
// may omit that.
func (o Observed) spellings(id manifest.ID) []string {
	space := cmp.Or(o.Space, "default")
	if id.Namespace == "" && homesOf(o).Kinds[id.GroupKind()].Namespaced {
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
	if !exists || !o.Stance.In(Writing) {
		return ""
	}
	to, moved := ownership.MovedFrom(live, o.Inventory.Sync)
	// Our mark was lost before the object moved.
	if _, owned := o.Inventory.Entries[id]; !moved || owned && live.GetLabels()[inventory.SyncLabel] == "" {
		return ""
	}
	return to
}

// gaveAway reports whether a wanted object is not applied because it has moved to another sync.
func (o Observed) gaveAway(a Asked) bool {
	return !a.Paused && !a.Policy.Observes() && o.MovedTo(a.ID) != ""
}

// notesOnReleases returns notes on objects that are to be released but stay, because the commit declares them. It also returns
// notes on names that the Sync lists in vain.
func (o Observed) notesOnReleases() []manifest.Finding {
	if o.Stance != Applying {
		return nil
	}
	var notes []manifest.Finding
	home := o.Homes()
	for _, a := range o.Asked {
		live, exists := o.Objects[a.ID]
		if _, owned := o.Inventory.Entries[a.ID]; !owned || !exists || o.gaveAway(a) {
			continue
		}
		if why := o.asksRelease(a.ID, live); !why.None() && why.Code != ReleaseBegun {
			notes = append(notes, noteAnnounced(a.Origin, home(a.ID), why))
		}
	}
	return append(notes, o.listedInVain()...)
}

// listedInVain returns notes on names that the Sync lists for release although this sync neither owns nor declares such an object.
// A misspelt name would not keep its object from being pruned.
func (o Observed) listedInVain() []manifest.Finding {
	if len(o.Terms.Release) == 0 {
		return nil
	}
	known := map[string]bool{}
	var names []string
	note := func(id manifest.ID) {
		for i, text := range o.spellings(id) {
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

// noteAnnounced returns the note on an object that is to be released but that the commit declares.
func noteAnnounced(at manifest.Origin, id manifest.ID, why Reason) manifest.Finding {
	f := manifest.Finding{Rule: "release-announced", Severity: manifest.Note, Origin: at, Fix: "remove it from the commit"}
	f.Message = fmt.Sprintf("release of the Sync lists %s, which the commit declares; Headgate releases it once the commit does not", id)
	if why.Code == ReleaseAnnounced {
		f.Message = fmt.Sprintf("the annotation %s: %s is on %s, which the commit declares; Headgate releases it once the commit does not", why.Values[0], why.Values[1], id)
	}
	return f
}

// noteInVain returns the note on a listed name that is not an object of this sync. meant is the most similar one, or "".
func noteInVain(listed, meant string) manifest.Finding {
	f := manifest.Finding{
		Rule: "release-of-nothing", Severity: manifest.Note,
		Message: fmt.Sprintf("release of the Sync lists %s, which this sync does not own", listed),
		Fix:     "remove it from the list",
	}
	if meant != "" {
		f.Severity = manifest.Warning
		f.Fix = fmt.Sprintf("write %s if that is meant, or remove it from the list", meant)
	}
	return f
}

// ReleaseNamed returns the plan that releases objects of the inventory by name. Nothing is deleted. It refuses objects that the
// last applied commit declares, because the next pass would adopt them again.
func ReleaseNamed(seen Observed, names []string) (Plan, error) {
	p, err := releasing(seen)
	if err != nil {
		return Plan{}, err
	}
	byName := map[string]manifest.ID{}
	var owned []string
	for id := range seen.Inventory.Entries {
		for i, text := range seen.spellings(id) {
			if i == 0 {
				owned = append(owned, text)
			}
			byName[text] = id
		}
	}
	var wrong []error
	for _, name := range names {
		id, known := byName[name]
		switch {
		case !known:
			wrong = append(wrong, notOwned(p.Sync, name, manifest.Meant(name, owned)))
		case !seen.Inventory.Entries[id].Undeclared:
			wrong = append(wrong, fmt.Errorf("the commit of the last pass declares %s, so the next pass would adopt it again; announce the release before you remove it from the commit: set the annotation %s: \"true\" on the object, or list it in release of the Sync",
				name, ownership.ReleaseAnnotation))
		default:
			p.release(id, ReleaseByHand.With(), seen)
		}
	}
	return p.sorted(), errors.Join(wrong...)
}

// notOwned is the error of a release of an object that the sync does not own.
func notOwned(sync inventory.Sync, name, meant string) error {
	if meant != "" {
		return fmt.Errorf("the sync %s does not own %s; write %s if that is meant", sync, name, meant)
	}
	return fmt.Errorf("the sync %s does not own %s; run 'headgate status --full' to see what it owns, and write identities as shown there", sync, name)
}

// ReleaseRebuilt returns the plan that releases the objects which are only in a rebuilt inventory, so that no pass has applied them
// since: Headgate removes its marks from them and forgets them. Nothing is deleted.
func ReleaseRebuilt(seen Observed) (Plan, error) {
	p, err := releasing(seen)
	if err != nil {
		return Plan{}, err
	}
	for id, e := range seen.Inventory.Entries {
		if live, exists := seen.Objects[id]; exists && e.Rebuilt && !inventory.Ours(live, p.Sync) {
			p.Gone = append(p.Gone, id)
		} else if e.Rebuilt {
			p.release(id, Reason{}, seen)
		}
	}
	return p.sorted(), nil
}

// releasing returns an empty plan for entries of the inventory, without a commit.
func releasing(seen Observed) (drafted, error) {
	have := seen.Inventory
	if have.Rebuilt {
		return drafted{}, errors.New("the inventory is lost and not stored again, so it is not known which objects the commit wants; make a pass first")
	}
	return drafted{Plan: Plan{
		Sync:    have.Sync,
		Want:    render.Desired{Owner: have.Owner},
		Owned:   len(have.Entries),
		Version: have.ResourceVersion,
		Places:  homesOf(seen),
		Memory:  Memory{Partial: true},
	}}, nil
}

// release adds the step that releases an object of the inventory, or forgets an object that does not exist.
func (p *drafted) release(id manifest.ID, why Reason, seen Observed) {
	live, exists := seen.Objects[id]
	switch {
	case seen.hides(id) != nil:
		s := p.outOfReach(id, seen)
		s.Action = Release
		p.Steps = append(p.Steps, s)
	case !exists:
		p.Gone = append(p.Gone, id)
	default:
		s := prune(id, seen.Inventory.Entries[id], live)
		s.Action, s.Reason = Release, why
		p.Steps = append(p.Steps, s)
	}
}

// sorted returns the plan with its steps and forgotten objects sorted.
func (p Plan) sorted() Plan {
	slices.SortFunc(p.Gone, manifest.ID.Compare)
	slices.SortStableFunc(p.Steps, inOrder)
	return p
}

// undeclared returns the owned objects that the commit does not declare.
func undeclared(have inventory.Inventory, wanted map[manifest.ID]bool) map[manifest.ID]bool {
	all := map[manifest.ID]bool{}
	for id := range have.Entries {
		if !wanted[id] {
			all[id] = true
		}
	}
	return all
}

// learnsUndeclared reports whether the inventory must be stored because the commit now declares an object, or does not any more.
// Objects that the plan forgets or writes do not count, because they are stored anyway.
func (p Plan) learnsUndeclared(have inventory.Inventory) bool {
	if p.Undeclared == nil {
		return false
	}
	for id, e := range have.Entries {
		if e.Undeclared != p.Undeclared[id] {
			return true
		}
	}
	return false
}

package draft

import (
	"errors"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// notesOnReleases returns notes on objects that are to be released but stay, because the commit declares them. It also returns
// notes on names that the Sync lists in vain.
func notesOnReleases(o facts.Observed) []manifest.Finding {
	var notes []manifest.Finding
	home := o.Homes()
	for _, a := range o.Asked {
		live, exists := o.Objects[a.ID]
		if _, owned := o.Inventory.Entries[a.ID]; !owned || !exists || o.GaveAway(a) {
			continue
		}
		if why := o.AsksRelease(a.ID, live); !why.None() && why.Code != reason.ReleaseBegun {
			notes = append(notes, noteAnnounced(a.Origin, home(a.ID), why))
		}
	}
	return append(notes, o.ListedInVain()...)
}

// noteAnnounced returns the note on an object that is to be released but that the commit declares.
func noteAnnounced(at manifest.Origin, id manifest.ID, why reason.Reason) manifest.Finding {
	f := manifest.Finding{Rule: "release-announced", Severity: manifest.Note, Origin: at, About: manifest.About{Object: id}, Fix: "remove it from the commit"}
	f.Message = fmt.Sprintf("release of the Sync lists %s, which the commit declares; Headgate releases it once the commit does not", id)
	if why.Code == reason.ReleaseAnnounced {
		f.Message = fmt.Sprintf("the annotation %s: %s is on %s, which the commit declares; Headgate releases it once the commit does not", why.Values[0], why.Values[1], id)
	}
	return f
}

// ReleaseNamed returns the plan that releases objects of the inventory by name. Nothing is deleted. It refuses objects that the
// last applied commit declares, because the next pass would adopt them again.
func ReleaseNamed(seen facts.Observed, names []string) (plan.Plan, error) {
	p, err := releasing(seen)
	if err != nil {
		return plan.Plan{}, err
	}
	byName := map[string]manifest.ID{}
	var owned []string
	for id := range seen.Inventory.Entries {
		for i, text := range seen.Spellings(id) {
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
			wrong = append(wrong, facts.NotOwned(p.Sync, name, manifest.Meant(name, owned)))
		case !seen.Inventory.Entries[id].Undeclared:
			wrong = append(wrong, fmt.Errorf("the commit of the last pass declares %s, so the next pass would adopt it again; announce the release before you remove it from the commit: set the annotation %s: \"true\" on the object, or list it in release of the Sync",
				name, ownership.ReleaseAnnotation))
		default:
			p.release(id, reason.ReleaseByHand.With(), seen)
		}
	}
	return sorted(p.Plan), errors.Join(wrong...)
}

// ReleaseRebuilt returns the plan that releases the objects which are only in a rebuilt inventory, so that no pass has applied them
// since: Headgate removes its marks from them and forgets them. Nothing is deleted.
func ReleaseRebuilt(seen facts.Observed) (plan.Plan, error) {
	p, err := releasing(seen)
	if err != nil {
		return plan.Plan{}, err
	}
	for id, e := range seen.Inventory.Entries {
		if live, exists := seen.Objects[id]; exists && e.Rebuilt && !inventory.Ours(live, p.Sync) {
			p.Gone = append(p.Gone, id)
		} else if e.Rebuilt {
			p.release(id, reason.Reason{}, seen)
		}
	}
	return sorted(p.Plan), nil
}

// releasing returns an empty plan for entries of the inventory, without a commit.
func releasing(seen facts.Observed) (drafted, error) {
	have := seen.Inventory
	if have.Rebuilt {
		return drafted{}, errors.New("the inventory is lost and not stored again, so it is not known which objects the commit wants; make a pass first")
	}
	return drafted{Plan: plan.Plan{
		Sync:    have.Sync,
		Want:    render.Desired{Owner: have.Owner},
		Owned:   len(have.Entries),
		Version: have.ResourceVersion,
		Places:  facts.HomesOf(seen),
		Memory:  plan.Memory{Partial: true},
	}}, nil
}

// release adds the step that releases an object of the inventory, or forgets an object that does not exist.
func (p *drafted) release(id manifest.ID, why reason.Reason, seen facts.Observed) {
	live, exists := seen.Objects[id]
	switch {
	case seen.Hides(id) != nil:
		s := p.outOfReach(id, seen.Ground)
		s.Action = plan.Release
		p.Steps = append(p.Steps, s)
	case !exists:
		p.Gone = append(p.Gone, id)
	default:
		s := prune(id, seen.Inventory.Entries[id], live)
		s.Action, s.Reason = plan.Release, why
		p.Steps = append(p.Steps, s)
	}
}

// sorted returns the plan with its steps and forgotten objects sorted.
func sorted(p plan.Plan) plan.Plan {
	slices.SortFunc(p.Gone, manifest.ID.Compare)
	slices.SortStableFunc(p.Steps, plan.InOrder)
	return p
}

// undeclared returns the owned objects that the commit does not declare.
func undeclared(seen facts.Observed) map[manifest.ID]bool {
	all, asked := map[manifest.ID]bool{}, seen.AskedByID()
	for id := range seen.Inventory.Entries {
		if _, wanted := asked[id]; !wanted {
			all[id] = true
		}
	}
	return all
}

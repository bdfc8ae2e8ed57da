package plan

import (
	"errors"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// ReleaseRebuilt returns the plan that releases what a rebuilt inventory holds and no pass has applied
// since: Headgate takes its marks from it and forgets it. Nothing is deleted.
func ReleaseRebuilt(seen Observed) (Plan, error) {
	have := seen.Inventory
	if have.Rebuilt {
		return Plan{}, errors.New("the inventory is lost and not stored again, so it is not known which objects the commit wants; make a pass first")
	}
	p := Plan{
		Sync:    have.Sync,
		Want:    render.Desired{Owner: have.Owner},
		Owned:   len(have.Entries),
		Version: have.ResourceVersion,
		partial: true,
	}
	for id, e := range have.Entries {
		if !e.Rebuilt {
			continue
		}
		live, exists := seen.Objects[id]
		switch {
		case seen.hides(id) != nil:
			s := p.outOfReach(id, seen)
			s.Action = Release
			p.Steps = append(p.Steps, s)
		case !exists || !inventory.Ours(live, have.Sync):
			p.Gone = append(p.Gone, id)
		default:
			s := prune(id, e, live)
			s.Action = Release
			p.Steps = append(p.Steps, s)
		}
	}
	slices.SortFunc(p.Gone, manifest.ID.Compare)
	slices.SortStableFunc(p.Steps, inOrder)
	return p, nil
}

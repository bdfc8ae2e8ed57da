package record

import (
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
)

// TakeLeft adds the CRDs that stay to an inventory after their MRDs were deleted.
func TakeLeft(p plan.Plan, next *inventory.Inventory, done []plan.Outcome) {
	gone := slices.Clone(p.Gone)
	for _, o := range done {
		if o.IsGone() {
			gone = append(gone, o.ID)
		}
	}
	for mrd, e := range p.Behind {
		if _, owned := next.Entries[plan.CRD(mrd.Name)]; slices.Contains(gone, mrd) && !owned {
			next.Entries[plan.CRD(mrd.Name)] = e
		}
	}
}

package record

import (
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
)

// TakeLeft adds the CRDs that stay to an inventory after their MRDs were deleted.
func TakeLeft(p plan.Plan, next *inventory.Inventory, done []plan.Outcome) {
	for mrd, e := range p.Behind {
		gone := slices.Contains(p.Gone, mrd) || slices.ContainsFunc(done, func(o plan.Outcome) bool { return o.ID == mrd && o.IsGone() })
		if _, owned := next.Entries[plan.CRD(mrd.Name)]; gone && !owned {
			next.Entries[plan.CRD(mrd.Name)] = e
		}
	}
}

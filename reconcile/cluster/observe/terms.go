package observe

import (
	"context"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reconciled returns the objects that another tool still reconciles, among those that this sync may adopt. It sends requests only
// if the sync adopts objects of other tools, and such an object is not as wanted.
func (c *Reader) reconciled(ctx context.Context, seen facts.Observed, sp api.Spelling) (map[manifest.ID]reason.Reason, error) {
	if c.options.Terms.Adoption != facts.AdoptAll {
		return nil, nil
	}
	claimed, as := map[manifest.ID]metav1.Object{}, map[manifest.ID]manifest.ID{}
	for _, a := range seen.Doubtful(false) {
		live, exists := seen.Objects[a.ID]
		if claim := ownership.Of(live, c.Sync, seen.Inventory.Entries[a.ID].Foreign); exists && claim.Tool != "" && !claim.Final {
			claimed[sp.Actual(a.ID)], as[sp.Actual(a.ID)] = live, a.ID
		}
	}
	why, err := c.count.Reconcilers(ctx, claimed)
	reconciled := make(map[manifest.ID]reason.Reason, len(why))
	for id, reason := range why {
		reconciled[as[id]] = reason
	}
	return reconciled, err
}

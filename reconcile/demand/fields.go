package demand

import (
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/ownership"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LostFields reports whether a new commit meets managed fields that do not show all that we applied: another writer removed them, or
// took some of the fields.
func LostFields(o facts.Observed, a facts.Asked, live metav1.Object) bool {
	e := o.Inventory.Entries[a.ID]
	if !o.Mine(a.ID, live) || o.AsBefore(a.Object) {
		return false
	}
	return ownership.IsLost(live) || e.Fields != "" && e.Fields != diff.OwnFields(live, IgnoredBy(e, o.Inventory.Record))
}

package demand

import (
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/render"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Adopting returns from which field managers an apply of an object takes fields. From tools that applied an object of this sync, it
// takes only fields that were updated, and only for a new commit: a server-side apply in between is intentional. If managed fields
// were lost, it takes back what it applied.
func Adopting(o facts.Observed, a facts.Asked, live metav1.Object) ownership.Taking {
	switch {
	case a.Policy.Observes(), render.Merges(a.Asks), !o.Reconciled[a.ID].None(), !o.Refused(a.ID, live).None():
		return ownership.Taking{}
	case !o.Mine(a.ID, live):
		return ownership.Taking{Appliers: true}
	}
	isNew, lost := !o.AsBefore(a.Object), ownership.IsLost(live)
	return ownership.Taking{Appliers: isNew, OnlyUpdates: true, Nobody: isNew || lost, Restorers: lost && o.Restored(a.ID, live)}
}

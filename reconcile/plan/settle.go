package plan

import (
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Applied returns the entry of an object that is as wanted, except for ignored fields.
func Applied(live metav1.Object, digest string, ignored ...diff.Pointer) inventory.Entry {
	e := inventory.Succeeded(live.GetUID(), digest, inventory.Mark(live))
	e.Foreign, e.Fields = ownership.SentMarks(live), diff.OwnFields(live, ignored)
	return e
}

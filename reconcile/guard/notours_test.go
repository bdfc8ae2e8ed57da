package guard

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// If a user deletes an object that then waits only for the finalizer of Headgate, Headgate removes the finalizer, also
// without the marks, or with marks that say otherwise by now, because no other tool does. Another object with the same name keeps
// it: it is held, or released to its owner.
func TestFinalizerWithoutMarks(t *testing.T) {
	id := manifest.IDOf(given.ConfigMap("a"))
	marks := map[string]map[string]string{"lost": nil, "another inventory": {inventory.InventoryAnnotation: "other"}}
	for name, annotations := range marks {
		for uid, want := range map[types.UID]plan.Action{"": plan.Prune, "another": plan.Hold} {
			seen := given.Owning(t, "a")
			live := seen.Objects[id].DeepCopy()
			now := metav1.Now()
			live.Labels, live.Annotations, live.DeletionTimestamp, live.Finalizers = nil, annotations, &now, []string{plan.ProtectFinalizer}
			if uid != "" {
				live.UID = uid
			}
			seen.Objects[id] = live
			p := given.Computed(t, render.Desired{}, seen, plan.Guard{Name: NotOurs, Phase: plan.Prunes, Rule: plan.Each(notOurs)})
			if uid != "" && annotations != nil {
				want = plan.Release
			}
			if s := p.Steps[0]; s.Action != want {
				t.Errorf("marks: %s, UID %q: %s %q %s", name, uid, s.Action, s.Guard, s.Reason)
			}
		}
	}
}

package guard

import (
	"slices"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// If an object stays, its dependencies stay, too, over any number of levels. Once an intermediate object is known to stay, the
// guard rules on its dependencies again.
func TestDependedOn(t *testing.T) {
	const keep = "kustomize.toolkit.fluxcd.io/prune"
	on := func(name string) func(*metav1.PartialObjectMetadata) {
		return given.Annotated("config.kubernetes.io/depends-on", "/namespaces/default/ConfigMap/"+name)
	}
	for name, tc := range map[string]struct {
		reason string
		stance plan.Stance
		keeps  bool
		want   plan.Action
	}{
		"Goes":     {"All dependent objects are pruned, too.", plan.Applying, false, plan.Prune},
		"Stays":    {"One is retained, so none of its dependencies goes.", plan.Applying, true, plan.Keep},
		"Ends":     {"The sync ends.", plan.Destroying, false, plan.Prune},
		"Released": {"Nobody will own the one that is retained, and what it depends on stays with it.", plan.Destroying, true, plan.Release},
	} {
		seen := given.Owning(t, "a", "b", "c")
		seen.Stance = tc.stance
		on("a")(seen.Objects[manifest.IDOf(given.ConfigMap("b"))])
		last := seen.Objects[manifest.IDOf(given.ConfigMap("c"))]
		on("b")(last)
		if tc.keeps {
			last.Annotations[keep] = "disabled"
		}
		guards := slices.DeleteFunc(Guarding{}.Guards(), func(g draft.Guard) bool { return g.Name == Empty })
		p := given.Computed(t, render.Desired{}, seen, guards...)
		for _, s := range p.Steps {
			if s.Action != tc.want {
				t.Errorf("%s: %s\n%s %s (%s: %s)", name, tc.reason, s.Action, s.ID, s.Guard, s.Reason)
			}
		}
		if len(p.Steps) != 3 {
			t.Errorf("%s: %d steps", name, len(p.Steps))
		}
	}
}

// A prune waits until what depends on its object is gone, or depends on it no longer, and is held while that stays. Otherwise an object
// works for a while without what it needs, or the garbage collector deletes what nobody asked to delete.
func TestDependantsGoFirst(t *testing.T) {
	b := given.ConfigMap("b")
	depends := given.Annotated("config.kubernetes.io/depends-on", "/namespaces/default/ConfigMap/a")
	owned := func(m *metav1.PartialObjectMetadata) { m.OwnerReferences = []metav1.OwnerReference{{UID: "a"}} }
	kept := given.Both(owned, given.Annotated("kustomize.toolkit.fluxcd.io/prune", "disabled"))
	wanted := []render.Object{given.Wanted(t, b)}
	for name, tc := range map[string]struct {
		want    []render.Object
		changes bool
		stance  plan.Stance
		live    func(*metav1.PartialObjectMetadata)
		action  plan.Action
		waits   reason.Code
	}{
		"Pruned":       {nil, false, plan.Applying, depends, plan.Prune, reason.AwaitsDependant},
		"Ended":        {nil, false, plan.Destroying, depends, plan.Prune, reason.AwaitsDependant},
		"Updated":      {wanted, true, plan.Applying, depends, plan.Prune, reason.AwaitsUpdate},
		"OwnedPruned":  {nil, false, plan.Applying, owned, plan.Prune, reason.AwaitsDependant},
		"OwnedUpdated": {wanted, true, plan.Applying, owned, plan.Hold, ""},
		"OwnedStays":   {wanted, false, plan.Applying, owned, plan.Hold, ""},
		"OwnedKept":    {nil, false, plan.Applying, kept, plan.Keep, ""},
		"OwnedEnded":   {nil, false, plan.Destroying, kept, plan.Release, ""},
	} {
		seen := given.Owning(t, "a", "b")
		seen.Stance = tc.stance
		tc.live(seen.Objects[manifest.IDOf(b)])
		if tc.changes {
			seen.Trials = map[manifest.ID]facts.Trial{manifest.IDOf(b): {Live: b, After: given.ConfigMap("changed")}}
		}
		guards := slices.DeleteFunc(Guarding{}.Guards(), func(g draft.Guard) bool { return g.Name == Empty })
		_, steps := given.Steps(t, render.Desired{Objects: tc.want}, seen, guards...)
		a := steps["ConfigMap a"]
		var waits reason.Code
		if len(a.Waits) == 1 {
			waits = a.Waits[0].Code
		}
		if a.Action != tc.action || waits != tc.waits {
			t.Errorf("%s: %s of a, which waits for %v, want %s and %q", name, a.Action, a.Waits, tc.action, tc.waits)
		}
	}
}

package guard

import (
	"slices"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
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

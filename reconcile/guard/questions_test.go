package guard

import (
	"slices"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Whatever has been answered, no prune passes whose questions are open, and with all answers, every prune passes.
func TestNoPruneWithOpenQuestions(t *testing.T) {
	seen := facts.Observed{
		Ground: facts.Ground{
			Inventory: inventory.Inventory{Sync: given.Sync, ResourceVersion: "1", Entries: map[manifest.ID]inventory.Entry{}},
			Kinds:     map[schema.GroupKind]plan.Kind{},
		},
		Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}},
	}
	for _, gk := range crossplane.Usages {
		seen.Kinds[gk] = plan.Kind{Version: "v1", Resource: "usages"}
	}
	for _, id := range []manifest.ID{
		plan.CRD("buckets.example.org"), {Kind: "Namespace", Name: "team"}, {Group: "example.org", Kind: "ProviderConfig", Name: "a"}, {Kind: "ConfigMap", Namespace: "other", Name: "a"},
	} {
		seen.Kinds[schema.GroupKind{Group: id.Group, Kind: id.Kind}] = plan.Kind{Version: "v1", Resource: "things", Namespaced: id.Namespace != ""}
		seen.Inventory.Entries[id] = inventory.Entry{UID: types.UID(id.String())}
		seen.Objects[id] = &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: schema.GroupVersion{Group: id.Group, Version: "v1"}.String(), Kind: id.Kind},
			ObjectMeta: metav1.ObjectMeta{
				Name: id.Name, Namespace: id.Namespace, UID: types.UID(id.String()),
				Labels: map[string]string{inventory.SyncLabel: given.Sync.Key()}, Annotations: map[string]string{inventory.InventoryAnnotation: given.Sync.Key()},
			},
		}
	}
	want := render.Desired{Owner: render.OwnerHeadgate, Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}}
	guards := Guarding{MaxPrunes: 99, PruneInstances: true}.Guards()
	guards = slices.DeleteFunc(guards, func(g draft.Guard) bool { return g.Name == Empty })
	all := given.Computed(t, want, seen, guards...).Open()
	if len(all) < 6 {
		t.Fatalf("too few questions: %s", question.Text(all))
	}
	for answered := range 1 << len(all) {
		seen.Answers = question.Answers{}
		for i, q := range all {
			if answered&(1<<i) != 0 {
				seen.Answers[q] = q.Nothing()
			}
		}
		p := given.Computed(t, want, seen, guards...)
		open := map[manifest.ID]bool{}
		for _, q := range p.Open() {
			open[q.About()] = true
		}
		for _, s := range p.Steps {
			if s.Action == plan.Prune && open[s.ID] {
				t.Fatalf("%s is pruned, and the plan asks %s", s.ID, question.Text(p.Open()))
			}
		}
		if answered == 1<<len(all)-1 && (p.Count(plan.Prune) != 4 || len(open) > 0) {
			for _, s := range p.Steps {
				t.Logf("%s %s: %s %s", s.Action, s.ID, s.Guard, s.Why())
			}
			t.Errorf("%d prunes, and the plan asks %s", p.Count(plan.Prune), question.Text(p.Open()))
		}
	}
}

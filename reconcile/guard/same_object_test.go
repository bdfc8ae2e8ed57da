package guard

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestSameObject proves that an object is never pruned, nor released, under an old identity, and that the old identity is forgotten
// only once the new one is in the inventory.
func TestSameObject(t *testing.T) {
	event := func(apiVersion string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "a"}}}
	}
	was, is := event("old.example.org/v1"), event("v1")
	old, wanted := manifest.IDOf(was), manifest.IDOf(is)
	for name, edit := range map[string]func(*facts.Observed){
		"Plain":    func(*facts.Observed) {},
		"Released": func(seen *facts.Observed) { seen.Terms.Release = []string{old.String()} },
	} {
		seen := given.Owning(t)
		seen.Objects[old], seen.Objects[wanted] = given.Live(was, "same"), given.Live(is, "same")
		seen.Inventory.Entries[old] = inventory.Entry{UID: "same"}
		edit(&seen)
		want := render.Desired{Objects: []render.Object{given.Wanted(t, is)}}
		p, steps := given.Steps(t, want, seen, Guarding{}.Guards()...)
		for _, s := range steps {
			if s.ID == old && (s.Action != plan.Keep || s.Guard != plan.SameObject) {
				t.Errorf("%s: %s by %q: the commit wants it", name, s.Action, s.Guard)
			}
			if s.Action == plan.Release || s.Action == plan.Prune {
				t.Errorf("%s: %s %s", name, s.Action, s.ID)
			}
		}
		if _, owned := record.Settled(p, seen.Inventory, nil).Entries[old]; !owned {
			t.Errorf("%s: nothing would own the object", name)
		}
		seen.Inventory.Entries[wanted] = inventory.Entry{UID: "same"}
		p = given.Computed(t, want, seen, Guarding{}.Guards()...)
		if _, owned := record.Settled(p, seen.Inventory, nil).Entries[old]; owned || !p.Remembers() {
			t.Errorf("%s: the old identity stays", name)
		}
	}
}

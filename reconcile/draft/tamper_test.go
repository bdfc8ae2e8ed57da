package draft_test

import (
	"maps"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzTamperedInventory plans with arbitrary inventories. A deleted object must have both marks of this sync and, if its entry has
// a UID, that UID. A released object must have both marks. An inventory that was read must be written back unchanged.
func FuzzTamperedInventory(f *testing.F) {
	f.Add("default_a__ConfigMap", `{"uid":"u"}`, "u", true, true, "")
	f.Add("default_a__ConfigMap", `{"uid":"other"}`, "u", true, true, "")
	f.Add("default_a__ConfigMap", "", "u", true, false, "Delete")
	f.Add("_kube-system__Namespace", `{"uid":"u","digest":"x","mark":"y"}`, "u", false, false, "Delete")
	f.Add("_buckets.example.org_apiextensions.k8s.io_CustomResourceDefinition", `{"strategy":"Apply"}`, "u", false, true, "Orphan")
	f.Add("x", "{", "", true, true, "")
	f.Add("___ ", "", "0", true, true, "")
	f.Fuzz(func(t *testing.T, key, value, uid string, label, annotation bool, ends string) {
		if len(validation.IsConfigMapKey(key)) > 0 {
			return // the API server refuses the key
		}
		entries, err := inventory.Entries(map[string]string{key: value})
		if err != nil {
			return // an unreadable inventory stops the pass
		}
		seen := facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync, ResourceVersion: "1", Owner: render.OwnerHeadgate, Entries: entries}}, Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}}}
		if ends == string(plan.Destroying) || ends == string(plan.Orphaning) {
			seen.Stance = plan.Stance(ends)
		}
		for id := range entries {
			o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: id.Kind}}
			o.Namespace, o.Name, o.UID = id.Namespace, id.Name, types.UID(uid)
			if label {
				o.Labels = map[string]string{inventory.SyncLabel: given.Sync.Key()}
			}
			if annotation {
				o.Annotations = map[string]string{inventory.InventoryAnnotation: given.Sync.Key()}
			}
			seen.Objects[id] = o
			seen.Answers = question.Answers{question.Dependents{Of: id}: question.Counted{}, question.Inside{Of: id}: question.Counted{}}
		}
		// The commit wants another object, so the guard "empty" holds nothing.
		p, err := given.Compute(render.Desired{Owner: render.OwnerHeadgate, Objects: []render.Object{given.Wanted(t, given.ConfigMap("wanted"))}}, seen, guard.Guarding{PruneInstances: true, MaxPrunes: 9}.Guards()...)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Steps {
			live := seen.Objects[s.ID]
			switch e := entries[s.ID]; {
			case s.Action != plan.Prune && s.Action != plan.Release:
			case !inventory.Ours(live, given.Sync):
				t.Errorf("%s of %s, which does not bear both marks", s.Action, s.ID)
			case s.Action == plan.Prune && e.UID != "" && e.UID != live.UID:
				t.Errorf("%s is not the object of the entry", s.ID)
			case s.Action == plan.Prune && (s.UID != live.UID || live.Name == given.Sync.Namespace && live.Kind == "Namespace" && s.ID.Group == ""):
				t.Errorf("%s would be deleted", s.ID)
			}
		}
		data, err := seen.Inventory.Data()
		if err != nil {
			t.Fatal(err)
		}
		again, err := inventory.Entries(data)
		if err != nil {
			t.Fatal(err)
		}
		apart, err := seen.Inventory.Apart()
		if err != nil {
			t.Fatal(err)
		}
		others, err := inventory.EntriesApart(apart)
		maps.Copy(again, others)
		if err != nil || len(again) != len(entries) {
			t.Fatalf("written back: %v, %v", again, err)
		}
		for id, e := range entries {
			if again[id] != e {
				t.Errorf("%s: %v, written back %v", id, e, again[id])
			}
		}
	})
}

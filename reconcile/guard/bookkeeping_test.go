package guard

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An object is held even if only the live object shows that it is an inventory. An inventory that an older version recorded as an
// object of a commit stays.
func TestBookkeepingIsNeverAnObjectOfACommit(t *testing.T) {
	const guard = "inventory"
	object := func(kind, namespace, name string) *unstructured.Unstructured {
		u := given.ConfigMap(name)
		u.SetKind(kind)
		u.SetNamespace(namespace)
		delete(u.Object, "data")
		return u
	}
	lease := object("Lease", "team", "headgate-prod")
	lease.SetAPIVersion("coordination.k8s.io/v1")
	holdsKey := func(m *metav1.PartialObjectMetadata) {
		m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: inventory.Manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:data":{".":{},"f:digest-key":{}},"f:type":{}}`)}}
	}
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		edit   []func(*metav1.PartialObjectMetadata)
		absent bool // the object is not in the cluster, so the step is no prune
		free   bool
	}{
		"OfThisNamespace": {reason: "Syncs in this namespace store their inventories here.", object: object("ConfigMap", given.Sync.Namespace, "headgate-other")},
		"OfHome":          {reason: "Syncs from the command line store their inventories in headgate-system.", object: object("ConfigMap", "headgate-system", "headgate-other")},
		"DefaultSpace":    {reason: "A manifest may omit the namespace.", object: object("ConfigMap", "", "headgate-other")},
		"NotYet":          {reason: "If the commit came first, it would own the other sync's inventory.", object: object("ConfigMap", "headgate-system", "headgate-other"), absent: true},
		"Labelled":        {reason: "Only the live object is labelled as an inventory.", object: object("ConfigMap", "team", "headgate-other"), edit: []func(*metav1.PartialObjectMetadata){given.Labelled(render.InventoryLabel, "team.other")}},
		"Part":            {reason: "Only the live object is labelled as part of an inventory.", object: object("ConfigMap", "team", "any"), edit: []func(*metav1.PartialObjectMetadata){given.Labelled(render.ValuesLabel, "team.other")}},
		"Annotated":       {reason: "A user removed the label, but not the annotation.", object: object("ConfigMap", "team", "any"), edit: []func(*metav1.PartialObjectMetadata){given.Annotated("headgate.dev/inventory", "{}")}},
		"Key":             {reason: "A commit without the key would not conflict with it.", object: object("Secret", "team", "headgate-prod"), edit: []func(*metav1.PartialObjectMetadata){holdsKey}},
		"Lease":           {reason: "Without the lease, two processes could apply the same sync.", object: lease},
		"OtherSecret":     {reason: "The Secret contains no key.", object: object("Secret", "team", "headgate-prod"), free: true},
		"Elsewhere":       {reason: "The ConfigMap only has a similar name.", object: object("ConfigMap", "monitoring", "headgate-dashboard"), free: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := given.Wanted(t, tc.object)
			seen := given.Owning(t, "a", "b", "c", "d", "e")
			seen.Space = "headgate-system"
			seen.Kinds = map[schema.GroupKind]plan.Kind{{Kind: "ConfigMap"}: given.Kinds[schema.GroupKind{Kind: "ConfigMap"}], o.ID.GroupKind(): {Version: "v1", Resource: "any", Namespaced: true}}
			keep := render.Desired{Owner: render.OwnerHeadgate}
			for _, n := range []string{"a", "b", "c", "d", "e"} {
				keep.Objects = append(keep.Objects, given.Wanted(t, given.ConfigMap(n)))
			}
			if !tc.absent {
				there := given.Live(tc.object, "theirs", tc.edit...)
				seen.Objects[o.ID] = there
				seen.Inventory.Entries[o.ID] = inventory.Entry{UID: "theirs", Strategy: "Apply"}
				for ending, allowed := range map[plan.Stance]plan.Action{plan.Applying: plan.Keep, plan.Destroying: plan.Release} {
					leaving := seen
					leaving.Stance = ending
					want := keep
					if ending != plan.Applying {
						want = render.Desired{Owner: render.OwnerHeadgate}
					}
					for _, s := range given.Computed(t, want, leaving, Guarding{}.Guards()...).Steps {
						if s.ID == o.ID && (s.Guard != guard || s.Action != allowed) != tc.free {
							t.Errorf("%s\nleaves the commit, ending %q: %s by guard %q: %s", tc.reason, ending, s.Action, s.Guard, s.Reason)
						}
					}
				}
				seen.Trials = map[manifest.ID]facts.Trial{o.ID: {Live: tc.object, After: given.ConfigMap("changed")}}
			}
			with := keep
			with.Objects = append(with.Objects, o)
			found := false
			for _, s := range given.Computed(t, with, seen, Guarding{}.Guards()...).Steps {
				if s.ID != o.ID {
					continue
				}
				found = true
				if (s.Guard != guard || s.Action != plan.Hold) != tc.free {
					t.Errorf("%s\nis in the commit: %s by guard %q: %s", tc.reason, s.Action, s.Guard, s.Reason)
				}
			}
			if !found {
				t.Error("no step")
			}
		})
	}
}

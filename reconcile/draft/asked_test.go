package draft_test

import (
	"slices"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestComputeNeedsACommit(t *testing.T) {
	if p, err := draft.Compute(given.Owning(t, "a")); err == nil {
		t.Errorf("A place that was observed for no commit would lose all that is owned there: %v", p.Steps)
	}
}

// Existing objects may add to the objects to apply. The result is one decision for one commit.
func TestFound(t *testing.T) {
	commit := given.Desired(t, render.OwnerHeadgate, nil)
	buckets := plan.CRD(given.Buckets)
	base, user := given.ConfigMap("base"), given.ConfigMap("user")
	commit.Objects = append(commit.Objects, given.Wanted(t, base))
	protects := given.Live(user, "user", given.Annotated(plan.ProtectAnnotation, "true"), given.Annotated("config.kubernetes.io/depends-on", "/namespaces/default/ConfigMap/base"))
	owned := func(ids ...manifest.ID) inventory.Inventory {
		inv := inventory.Inventory{Sync: given.Sync, Entries: map[manifest.ID]inventory.Entry{}}
		for _, id := range ids {
			inv.Entries[id] = inventory.Entry{UID: types.UID(id.Name)}
		}
		return inv
	}
	cases := map[string]struct {
		reason   string
		owned    inventory.Inventory
		objects  []*metav1.PartialObjectMetadata
		retained []string
		protects bool
	}{
		"Nothing":  {reason: "An empty cluster adds nothing.", owned: owned()},
		"Retained": {reason: "A rebuilt inventory contains a definition that nothing activates any more.", owned: owned(buckets), retained: []string{given.Buckets}},
		"Protects": {
			reason: "An object that leaves the commit still protects its dependencies while it exists.",
			owned:  owned(manifest.IDOf(base), manifest.IDOf(user)), objects: []*metav1.PartialObjectMetadata{protects}, protects: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			first, err := demand.Ask(facts.Observed{Ground: facts.Ground{Inventory: owned(), Kinds: given.Kinds}}, commit)
			if err != nil {
				t.Fatal(err)
			}
			objects := map[manifest.ID]*metav1.PartialObjectMetadata{}
			for _, o := range tc.objects {
				objects[manifest.ID{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}] = o
			}
			seen, err := demand.Found(first, tc.owned, objects)
			if err != nil {
				t.Fatal(err)
			}
			var retained []string
			protected := false
			for _, a := range seen.Asked {
				if !a.Retained.None() {
					retained = append(retained, a.ID.Name)
				}
				content, err := a.Content()
				if err != nil {
					t.Fatal(err)
				}
				protected = protected || slices.Contains(content.GetFinalizers(), plan.ProtectFinalizer)
			}
			if diff := cmp.Diff(tc.retained, retained); diff != "" || protected != tc.protects {
				t.Errorf("%s\nprotected = %t, retained (-want +got):\n%s", tc.reason, protected, diff)
			}
			if len(first.Asked) != len(commit.Objects) {
				t.Errorf("%s\nThe first stage changed: %d are asked for", tc.reason, len(first.Asked))
			}
		})
	}
}

package schema_test

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestDifferential judges the comparison that users see: of two commits, in which the CRD is an object, an active definition, an
// inactive one, or an MRD that Headgate applies.
func TestDifferential(t *testing.T) {
	ways := []struct {
		path, policy string
		owner        render.Owner
	}{
		{"object.yaml", "*", render.OwnerHeadgate},
		{"package/crds/one.yaml", "*", render.OwnerHeadgate},
		{"package/crds/one.yaml", "nothing.example.org", render.OwnerHeadgate},
		{"package/crds/one.yaml", "*", render.OwnerCrossplane},
	}
	n := 0
	schema.Differential(t, func(before, after *unstructured.Unstructured) schema.Difference {
		way := ways[n%len(ways)]
		n++
		commit := func(crd *unstructured.Unstructured) render.Desired {
			raw, err := yaml.Marshal(crd.Object)
			if err != nil {
				t.Fatal(err)
			}
			return given.Desired(t, way.owner, map[string]string{way.path: string(raw), "policy.yaml": given.Policy("all", way.policy)})
		}
		seen, err := baseline.Baseline{Base: commit(before), Sync: given.Sync}.Observe(t.Context(), commit(after))
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Compute(seen)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Steps {
			if s.ID.Name == before.GetName() {
				return s.Schema()
			}
		}
		for _, e := range p.Effects {
			if e.On.Name == before.GetName() && e.Change != nil {
				return e.Change.Schema()
			}
		}
		return schema.Difference{}
	})
}

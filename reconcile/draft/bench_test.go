package draft_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkCompute plans a provider with 2,043 definitions, as a pass does between its requests. 500 of the definitions are active,
// in three clusters: an empty one, an unchanged one, and one in which a former policy activated more.
func BenchmarkCompute(b *testing.B) {
	const definitions, active = 2043, 500
	commit := func(active int) render.Desired {
		files := fstest.MapFS{"provider/crossplane.yaml": {Data: []byte(`apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: provider-toy}
spec: {capabilities: [safe-start]}
`)}}
		var policy strings.Builder
		policy.WriteString("apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: some}\nspec:\n  activate:\n")
		for i := range definitions {
			files[fmt.Sprintf("provider/%d.yaml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, toyDefinition, i)}
			if i < active {
				fmt.Fprintf(&policy, "  - things%d.example.org\n", i)
			}
		}
		files["policy.yaml"] = &fstest.MapFile{Data: []byte(policy.String())}
		want, err := render.Render(render.Input{Files: files}, render.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if len(want.Definitions) != definitions {
			b.Fatalf("%d definitions, want %d", len(want.Definitions), definitions)
		}
		return want
	}
	want := commit(active)
	left := facts.Observed{
		Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync, Entries: map[manifest.ID]inventory.Entry{}}, Kinds: given.Kinds},
		Live:   facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}},
	}
	for i, o := range want.Objects {
		if !o.ID.IsCRD() {
			continue // the cluster does not serve policies
		}
		u, err := demand.Sent(given.Sync, o)
		if err != nil {
			b.Fatal(err)
		}
		left.Objects[o.ID] = given.Live(u, types.UID(fmt.Sprint(i)))
		left.Inventory.Entries[o.ID] = plan.Applied(left.Objects[o.ID], given.Sync.Digest(o))
	}
	cases := map[string]struct {
		want  render.Desired
		seen  facts.Observed
		steps plan.Action
		n     int
	}{
		"FirstPass":   {want, facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync}, Kinds: given.Kinds}}, plan.Create, active},
		"NothingToDo": {want, left, plan.Keep, active},
		"Retained":    {commit(1), left, plan.Keep, active},
	}
	guards := guard.Guarding{}.Guards()
	for name, bc := range cases {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				seen, err := demand.Ask(bc.seen, bc.want)
				if err != nil || len(seen.Doubtful(false)) > 0 {
					b.Fatal("an object has to be checked", err)
				}
				p, err := draft.Compute(seen, guards...)
				if err != nil || p.Count(bc.steps) != bc.n {
					b.Fatalf("%d of %d steps %s, want %d: %v", p.Count(bc.steps), len(p.Steps), bc.steps, bc.n, err)
				}
			}
		})
	}
}

const toyDefinition = `apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceDefinition
metadata:
  name: things%[1]d.example.org
spec:
  group: example.org
  scope: Namespaced
  names:
    kind: Thing%[1]d
    plural: things%[1]d
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
`

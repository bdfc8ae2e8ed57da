package baseline

import (
	"io/fs"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A replacement shows the same changes as both definitions with all of their schemas, and keeps a fraction of them.
func TestReplacement(t *testing.T) {
	both, size, kept := 0, 0, 0
	for older, newer := range map[string]string{
		"provider-kubernetes-v1.0.0": "provider-kubernetes",
		"provider-helm-older":        "provider-helm",
		"provider-helm":              "provider-helm-older",
	} {
		was, is := released(t, older), released(t, newer)
		for name, live := range was {
			after := is[name]
			if after == nil {
				continue
			}
			both++
			r, err := replacementOf(object(t, live), object(t, after))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(schema.Compare(live, after), r.Difference, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: what it breaks (-whole +replacement):\n%s", name, diff)
			}
			if diff := cmp.Diff(diff.Changes(live, after, diff.Mask{}), diff.Changes(r.live(), r.after(), diff.Mask{}), cmpopts.SortSlices(func(a, b diff.Change) bool { return a.Path < b.Path })); diff != "" {
				t.Errorf("%s: changes (-whole +replacement):\n%s", name, diff)
			}
			size, kept = size+object(t, live).Size, kept+object(t, r.live()).Size
		}
	}
	if both < 10 || kept > size/2 {
		t.Errorf("%d CRDs were compared, and %d of %d bytes were kept", both, kept, size)
	}
}

func object(t *testing.T, u *unstructured.Unstructured) render.Object {
	t.Helper()
	o, err := render.NewObject(u, manifest.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func released(t *testing.T, archive string) map[string]*unstructured.Unstructured {
	t.Helper()
	files := fixtures.Corpus(t, archive)
	paths, err := fs.Glob(files, "crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*unstructured.Unstructured{}
	for _, path := range paths {
		documents, err := manifest.Read(files, path, manifest.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range documents {
			u, err := d.Decode()
			if err != nil {
				t.Fatal(err)
			}
			all[u.GetName()] = u
		}
	}
	return all
}

// What stands beside a change decides what the change breaks, whoever makes the CRD.
func TestNeighbours(t *testing.T) {
	cases := map[string]struct {
		reason  string
		was, is string // the schema of the spec
		breaks  bool
	}{
		"Required": {"A required field with a default is never missing.",
			`{type: object, properties: {a: {type: string, default: x}}}`, `{type: object, required: [a], properties: {a: {type: string, default: x}}}`, false},
		"Keeps": {"An object that keeps unknown fields loses none.",
			`{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}`, `{type: object, x-kubernetes-preserve-unknown-fields: true}`, false},
		"Rule": {"A rule reads the default.",
			`{type: object, x-kubernetes-validations: [{rule: "self.a == 'x'"}], properties: {a: {type: string, default: x}}}`,
			`{type: object, x-kubernetes-validations: [{rule: "self.a == 'x'"}], properties: {a: {type: string, default: y}}}`, true},
	}
	commit := func(owner render.Owner, path, policy, spec string) render.Desired {
		return given.Desired(t, owner, map[string]string{"policy.yaml": given.Policy("some", policy), path: `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Ship, plural: ships}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: ` + spec + `}}}}]
`})
	}
	for name, tc := range cases {
		for way, w := range map[string]struct {
			owner        render.Owner
			path, policy string
		}{
			"Object":   {render.OwnerHeadgate, "ships.yaml", "*"},
			"Active":   {render.OwnerHeadgate, "package/crds/ships.yaml", "*"},
			"Inactive": {render.OwnerHeadgate, "package/crds/ships.yaml", "none.example.org"},
			"MRD":      {render.OwnerCrossplane, "package/crds/ships.yaml", "*"},
		} {
			t.Run(name+way, func(t *testing.T) {
				seen, err := Baseline{Base: commit(w.owner, w.path, w.policy, tc.was), Sync: given.Sync}.Observe(t.Context(), commit(w.owner, w.path, w.policy, tc.is))
				if err != nil {
					t.Fatal(err)
				}
				p, err := draft.Compute(seen)
				if err != nil {
					t.Fatal(err)
				}
				var breaking []schema.Change
				for _, s := range p.Steps {
					breaking = append(breaking, s.Schema().Breaking()...)
				}
				for _, e := range p.Effects {
					if e.Kind == plan.Redeclare {
						breaking = append(breaking, e.Change.Schema().Breaking()...)
					}
				}
				if len(breaking) > 0 != tc.breaks {
					t.Errorf("%s: %v", tc.reason, breaking)
				}
			})
		}
	}
}

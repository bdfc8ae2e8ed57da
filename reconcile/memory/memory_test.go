package memory

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// TestCompare counts all CRDs, whichever tool creates them, including retained ones.
func TestCompare(t *testing.T) {
	desired := func(active string, objects ...render.Object) render.Desired {
		d := render.Desired{Objects: objects}
		for _, name := range []string{"a", "b"} {
			d.Definitions = append(d.Definitions, render.DecidedDefinition{Decision: activation.Decision{Definition: &catalogue.Definition{Name: name}, Active: name == active}})
		}
		return d
	}
	made := func(name string) render.Object {
		return render.Object{ID: manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: name}, Size: 1000, Definition: name}
	}
	mrd := func(name string) render.Object {
		return render.Object{ID: manifest.ID{Group: "apiextensions.crossplane.io", Kind: "ManagedResourceDefinition", Name: name}, Size: 1000, Definition: name}
	}
	one, two := Of(map[string]Size{"a": 1000}), Of(map[string]Size{"a": 1000, "b": 1000})
	cases := map[string]struct {
		reason        string
		before, after render.Desired
		stays         []string
		want          Change
	}{
		"Opens":      {"A new definition adds a CRD.", desired("a", made("a")), desired("b", made("a"), made("b")), nil, Change{one, two, 2, 0}},
		"Stays":      {"A CRD that is no longer rendered stays in the cluster, and still counts.", desired("a", made("a")), desired("b", made("b")), []string{"a"}, Change{one, two, 2, 0}},
		"Crossplane": {"Crossplane creates CRDs only for active definitions.", desired("a", mrd("a"), mrd("b")), desired("b", mrd("a"), mrd("b")), []string{"a"}, Change{one, two, 2, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Compare(tc.before, tc.after, tc.stays)); diff != "" {
				t.Errorf("%s\nCompare(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A preview loop survives a commit whose definitions cause a panic.
func TestPanics(t *testing.T) {
	defer func() {
		if output, _ := recover().(string); output == "" {
			t.Error("A comparison reports nothing.")
		}
	}()
	nothing := render.DecidedDefinition{Decision: activation.Decision{Definition: &catalogue.Definition{Name: "a", Package: &catalogue.Package{}, Document: &manifest.Document{}}, Active: true}}
	of := Compare(render.Desired{}, render.Desired{Definitions: []render.DecidedDefinition{nothing}}, nil)
	t.Errorf("It went on: %v", of)
}

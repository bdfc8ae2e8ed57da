package guard

import (
	"testing"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

// Crossplane installs the image, not the copy in the tree, so guards count and compare the image's content.
func TestInstalledBesideACopy(t *testing.T) {
	by, other := manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "sea"}, manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "sky"}
	definition := func(name string, of catalogue.Package) render.DecidedDefinition {
		return render.DecidedDefinition{Decision: activation.Decision{Definition: &catalogue.Definition{Name: name, Package: &of}}}
	}
	image := catalogue.Package{Directory: "registry.example.org/sea:v1", Digest: "sha256:1", Named: by, Installer: by}
	copied, dependency := catalogue.Package{Directory: "sea", Installer: by}, catalogue.Package{Directory: "registry.example.org/air:v1", Digest: "sha256:2", Installer: by}
	crd := render.Left{ID: plan.CRD("configs.sea.example.org"), Package: image.Directory}
	want := render.Desired{
		Definitions: []render.DecidedDefinition{definition("boats.sea.example.org", copied), definition("kites.air.example.org", dependency)},
		Beside: []render.Beside{{
			Package: image, Definitions: []render.DecidedDefinition{definition("boats.sea.example.org", image), definition("sails.sea.example.org", image)},
			Left: []render.Left{crd, {ID: manifest.ID{Kind: "Other"}, Package: image.Directory}},
		}},
	}
	names := func(definitions []render.DecidedDefinition) []string {
		var all []string
		for _, d := range definitions {
			all = append(all, d.Package.Directory+" "+d.Name)
		}
		return all
	}
	definitions, others, digest := want.Installs(by)
	if diff := cmp.Diff([]string{image.Directory + " boats.sea.example.org", image.Directory + " sails.sea.example.org"}, names(definitions)); diff != "" || len(others) != 1 || others[0].ID != crd.ID || digest != image.Digest {
		t.Errorf("installed are %v %q (-want +got):\n%s", others, digest, diff)
	}
	if definitions, _, digest := want.Installs(other); len(definitions) > 0 || digest != "" {
		t.Errorf("another provider installs %v", names(definitions))
	}
	counted, known := (&flooding{Case: draft.Case{Want: want}}).definitionsOf(by)
	if diff := cmp.Diff([]string{image.Directory + " boats.sea.example.org", image.Directory + " sails.sea.example.org", dependency.Directory + " kites.air.example.org"}, names(counted)); diff != "" || !known {
		t.Errorf("counted are (-want +got):\n%s", diff)
	}
}

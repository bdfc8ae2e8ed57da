package baseline

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render"
	registered "headgate.dev/headgate/render/packages"
)

// pulled returns a commit that installs a version of a provider with a few definitions, all of them active.
func pulled(t *testing.T, version, served string) render.Desired {
	t.Helper()
	in := render.Input{
		Packages: []registered.Image{},
		Files: fstest.MapFS{"provider.yaml": {Data: []byte(`apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata: {name: sea}
spec: {package: "registry.example.org/acme/sea:` + version + `"}
---
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceActivationPolicy
metadata: {name: all}
spec: {activate: ["*.sea.example.org"]}
`)}},
	}
	stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: sea}\nspec: {capabilities: [safe-start]}\n"
	for _, kind := range []string{"Boat", "Buoy", "Crew", "Deck", "Mast", "Sail"} {
		plural := strings.ToLower(kind) + "s"
		stream += fmt.Sprintf(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %s.sea.example.org
spec:
  group: sea.example.org
  scope: Namespaced
  names:
    kind: %s
    plural: %s
  versions:
  - {name: v1, served: %s, storage: true, schema: {openAPIV3Schema: {type: object}}}
`, plural, kind, plural, served)
	}
	docs, err := render.Read(in, render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range docs.With(in, render.Options{}).Missing() {
		in.Packages = append(in.Packages, registered.Image{
			Request: request, Version: version, Digest: "sha256:" + strings.Repeat(version[1:2], 64),
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(stream)), nil },
		})
	}
	want, err := render.Render(in, render.Options{Owner: render.OwnerCrossplane})
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// The text about a package that cannot be compared must not vary, because otherwise Headgate would edit the comment for nothing.
func TestUpgradesDoNotFlap(t *testing.T) {
	base, head := pulled(t, "v1", "true"), pulled(t, "v2", "maybe")
	for range 20 {
		bumps, _ := Baseline{Base: base}.upgrades(head)
		if len(bumps) != 1 || !strings.HasPrefix(bumps[0].Unknown, "boats.sea.example.org cannot be compared: ") {
			t.Fatalf("The first of them is named: %+v", bumps)
		}
	}
}

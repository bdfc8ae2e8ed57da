package lint

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/render"
)

// Crossplane installs the content of a Configuration, and its API server refuses it as it refuses objects that Headgate applies.
func TestCheckedOfPackages(t *testing.T) {
	want, err := render.Render(render.Input{Files: fstest.MapFS{
		"platform/crossplane.yaml": {Data: []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: platform}\nspec: {}\n")},
		"platform.yaml":            {Data: []byte("apiVersion: pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: platform}\nspec: {package: xpkg.example.org/acme/platform:v1}\n")},
		"platform/apis/store.yaml": {Data: []byte(`apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: stores}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: Store}
  mode: Resources
  pipeline:
  - step: one
    functionRef: {name: a}
`)},
	}}, render.Options{Lints: true, Owner: render.OwnerCrossplane})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range Checked(want, Everything).Findings {
		got = append(got, fmt.Sprintf("%s: %s", f.Origin, f.Message))
	}
	expected := []string{`platform/apis/store.yaml:6: the API server refuses Composition.apiextensions.crossplane.io/stores: spec.mode: cannot be "Resources"; supported values: "Pipeline"`}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

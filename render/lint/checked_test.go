package lint

import (
	"fmt"
	"strings"
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

// A Composition of Crossplane v1 gets one error, whatever else Crossplane v2 does not know about it.
func TestFirstCompositions(t *testing.T) {
	want, err := render.Render(render.Input{Files: fstest.MapFS{"a.yaml": {Data: []byte(`apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: stores}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: Store}
  patchSets: []
  resources:
  - name: a
    base: {apiVersion: v1, kind: ConfigMap}
`)}}}, render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found := Checked(want, Everything).Findings
	if len(found) != 1 || found[0].Origin.Line != 8 || !strings.HasSuffix(found[0].Message, "convert the Composition with crossplane beta convert pipeline-composition") {
		t.Errorf("%+v", found)
	}
}

// Objects are not judged by a CRD that no API server accepts, and the place of the mistake is a finding.
func TestInvalidSchemas(t *testing.T) {
	want, err := render.Render(render.Input{Path: "apply", Files: fstest.MapFS{
		"apply/a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")},
		"schemas/crd.yaml": {Data: []byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.org}
spec:
  group: example.org
  names: {kind: Shop, plural: shops}
  scope: Everywhere
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`)},
	}}, render.Options{Schemas: []string{"schemas"}})
	if err != nil {
		t.Fatal(err)
	}
	r := Checked(want, Everything)
	if len(r.Findings) != 1 || r.Findings[0].Origin.String() != "schemas/crd.yaml:7" || r.Checked != 1 {
		t.Errorf("%+v", r)
	}
}

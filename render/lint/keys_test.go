package lint

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/render"
)

// The API server has no field y: it gets true, also as a property of a schema.
func TestMisread(t *testing.T) {
	files := fstest.MapFS{
		"cm.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  y: b\n")},
		"mrd.yaml": {Data: []byte(`apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceDefinition
metadata: {name: points.example.org}
spec:
  group: example.org
  names: {kind: Point, plural: points}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {x: {type: integer},
      y: {type: integer}}}}}}
`)},
		"k/kustomization.yaml": {Data: []byte("resources: [cm.yaml]\n")},
		"k/cm.yaml":            {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: built}\ndata:\n  y: b\n")},
	}
	want, err := render.Render(render.Input{Files: files}, render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range Misread(want) {
		got = append(got, f.Origin.String()+": "+f.Message+"; "+f.Fix)
	}
	if diff := cmp.Diff([]string{`cm.yaml:5: the unquoted key y means true; quote it: "y"`, `mrd.yaml:13: the unquoted key y means true; quote it: "y"`}, got); diff != "" {
		t.Errorf("Misread(...) (-want +got):\n%s", diff)
	}
}

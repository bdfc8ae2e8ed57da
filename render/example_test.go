package render_test

import (
	"fmt"
	"testing/fstest"

	"headgate.dev/headgate/render"
)

// Render needs nothing but the files of a commit. Without answers from registries, it uses the packages that the commit contains.
func ExampleRender() {
	files := fstest.MapFS{
		"policy.yaml": {Data: []byte(`apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceActivationPolicy
metadata: {name: storage}
spec: {activate: [buckets.storage.example.org]}
`)},
		"provider/crossplane.yaml": {Data: []byte(`apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: provider-storage}
spec: {capabilities: [safe-start]}
`)},
		"provider/buckets.yaml": {Data: definition("buckets", "Bucket")},
		"provider/volumes.yaml": {Data: definition("volumes", "Volume")},
	}
	want, err := render.Render(render.Input{Files: files}, render.Options{})
	for _, d := range want.Definitions {
		fmt.Println(d.Name, d.Active)
	}
	fmt.Println(len(want.Objects), "objects,", err)
	// Output:
	// buckets.storage.example.org true
	// volumes.storage.example.org false
	// 2 objects, <nil>
}

func definition(plural, kind string) []byte {
	return fmt.Appendf(nil, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.storage.example.org}
spec:
  group: storage.example.org
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]s, categories: [crossplane, managed]}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, plural, kind)
}

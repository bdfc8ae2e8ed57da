package crd_test

import (
	"fmt"

	"headgate.dev/headgate/render/crd"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Crossplane installs this CRD for the definition once it is active.
func ExampleOf() {
	definition := &unstructured.Unstructured{}
	err := yaml.Unmarshal([]byte(`apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceDefinition
metadata: {name: buckets.s3.example.org}
spec:
  group: s3.example.org
  names: {kind: Bucket, plural: buckets}
  scope: Namespaced
  state: Active
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`), definition)
	if err != nil {
		fmt.Println(err)
	}
	made, err := crd.Of(definition)
	if err != nil {
		fmt.Println(err)
	}
	text, err := yaml.Marshal(made)
	fmt.Print(string(text), err)
	// Output:
	// apiVersion: apiextensions.k8s.io/v1
	// kind: CustomResourceDefinition
	// metadata:
	//   name: buckets.s3.example.org
	// spec:
	//   group: s3.example.org
	//   names:
	//     kind: Bucket
	//     plural: buckets
	//   scope: Namespaced
	//   versions:
	//   - name: v1
	//     schema:
	//       openAPIV3Schema:
	//         type: object
	//     served: true
	//     storage: true
	// <nil>
}

// Malformed definitions are reported with the path of the field.
func ExampleMalformed() {
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.crossplane.io/v1alpha1",
		"kind":       "ManagedResourceDefinition",
		"spec":       map[string]any{"versions": []any{map[string]any{"name": "v1", "served": "yes"}}},
	}}
	fmt.Println(crd.Malformed(definition))
	// Output:
	// spec.versions[0].served: must be true or false
}

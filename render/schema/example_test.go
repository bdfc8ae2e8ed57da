package schema_test

import (
	"fmt"

	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// A field that leaves and a limit that gets tighter break users. A new optional field does not.
func ExampleCompare() {
	before := crdWith(`{size: {type: integer, maximum: 100}, colour: {type: string}}`)
	after := crdWith(`{size: {type: integer, maximum: 50}, shape: {type: string}}`)
	difference := schema.Compare(before, after)
	for _, c := range difference.Breaking() {
		fmt.Println("breaks:", c.Where(), c.What())
	}
	for _, c := range difference.Added {
		fmt.Println("added:", c.Where())
	}
	// Output:
	// breaks: v1 spec.colour is removed
	// breaks: v1 spec.size maximum was 100 and is 50
	// added: v1 spec.shape
}

func crdWith(fields string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	err := yaml.Unmarshal(fmt.Appendf(nil, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: %s}}}}}
`, fields), u)
	if err != nil {
		panic(err)
	}
	return u
}

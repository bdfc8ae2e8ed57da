package suggest_test

import (
	"fmt"
	"testing/fstest"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/suggest"
)

// A commit with two definitions that uses one of them needs a policy for that one.
func ExampleFor() {
	files := fstest.MapFS{
		"definitions.yaml": {Data: []byte(definition("buckets", "Bucket") + "---\n" + definition("tables", "Table"))},
		"bucket.yaml": {Data: []byte(`apiVersion: example.org/v1
kind: Bucket
metadata:
  name: logs
  namespace: shop
`)},
	}
	want, err := render.Render(render.Input{Files: files}, render.Options{})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Print(suggest.Policy(suggest.PolicyName, suggest.For(want).Smallest))
	// Output:
	// apiVersion: apiextensions.crossplane.io/v1alpha1
	// kind: ManagedResourceActivationPolicy
	// metadata:
	//   name: headgate
	// spec:
	//   activate:
	//   - buckets.example.org # bucket.yaml:1
}

func definition(plural, kind string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceDefinition
metadata: {name: %[1]s.example.org}
spec:
  group: example.org
  names: {kind: %[2]s, plural: %[1]s}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, plural, kind)
}

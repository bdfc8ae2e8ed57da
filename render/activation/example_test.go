package activation_test

import (
	"fmt"
	"testing/fstest"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
)

// A policy activates the definitions that its patterns match. A pattern that matches nothing is a finding.
func ExampleDecide() {
	files := fstest.MapFS{
		"policy.yaml": {Data: []byte(`apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceActivationPolicy
metadata: {name: storage}
spec:
  activate:
  - "*.s3.example.org"
  - queues.sqs.example.org
`)},
		"buckets.yaml": {Data: definition("buckets", "s3.example.org", "Bucket")},
		"tables.yaml":  {Data: definition("tables", "dynamodb.example.org", "Table")},
	}
	declared, err := render.Catalogue(render.Input{Files: files}, render.Options{})
	if err != nil {
		fmt.Println(err)
	}
	decisions, findings := activation.Decide(declared)
	for _, d := range decisions {
		fmt.Println(d.Name, d.Active)
		for _, because := range d.Reasons {
			fmt.Println("  because of", because.Pattern, "in", because.Origin)
		}
	}
	for _, f := range findings {
		fmt.Println(f.Origin, f.Rule)
	}
	// Output:
	// buckets.s3.example.org true
	//   because of *.s3.example.org in policy.yaml:6
	// tables.dynamodb.example.org false
	// policy.yaml:7 pattern-matches-nothing
}

func definition(plural, group, kind string) []byte {
	return fmt.Appendf(nil, `apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  names: {kind: %[3]s, plural: %[1]s}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, plural, group, kind)
}

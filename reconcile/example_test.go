package reconcile_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/render"
)

// A commits is a Source: it holds the files of each commit.
type commits map[string]fstest.MapFS

func (c commits) Fetch(_ context.Context, ref string) (render.Input, error) {
	return render.Input{Files: c[ref], Revision: ref}, nil
}

// Compare needs no cluster. It shows what a merge changes, and what a person has to decide before it.
func ExampleReconciler_Compare() {
	of := reconcile.Reconciler{Source: commits{
		"base": {"buckets.yaml": {Data: definition("string")}},
		"head": {"buckets.yaml": {Data: definition("integer")}},
	}}
	compared, err := of.Compare(context.Background(), "base", "head")
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(compared.Judgement.Word)
	for _, s := range compared.Steps {
		fmt.Println(s.Action, s.ID, s.Breaks[0].Where(), s.Breaks[0].What())
	}
	// Output:
	// blocked
	// update CustomResourceDefinition.apiextensions.k8s.io/buckets.example.org v1 spec.size type was "string" and is "integer"
}

func definition(size string) []byte {
	return fmt.Appendf(nil, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, listKind: BucketList, singular: bucket, plural: buckets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: %s}}}}}}
`, size)
}

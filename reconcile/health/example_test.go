package health_test

import (
	"context"
	"fmt"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/health"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The first expression that is true decides: inProgress, failed, current.
func ExampleCompile() {
	checks, err := health.Compile([]v1alpha1.HealthCheck{{
		APIVersion: "example.org/v1", Kind: "Database",
		Failed:  "status.phase == 'Failed'",
		Current: "status.phase == 'Running'",
	}})
	if err != nil {
		fmt.Println(err)
	}
	for _, phase := range []string{"Starting", "Running", "Failed"} {
		database := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Database",
			"status": map[string]any{"phase": phase},
		}}
		fmt.Println(phase, checks.Compute(context.Background(), database).Status)
	}
	// Output:
	// Starting InProgress
	// Running Current
	// Failed Failed
}

package diff_test

import (
	"cmp"
	"fmt"

	"headgate.dev/headgate/reconcile/diff"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Changes are what an update does to an object, by field. A Mask hides the values of Secrets.
func ExampleChanges() {
	live := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "labels": map[string]any{"team": "shop"}},
		"spec":     map[string]any{"replicas": int64(2), "paused": true},
	}}
	after := live.DeepCopy()
	after.SetLabels(map[string]string{"team": "web"})
	after.Object["spec"] = map[string]any{"replicas": int64(3)}
	for _, c := range diff.Changes(live, after, diff.Mask{}) {
		fmt.Printf("%s: %s becomes %s\n", c.Path, c.From, cmp.Or(c.To, "absent"))
	}
	// Output:
	// metadata.labels.team: "shop" becomes "web"
	// spec.replicas: 2 becomes 3
	// spec.paused: true becomes absent
}

package main

import (
	"testing"

	"headgate.dev/headgate/examples"
	"headgate.dev/headgate/reconcile/install"
	"headgate.dev/headgate/reconcile/target"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The memory limit of each Pod that may preview holds its own process and those of its previews.
func TestMemoryOfPods(t *testing.T) {
	for _, profile := range install.Profiles {
		objects, err := install.Objects(examples.Manifests, install.Options{
			Profile: install.Profile(profile), Namespace: install.DefaultNamespace, Image: "example.org/headgate:v1.0.0", Syncs: []string{"platform"},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range objects {
			if u.GetKind() != "Deployment" {
				continue
			}
			containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			container := containers[0].(map[string]any)
			limit, _, _ := unstructured.NestedString(container, "resources", "limits", "memory")
			most, err := resource.ParseQuantity(limit)
			if err != nil {
				t.Fatal(err)
			}
			own := int64(0)
			for _, variable := range container["env"].([]any) {
				if v := variable.(map[string]any); v["name"] == "GOMEMLIMIT" {
					q, err := resource.ParseQuantity(v["value"].(string)[:len(v["value"].(string))-1]) // MiB
					if err != nil {
						t.Fatal(err)
					}
					own = q.Value()
				}
			}
			if need := own + target.PreviewsAtOnce*target.MemoryOfPreviews; own == 0 || most.Value() < need {
				t.Errorf("%s: the Pod has a limit of %s, and its processes need %d MiB", profile, limit, need>>20)
			}
		}
	}
}

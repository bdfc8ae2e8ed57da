package ownership_test

import (
	"fmt"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The labels of Flux on an object name its owner, which a sync does not take over unless its adoption setting allows that.
func ExampleOf() {
	object := &metav1.ObjectMeta{Name: "settings", Labels: map[string]string{
		"kustomize.toolkit.fluxcd.io/name":      "apps",
		"kustomize.toolkit.fluxcd.io/namespace": "flux-system",
	}}
	claim := ownership.Of(object, inventory.Sync{Namespace: "headgate-system", Name: "platform"}, "")
	fmt.Println(claim.By)
	fmt.Println(claim.Tool, claim.Namespace, claim.Name, claim.Final)
	// Output:
	// the Flux Kustomization flux-system/apps
	// Flux flux-system apps false
}

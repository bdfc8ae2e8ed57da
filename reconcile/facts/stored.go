package facts

import (
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// CRDsOf returns the CRDs that a definition makes: an XRD that offers claims makes two.
func CRDsOf(definition *unstructured.Unstructured) []manifest.ID {
	crds := []manifest.ID{plan.CRD(definition.GetName())}
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	if claims, _, _ := unstructured.NestedString(definition.Object, "spec", "claimNames", "plural"); claims != "" {
		crds = append(crds, plan.CRD(claims+"."+group))
	}
	return crds
}

// HasWebhook reports whether a webhook converts the objects of a CRD or an MRD.
func HasWebhook(u *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(u.Object, "spec", "conversion", "strategy")
	return strategy == "Webhook"
}

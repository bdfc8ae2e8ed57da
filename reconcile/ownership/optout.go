package ownership

import (
	"strings"

	"headgate.dev/headgate/reconcile/inventory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An OptOut is the reason why a live object must never be pruned.
type OptOut struct {
	Policy     inventory.ManagementPolicy // the management policy; "" for an annotation or a label
	Key, Value string
	IsLabel    bool
}

// optOuts lists the annotations and labels with which users protect an object from being pruned.
var optOuts = []struct{ key, value string }{
	{"client.lifecycle.config.k8s.io/deletion", "detach"},
	{"cli-utils.sigs.k8s.io/on-remove", "keep"},
	{"helm.sh/resource-policy", "keep"},
	{"kustomize.toolkit.fluxcd.io/prune", "disabled"},
	{"kustomize.toolkit.fluxcd.io/reconcile", "disabled"},
	{"argocd.argoproj.io/sync-options", "Prune=false"},
	{"argocd.argoproj.io/sync-options", "Prune=confirm"},
	{"argocd.argoproj.io/sync-options", "Delete=false"},
	{"argocd.argoproj.io/sync-options", "Delete=confirm"},
	{"kustomize.toolkit.fluxcd.io/ssa", "Ignore"},
}

// Kept reports whether a live object must never be pruned, and why: its own annotations and labels, or the management
// policy in the inventory.
func Kept(recorded inventory.ManagementPolicy, o metav1.Object) (why OptOut, kept bool) {
	for _, policy := range []inventory.ManagementPolicy{recorded, inventory.ManagementPolicy(o.GetAnnotations()[inventory.PolicyAnnotation])} {
		if policy == inventory.Undeletable || policy == inventory.Observable {
			return OptOut{Policy: policy}, true
		}
	}
	for _, out := range optOuts {
		switch { // Flux also reads labels, and ignores case
		case SaysSo(o.GetAnnotations(), out.key, out.value):
			return OptOut{Key: out.key, Value: out.value}, true
		case SaysSo(o.GetLabels(), out.key, out.value):
			return OptOut{Key: out.key, Value: out.value, IsLabel: true}, true
		}
	}
	return OptOut{}, false
}

// SaysSo reports whether an annotation or label has a value, alone or in a comma-separated list.
func SaysSo(keys map[string]string, key, value string) bool {
	for k, v := range keys {
		if !strings.EqualFold(k, key) {
			continue
		}
		for part := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(part), value) {
				return true
			}
		}
	}
	return false
}

package baseline

import (
	"strings"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inNamespaces are the kinds of Kubernetes that are in namespaces, by group. Kinds of aggregated APIs are left out.
var inNamespaces = map[string]string{
	"": "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret " +
		"Service ServiceAccount",
	"apps":                      "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
	"autoscaling":               "HorizontalPodAutoscaler",
	"batch":                     "CronJob Job",
	"coordination.k8s.io":       "Lease",
	"discovery.k8s.io":          "EndpointSlice",
	"networking.k8s.io":         "Ingress NetworkPolicy",
	"policy":                    "PodDisruptionBudget",
	"rbac.authorization.k8s.io": "Role RoleBinding",
}

// KindsOf returns the kinds that are in namespaces wherever a commit is applied: of Kubernetes, and of the definitions
// and CRDs of the commit.
func KindsOf(want render.Desired) map[schema.GroupKind]plan.Kind {
	kinds := map[schema.GroupKind]plan.Kind{}
	for group, names := range inNamespaces {
		for name := range strings.FieldsSeq(names) {
			kinds[schema.GroupKind{Group: group, Kind: name}] = plan.Kind{Namespaced: true}
		}
	}
	for _, d := range want.Definitions {
		kinds[schema.GroupKind{Group: d.Group, Kind: d.Kind}] = plan.Kind{Resource: d.Plural, Namespaced: d.Scope != "Cluster"}
	}
	for _, o := range want.Objects {
		if !o.ID.IsCRD() || o.Definition != "" || crossplane.IsClusterScoped(o.Serves.Group) {
			continue
		}
		if content, err := o.Content(); err == nil {
			scope, _, _ := unstructured.NestedString(content.Object, "spec", "scope")
			kinds[o.Serves] = plan.Kind{Namespaced: scope == "Namespaced"}
		}
	}
	return kinds
}

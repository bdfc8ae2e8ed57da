package kubernetes

import (
	"reflect"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/check"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// immutable lists the fields that no update changes, by group/Kind. A field that only one of the two commits sets does not count, because
// it may have that value by default.
var immutable = map[string][]string{
	"/PersistentVolumeClaim":         {"spec.accessModes", "spec.storageClassName", "spec.volumeName"},
	"/Secret":                        {"type"},
	"/Service":                       {"spec.clusterIP"},
	"apps/DaemonSet":                 {"spec.selector"},
	"apps/Deployment":                {"spec.selector"},
	"apps/ReplicaSet":                {"spec.selector"},
	"apps/StatefulSet":               {"spec.selector", "spec.serviceName", "spec.podManagementPolicy"},
	"batch/Job":                      {"spec.selector", "spec.completionMode"},
	"networking.k8s.io/IngressClass": {"spec.controller"},
	"node.k8s.io/RuntimeClass":       {"handler"},
	"rbac.authorization.k8s.io/ClusterRoleBinding": {"roleRef"},
	"rbac.authorization.k8s.io/RoleBinding":        {"roleRef"},
	"scheduling.k8s.io/PriorityClass":              {"value", "preemptionPolicy"},
	"storage.k8s.io/StorageClass":                  {"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"},
}

// Compares reports whether the kind has fields that no update changes. CRDs have none, and decoding thousands of them takes seconds.
func (k *kind) Compares() bool { return len(immutable[k.Group+"/"+k.Kind]) > 0 || k.freezes() }

// freezes reports whether objects of the kind may be immutable as a whole.
func (k *kind) freezes() bool { return k.Group == "" && (k.Kind == "Secret" || k.Kind == "ConfigMap") }

// Update returns the fields of an object that the API server does not let an update change. An object that asks for its replacement may
// change all of them.
func (k *kind) Update(is, was *unstructured.Unstructured) []check.Problem {
	if asksForReplacement(is) {
		return nil
	}
	var found []check.Problem
	for _, name := range immutable[k.Group+"/"+k.Kind] {
		after, before := k.field(is, name), k.field(was, name)
		if after != nil && before != nil && !reflect.DeepEqual(after, before) {
			found = append(found, check.Problem{Field: name, Message: "cannot be changed; delete the object first, or give the new one another name"})
		}
	}
	if frozen, _, _ := unstructured.NestedBool(was.Object, "immutable"); frozen && k.freezes() {
		for _, name := range []string{"data", "binaryData", "stringData", "immutable"} {
			if !reflect.DeepEqual(is.Object[name], was.Object[name]) {
				found = append(found, check.Problem{Field: name, Message: "cannot be changed, because the object is immutable"})
			}
		}
	}
	return found
}

func asksForReplacement(o *unstructured.Unstructured) bool {
	of := o.GetAnnotations()
	return of[render.FluxForceKey] != "" || strings.Contains(of[render.ArgoOptionsKey], "Replace=") || strings.Contains(of[render.ArgoOptionsKey], "Force=")
}

// field returns the value of a field, with its default if that does not depend on the cluster.
func (k *kind) field(o *unstructured.Unstructured, name string) any {
	v, _, err := unstructured.NestedFieldCopy(o.Object, strings.Split(name, ".")...)
	if err != nil {
		return nil
	}
	switch name {
	case "type":
		if v == nil || v == "" {
			return string(corev1.SecretTypeOpaque)
		}
	case "roleRef":
		if ref, ok := v.(map[string]any); ok && (ref["apiGroup"] == nil || ref["apiGroup"] == "") {
			ref["apiGroup"] = rbacv1.GroupName
		}
	}
	return v
}

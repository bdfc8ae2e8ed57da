package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kinds "k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds are the kinds of the objects of an installation, in the order in which they are deleted: the controller ends before its rights do.
var Kinds = []kinds.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Version: "v1", Kind: "Service"},
	{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Version: "v1", Kind: "ConfigMap"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
}

// The kinds that an installation reads besides.
var (
	SyncKind = kinds.GroupVersionKind{Group: "headgate.dev", Version: "v1alpha1", Kind: "Sync"}
	CRDKind  = kinds.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	PodKind  = kinds.GroupVersionKind{Version: "v1", Kind: "Pod"}
)

// Finalizer keeps a Sync whose deletion deletes objects. Only a controller removes it.
const Finalizer = "headgate.dev/delete"

// releaseOf is the annotation with which Helm marks the objects of a release.
const releaseOf = "meta.helm.sh/release-name"

// Selector selects the objects of the installation of a namespace.
func Selector(namespace string) string { return PartOf + "=headgate," + Instance + "=" + namespace }

// watches returns the namespace that a controller watches; "" for all.
func watches(deployment *unstructured.Unstructured) string {
	for _, arg := range argsOf(deployment) {
		if namespace, is := strings.CutPrefix(arg, "--watch-namespace="); is {
			return namespace
		}
	}
	return ""
}

// Beside returns an error if a controller of another namespace runs the same Syncs. deployments are all Deployments of that name.
func Beside(wanted, deployments []*unstructured.Unstructured) error {
	for _, own := range wanted {
		if own.GetKind() != "Deployment" || own.GetName() != Deployment {
			continue
		}
		for _, other := range deployments {
			if other.GetNamespace() == own.GetNamespace() {
				continue
			}
			mine, theirs := watches(own), watches(other)
			if mine == "" || theirs == "" || mine == theirs {
				return fmt.Errorf("the controller in %s runs %s, and this one would run %s: a Sync has one controller. Give each installation its own --watch-namespace, or uninstall the other one: headgate uninstall -n %s",
					other.GetNamespace(), syncsOf(theirs), syncsOf(mine), other.GetNamespace())
			}
		}
	}
	return nil
}

func syncsOf(namespace string) string {
	if namespace == "" {
		return "the Syncs of all namespaces"
	}
	return "the Syncs of " + namespace
}

// Helm returns an error if an object belongs to a release of Helm.
func Helm(live *unstructured.Unstructured, instead string) error {
	if live == nil || live.GetAnnotations()[releaseOf] == "" {
		return nil
	}
	return fmt.Errorf("%s %s belongs to the Helm release %s: use %s %s", live.GetKind(), live.GetName(), live.GetAnnotations()[releaseOf], instead, live.GetAnnotations()[releaseOf])
}

// Left returns the live objects of an installation that it no longer wants, such as the rights of another profile.
func Left(live, wanted []*unstructured.Unstructured) []*unstructured.Unstructured {
	id := func(u *unstructured.Unstructured) string {
		return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
	}
	var keep []string
	for _, u := range wanted {
		keep = append(keep, id(u))
	}
	return slices.DeleteFunc(slices.Clone(live), func(u *unstructured.Unstructured) bool {
		return slices.Contains(keep, id(u)) || IsShared(u) || !strings.HasPrefix(u.GetName(), "headgate")
	})
}

// Upgrades reports whether to apply a CRD over the live one. It does not if the live CRD has more, because a newer Headgate applied it. It is
// an error if a Sync uses what this version does not know: the controller would ignore it.
func Upgrades(ctx context.Context, live, wanted *unstructured.Unstructured, syncs []*unstructured.Unstructured) (applies bool, lacks []string, err error) {
	if live == nil {
		return true, nil, nil
	}
	for _, s := range syncs {
		judge, err := schema.NewJudge(live, wanted, s.GroupVersionKind().Version)
		if err != nil {
			return false, nil, fmt.Errorf("the CRD of the cluster is newer than this version: %w", err)
		}
		loses, refused := judge.Of(ctx, s.DeepCopy())
		if wrong := slices.Concat(loses, refused); len(wrong) > 0 {
			return false, nil, fmt.Errorf("the Sync %s/%s uses what this version does not know: %s. Install the newer version, or remove that from the Sync first", s.GetNamespace(), s.GetName(), strings.Join(wrong, ", "))
		}
	}
	lacks = schema.Lacks(live, wanted) //nolint:contextcheck,nolintlint // it waits for nothing, and the linter reports that only sometimes
	return len(lacks) == 0, lacks, nil
}

// Waiting returns the Syncs whose deletion waits for a controller.
func Waiting(syncs []*unstructured.Unstructured) []string {
	var all []string
	for _, s := range syncs {
		if s.GetDeletionTimestamp() != nil && slices.Contains(s.GetFinalizers(), Finalizer) {
			all = append(all, s.GetNamespace()+"/"+s.GetName())
		}
	}
	slices.Sort(all)
	return all
}

// Deletes returns the Syncs whose deletion deletes what they applied.
func Deletes(syncs []*unstructured.Unstructured) []string {
	var all []string
	for _, s := range syncs {
		if slices.Contains(s.GetFinalizers(), Finalizer) {
			all = append(all, s.GetNamespace()+"/"+s.GetName())
		}
	}
	slices.Sort(all)
	return all
}

// WhyStill returns what the status of a Sync says about why it is still there, for the end of a sentence.
func WhyStill(s *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(s.Object, "status", "conditions")
	for _, bad := range []struct{ kind, status string }{{"Held", "True"}, {"Stalled", "True"}, {"Reconciling", "True"}, {"Ready", "False"}} {
		for _, c := range conditions {
			condition, _ := c.(map[string]any)
			if condition["type"] == bad.kind && condition["status"] == bad.status {
				return fmt.Sprintf(": %v", condition["message"])
			}
		}
	}
	return ""
}

// Watched returns the Syncs that the controller of a Deployment runs; all of them without a Deployment.
func Watched(deployment *unstructured.Unstructured, syncs []*unstructured.Unstructured) []*unstructured.Unstructured {
	if deployment == nil || watches(deployment) == "" {
		return syncs
	}
	return slices.DeleteFunc(slices.Clone(syncs), func(s *unstructured.Unstructured) bool { return s.GetNamespace() != watches(deployment) })
}

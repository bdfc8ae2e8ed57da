package kubernetes

import (
	"fmt"
	"reflect"

	"headgate.dev/headgate/render/check"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newest is the release whose types this package holds: that of k8s.io/api in go.mod.
const (
	newest      = "1.37"
	newestMinor = 37
)

// Maintained returns the newest minor release of Kubernetes whose kinds this package knows, and the oldest one that the Kubernetes
// project maintains beside it.
func Maintained() (oldest, newest int) { return newestMinor - supported, newestMinor }

// A minor is a minor release of Kubernetes 1; 0 means that it is not known.
type minor int

func (r minor) String() string {
	if r == 0 {
		return "any"
	}
	return fmt.Sprintf("1.%d", int(r))
}

// isHeld reports whether this package holds every kind and field of the release.
func (r minor) isHeld() bool { return r > 0 && r <= newestMinor }

// A departed version is one that releases served whose types Kubernetes has deleted.
type departed struct {
	schema.GroupVersionKind
	removed int    // the first release without it
	instead string // "" if nothing replaced it
}

var gone = []departed{
	{schema.GroupVersionKind{Group: "policy", Version: "v1beta1", Kind: "PodSecurityPolicy"}, 25, ""},
	{schema.GroupVersionKind{Group: "extensions", Version: "v1beta1", Kind: "PodSecurityPolicy"}, 16, ""},
	{schema.GroupVersionKind{Group: "autoscaling", Version: "v2beta1", Kind: "HorizontalPodAutoscaler"}, 25, "autoscaling/v2"},
	{schema.GroupVersionKind{Group: "autoscaling", Version: "v2beta2", Kind: "HorizontalPodAutoscaler"}, 26, "autoscaling/v2"},
	{schema.GroupVersionKind{Group: "batch", Version: "v2alpha1", Kind: "CronJob"}, 21, "batch/v1"},
	{schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1beta1", Kind: "CustomResourceDefinition"}, 22, "apiextensions.k8s.io/v1"},
	{schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1beta1", Kind: "APIService"}, 22, "apiregistration.k8s.io/v1"},
	{schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1alpha1", Kind: "PriorityClass"}, 22, "scheduling.k8s.io/v1"},
	{schema.GroupVersionKind{Group: "settings.k8s.io", Version: "v1alpha1", Kind: "PodPreset"}, 20, ""},
	{schema.GroupVersionKind{Group: "auditregistration.k8s.io", Version: "v1alpha1", Kind: "AuditSink"}, 19, ""},
}

// A life is when releases serve a version.
type life struct {
	begins, ends int // the first release with it, and the first without it; 0 if not known
	instead      string
}

// lifeOf returns when releases serve a version.
func (k *kind) lifeOf(version string) life {
	for _, g := range gone {
		if g.GroupVersionKind == k.WithVersion(version) {
			return life{ends: g.removed, instead: g.instead}
		}
	}
	t := k.types[version]
	if t == nil {
		return life{}
	}
	var l life
	of := reflect.New(t).Interface()
	if of, ok := of.(interface{ APILifecycleIntroduced() (int, int) }); ok {
		_, l.begins = of.APILifecycleIntroduced()
	}
	if of, ok := of.(interface{ APILifecycleRemoved() (int, int) }); ok {
		_, l.ends = of.APILifecycleRemoved()
	}
	if of, ok := of.(interface {
		APILifecycleReplacement() schema.GroupVersionKind
	}); ok {
		l.instead = of.APILifecycleReplacement().GroupVersion().String()
	}
	return l
}

// versionOf refuses a version that the release does not serve. If the release is not known, a version that no supported release serves
// is a warning.
func (k *kind) versionOf(o *unstructured.Unstructured) check.Result {
	l := k.lifeOf(o.GroupVersionKind().Version)
	p := check.Problem{Field: "apiVersion"}
	switch {
	case l.ends > 0 && (k.release >= minor(l.ends) || k.release == 0 && l.ends <= newestMinor-supported):
		p.Message = fmt.Sprintf("Kubernetes does not serve %s of kind %s since 1.%d", o.GetAPIVersion(), k.Kind, l.ends)
		if l.instead != "" {
			p.Message += "; use " + l.instead
		}
	case k.release > 0 && k.release < minor(l.begins):
		p.Message = fmt.Sprintf("Kubernetes serves %s of kind %s from 1.%d on, and kubernetesVersion is %s", o.GetAPIVersion(), k.Kind, l.begins, k.release)
	default:
		return check.Result{}
	}
	if k.release == 0 {
		return check.Result{Warnings: []check.Problem{p}}
	}
	return check.Result{Errors: []check.Problem{p}}
}

// supported is the number of releases before the newest that Kubernetes maintains.
const supported = 2

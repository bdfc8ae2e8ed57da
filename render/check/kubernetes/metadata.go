package kubernetes

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/manifest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Every checks the metadata of an object of any kind. kind is nil if no source knows the kind. It warns about a kind that Kubernetes does
// not have in one of its own groups.
func (s *Source) Every(o *unstructured.Unstructured, kind check.Kind) check.Result {
	r := check.Result{Errors: s.metadata(o, kind)}
	gk := o.GroupVersionKind().GroupKind()
	if kind == nil && s.Knows(gk.Group) == check.Some && !s.hasNear(gk) {
		r.Warnings = append(r.Warnings, check.Problem{Field: "kind", Message: fmt.Sprintf("Kubernetes %s has no such kind in group %q", newest, gk.Group)})
	}
	return r
}

// EveryKey identifies the release, and what the metadata depends on.
func (s *Source) EveryKey(kind check.Kind) string {
	return fmt.Sprint(newest, " ", s.release, " ", kind != nil, " ", kind != nil && kind.Namespaced())
}

// hasNear reports whether a group has a kind of a similar name, which another check suggests.
func (s *Source) hasNear(gk schema.GroupKind) bool {
	var names []string
	for _, k := range s.Kinds(gk.Group) {
		names = append(names, k.Kind)
	}
	return manifest.Meant(gk.Kind, names) != ""
}

// metadata returns what is wrong with the metadata of an object.
func (s *Source) metadata(o *unstructured.Unstructured, kind check.Kind) []check.Problem {
	at := field.NewPath("metadata")
	var found shape
	found.value(o.Object["metadata"], reflect.TypeFor[metav1.ObjectMeta](), at)
	if all := slices.Concat(found.wrong, found.unknown); len(all) > 0 {
		return all
	}
	var of struct {
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": o.Object["metadata"]}, &of); err != nil {
		return []check.Problem{{Field: "metadata", Message: "cannot be read"}}
	}
	namespaced := of.Namespace != ""
	if kind != nil && !kind.Namespaced() {
		namespaced, of.Namespace = false, "" // the namespace is left out of the request
	}
	gk := o.GroupVersionKind().GroupKind()
	errs := validation.ValidateObjectMetaAccessor(&of, namespaced, s.nameRule(gk), at)
	if _, known := s.kinds[gk]; known && !anyFinalizer[gk] && !slices.Contains(generic, gk.Group) {
		errs = append(errs, finalizers(of.Finalizers, at.Child("finalizers"))...)
	}
	return problemsOf(errs)
}

// The kinds and groups of Kubernetes whose objects may have any finalizer, as custom objects may.
var (
	anyFinalizer = setOf("/Event", "policy/PodDisruptionBudget")
	generic      = []string{"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"}
)

// finalizers refuses finalizers that are neither qualified nor known to Kubernetes.
func finalizers[T ~string](all []T, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range all {
		if !strings.Contains(string(name), "/") && !slices.Contains(standardFinalizers, string(name)) {
			errs = append(errs, field.Invalid(at.Index(i), string(name), "must be qualified with a domain, such as example.org/name"))
		}
	}
	return errs
}

var standardFinalizers = []string{string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}

// problemsOf returns errors of the API server's libraries.
func problemsOf(errs field.ErrorList) []check.Problem {
	var all []check.Problem
	for _, e := range errs {
		p := check.Problem{Field: e.Field, Message: wordsOf(e)}
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// wordsOf returns the message of an error. It quotes no value except a name.
func wordsOf(e *field.Error) string {
	detail, _, _ := strings.Cut(e.Detail, " (e.g. ") // what follows is a regular expression
	if value, ok := e.BadValue.(string); ok && strings.HasPrefix(e.Field, "metadata.name") {
		return fmt.Sprintf("%q is not valid: %s", value, detail)
	}
	switch {
	case e.Type == field.ErrorTypeRequired && e.Detail == "":
		return "is required"
	case e.Type == field.ErrorTypeNotSupported:
		return fmt.Sprintf("cannot be %q; %s", e.BadValue, detail)
	case detail == "":
		return strings.ToLower(e.Type.String())
	}
	return detail
}

// A nameRule returns what is wrong with a name.
type nameRule = validation.ValidateNameFunc

// nameRules holds the rules of kinds whose names need not be DNS subdomains.
var nameRules = map[string]nameRule{
	"/Event":     segment,
	"/Namespace": validation.ValidateNamespaceName,
	"apiextensions.k8s.io/CustomResourceDefinition": segment, // its own validation compares the name with the plural and the group
	"apiregistration.k8s.io/APIService":             segment,
	"apps/StatefulSet":                              validation.NameIsDNSLabel,
	"batch/CronJob":                                 cronJobName,
	"certificates.k8s.io/CertificateSigningRequest": segment,
	"certificates.k8s.io/ClusterTrustBundle":        segment, // it depends on the signer
	"coordination.k8s.io/LeaseCandidate":            func(name string, _ bool) []string { return utilvalidation.IsConfigMapKey(name) },
	"internal.apiserver.k8s.io/StorageVersion":      segment,
	"networking.k8s.io/IPAddress":                   addressName,
	"policy/PodDisruptionBudget":                    segment,
	"rbac.authorization.k8s.io/ClusterRole":         segment,
	"rbac.authorization.k8s.io/ClusterRoleBinding":  segment,
	"rbac.authorization.k8s.io/Role":                segment,
	"rbac.authorization.k8s.io/RoleBinding":         segment,
}

// nameRule returns the rule of a kind.
func (s *Source) nameRule(gk schema.GroupKind) nameRule {
	rule, special := nameRules[gk.Group+"/"+gk.Kind]
	switch {
	case gk == schema.GroupKind{Kind: "Service"} && s.release > 0 && s.release < relaxedServices:
		return validation.NameIsDNS1035Label
	case gk == schema.GroupKind{Kind: "Service"}:
		return validation.NameIsDNSLabel
	case special:
		return rule
	}
	return validation.NameIsDNSSubdomain
}

// relaxedServices is the first release in which the name of a Service may begin with a digit.
const relaxedServices = 36

func segment(name string, _ bool) []string { return content.IsPathSegmentName(name) }

// cronJobName leaves room for the suffix of the Jobs.
func cronJobName(name string, prefix bool) []string {
	const longest = utilvalidation.DNS1035LabelMaxLength - 11
	if len(name) > longest {
		return []string{utilvalidation.MaxLenError(longest)}
	}
	return validation.NameIsDNSSubdomain(name, prefix)
}

func addressName(name string, _ bool) []string {
	var all []string
	for _, e := range utilvalidation.IsValidIP(nil, name) {
		all = append(all, e.Detail)
	}
	return all
}

// sorted returns the keys of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

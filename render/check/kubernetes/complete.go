package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"headgate.dev/headgate/render/check"
	crds "headgate.dev/headgate/render/schema"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// complete holds the rules of the kinds that are checked completely, except their metadata. They are those of the API server, whose
// validation belongs to its program.
var complete = map[schema.GroupVersionKind]func(*unstructured.Unstructured) []check.Problem{
	corev1.SchemeGroupVersion.WithKind("ConfigMap"):          checked(configMap),
	corev1.SchemeGroupVersion.WithKind("Namespace"):          checked(namespace),
	corev1.SchemeGroupVersion.WithKind("Secret"):             checked(secret),
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"):     checked(func(*corev1.ServiceAccount) field.ErrorList { return nil }),
	rbacv1.SchemeGroupVersion.WithKind("Role"):               checked(role),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"):        checked(clusterRole),
	rbacv1.SchemeGroupVersion.WithKind("RoleBinding"):        checked(roleBinding),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"): checked(clusterRoleBinding),

	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}: definition,
}

// checked returns a check of an object's fields, and then of its rules.
func checked[T any](rules func(*T) field.ErrorList) func(*unstructured.Unstructured) []check.Problem {
	return func(o *unstructured.Unstructured) []check.Problem {
		found := shapeOf(o, reflect.TypeFor[T]())
		if all := slices.Concat(found.wrong, found.unknown); len(all) > 0 {
			return all
		}
		if repeated := repetitions(o); len(repeated) > 0 {
			return repeated
		}
		typed := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(withoutMetadata(o), typed); err != nil {
			return []check.Problem{{Message: "cannot be read as a " + o.GetKind()}}
		}
		return problemsOf(rules(typed))
	}
}

// withoutMetadata returns the content of an object with the annotations as its only metadata. Other metadata is checked elsewhere.
func withoutMetadata(o *unstructured.Unstructured) map[string]any {
	content := maps.Clone(o.Object)
	annotations := map[string]any{}
	for key, v := range o.GetAnnotations() {
		annotations[key] = v
	}
	content["metadata"] = map[string]any{"annotations": annotations}
	return content
}

// definition checks a CRD with the validation of the API server.
func definition(o *unstructured.Unstructured) []check.Problem {
	var all []check.Problem
	for _, r := range crds.Refusals(context.Background(), o) {
		if !strings.HasPrefix(r.Field, "metadata.") || r.Field == "metadata.name" { // the rest is checked for every object
			all = append(all, check.Problem{Field: r.Field, Message: r.Problem})
		}
	}
	group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
	if state, why := apihelpers.GetAPIApprovalState(o.GetAnnotations()); apihelpers.IsProtectedCommunityGroup(group) && (state == apihelpers.APIApprovalMissing || state == apihelpers.APIApprovalInvalid) {
		all = append(all, check.Problem{Field: "metadata.annotations", Message: why})
	}
	return all
}

func namespace(n *corev1.Namespace) field.ErrorList {
	var all field.ErrorList
	at := field.NewPath("spec", "finalizers")
	for i, name := range n.Spec.Finalizers {
		all = append(all, validation.ValidateFinalizerName(string(name), at.Index(i))...)
	}
	return append(all, finalizers(n.Spec.Finalizers, at)...)
}

// largestData is the largest sum of the values of a Secret or ConfigMap.
const largestData = corev1.MaxSecretSize

func configMap(c *corev1.ConfigMap) field.ErrorList {
	all := keys(c.Data, field.NewPath("data"))
	all = append(all, keys(c.BinaryData, field.NewPath("binaryData"))...)
	size := 0
	for _, key := range sorted(c.Data) {
		size += len(c.Data[key])
		if _, twice := c.BinaryData[key]; twice {
			all = append(all, field.Invalid(field.NewPath("data").Key(key), "", "is a key of binaryData, too"))
		}
	}
	for _, v := range c.BinaryData {
		size += len(v)
	}
	if size > largestData {
		all = append(all, tooLarge("data", size))
	}
	return all
}

func tooLarge(key string, size int) *field.Error {
	return field.Invalid(field.NewPath(key), "", fmt.Sprintf("its values hold %d bytes, and the limit is %d", size, largestData))
}

// keys checks the keys of data.
func keys[V any](data map[string]V, at *field.Path) field.ErrorList {
	var all field.ErrorList
	for _, key := range sorted(data) {
		for _, message := range utilvalidation.IsConfigMapKey(key) {
			all = append(all, field.Invalid(at.Key(key), "", message))
		}
	}
	return all
}

func secret(s *corev1.Secret) field.ErrorList {
	all := keys(s.Data, field.NewPath("data"))
	all = append(all, keys(s.StringData, field.NewPath("stringData"))...)
	data := map[string]string{}
	for key, v := range s.Data {
		data[key] = string(v)
	}
	maps.Copy(data, s.StringData) // it overrides data
	size := 0
	for _, v := range data {
		size += len(v)
	}
	if size > largestData {
		all = append(all, tooLarge("data", size))
	}
	return append(all, typeOfSecret(s, data)...)
}

// typeOfSecret checks the keys that the type of a Secret requires.
func typeOfSecret(s *corev1.Secret, data map[string]string) field.ErrorList {
	require := func(keys ...string) field.ErrorList {
		var all field.ErrorList
		for _, key := range keys {
			if _, ok := data[key]; !ok {
				all = append(all, field.Required(field.NewPath("data").Key(key), "is required by type "+string(s.Type)))
			}
		}
		return all
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			return field.ErrorList{field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), "is required by type "+string(s.Type))}
		}
	case corev1.SecretTypeDockercfg:
		return isJSON(data, corev1.DockerConfigKey, require)
	case corev1.SecretTypeDockerConfigJson:
		return isJSON(data, corev1.DockerConfigJsonKey, require)
	case corev1.SecretTypeBasicAuth:
		_, user := data[corev1.BasicAuthUsernameKey]
		_, password := data[corev1.BasicAuthPasswordKey]
		if !user && !password {
			return require(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		if data[corev1.SSHAuthPrivateKey] == "" {
			delete(data, corev1.SSHAuthPrivateKey)
		}
		return require(corev1.SSHAuthPrivateKey)
	case corev1.SecretTypeTLS:
		return require(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return nil
}

// isJSON checks that the value of a required key is an object of JSON. The error does not quote it.
func isJSON(data map[string]string, key string, require func(keys ...string) field.ErrorList) field.ErrorList {
	all := require(key)
	if len(all) == 0 && json.Unmarshal([]byte(data[key]), &map[string]any{}) != nil {
		all = append(all, field.Invalid(field.NewPath("data").Key(key), "", "must be an object in JSON"))
	}
	return all
}

func role(r *rbacv1.Role) field.ErrorList { return policyRules(r.Rules, true) }

func clusterRole(r *rbacv1.ClusterRole) field.ErrorList {
	all := policyRules(r.Rules, false)
	if r.AggregationRule == nil {
		return all
	}
	at := field.NewPath("aggregationRule", "clusterRoleSelectors")
	if len(r.AggregationRule.ClusterRoleSelectors) == 0 {
		all = append(all, field.Required(at, "needs at least one selector"))
	}
	for i, s := range r.AggregationRule.ClusterRoleSelectors {
		all = append(all, metavalidation.ValidateLabelSelector(&s, metavalidation.LabelSelectorValidationOptions{}, at.Index(i))...)
	}
	return all
}

// policyRules checks the rules of a role.
func policyRules(rules []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var all field.ErrorList
	for i, r := range rules {
		at := field.NewPath("rules").Index(i)
		if len(r.Verbs) == 0 {
			all = append(all, field.Required(at.Child("verbs"), "needs at least one verb"))
		}
		resources := len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames) > 0
		switch urls := at.Child("nonResourceURLs"); {
		case len(r.NonResourceURLs) > 0 && namespaced:
			all = append(all, field.Invalid(urls, "", "only a ClusterRole can have them"))
		case len(r.NonResourceURLs) > 0 && resources:
			all = append(all, field.Invalid(urls, "", "cannot stand beside apiGroups, resources or resourceNames in one rule"))
		case len(r.NonResourceURLs) == 0 && len(r.APIGroups) == 0:
			all = append(all, field.Required(at.Child("apiGroups"), `needs at least one group; "" is the core group`))
		}
		if len(r.NonResourceURLs) == 0 && len(r.Resources) == 0 {
			all = append(all, field.Required(at.Child("resources"), "needs at least one resource"))
		}
	}
	return all
}

func roleBinding(b *rbacv1.RoleBinding) field.ErrorList {
	return append(roleRef(b.RoleRef, "Role", "ClusterRole"), subjects(b.Subjects, true)...)
}

func clusterRoleBinding(b *rbacv1.ClusterRoleBinding) field.ErrorList {
	return append(roleRef(b.RoleRef, "ClusterRole"), subjects(b.Subjects, false)...)
}

// roleRef checks the role of a binding.
func roleRef(r rbacv1.RoleRef, kinds ...string) field.ErrorList {
	var all field.ErrorList
	at := field.NewPath("roleRef")
	if r.APIGroup != "" && r.APIGroup != rbacv1.GroupName { // it has a default
		all = append(all, field.NotSupported(at.Child("apiGroup"), r.APIGroup, []string{rbacv1.GroupName}))
	}
	if !slices.Contains(kinds, r.Kind) {
		all = append(all, field.NotSupported(at.Child("kind"), r.Kind, kinds))
	}
	if r.Name == "" {
		return append(all, field.Required(at.Child("name"), ""))
	}
	for _, message := range content.IsPathSegmentName(r.Name) {
		all = append(all, field.Invalid(at.Child("name"), r.Name, message))
	}
	return all
}

// subjects checks the subjects of a binding.
func subjects(of []rbacv1.Subject, namespaced bool) field.ErrorList {
	var all field.ErrorList
	for i, s := range of {
		at := field.NewPath("subjects").Index(i)
		if s.Name == "" {
			all = append(all, field.Required(at.Child("name"), ""))
		}
		group := rbacv1.GroupName
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			group = ""
			all = append(all, serviceAccount(s, namespaced, at)...)
		case rbacv1.UserKind, rbacv1.GroupKind:
		default:
			all = append(all, field.NotSupported(at.Child("kind"), s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
			continue
		}
		if s.APIGroup != "" && s.APIGroup != group { // it has a default
			all = append(all, field.NotSupported(at.Child("apiGroup"), s.APIGroup, []string{group}))
		}
	}
	return all
}

func serviceAccount(s rbacv1.Subject, namespaced bool, at *field.Path) field.ErrorList {
	var all field.ErrorList
	if s.Name != "" {
		for _, message := range validation.ValidateServiceAccountName(s.Name, false) {
			all = append(all, field.Invalid(at.Child("name"), s.Name, message))
		}
	}
	if !namespaced && s.Namespace == "" {
		all = append(all, field.Required(at.Child("namespace"), ""))
	}
	return all
}

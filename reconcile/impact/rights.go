package impact

import (
	"reflect"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RBAC is the API group of Kubernetes' rights.
const RBAC = "rbac.authorization.k8s.io"

// IsRole reports whether an object holds rules.
func IsRole(id manifest.ID) bool {
	return id.Group == RBAC && (id.Kind == "Role" || id.Kind == "ClusterRole")
}

// IsBinding reports whether an object gives a role to subjects.
func IsBinding(id manifest.ID) bool {
	return id.Group == RBAC && (id.Kind == "RoleBinding" || id.Kind == "ClusterRoleBinding")
}

// RoleOf returns the name of the role that a binding gives.
func RoleOf(binding *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	return name
}

// NewSubjects returns the subjects of a binding that the binding before does not have. before may be nil.
func NewSubjects(before, after *unstructured.Unstructured) []string {
	var had []any
	if before != nil {
		had = listIn(before, "subjects")
	}
	var all []string
	for _, subject := range listIn(after, "subjects") {
		if !slices.ContainsFunc(had, func(s any) bool { return reflect.DeepEqual(s, subject) }) {
			all = append(all, subjectText(subject))
		}
	}
	return all
}

func subjectText(subject any) string {
	m, _ := subject.(map[string]any)
	text := func(key string) string {
		s, _ := m[key].(string)
		return s
	}
	name := text("name")
	if of := text("namespace"); of != "" {
		name = of + "/" + name
	}
	return strings.TrimSpace(text("kind") + " " + name)
}

// GrantsMore reports whether a rule of a role allows anything that no single rule of the role before allows.
func GrantsMore(before, after *unstructured.Unstructured) bool {
	had := listIn(before, "rules")
	return slices.ContainsFunc(listIn(after, "rules"), func(rule any) bool {
		return !slices.ContainsFunc(had, func(old any) bool { return covers(old, rule) })
	})
}

// covers reports whether a rule allows everything that another one allows.
func covers(old, rule any) bool {
	was, isMap := old.(map[string]any)
	is, alsoMap := rule.(map[string]any)
	if !isMap || !alsoMap {
		return false
	}
	for key := range is {
		if !slices.Contains([]string{"verbs", "apiGroups", "resources", "nonResourceURLs", "resourceNames"}, key) {
			return false
		}
	}
	for _, key := range []string{"verbs", "apiGroups", "resources", "nonResourceURLs"} {
		if !includes(was[key], is[key]) {
			return false
		}
	}
	names, _ := was["resourceNames"].([]any)
	fewer, _ := is["resourceNames"].([]any)
	return len(names) == 0 || len(fewer) > 0 && containsAll(names, fewer) // a name has no wildcards
}

// includes reports whether a list has every item of another one, or a wildcard. It returns false for anything but lists.
func includes(list, others any) bool {
	if others == nil {
		return true
	}
	all, isList := list.([]any)
	each, alsoList := others.([]any)
	if !isList && list != nil || !alsoList {
		return false
	}
	return containsAll(all, []any{"*"}) || containsAll(all, each)
}

func containsAll(all, each []any) bool {
	return !slices.ContainsFunc(each, func(v any) bool {
		return !slices.ContainsFunc(all, func(w any) bool { return reflect.DeepEqual(v, w) })
	})
}

func listIn(u *unstructured.Unstructured, key string) []any {
	list, _ := u.Object[key].([]any)
	return list
}

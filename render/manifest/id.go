package manifest

import (
	"cmp"

	segment "k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An ID identifies an object of a cluster. It has no version: the API server serves one object in every version of its kind.
type ID struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// IDOf returns the identity of an object.
func IDOf(u *unstructured.Unstructured) ID {
	gvk := u.GroupVersionKind()
	return ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

// String returns the usual form, "Kind.group/namespace/name", without empty parts.
func (id ID) String() string {
	s := id.Kind
	if id.Group != "" {
		s += "." + id.Group
	}
	if id.Namespace != "" {
		s += "/" + id.Namespace
	}
	return s + "/" + id.Name
}

// Brief returns the kind, the namespace and the name, for a sentence: "Bucket team-a/logs".
func (id ID) Brief() string {
	if id.Namespace == "" {
		return id.Kind + " " + id.Name
	}
	return id.Kind + " " + id.Namespace + "/" + id.Name
}

// GroupKind returns the group and the kind of the object.
func (id ID) GroupKind() schema.GroupKind { return schema.GroupKind{Group: id.Group, Kind: id.Kind} }

// IsSecret reports whether the ID names a Secret.
func (id ID) IsSecret() bool { return id.Group == "" && id.Kind == "Secret" }

// Compare orders identities by group, kind, namespace and name.
func (id ID) Compare(other ID) int {
	return cmp.Or(
		cmp.Compare(id.Group, other.Group),
		cmp.Compare(id.Kind, other.Kind),
		cmp.Compare(id.Namespace, other.Namespace),
		cmp.Compare(id.Name, other.Name),
	)
}

// IsCRD reports whether the ID names a CustomResourceDefinition.
func (id ID) IsCRD() bool {
	return id.Group == "apiextensions.k8s.io" && id.Kind == "CustomResourceDefinition"
}

// IsNamespace reports whether the ID names a Namespace.
func (id ID) IsNamespace() bool { return id.Group == "" && id.Kind == "Namespace" }

// IsWebhookConfiguration reports whether the ID names a configuration of admission webhooks.
func (id ID) IsWebhookConfiguration() bool {
	return id.Group == "admissionregistration.k8s.io" &&
		(id.Kind == "ValidatingWebhookConfiguration" || id.Kind == "MutatingWebhookConfiguration")
}

// Unnameable returns the field of metadata, name or namespace, that cannot be a segment of a URL, and why. No API server has an object
// with such a name, and a request for it would be about something else. It returns "" if there is no such field.
func (id ID) Unnameable() (key, why string) {
	for _, f := range []struct{ key, value string }{{"name", id.Name}, {"namespace", id.Namespace}} {
		if flaws := segment.IsPathSegmentName(f.value); len(flaws) > 0 {
			return f.key, flaws[0]
		}
	}
	return "", ""
}

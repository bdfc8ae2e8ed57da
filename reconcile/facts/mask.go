package facts

import (
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MaskOf returns a mask for the values of a Secret, or for values that were copied from Secrets into another object.
func MaskOf(u *unstructured.Unstructured) diff.Mask {
	if manifest.IDOf(u).IsSecret() {
		return diff.Mask{Values: diff.SecretForms(u)}
	}
	return diff.Mask{Values: copiedSecrets(u)}
}

// Mask returns a mask for the values that were copied from Secrets into the object, directly or through other objects.
func (a Asked) Mask() diff.Mask { return a.Resolved.Hidden }

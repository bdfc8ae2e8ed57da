package plan

import (
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Masked is an error of an API server about an object that was sent, without what a Secret
// holds: the API server quotes a value that it cannot take. It is the same error otherwise.
func Masked(err error, sent *unstructured.Unstructured) error {
	if err == nil {
		return nil
	}
	h := diff.Mask{Values: copiedSecrets(sent)}
	if manifest.IDOf(sent).IsSecret() {
		h.Values = diff.SecretForms(sent)
	}
	return h.Err(err)
}

// Masked is an error about the object without what was copied into it of Secrets.
func (a Asked) Masked(err error) error { return a.resolved.hidden.Err(err) }

// Masked is an error about the object without what was copied into it of Secrets.
func (s Step) Masked(err error) error { return s.hidden.Err(err) }

package inventory

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Mark is what we remember of an object as we left it, to see cheaply whether it
// moved: a hash over everything that an edit of what we applied must touch, and
// that a write of its status does not.
func Mark(o metav1.Object) string {
	version := any(o.GetGeneration())
	if o.GetGeneration() == 0 {
		version = o.GetResourceVersion() // a kind without generation: every write moves it
	}
	var deleting string
	if t := o.GetDeletionTimestamp(); t != nil {
		deleting = t.UTC().String()
	}
	annotations := o.GetAnnotations()
	if _, copied := annotations[lastApplied]; copied {
		annotations = maps.Clone(annotations)
		delete(annotations, lastApplied)
	}
	// Of our managed fields the content, not the time: a no-op apply must not move it.
	var ours []string
	for _, f := range o.GetManagedFields() {
		if f.Manager == Manager && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == "" && f.FieldsV1 != nil {
			ours = append(ours, f.APIVersion, f.FieldsV1.GetRawString())
		}
	}
	// JSON sorts the keys of maps, and frames every part.
	b, err := json.Marshal([]any{
		o.GetUID(), deleting, version, o.GetLabels(), annotations, o.GetOwnerReferences(), ours,
	})
	if err != nil {
		panic(err) // only strings, numbers and plain structs above
	}
	return Hash(b)
}

// lastApplied is where kubectl leaves a copy of what it applied, of a Secret too: a mark must
// not tell what is in it.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Hash returns 128 bits of SHA-256 in 22 characters: thousands of them have to fit into one ConfigMap.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

package inventory

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Mark returns a hash of an object after our write, for the cheap detection of edits. It includes everything that an
// edit of our fields must change, and nothing that a write of the status changes.
func Mark(o metav1.Object) string {
	version := any(o.GetGeneration())
	if o.GetGeneration() == 0 {
		version = o.GetResourceVersion() // a kind without generation: every write changes this
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
	// The content of our managed fields without their time, because a no-op apply must not change the mark.
	var ours []string
	for _, f := range o.GetManagedFields() {
		if IsApplied(f) && f.FieldsV1 != nil {
			ours = append(ours, f.APIVersion, f.FieldsV1.GetRawString())
		}
	}
	// JSON sorts map keys and delimits every part.
	b, err := json.Marshal([]any{
		o.GetUID(), deleting, version, o.GetLabels(), annotations, o.GetOwnerReferences(), ours,
	})
	if err != nil {
		panic(err) // only strings, numbers and plain structs above
	}
	return Hash(b)
}

// lastApplied is the annotation in which kubectl stores a copy of the applied object, even of a Secret. A mark must
// not reveal it.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Hash returns 128 bits of SHA-256 in 22 characters, because thousands of hashes have to fit into one ConfigMap.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// Shows reports whether an entry is about this live object, as Headgate last wrote it with this digest.
func (e Entry) Shows(live metav1.Object, digest string) bool {
	return e.UID == live.GetUID() && e.Digest == digest && e.Mark == Mark(live)
}

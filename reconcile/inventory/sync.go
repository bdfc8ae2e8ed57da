package inventory

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"headgate.dev/headgate/render"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Own puts the label and the annotation of the sync on an object.
func (s Sync) Own(u *unstructured.Unstructured) {
	labels := u.GetLabels() // GetLabels returns a copy
	if labels == nil {
		labels = map[string]string{}
	}
	labels[SyncLabel] = s.Key()
	u.SetLabels(labels)
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[InventoryAnnotation] = s.Key()
	u.SetAnnotations(annotations)
}

// Digest returns the digest of the request for an object, without decoding the object.
func (s Sync) Digest(o render.Object) string {
	return Hash([]byte(o.Digest + "\x00" + s.Key()))
}

// The marks that every applied object carries.
const (
	// SyncLabel holds Sync.Key. Headgate lists owned objects by it.
	SyncLabel = "headgate.dev/sync"
	// InventoryAnnotation also holds Sync.Key. It is cli-utils' own key, so that its clients recognize the owner.
	InventoryAnnotation = "config.k8s.io/owning-inventory"
)

// Manager is our field manager.
const Manager = "headgate"

// ActivationManager is our field manager for the state of a definition.
const ActivationManager = Manager + "-activation"

// Released is the field manager of an object that a sync released and that has no other manager. It manages none of the fields.
const Released = Manager + "-released"

// A Sync identifies one configured target. Its inventory is in Namespace.
type Sync struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String is "namespace/name".
func (s Sync) String() string { return s.Namespace + "/" + s.Name }

// Compare orders syncs by namespace and name.
func (s Sync) Compare(other Sync) int {
	return cmp.Or(cmp.Compare(s.Namespace, other.Namespace), cmp.Compare(s.Name, other.Name))
}

// Key returns the text that marks an object as owned by this sync, which is also the ID of its inventory. It is a
// label value: beyond 63 characters, a hash replaces its end.
func (s Sync) Key() string {
	key := s.Namespace + "." + s.Name
	if len(key) <= mostOfKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	const tail = 16
	return key[:mostOfKey-tail-1] + "-" + hex.EncodeToString(sum[:])[:tail]
}

const mostOfKey = 63 // maximum length of a label value

// SyncOf parses a key. It reports false for a key whose end may be a hash.
func SyncOf(key string) (Sync, bool) {
	namespace, name, ok := strings.Cut(key, ".") // a namespace contains no dots
	return Sync{Namespace: namespace, Name: name}, ok && len(key) < mostOfKey
}

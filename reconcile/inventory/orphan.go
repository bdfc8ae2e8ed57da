package inventory

import (
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An Orphan is an object whose last sync has ended or was lost. Nothing owns it: its marks only say which sync was the last one.
type Orphan struct {
	Object   manifest.ID `json:"object"`
	LastSync string      `json:"lastSync"` // "namespace/name", or the key if that is shortened
}

// Orphans are the orphans of a cluster.
type Orphans struct {
	Items  []Orphan `json:"items"`
	Unread []string `json:"unread,omitempty"` // kinds and groups that could not be listed
}

// Known holds the syncs that a cluster knows, by key.
type Known struct {
	Sources map[string]SourceRecord // of stored inventories
	Objects map[string]types.UID    // Sync objects
}

// Lives reports whether a sync may make passes. A sync that is no object has an inventory. One that is an object lives as long as that, and
// another object of its name has not taken over the inventory yet.
func (k Known) Lives(key string) bool {
	of, stored := k.Sources[key]
	uid, exists := k.Objects[key]
	if !stored {
		return exists
	}
	return of.Object == "" || exists && of.Object == string(uid)
}

// Orphan returns the orphan that a live object is. An object that someone else marked, or a copy, is none.
func (k Known) Orphan(id manifest.ID, live metav1.Object) (Orphan, bool) {
	key := live.GetLabels()[SyncLabel]
	if key == "" || live.GetAnnotations()[InventoryAnnotation] != key || !appliedMarks(live) || k.Lives(key) {
		return Orphan{}, false
	}
	last := key
	if s, whole := SyncOf(key); whole {
		last = s.String()
	}
	return Orphan{id, last}, true
}

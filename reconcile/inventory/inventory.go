package inventory

import (
	"encoding/json"
	"fmt"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cli-utils/pkg/object"
)

// An Inventory records the objects that a sync applied and owns.
type Inventory struct {
	Sync            Sync
	ResourceVersion string       // of the stored inventory; "" if none is stored yet
	Owner           render.Owner // the recorded tool that creates the CRDs; "" if none is recorded
	Entries         map[manifest.ID]Entry
	History         []Past   // the results of the last passes, the newest last; stored in a separate object
	Held            Holds    // the holds of the last pass, stored with the history
	Undone          Undone   // the creates and updates that the last pass did not do, stored with the history
	Failures        Failures // the failures of the last pass, stored with the history
	Grants          []Grant  // approvals that Headgate used
	Rebuilt         bool     // it was missing and Headgate rebuilt it from marks, so it must not prune anything
	Lost            bool     // some of its entries are missing, and only marks show which; Rebuilt is set, too
	Record          Record
}

// Format is the version of the inventory format that this binary writes. It reads this version and all
// older ones. An addition keeps the number: an older binary preserves the fields that it does not know.
// A change that an older binary would misread raises the number, and an older binary then refuses the
// inventory.
//
//	1  the data of the ConfigMap, and its siblings, hold every entry
//	2  entries are stored apart, which a binary that reads 1 would forget; or entries are rebuilt,
//	   whose objects it would prune
//	3  releases were begun, whose objects it would prune
//	4  the ref of the source, objects that are being deleted, and claims: it would prune objects of
//	   another branch, forget objects that still exist, or use an approval for more than was approved
const Format = 4

// A Record holds everything in an inventory besides its entries.
type Record struct {
	Format   int          `json:"format"`           // 0 for an inventory of an old binary that did not record it
	Writer   string       `json:"writer,omitempty"` // the version of Headgate that wrote the inventory
	Source   SourceRecord `json:"source,omitzero"`
	Entries  int          `json:"entries,omitempty"`  // the number of entries, to notice that another client removed some; 0 if it is not recorded
	Packages []string     `json:"packages,omitempty"` // the package directories of the last applied commit, sorted
	Policies []string     `json:"policies,omitempty"` // the files with policies of the last applied commit, sorted

	PolicyNames []string `json:"policyNames,omitempty"` // the names of these policies, sorted

	// Images holds the images that tags and ranges of the last applied commit named, by source, if the sync creates the CRDs.
	Images []packages.Locked `json:"images,omitempty"`

	// Definitions holds fingerprints of the definitions of every package that was ever applied, by directory. It
	// includes deleted packages, because their definitions may come back as other objects.
	Definitions map[string]string `json:"definitions,omitempty"`

	// What the sync leaves to other owners, as of its last apply. 'headgate status' reads it.
	Adoption string                `json:"adoption,omitempty"` // which objects of other owners the sync takes over
	Ignored  map[string][][]string `json:"ignored,omitempty"`  // pointers to ignored fields, by the suffix of the entries' digests

	unknown unknown
}

// UnmarshalJSON reads a record and preserves the fields that it does not know.
func (r *Record) UnmarshalJSON(data []byte) error {
	type plain Record
	rest, err := unmarshal(data, (*plain)(r))
	r.unknown = rest
	return err
}

// MarshalJSON writes a record, including the fields that were preserved.
func (r Record) MarshalJSON() ([]byte, error) {
	type plain Record
	return marshal(plain(r), r.unknown)
}

// An Entry is the record of an object that Headgate applied or is about to apply.
type Entry struct {
	UID    types.UID `json:"uid,omitempty"`    // "" for an intent: the request was sent, but no answer was seen
	Digest string    `json:"digest,omitempty"` // digest of the request
	Mark   string    `json:"mark,omitempty"`   // Mark of the object after our write
	Fields string    `json:"fields,omitempty"` // digest of the fields that only Headgate applied; see diff.OwnFields

	Policy ManagementPolicy `json:"policy,omitempty"` // limits what Headgate may do to the object; "" is no limit
	Proof  string           `json:"proof,omitempty"`  // proof that Headgate wrote this; required to delete an object without a mark
	Path   string           `json:"path,omitempty"`   // the file of the commit that declares the object

	Definition bool   `json:"definition,omitempty"` // the CRD of a definition: its objects represent external resources
	Foreign    string `json:"foreign,omitempty"`    // marks of other tools that Headgate sent itself; see SentMarks
	Rebuilt    bool   `json:"rebuilt,omitempty"`    // found by its marks after the inventory was lost, and not applied since
	Undeclared bool   `json:"undeclared,omitempty"` // the commit of the last pass does not declare it
	RemovedBy  string `json:"removedBy,omitempty"`  // of an undeclared object: the first commit that does not declare it
	Releasing  bool   `json:"releasing,omitempty"`  // its release has begun: never pruned unless a commit declares it again

	// Fields that cli-utils writes, so that its clients can read our inventory.
	Strategy  string `json:"strategy"`
	Actuation string `json:"actuation"`
	Reconcile string `json:"reconcile"`

	unknown unknown
}

// UnmarshalJSON reads an entry and preserves the fields that it does not know.
func (e *Entry) UnmarshalJSON(data []byte) error {
	type plain Entry
	rest, err := unmarshal(data, (*plain)(e))
	e.unknown = rest
	return err
}

// MarshalJSON writes an entry, including the fields that were preserved.
func (e Entry) MarshalJSON() ([]byte, error) {
	type plain Entry
	return marshal(plain(e), e.unknown)
}

// Key returns the cli-utils name of an object in an inventory.
func Key(id manifest.ID) string {
	return object.ObjMetadata{
		Namespace: id.Namespace,
		Name:      id.Name,
		GroupKind: schema.GroupKind{Group: id.Group, Kind: id.Kind},
	}.String()
}

// Data returns the inventory as the data of a ConfigMap in cli-utils' format. It omits entries that this format
// cannot name; see Apart.
func (inv Inventory) Data() (map[string]string, error) {
	data := make(map[string]string, len(inv.Entries))
	for id, e := range inv.Entries {
		if !fitsKey(id) {
			continue
		}
		value, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		data[Key(id)] = string(value)
	}
	return data, nil
}

// Entries parses the data of an inventory ConfigMap. A value that another cli-utils client wrote becomes an entry
// without content.
func Entries(data map[string]string) (map[manifest.ID]Entry, error) {
	entries := make(map[manifest.ID]Entry, len(data))
	for key, value := range data {
		id, err := idOfKey(key)
		if err != nil {
			return nil, err
		}
		var e Entry
		if value != "" {
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				return nil, fmt.Errorf("inventory entry %q: %w", key, err)
			}
		}
		entries[id] = e
	}
	return entries, nil
}

// cli-utils' words for an object that did not become ready in time, and for one whose wait did not end because the
// pass was interrupted or killed.
const (
	ReconcileTimeout = "Timeout"
	ReconcilePending = "Pending"
)

// Following returns the entry with those fields of an earlier entry that an apply does not change.
func (e Entry) Following(before Entry) Entry {
	e.Path, e.unknown = before.Path, before.unknown
	return e
}

// Deletes returns the entry of an object whose deletion has begun and is not over.
func (e Entry) Deletes() Entry {
	e.Strategy, e.Actuation, e.Reconcile = "Delete", "Succeeded", ReconcilePending
	return e
}

// Deleting reports whether the deletion of the object has begun. The object stays in the inventory until it is gone.
func (e Entry) Deleting() bool { return e.Strategy == "Delete" && e.Actuation == "Succeeded" }

// IsAnother reports whether a live object replaced one whose deletion had begun. The new object is not ours.
func (e Entry) IsAnother(live metav1.Object) bool {
	return e.Deleting() && e.UID != "" && e.UID != live.GetUID()
}

// Unready reports whether an unchanged object may not be ready.
func (e Entry) Unready() bool {
	return e.Reconcile == ReconcileTimeout || e.Reconcile == ReconcilePending
}

// Succeeded returns the entry of an applied object.
func Succeeded(uid types.UID, digest, mark string) Entry {
	return Entry{UID: uid, Digest: digest, Mark: mark, Strategy: "Apply", Actuation: "Succeeded", Reconcile: "Succeeded"}
}

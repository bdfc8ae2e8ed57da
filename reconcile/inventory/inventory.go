package inventory

import (
	"encoding/json"
	"fmt"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cli-utils/pkg/object"
)

// An Inventory is what a sync applied: what we own.
type Inventory struct {
	Sync            Sync
	ResourceVersion string       // of the stored one; "" where none is stored yet
	Owner           render.Owner // who makes the CRDs, as recorded; "" where nothing is
	Entries         map[manifest.ID]Entry
	History         []Past  // the results of the last passes, the newest last; stored apart
	Held            Holds   // what the last pass held back; it is stored with the history
	Grants          []Grant // approvals that were made use of
	Rebuilt         bool    // it was missing and was rebuilt from marks: it must not prune anything
	Lost            bool    // some of its entries are missing, and only marks show which; it is Rebuilt, too
	Record          Record
}

// Format is the newest version of the inventory format that this binary reads and writes. An addition
// keeps the number: an older binary preserves the fields that it does not know. A change that an
// older binary would misread raises the number, and an older binary then refuses the inventory. An
// inventory has the lowest number that describes it.
//
//	1  the data of the ConfigMap, and its siblings, hold every entry
//	2  entries are stored apart, which a binary that reads 1 would forget; or entries are rebuilt,
//	   whose objects it would prune
//	3  releases were begun, whose objects it would prune
const Format = 3

// A Record is what an inventory remembers beside its entries.
type Record struct {
	Format   int          `json:"format"`           // 0 is an inventory of a binary that did not record it
	Writer   string       `json:"writer,omitempty"` // the version of Headgate that wrote the inventory
	Source   SourceRecord `json:"source,omitzero"`
	Packages []string     `json:"packages,omitempty"` // the directories that were packages in the last applied commit, sorted
	Policies []string     `json:"policies,omitempty"` // the files that declared policies in the last applied commit, sorted

	PolicyNames []string `json:"policyNames,omitempty"` // of these policies, sorted

	// Definitions holds fingerprints of the definitions of packages that were applied once, by directory. They include
	// packages that are gone, because their definitions may come back as other objects.
	Definitions map[string]string `json:"definitions,omitempty"`

	// What a sync left to others when it applied what the inventory holds. A status reads it.
	Adoption string                `json:"adoption,omitempty"` // which objects of others the sync takes over
	Ignored  map[string][][]string `json:"ignored,omitempty"`  // the pointers to ignored fields, by the suffix of the digests of entries

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

// An Entry is what we remember of one object that we applied, or are about to.
type Entry struct {
	UID    types.UID `json:"uid,omitempty"`    // "" is an intent: sent, and no answer seen
	Digest string    `json:"digest,omitempty"` // digest of the request
	Mark   string    `json:"mark,omitempty"`   // of the object as we left it
	Fields string    `json:"fields,omitempty"` // digest of those fields that only we applied; see diff.OwnFields

	Policy ManagementPolicy `json:"policy,omitempty"` // what may be done to it, where that is not all
	Proof  string           `json:"proof,omitempty"`  // proof that Headgate requested it, for an object without a mark that may be deleted
	Path   string           `json:"path,omitempty"`   // the file of the commit that declares the object

	Definition bool   `json:"definition,omitempty"` // it is the CRD of a definition: objects of its kind reach beyond the cluster
	Foreign    string `json:"foreign,omitempty"`    // the marks of others that Headgate sent itself; see SentMarks
	Rebuilt    bool   `json:"rebuilt,omitempty"`    // found by its marks when the inventory was lost, and not applied since
	Undeclared bool   `json:"undeclared,omitempty"` // the commit of the last pass does not declare it
	Releasing  bool   `json:"releasing,omitempty"`  // its release was begun: it is never pruned unless a commit declares it again

	// The fields that cli-utils writes, so that its clients can read our inventory.
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

// Key is how cli-utils names an object in an inventory.
func Key(id manifest.ID) string {
	return object.ObjMetadata{
		Namespace: id.Namespace,
		Name:      id.Name,
		GroupKind: schema.GroupKind{Group: id.Group, Kind: id.Kind},
	}.String()
}

// Data is the inventory as the data of a ConfigMap in cli-utils' format. Apart has what it cannot name.
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

// Entries reads the data of an inventory ConfigMap. A value that is not ours, as
// cli-utils' own tools write, is an entry that remembers nothing.
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

// cli-utils' words for what was not ready in time, and for what was not waited for yet:
// the pass was interrupted, or killed.
const (
	ReconcileTimeout = "Timeout"
	ReconcilePending = "Pending"
)

// Following returns the entry with what an earlier one of the same object holds beside what was applied.
func (e Entry) Following(before Entry) Entry {
	e.Path, e.unknown = before.Path, before.unknown
	return e
}

// Unready reports whether an object may not be ready, though it is as we left it.
func (e Entry) Unready() bool {
	return e.Reconcile == ReconcileTimeout || e.Reconcile == ReconcilePending
}

// Succeeded returns the entry of an object that was applied.
func Succeeded(uid types.UID, digest, mark string) Entry {
	return Entry{UID: uid, Digest: digest, Mark: mark, Strategy: "Apply", Actuation: "Succeeded", Reconcile: "Succeeded"}
}

// Package inventory holds the record of the objects that a sync applied: entries, marks, grants of approvals and the
// history of passes, in their stored format. Package plan interprets them.
package inventory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/cli-utils/pkg/object"
)

// cli-utils names an object by a ConfigMap key. Some identities have no such key, and a few have the key of another
// object: cli-utils writes the colon of an RBAC name as two underscores and reads them back as a colon. The entries
// of these objects are stored separately, with the identity in the value.

// fitsKey reports whether an object has a cli-utils key that can be parsed back to the same object.
func fitsKey(id manifest.ID) bool {
	key := Key(id)
	if len(validation.IsConfigMapKey(key)) > 0 {
		return false
	}
	back, err := idOfKey(key)
	return err == nil && back == id
}

// idOfKey returns the identity that cli-utils parses from a key.
func idOfKey(key string) (manifest.ID, error) {
	meta, err := object.ParseObjMetadata(key)
	if err != nil {
		return manifest.ID{}, fmt.Errorf("inventory key %q: %w", key, err)
	}
	return manifest.ID{Group: meta.GroupKind.Group, Kind: meta.GroupKind.Kind, Namespace: meta.Namespace, Name: meta.Name}, nil
}

// apartKey returns the key of an entry that is stored separately.
func apartKey(id manifest.ID) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{id.Group, id.Kind, id.Namespace, id.Name}))
	return hex.EncodeToString(sum[:])
}

// An identified value contains the identity of its object.
type identified struct {
	ID manifest.ID `json:"id"`
}

// Apart returns the data of the entries that cli-utils' format cannot name. Data omits them.
func (inv Inventory) Apart() (map[string]string, error) {
	data := map[string]string{}
	for id, e := range inv.Entries {
		if fitsKey(id) {
			continue
		}
		entry, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		value, err := marshal(identified{id}, unknown(entry))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		data[apartKey(id)] = string(value)
	}
	return data, nil
}

// EntriesApart parses the data from Apart.
func EntriesApart(data map[string]string) (map[manifest.ID]Entry, error) {
	entries := make(map[manifest.ID]Entry, len(data))
	for key, value := range data {
		var of identified
		entry, err := unmarshal([]byte(value), &of)
		if err == nil && apartKey(of.ID) != key {
			err = fmt.Errorf("it names %s, which has another key", of.ID)
		}
		var e Entry
		if err == nil && entry != "" {
			err = json.Unmarshal([]byte(entry), &e)
		}
		if err != nil {
			return nil, fmt.Errorf("inventory entry %q: %w", key, err)
		}
		entries[of.ID] = e
	}
	return entries, nil
}

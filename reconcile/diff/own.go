package diff

import (
	"encoding/json"
	"strconv"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OwnFields returns a hash of the fields of a live object that our field manager applied, without the ignored ones.
// An API server takes a field from us as soon as another field manager changes or removes it, and leaves our fields
// alone when another field manager adds its own. So the hash changes exactly when the fields that Headgate applied
// change. It includes our last write, because another process may apply other values in our name.
func OwnFields(live metav1.Object, ignored []Pointer) string {
	parts := []string{}
	for _, f := range live.GetManagedFields() {
		if !inventory.IsApplied(f) || f.FieldsV1 == nil {
			continue
		}
		fields := f.FieldsV1.GetRawString()
		var tree map[string]any
		if len(ignored) > 0 && json.Unmarshal([]byte(fields), &tree) == nil {
			for _, p := range ignored {
				p.removeOwned(tree)
			}
			if written, err := json.Marshal(tree); err == nil { // the keys are sorted
				fields = string(written)
			}
		}
		since := ""
		if f.Time != nil {
			since = f.Time.UTC().String()
		}
		parts = append(parts, f.APIVersion, since, fields)
	}
	if len(parts) == 0 {
		return ""
	}
	return inventory.Hash([]byte(strings.Join(parts, "\n")))[:11]
}

// removeOwned removes the field that a pointer addresses from managed fields. Managed fields identify list items by
// key and not by index, so an index addresses every item with a key.
func (p Pointer) removeOwned(tree map[string]any) {
	if len(p) == 0 {
		return
	}
	_, err := strconv.Atoi(p[0])
	index := err == nil
	for key, below := range tree {
		kind, name, _ := strings.Cut(key, ":")
		addressed := p[0] == "*"
		switch kind {
		case ".":
			continue
		case "f", "i": // a field, or an item by its index
			addressed = addressed || name == p[0]
		default: // an item by its key or value
			addressed = addressed || index
		}
		if !addressed {
			continue
		}
		children, _ := below.(map[string]any)
		if len(p) > 1 {
			if len(children) == 0 {
				continue // the field is owned as a whole
			}
			p[1:].removeOwned(children)
			if _, itself := children["."]; itself && len(children) == 1 {
				delete(children, ".") // as the API server writes a field without children
				continue
			}
		}
		if len(p) == 1 || len(children) == 0 {
			delete(tree, key)
		}
	}
}

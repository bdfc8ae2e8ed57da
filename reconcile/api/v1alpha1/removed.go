package v1alpha1

import (
	"fmt"
	"strings"
)

// A Removal is a field that goes. It stays in its type, and has its effect, in the two minor versions that warn of it, so that files and the CRD
// accept it. The version after these does not know the field. The row stays.
//
// +kubebuilder:object:generate=false
type Removal struct {
	Field   string // its path, with [] behind a list: spec.packages[].auth
	Since   string // the first version that warns: v0.4
	Instead string // what to do, in the imperative: set spec.interval
}

// Removals lists the fields that go, or are gone.
var Removals []Removal

// Warnings returns a text for each field of a Sync that goes. The Sync is a decoded document, without defaults.
func Warnings(sync any, all []Removal) (warnings []string) {
	for _, r := range all {
		if isSet(sync, strings.Split(r.Field, ".")) {
			warnings = append(warnings, fmt.Sprintf("%s: goes after two minor versions from %s: %s", r.Field, r.Since, r.Instead))
		}
	}
	return warnings
}

// isSet reports whether a document has a field, in any item of the lists on its path.
func isSet(document any, path []string) bool {
	if items, ok := document.([]any); ok {
		for _, item := range items {
			if isSet(item, path) {
				return true
			}
		}
		return false
	}
	if len(path) == 0 {
		return true
	}
	fields, ok := document.(map[string]any)
	value, is := fields[strings.TrimSuffix(path[0], "[]")]
	return ok && is && isSet(value, path[1:])
}

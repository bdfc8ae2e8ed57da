package catalogue

import (
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// exported lists metadata fields that an API server writes, in the order of kubectl. A server refuses an apply that sets one of the
// first three.
var exported = []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"}

const refusedExports = 3

// refuseMetadata returns errors in the metadata of an object that every API server would reject: values that YAML does not read as
// text, and fields of an object that was exported from a cluster.
func refuseMetadata(u *undecoded) Errors {
	metadata, _ := u.object.Object["metadata"].(map[string]any)
	var problems Errors
	if v, ok := metadata["namespace"]; ok {
		problems = append(problems, notText(u.Document, v, "metadata", "namespace")...)
	}
	for _, field := range []string{"labels", "annotations"} {
		values, _ := metadata[field].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			problems = append(problems, notText(u.Document, values[key], "metadata", field, key)...)
		}
	}
	return append(problems, refuseExported(u, metadata)...)
}

// refuseExported refuses an object that was exported from a cluster: an apply succeeds only on the original object, and only while
// that is unchanged.
func refuseExported(u *undecoded, metadata map[string]any) Errors {
	isSet := func(key string) bool {
		switch v := metadata[key].(type) {
		case nil:
			return false
		case string:
			return v != ""
		}
		return true
	}
	first := slices.IndexFunc(exported[:refusedExports], isSet)
	if first < 0 {
		return nil
	}
	var remove []string
	for _, key := range exported {
		if isSet(key) {
			remove = append(remove, "metadata."+key)
		}
	}
	if u.object.Object["status"] != nil {
		remove = append(remove, "status")
	}
	return Errors{Errorf(u.OriginOf("metadata", exported[first]),
		"%s %s was exported from a cluster, and the API server refuses it with metadata.%s: remove %s", u.Header.Kind, u.Header.Name, exported[first], strings.Join(remove, ", "))}
}

// notText refuses a value that must be text and that YAML reads as another type.
func notText(d *manifest.Document, v any, path ...any) Errors {
	what := kindOf(v)
	if what == "" {
		return nil
	}
	return Errors{Errorf(d.OriginOf(path...), "%s of %s is %s, not text: quote it%s", manifest.Field(path...), d.Header.Kind, what, spellings(v))}
}

// spellings explains why YAML reads a word as a boolean, or returns "" for any other value.
func spellings(v any) string {
	if _, ok := v.(bool); ok {
		return " (in YAML, the unquoted words true, false, yes, no, on and off are booleans)"
	}
	return ""
}

// kindOf returns the type of a value that should be text; "" for text and for null.
func kindOf(v any) string {
	switch v.(type) {
	case nil, string:
		return ""
	case bool:
		return "a boolean"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	default:
		return "a number"
	}
}

// nameless returns errors about a document whose name is missing or not text.
func nameless(d *manifest.Document) Errors {
	if v, err := d.Value(); err == nil {
		m, _ := v.(map[string]any)
		metadata, _ := m["metadata"].(map[string]any)
		if problems := notText(d, metadata["name"], "metadata", "name"); problems != nil {
			return problems
		}
	}
	return Errors{Errorf(d.Origin, "%s has no metadata.name: give it one (generateName would make another object at every pass)", d.Header.Kind)}
}

package catalogue

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// placeholder is what Flux would substitute. Twice the dollar is how one writes it to be
// left alone.
var placeholder = regexp.MustCompile(`(^|[^$])\$\{([A-Za-z_][A-Za-z0-9_]*)`)

// unsubstituted warns of an object whose values look as if somebody meant to substitute
// them. Text of several lines is somebody's program or prose, and so are the schemas of
// definitions and the pipelines of Compositions.
func unsubstituted(u *undecoded) []manifest.Finding {
	switch u.Header.Kind {
	case "CustomResourceDefinition", "CompositeResourceDefinition", "Composition":
		return nil
	}
	path, name := firstPlaceholder(u.object.Object)
	if name == "" {
		return nil
	}
	return []manifest.Finding{{
		Rule: RuleUnsubstituted, Severity: manifest.Warning, Origin: u.OriginOf(path...),
		Message: fmt.Sprintf("%s %s holds ${%s}, and nothing is substituted: it is applied as it stands", u.Header.Kind, u.Header.Name, name),
		Fix:     "write the value, or have a kustomization put it there",
	}}
}

// firstPlaceholder is the first of them in a value, in the order of keys, and the path to it.
func firstPlaceholder(value any) (path []any, name string) {
	switch value := value.(type) {
	case string:
		if strings.Contains(value, "\n") {
			return nil, ""
		}
		if m := placeholder.FindStringSubmatch(value); m != nil {
			return nil, m[2]
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if below, name := firstPlaceholder(value[key]); name != "" {
				return append([]any{key}, below...), name
			}
		}
	case []any:
		for i, item := range value {
			if below, name := firstPlaceholder(item); name != "" {
				return append([]any{i}, below...), name
			}
		}
	}
	return nil, ""
}

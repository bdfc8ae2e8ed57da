package catalogue

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// placeholder matches what Flux would substitute. A double dollar sign escapes a placeholder.
var placeholder = regexp.MustCompile(`(^|[^$])\$\{([A-Za-z_][A-Za-z0-9_-]*)`)

// unsubstituted warns about an object whose values look like placeholders that no tool fills in. It ignores multi-line text, which
// is usually a program or prose, schemas of definitions, and pipelines of Compositions.
func unsubstituted(u *undecoded) []manifest.Finding {
	switch u.Header.Kind {
	case "CustomResourceDefinition", crossplane.KindXRD.Kind, crossplane.KindComposition.Kind:
		return nil
	}
	// Tokens of references, which are replaced when the object is applied.
	tokens := u.object.GetAnnotations()["config.kubernetes.io/apply-time-mutation"]
	path, name := firstPlaceholder(u.object.Object, func(name string) bool { return strings.Contains(tokens, "${"+name) })
	if name == "" {
		return nil
	}
	return []manifest.Finding{{
		Rule: RuleUnsubstituted, Severity: manifest.Warning, Origin: u.OriginOf(path...), About: manifest.About{Object: manifest.IDOf(u.object), Subject: name},
		Message: fmt.Sprintf("%s %s contains ${%s}, and Headgate substitutes nothing: it is applied unchanged", u.Header.Kind, u.Header.Name, name),
		Fix:     "write the value, or let a kustomization insert it",
	}}
}

// firstPlaceholder returns the first placeholder in a value, in the order of keys, that is not filled in, and its path.
func firstPlaceholder(value any, filled func(name string) bool) (path []any, name string) {
	switch value := value.(type) {
	case string:
		if strings.Contains(value, "\n") || !strings.Contains(value, "${") { // the expression is slow
			return nil, ""
		}
		for _, m := range placeholder.FindAllStringSubmatch(value, -1) {
			if !filled(m[2]) {
				return nil, m[2]
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if below, name := firstPlaceholder(value[key], filled); name != "" {
				return append([]any{key}, below...), name
			}
		}
	case []any:
		for i, item := range value {
			if below, name := firstPlaceholder(item, filled); name != "" {
				return append([]any{i}, below...), name
			}
		}
	}
	return nil, ""
}

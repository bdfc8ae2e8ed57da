package manifest

import (
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// Meant returns the identity that a text probably refers to: the one with the smallest edit distance, or the only one with that
// name. It returns "" if none is similar.
func Meant(text string, ids []string) string {
	const near = 3
	name := text[strings.LastIndex(text, "/")+1:]
	var named []string
	best, least := "", min(near, len(text)/2)+1
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if name != "" && strings.HasSuffix(id, "/"+name) {
			named = append(named, id)
		}
		if len(id) > len(text)+near || len(text) > len(id)+near {
			continue
		}
		if d := levenshtein.Distance(strings.ToLower(text), strings.ToLower(id), nil); d < least {
			best, least = id, d
		}
	}
	if best == "" && len(named) == 1 {
		return named[0]
	}
	return best
}

package facts

import (
	"maps"
	"slices"

	"headgate.dev/headgate/render/crossplane"
)

// Named returns the name of the first live policy that activates a definition; "" if none does.
func Named(live map[string]crossplane.LivePolicy, definition string) string {
	for _, name := range slices.Sorted(maps.Keys(live)) {
		if live[name].Matches(definition) {
			return name
		}
	}
	return ""
}

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Nothing returns an error if the commit declares nothing: no object, definition or package. The error lists what was
// read instead, because the path is probably wrong.
func (d Desired) Nothing() error {
	declares := slices.ContainsFunc(d.Definitions, func(def DecidedDefinition) bool { return def.Document != nil })
	if declares || len(d.Objects)+len(d.Policies)+len(d.Packages)+len(d.Unread)+len(d.Left) > 0 {
		return nil
	}
	at := ""
	if d.Source.Path != "" && d.Source.Path != "." {
		at = " below " + d.Source.Path
	}
	var skipped []string
	for _, why := range slices.Sorted(maps.Keys(d.Skipped)) {
		if n := d.Skipped[why]; n > 0 {
			skipped = append(skipped, fmt.Sprintf("%d × %s", n, why))
		}
	}
	if len(skipped) == 0 {
		return fmt.Errorf("there is no Kubernetes manifest%s; check the path", at)
	}
	return fmt.Errorf("no object%s to apply; check the path. Skipped: %s", at, strings.Join(skipped, ", "))
}

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"
)

// orphans writes the objects of a cluster whose last sync is gone.
func (t *terminal) orphans(ctx context.Context, in *clusterFlags, of inventory.Sync, format string) error {
	c, err := t.cluster(in, of)
	if err != nil {
		return err
	}
	all, err := c.Orphaned(ctx)
	t.progress.Stop()
	if err != nil {
		return err
	}
	if format == "json" {
		return t.json(orphanList{"headgate.dev/v1alpha1", "OrphanList", all})
	}
	_, err = fmt.Fprint(t.out, orphanText(all))
	return err
}

// An orphanList is the orphans of a cluster as JSON.
type orphanList struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	inventory.Orphans
}

// orphanText returns the orphans as text.
func orphanText(all inventory.Orphans) string {
	var b strings.Builder
	counts := map[string]int{}
	for _, o := range all.Items {
		counts[o.LastSync]++
		fmt.Fprintf(&b, "orphaned    %s\n    its last sync was %s\n", printable(o.Object.String()), printable(o.LastSync))
	}
	if len(all.Unread) > 0 {
		fmt.Fprintf(&b, "Not listed, and maybe more: %s\n", printable(strings.Join(all.Unread, ", ")))
	}
	var numbers []string
	for _, last := range slices.Sorted(maps.Keys(counts)) {
		numbers = append(numbers, fmt.Sprintf("%d of %s", counts[last], printable(last)))
	}
	fmt.Fprintf(&b, "Summary: %s", manifest.Count(len(all.Items), "orphaned object"))
	if len(numbers) > 0 {
		fmt.Fprintf(&b, ": %s", strings.Join(numbers, ", "))
	}
	b.WriteByte('\n')
	return b.String()
}

package plan_test

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

// Only objects that are ours merely by their marks are released. Objects that a pass applied since stay owned, and
// objects of others stay unchanged.
func TestReleaseRebuilt(t *testing.T) {
	id := func(name string) manifest.ID { return manifest.IDOf(given.ConfigMap(name)) }
	seen := given.Owning(t, "applied", "rebuilt", "theirs", "gone")
	for _, name := range []string{"rebuilt", "theirs", "gone"} {
		e := seen.Inventory.Entries[id(name)]
		e.Rebuilt = true
		seen.Inventory.Entries[id(name)] = e
	}
	seen.Objects[id("theirs")].Labels[inventory.SyncLabel] = "other.sync"
	delete(seen.Objects, id("gone"))
	p, err := plan.ReleaseRebuilt(seen)
	if err != nil {
		t.Fatal(err)
	}
	var released []manifest.ID
	for _, s := range p.Steps {
		if s.Action == plan.Release {
			released = append(released, s.ID)
		}
	}
	if diff := cmp.Diff([]manifest.ID{id("rebuilt")}, released); diff != "" || len(p.Steps) != 1 {
		t.Errorf("released (-want +got):\n%s%d steps", diff, len(p.Steps))
	}
	if diff := cmp.Diff([]manifest.ID{id("gone"), id("theirs")}, p.Gone); diff != "" {
		t.Errorf("forgotten (-want +got):\n%s", diff)
	}
	seen.Inventory.Rebuilt = true
	if p, err := plan.ReleaseRebuilt(seen); err == nil {
		t.Errorf("Before a pass it is not known what is wanted, got %v", p.Steps)
	}
}

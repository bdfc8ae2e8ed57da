package draft_test

import (
	"regexp"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"
)

// With other ignore rules, an object must be checked again.
func TestRulesAreInTheDigest(t *testing.T) {
	u := given.ConfigMap("a")
	id := manifest.IDOf(u)
	o := given.Wanted(t, u)
	without := facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync}}}
	with := facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync}}, Given: facts.Given{Terms: facts.Terms{Ignore: []diff.Ignore{{Paths: []diff.Pointer{diff.PointerOf("/data/k")}}}}}}
	with.Inventory.Entries = map[manifest.ID]inventory.Entry{id: {Digest: without.Digest(o)}}
	if with.Digest(o) == without.Digest(o) || !with.AsBefore(o) {
		t.Errorf("%q and %q: what was applied is the same, and under other rules", with.Digest(o), without.Digest(o))
	}
	with.Terms.Ignore[0].Kind = regexp.MustCompile("^Other$")
	if with.Digest(o) != without.Digest(o) {
		t.Errorf("rules for others make no difference")
	}
}

package draft_test

import (
	"slices"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// A destroy removes its marks from its own objects and changes nothing else.
func TestReleaseOurs(t *testing.T) {
	for _, p := range []plan.Plan{{Sync: given.Sync, Stance: plan.Orphaning}, {Sync: given.Sync}} {
		if _, some := draft.Leaving(p, plan.Step{Action: plan.Release}, given.Live(given.ConfigMap("a"), "u")); !some {
			t.Error("what is ours is released")
		}
		if _, some := draft.Leaving(p, plan.Step{Action: plan.Release}, given.Live(given.ConfigMap("a"), "u", given.Labelled(inventory.SyncLabel, "other"))); some {
			t.Error("what is not ours is not released")
		}
	}
}

// Prunes that a user approved past the guard "many" do not count for it.
func TestManyWithoutApproved(t *testing.T) {
	want := render.Desired{Revision: "1", Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}}
	more := given.Owning(t, "a", "b", "c", "d", "e", "f", "g", "h")
	p := plan.Plan{Want: want}
	for id := range more.Inventory.Entries {
		p.Steps = append(p.Steps, plan.Step{Action: plan.Prune, ID: id})
	}
	only := slices.DeleteFunc(guard.Guarding{MaxPrunes: 3}.Guards(), func(g draft.Guard) bool { return g.Name != "many" })
	draft.RuleOn(&p, more, only[0], p.Steps[3:])
	if n := p.Count(plan.Prune); n != len(p.Steps) {
		t.Errorf("three beside those that were approved go: %d of %d prunes", n, len(p.Steps))
	}
}

// A namespace stays as long as an object in it stays.
func TestKeepHomes(t *testing.T) {
	space := manifest.ID{Kind: "Namespace", Name: "team"}
	inside := plan.Step{Action: plan.Keep, ID: manifest.ID{Kind: "ConfigMap", Namespace: "team", Name: "a"}}
	p := plan.Plan{Steps: []plan.Step{inside, {Action: plan.Prune, ID: space}}}
	if draft.SettleBy(&p, guard.Guarding{}.Guards()); p.Steps[1].Action != plan.Hold {
		t.Error("it goes from under what stays")
	}
	inside.Action = plan.Prune
	p = plan.Plan{Steps: []plan.Step{inside, {Action: plan.Prune, ID: space}}}
	if draft.SettleBy(&p, guard.Guarding{}.Guards()); p.Steps[1].Action != plan.Prune {
		t.Error("it goes with what goes")
	}
}

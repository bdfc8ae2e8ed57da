package draft_test

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dying returns a cluster in which an object of ours is being deleted, and the ID of the object.
func dying(t *testing.T) (facts.Observed, manifest.ID) {
	t.Helper()
	id := manifest.IDOf(given.ConfigMap("goes"))
	seen := given.Owning(t, "goes", "stays")
	live := seen.Objects[id]
	live.DeletionTimestamp, live.Finalizers = &metav1.Time{}, []string{"example.org/slow"}
	return seen, id
}

// A commit that wants an object which is being deleted waits until it is gone.
func TestDyingAndWanted(t *testing.T) {
	seen, id := dying(t)
	want := render.Desired{Revision: "two", Objects: []render.Object{given.Wanted(t, given.ConfigMap("goes")), given.Wanted(t, given.ConfigMap("stays"))}}
	_, steps := given.Steps(t, want, seen, guard.Guarding{}.Guards()...)
	if s := steps["ConfigMap goes"]; s.Action != plan.Create || !s.Waiting() || s.Writes() || s.Waits[0].Code != reason.AwaitsOwnEnd {
		t.Errorf("it is not unchanged: %s %v", s.Action, s.Waits)
	}
	if s := steps["ConfigMap goes"]; s.Cause != plan.Drift {
		t.Errorf("another writer deletes what the commit wants: %s", s.Cause)
	}
	_, reported := given.Steps(t, want, seen, guard.Guarding{ReportDrift: true}.Guards()...)
	if s := reported["ConfigMap goes"]; s.Action != plan.Keep || s.Waiting() || s.Guard != guard.Drift {
		t.Errorf("the sync only reports that: %s %v", s.Action, s.Waits)
	}
	seen.Inventory.Entries[id] = seen.Inventory.Entries[id].Deletes()
	if _, steps := given.Steps(t, want, seen); steps["ConfigMap goes"].Cause != plan.Commit {
		t.Error("Headgate deletes it, and the commit wants it again")
	}
	edited := given.ConfigMap("goes")
	edited.Object["data"] = map[string]any{"k": "edited"}
	seen.Trials = map[manifest.ID]facts.Trial{id: {Live: edited, After: given.ConfigMap("goes")}}
	if _, steps := given.Steps(t, want, seen); !steps["ConfigMap goes"].Writes() || steps["ConfigMap goes"].Action != plan.Update {
		t.Errorf("its controller may need the update to end the deletion: %+v", steps["ConfigMap goes"])
	}
	// We deleted it, so its absence is not drift.
	delete(seen.Objects, id)
	seen.Inventory.Entries[id] = seen.Inventory.Entries[id].Deletes()
	if _, steps := given.Steps(t, want, seen); steps["ConfigMap goes"].Action != plan.Create || steps["ConfigMap goes"].Cause != plan.Commit {
		t.Errorf("%s %s", steps["ConfigMap goes"].Action, steps["ConfigMap goes"].Cause)
	}
}

// No guard holds a deletion that has begun, and nothing is sent for it. The inventory records it.
func TestDyingAndUnwanted(t *testing.T) {
	seen, id := dying(t)
	seen.Objects[id].Labels = nil // not ours any more
	want := render.Desired{Revision: "two", Objects: []render.Object{given.Wanted(t, given.ConfigMap("stays"))}}
	p, steps := given.Steps(t, want, seen, guard.Guarding{MaxPrunes: 1}.Guards()...)
	if s := steps["ConfigMap goes"]; s.Action != plan.Prune || !s.Deleting || s.Writes() || s.Lingers() || s.Counts() {
		t.Errorf("%+v", s)
	}
	if !p.Remembers() {
		t.Error("a restart would forget which commit removed it")
	}
	next := record.Settled(p, seen.Inventory, nil)
	if e := next.Entries[id]; !e.Deleting() || e.RemovedBy != "two" {
		t.Errorf("%+v", e)
	}
	seen.Inventory = next
	again, steps := given.Steps(t, want, seen)
	if again.Remembers() || steps["ConfigMap goes"].Lingers() {
		t.Error("the second pass over the commit stores nothing, and it is still the one that removed the object")
	}
	want.Revision = "three"
	if _, steps := given.Steps(t, want, seen); !steps["ConfigMap goes"].Lingers() {
		t.Error("another commit did not remove it")
	}
	seen.Inventory.Rebuilt = true
	if _, steps := given.Steps(t, want, seen, guard.Guarding{}.Guards()...); !steps["ConfigMap goes"].Deleting {
		t.Error("a rebuilt inventory names it, too")
	}
}

// A prune is over when the object is gone. Until then, the inventory holds it, also after a crash.
func TestSentAndNotGone(t *testing.T) {
	seen := given.Owning(t, "goes", "stays")
	id := manifest.IDOf(given.ConfigMap("goes"))
	p := given.Computed(t, render.Desired{Revision: "two", Objects: []render.Object{given.Wanted(t, given.ConfigMap("stays"))}}, seen)
	for _, why := range []reason.Reason{{}, reason.DeletingFinalizers.With("now", []string{"f"})} {
		e, owned := record.Settled(p, seen.Inventory, []plan.Outcome{{ID: id, Action: plan.Prune, Deleting: why}}).Entries[id]
		if owned == why.None() || owned && (!e.Deleting() || e.UID != "goes" || e.RemovedBy != "two") {
			t.Errorf("%s: %t %+v", why, owned, e)
		}
	}
}

// After a deletion, another object may have the name. It is not ours, even with our marks.
func TestAnotherAfterADeletion(t *testing.T) {
	seen, id := dying(t)
	want := render.Desired{Objects: []render.Object{given.Wanted(t, given.ConfigMap("stays"))}}
	seen.Inventory.Entries[id] = seen.Inventory.Entries[id].Deletes()
	seen.Objects[id] = given.Live(given.ConfigMap("goes"), "other")
	p, steps := given.Steps(t, want, seen, guard.Guarding{}.Guards()...)
	if _, has := steps["ConfigMap goes"]; has || len(p.Gone) != 1 || p.Gone[0] != id {
		t.Errorf("%v %v", p.Gone, p.Steps)
	}
	for name, e := range map[string]inventory.Entry{"Applied": plan.Applied(given.Live(given.ConfigMap("goes"), "goes"), "d"), "Failed": {UID: "goes", Strategy: "Delete", Actuation: "Failed"}} {
		seen.Inventory.Entries[id] = e
		if _, steps := given.Steps(t, want, seen, guard.Guarding{}.Guards()...); steps["ConfigMap goes"].Guard != guard.Rebuilt {
			t.Errorf("%s: what became of ours is not known, so a person approves: %+v", name, steps["ConfigMap goes"])
		}
	}
}

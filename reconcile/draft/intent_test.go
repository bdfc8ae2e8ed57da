package draft_test

import (
	"encoding/json"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// storedEntry decodes an entry, including fields that only a newer version knows.
func storedEntry(t *testing.T, data string) (e inventory.Entry) {
	t.Helper()
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// The intent records who makes the CRDs and what may be done to an object. It also records that a returning object is a different
// one.
func TestIntentRecords(t *testing.T) {
	made, changed := manifest.IDOf(given.ConfigMap("made")), manifest.IDOf(given.ConfigMap("changed"))
	have := inventory.Inventory{Sync: given.Sync, Entries: map[manifest.ID]inventory.Entry{
		made: storedEntry(t, `{"uid":"old","later":1}`), changed: storedEntry(t, `{"uid":"u","policy":"Undeletable","later":1}`),
	}}
	p := plan.Plan{Sync: given.Sync, Want: render.Desired{Owner: render.OwnerCrossplane}, Steps: []plan.Step{
		{Action: plan.Create, ID: made, Policy: inventory.Undeletable}, {Action: plan.Update, ID: changed, Policy: inventory.Undeletable},
	}}
	intent := record.Intent(p, have)
	if intent.Owner != render.OwnerCrossplane || intent.Entries[made].UID != "" || intent.Entries[changed].UID != "u" {
		t.Errorf("intent: %+v", intent)
	}
	settled := record.Settled(p, have, []plan.Outcome{{ID: made, Action: plan.Create, UID: "new"}, {ID: changed, Action: plan.Update, UID: "u"}})
	for _, inv := range []inventory.Inventory{intent, settled} {
		for _, id := range []manifest.ID{made, changed} {
			data, err := json.Marshal(inv.Entries[id])
			if e := inv.Entries[id]; err != nil || e.Policy != inventory.Undeletable || !strings.Contains(string(data), `"later":1`) {
				t.Errorf("%s: %s, %v", id, data, err)
			}
		}
	}
	if settled.Entries[made].UID != "new" {
		t.Errorf("settled: %+v", settled.Entries[made])
	}
}

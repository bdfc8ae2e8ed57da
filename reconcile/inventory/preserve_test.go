package inventory_test

import (
	"encoding/json"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render/manifest"
)

// A newer version may add fields. This version preserves them, whatever it changes.
func TestUnknownFieldsArePreserved(t *testing.T) {
	a := manifest.IDOf(given.ConfigMap("a"))
	entries, err := inventory.Entries(map[string]string{inventory.Key(a): `{"uid":"u","strategy":"Apply","actuation":"Succeeded","reconcile":"Succeeded","later":{"b":1},"also":"<x>"}`})
	if err != nil {
		t.Fatal(err)
	}
	have := inventory.Inventory{Entries: entries}
	for name, next := range map[string]inventory.Inventory{
		"intent":  record.Intent(plan.Plan{Steps: []plan.Step{{ID: a, Action: plan.Update}}}, have),
		"applied": record.Settled(plan.Plan{Steps: []plan.Step{{ID: a, Action: plan.Update}}}, have, []plan.Outcome{{ID: a, Action: plan.Update, UID: "u", Digest: "d"}}),
		"failed":  record.Settled(plan.Plan{Steps: []plan.Step{{ID: a, Action: plan.Update}}}, have, []plan.Outcome{{ID: a, Action: plan.Update, Err: given.ErrBoom}}),
		"kept":    record.Settled(plan.Plan{Steps: []plan.Step{{ID: a, Action: plan.Keep}}}, have, []plan.Outcome{{ID: a, Action: plan.Keep}}),
		"pruned":  record.Settled(plan.Plan{Steps: []plan.Step{{ID: a, Action: plan.Prune}}}, have, []plan.Outcome{{ID: a, Action: plan.Prune, Err: given.ErrBoom}}),
	} {
		data, err := next.Data()
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal([]byte(data[inventory.Key(a)]), &fields); err != nil {
			t.Fatalf("%s: %v in %s", name, err, data[inventory.Key(a)])
		}
		if later, _ := fields["later"].(map[string]any); later["b"] != 1.0 || fields["also"] != "<x>" {
			t.Errorf("%s: what this binary does not know must stay as it was: %s", name, data[inventory.Key(a)])
		}
	}

	var r inventory.Record
	if err := json.Unmarshal([]byte(`{"format":1,"later":[1],"FORMAT":1}`), &r); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(r)
	if want := `{"format":1,"later":[1]}`; err != nil || string(got) != want {
		t.Errorf("want %s, got %s, %v", want, got, err)
	}
}

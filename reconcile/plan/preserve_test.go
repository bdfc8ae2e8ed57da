package plan

import (
	"encoding/json"
	"testing"

	"headgate.dev/headgate/render/manifest"
)

// A newer binary may add fields. This one keeps them, whatever it does with the rest.
func TestUnknownFieldsArePreserved(t *testing.T) {
	a := manifest.IDOf(configMap("a"))
	entries, err := Entries(map[string]string{Key(a): `{"uid":"u","strategy":"Apply","actuation":"Succeeded","reconcile":"Succeeded","later":{"b":1},"also":"<x>"}`})
	if err != nil {
		t.Fatal(err)
	}
	have := Inventory{Entries: entries}
	for name, next := range map[string]Inventory{
		"intent":  Plan{Steps: []Step{{ID: a, Action: Update}}}.Intent(have),
		"applied": Plan{Steps: []Step{{ID: a, Action: Update}}}.Settled(have, []Outcome{{ID: a, Action: Update, UID: "u", Digest: "d"}}),
		"failed":  Plan{Steps: []Step{{ID: a, Action: Update}}}.Settled(have, []Outcome{{ID: a, Action: Update, Err: errBoom}}),
		"kept":    Plan{Steps: []Step{{ID: a, Action: Keep}}}.Settled(have, []Outcome{{ID: a, Action: Keep}}),
		"pruned":  Plan{Steps: []Step{{ID: a, Action: Prune}}}.Settled(have, []Outcome{{ID: a, Action: Prune, Err: errBoom}}),
	} {
		data, err := next.Data()
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal([]byte(data[Key(a)]), &fields); err != nil {
			t.Fatalf("%s: %v in %s", name, err, data[Key(a)])
		}
		if later, _ := fields["later"].(map[string]any); later["b"] != 1.0 || fields["also"] != "<x>" {
			t.Errorf("%s: what this binary does not know must stay as it was: %s", name, data[Key(a)])
		}
	}

	var r Record
	if err := json.Unmarshal([]byte(`{"format":1,"later":[1],"FORMAT":1}`), &r); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(r)
	if want := `{"format":1,"later":[1]}`; err != nil || string(got) != want {
		t.Errorf("want %s, got %s, %v", want, got, err)
	}
}

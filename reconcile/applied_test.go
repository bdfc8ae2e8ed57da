//test:package raced minutes=1
package reconcile

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// A past is a Source of the content of a ConfigMap, by commit.
type past map[string]string

func (p past) Fetch(_ context.Context, ref string) (render.Input, error) {
	value, known := p[ref]
	if !known {
		return render.Input{}, errors.New("not found")
	}
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {k: " + value + "}\n"
	return render.Input{Revision: ref, Files: fstest.MapFS{"a.yaml": {Data: []byte(text)}}}, nil
}

// Only a commit with exactly the object that was applied last shows which fields Headgate applied.
func TestDeclaredBefore(t *testing.T) {
	id := manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: "a"}
	cases := map[string]struct {
		reason   string
		source   past
		recorded string
		history  []string
		want     bool
	}{
		"Recorded": {"The inventory records the last applied commit.", past{"one": "applied", "two": "new"}, "one", nil, true},
		"Gone":     {"A shallow clone does not have the commit.", past{"two": "new"}, "one", nil, false},
		"Failed":   {"The object was not applied from the recorded commit.", past{"zero": "applied", "one": "failed", "two": "new"}, "one", []string{"zero", "one"}, true},
		"Killed":   {"The recorded commit is this one, which was not applied completely.", past{"one": "applied", "two": "new"}, "two", []string{"one"}, true},
		"Other":    {"No known commit has what was applied.", past{"one": "other", "two": "new"}, "one", nil, false},
		"Old":      {"The number of rendered commits is limited.", past{"a": "applied", "b": "1", "c": "2", "d": "3", "two": "new"}, "d", []string{"a", "b", "c"}, false},
		"Unknown":  {"An inventory may not record a commit.", past{"two": "new"}, "", nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := Reconciler{Source: tc.source, Sync: given.Sync}
			applied := given.ConfigMap("a")
			applied.SetNamespace("default")
			applied.Object["data"] = map[string]any{"k": "applied"}
			seen := facts.Observed{Wanted: facts.Wanted{Want: render.Desired{Revision: "two"}}, Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync, Entries: map[manifest.ID]inventory.Entry{}}}}
			seen.Inventory.Entries[id] = inventory.Entry{Digest: seen.Digest(given.Wanted(t, applied))}
			seen.Inventory.Record.Source.Commit = tc.recorded
			for _, commit := range tc.history {
				seen.Inventory.History = append(seen.Inventory.History, inventory.Past{Revision: commit})
			}
			got := r.declaredBefore(t.Context(), seen, []manifest.ID{id})
			if (got[id] != nil) != tc.want || len(got) > 1 {
				t.Errorf("%s\ndeclaredBefore(...) = %v, want the object: %t", tc.reason, got, tc.want)
			}
		})
	}
}

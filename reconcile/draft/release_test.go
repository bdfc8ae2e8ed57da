package draft_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Only objects that are ours merely because of their marks are released. Objects that a pass has applied since stay owned, and
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
	p, err := draft.ReleaseRebuilt(seen)
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
	if p, err := draft.ReleaseRebuilt(seen); err == nil {
		t.Errorf("Before a pass it is not known what is wanted, got %v", p.Steps)
	}
}

// A request to release concerns objects that the commit no longer declares. It survives a crash, and ends with a commit that
// declares the object again.
func TestRelease(t *testing.T) {
	u := given.ConfigMap("a")
	id := manifest.IDOf(u)
	kept := given.Wanted(t, given.ConfigMap("kept"))
	other := given.Labelled(inventory.SyncLabel, "team.other")
	moves := given.Annotated(ownership.ReleaseAnnotation, "team/other")
	here := given.Annotated(ownership.ReleaseAnnotation, given.Sync.String())
	cases := map[string]struct {
		reason   string
		entry    *inventory.Entry
		edits    []func(*metav1.PartialObjectMetadata)
		listed   string
		declared bool
		want     plan.Action
		guard    plan.GuardName
		note     string // its rule
		gone     bool
	}{
		"Listed":         {reason: "The Sync lists the object by the name in reports.", listed: "ConfigMap/default/a", want: plan.Release},
		"ListedShort":    {reason: "The default namespace may be omitted.", listed: "ConfigMap/a", want: plan.Release},
		"ListedOther":    {reason: "The Sync lists another object, so this one is pruned.", listed: "ConfigMap/team/a", want: plan.Prune, note: "release-of-nothing"},
		"ListedDeclared": {reason: "The commit still declares the object, so the next pass would adopt it again.", listed: "ConfigMap/default/a", declared: true, want: plan.Keep, note: "release-announced"},
		"Begun":          {reason: "A process died before the marks were removed, although the user was told that the object is released.", entry: &inventory.Entry{UID: "u", Releasing: true}, want: plan.Release},
		"BegunAndFree":   {reason: "The marks were removed, but the response was lost.", entry: &inventory.Entry{UID: "u", Releasing: true}, edits: []func(*metav1.PartialObjectMetadata){unmark}, want: plan.Release},
		"Moves":          {reason: "The move is announced, and the object stays until the other sync takes it over.", edits: []func(*metav1.PartialObjectMetadata){moves}, declared: true, want: plan.Keep, note: "release-announced"},
		"Moved":          {reason: "The other sync has taken the object over.", edits: []func(*metav1.PartialObjectMetadata){moves, other}, want: plan.Release},
		"MovedDeclared":  {reason: "The other sync has taken the object over, and the commit may drop it later.", edits: []func(*metav1.PartialObjectMetadata){moves, other}, declared: true, want: plan.Keep, guard: guard.Asked, gone: true},
		"MovedElsewhere": {reason: "The announced sync is not the one that owns the object.", edits: []func(*metav1.PartialObjectMetadata){given.Annotated(ownership.ReleaseAnnotation, "team/third"), other}, declared: true, want: plan.Hold, guard: guard.NotOurs},
		"Stolen":         {reason: "No move was announced.", edits: []func(*metav1.PartialObjectMetadata){other}, declared: true, want: plan.Hold, guard: guard.NotOurs},
		"Comes":          {reason: "The object announces a move to this sync.", edits: []func(*metav1.PartialObjectMetadata){here, other}, declared: true, want: plan.Update},
		"Stayed":         {reason: "The object has moved to this sync, whose commit drops it.", edits: []func(*metav1.PartialObjectMetadata){here}, want: plan.Prune},
		"MarkLost":       {reason: "Nothing shows who owns the object now.", edits: []func(*metav1.PartialObjectMetadata){unmark}, want: plan.Hold, guard: guard.NotOurs},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			entry := inventory.Entry{UID: "u"}
			if tc.entry != nil {
				entry = *tc.entry
			}
			o := given.Wanted(t, u)
			live := given.Live(u, "u", tc.edits...)
			want := render.Desired{Objects: []render.Object{kept}}
			seen := facts.Observed{
				Ground: facts.Ground{
					Inventory: inventory.Inventory{Sync: given.Sync, ResourceVersion: "1", Entries: map[manifest.ID]inventory.Entry{id: entry}},
					Kinds:     given.Kinds,
				},
				Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: live}},
			}
			if tc.declared {
				want.Objects = []render.Object{o}
				seen.Trials = map[manifest.ID]facts.Trial{id: {}}
				if tc.want == plan.Update {
					seen.Trials[id] = facts.Trial{Live: u, After: given.ConfigMap("b")}
				}
			}
			if tc.listed != "" {
				seen.Terms.Release = []string{tc.listed}
			}
			p := given.Computed(t, want, seen, guard.Guarding{}.Guards()...)
			at := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.ID == id })
			if at < 0 || p.Steps[at].Action != tc.want || p.Steps[at].Guard != tc.guard {
				t.Fatalf("%s\ngot %+v, want %s", tc.reason, p.Steps, tc.want)
			}
			if noted := slices.ContainsFunc(p.Notes, func(f manifest.Finding) bool { return f.Rule == tc.note }); noted != (tc.note != "") {
				t.Errorf("%s\nnotes: %+v", tc.reason, p.Notes)
			}
			if slices.Contains(p.Gone, id) != tc.gone {
				t.Errorf("%s\nforgotten: %v", tc.reason, p.Gone)
			}
			begun := record.Intent(p, seen.Inventory)
			if got := begun.Entries[id].Releasing; got != (tc.want == plan.Release) {
				t.Errorf("%s\nbefore the first write, a release is remembered: %t", tc.reason, got)
			}
			if got := begun.Entries[id].Undeclared; got == tc.declared {
				t.Errorf("%s\nwhat the commit declares is remembered: %t", tc.reason, got)
			}
			if tc.want != plan.Release {
				return
			}
			if e := record.Settled(p, begun, []plan.Outcome{{ID: id, Action: plan.Release, Err: errors.New("boom")}}).Entries[id]; !e.Releasing {
				t.Errorf("%s\na release that failed is not over: %+v", tc.reason, e)
			}
			if left := record.Settled(p, begun, []plan.Outcome{{ID: id, Action: plan.Release}}).Entries; slices.Contains(slices.Collect(maps.Keys(left)), id) {
				t.Errorf("%s\nit is forgotten: %v", tc.reason, left)
			}
			seen.Inventory = begun
			seen.Terms.Release, seen.Trials = nil, map[manifest.ID]facts.Trial{id: {}}
			delete(live.Annotations, ownership.ReleaseAnnotation)
			live.Labels[inventory.SyncLabel], live.Annotations[inventory.InventoryAnnotation] = given.Sync.Key(), given.Sync.Key()
			if doubtful := asking(t, seen, render.Desired{Objects: []render.Object{o}}).Doubtful(false); len(doubtful) != 1 {
				t.Errorf("%s\nwhat is declared again is read again, so that the inventory learns of it", tc.reason)
			}
			again := given.Computed(t, render.Desired{Objects: []render.Object{o}}, seen, guard.Guarding{}.Guards()...)
			if e := record.Settled(again, seen.Inventory, nil).Entries[id]; e.Releasing || e.Undeclared || e.UID != "u" {
				t.Errorf("%s\ndeclared again, it is ours again: %+v", tc.reason, e)
			}
		})
	}
}

// unmark removes both marks.
func unmark(m *metav1.PartialObjectMetadata) {
	delete(m.Labels, inventory.SyncLabel)
	delete(m.Annotations, inventory.InventoryAnnotation)
}

// asking adds to an observation what the commit wants.
func asking(t *testing.T, seen facts.Observed, want render.Desired) facts.Observed {
	t.Helper()
	asked, err := demand.Ask(seen, want)
	if err != nil {
		t.Fatal(err)
	}
	return asked
}

// Users release objects by name, and only objects that no commit declares are released.
func TestReleaseNamed(t *testing.T) {
	seen := given.Owning(t, "declared", "dropped", "gone")
	id := func(name string) manifest.ID { return manifest.IDOf(given.ConfigMap(name)) }
	for _, name := range []string{"dropped", "gone"} {
		e := seen.Inventory.Entries[id(name)]
		e.Undeclared = true
		seen.Inventory.Entries[id(name)] = e
	}
	delete(seen.Objects, id("gone"))
	for text, released := range map[string]bool{
		id("dropped").String(): true, "ConfigMap/dropped": true, id("declared").String(): false, id("none").String(): false, "": false,
	} {
		p, err := draft.ReleaseNamed(seen, []string{text})
		if (err == nil) != released || released && (p.Count(plan.Release) != 1 || p.Steps[0].ID != id("dropped")) {
			t.Errorf("%q: %v %v", text, p.Steps, err)
		}
	}
	if p, err := draft.ReleaseNamed(seen, []string{id("gone").String()}); err != nil || len(p.Gone) != 1 || len(p.Steps) != 0 {
		t.Errorf("What is gone is forgotten: %v %v", p, err)
	}
	seen.Inventory.Rebuilt = true
	if _, err := draft.ReleaseNamed(seen, []string{id("dropped").String()}); err == nil {
		t.Error("Before a pass it is not known what is wanted.")
	}
}

// A note names an object like the other lines of a report, with the namespace that it gets.
func TestNotesShowHomes(t *testing.T) {
	u := given.ConfigMap("a")
	u.SetNamespace("")
	id := manifest.IDOf(u)
	for name, seen := range map[string]facts.Observed{
		"Annotated": {Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: given.Live(u, "u", given.Annotated(ownership.ReleaseAnnotation, "true"))}}},
		"Listed":    {Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: given.Live(u, "u")}}, Given: facts.Given{Terms: facts.Terms{Release: []string{"ConfigMap/team/a"}}}},
	} {
		seen.Inventory = inventory.Inventory{Sync: given.Sync, ResourceVersion: "1", Entries: map[manifest.ID]inventory.Entry{id: {UID: "u"}}}
		seen.Kinds, seen.Space, seen.Trials = given.Kinds, "team", map[manifest.ID]facts.Trial{id: {}}
		p := given.Computed(t, render.Desired{Objects: []render.Object{given.Wanted(t, u)}}, seen, guard.Guarding{}.Guards()...)
		if len(p.Notes) != 1 || !strings.Contains(p.Notes[0].Message, "ConfigMap/team/a, which the commit declares") {
			t.Errorf("%s: %+v", name, p.Notes)
		}
	}
	waits := u.DeepCopy()
	waits.SetAnnotations(map[string]string{"config.kubernetes.io/depends-on": "/namespaces/team/ConfigMap/there", plan.ProtectAnnotation: "true"})
	seen := facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync}, Kinds: given.Kinds, Space: "team"}}
	p := given.Computed(t, render.Desired{Objects: []render.Object{given.Wanted(t, waits)}}, seen, guard.Guarding{}.Guards()...)
	if len(p.Notes) != 1 || !strings.HasPrefix(p.Notes[0].Message, "ConfigMap/team/a asks to protect the ConfigMap team/there,") {
		t.Errorf("%+v", p.Notes)
	}
}

package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// These are decisions on which somebody once turned the code around, and no test noticed.

// An object is ours by the label and the annotation: one of them alone is easily copied.
func TestOurs(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*metav1.PartialObjectMetadata)
		want bool
	}{
		"Both":            {func(*metav1.PartialObjectMetadata) {}, true},
		"Label":           {func(m *metav1.PartialObjectMetadata) { m.Annotations = nil }, false},
		"Annotation":      {func(m *metav1.PartialObjectMetadata) { m.Labels = nil }, false},
		"OtherLabel":      {labelled(SyncLabel, "other"), false},
		"OtherAnnotation": {annotated(InventoryAnnotation, "other"), false},
	} {
		if got := Ours(live(configMap("a"), "u", tc.edit), sync); got != tc.want {
			t.Errorf("%s: ours %t, want %t", name, got, tc.want)
		}
	}
}

// A sync that ends takes its marks off what is its own, and touches nothing else.
func TestReleaseOurs(t *testing.T) {
	for _, p := range []Plan{{Sync: sync, Ends: Orphan}, {Sync: sync}} {
		if _, some := p.leaving(Step{}, live(configMap("a"), "u"), true); !some {
			t.Error("what is ours is released")
		}
		if _, some := p.leaving(Step{}, live(configMap("a"), "u", labelled(SyncLabel, "other")), true); some {
			t.Error("what is not ours is not released")
		}
	}
}

// What the inventory says of an object counts, also where the live object does not say it any more.
func TestKeptByPolicy(t *testing.T) {
	for _, p := range []Policy{Undeletable, Observable} {
		if _, is := kept(p, live(configMap("a"), "u")); !is {
			t.Errorf("%s of the inventory is ignored", p)
		}
		if _, is := kept(Default, live(configMap("a"), "u", annotated(PolicyAnnotation, string(p)))); !is {
			t.Errorf("%s of the live object is ignored", p)
		}
		id := manifest.IDOf(configMap("a"))
		c := Case{Seen: Observed{
			Inventory: Inventory{Sync: sync, Entries: map[manifest.ID]Entry{id: {UID: "u", Policy: p}}},
			Objects:   map[manifest.ID]*metav1.PartialObjectMetadata{id: live(configMap("a"), "u")},
		}}
		if r := asked(Step{Action: Prune, ID: id}, c); r.Answer != Retained {
			t.Errorf("the guard ignores %s of the inventory", p)
		}
	}
	if !Observable.Observes() || !ObservableAndDeletable.Observes() || Undeletable.Observes() || Default.Observes() {
		t.Error("what is only looked at is not written, and nothing else is left alone")
	}
}

// The namespace of the inventory is nobody's.
func TestHome(t *testing.T) {
	c := Case{Seen: Observed{Inventory: Inventory{Sync: sync}}}
	if r := home(Step{ID: manifest.ID{Kind: "Namespace", Name: sync.Namespace}}, c); r.Answer != Retained {
		t.Error("the namespace of the inventory is prunable")
	}
	if r := home(Step{ID: manifest.ID{Kind: "Namespace", Name: "other"}}, c); r.Answer != Allowed {
		t.Error("another one is not")
	}
}

// What is taken along by a deletion is counted for each of these kinds.
func TestHasDependents(t *testing.T) {
	for gk, want := range map[schema.GroupKind]bool{
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:         true,
		{Group: "apiextensions.crossplane.io", Kind: "ManagedResourceDefinition"}: true, {Group: "apiextensions.crossplane.io", Kind: "CompositeResourceDefinition"}: true,
		{Group: "apiextensions.crossplane.io", Kind: "Composition"}: true, {Group: "apiextensions.crossplane.io", Kind: "ManagedResourceActivationPolicy"}: false,
		{Group: "pkg.crossplane.io", Kind: "Provider"}: true, {Group: "pkg.crossplane.io", Kind: "Configuration"}: true, {Group: "pkg.crossplane.io", Kind: "Function"}: true,
		{Group: "aws.m.upbound.io", Kind: "ProviderConfig"}: true, {Group: "aws.m.upbound.io", Kind: "ClusterProviderConfig"}: true, {Kind: "ConfigMap"}: false,
	} {
		if got := hasDependents(manifest.ID{Group: gk.Group, Kind: gk.Kind, Name: "a"}); got != want {
			t.Errorf("%s: %t, want %t", gk, got, want)
		}
	}
}

// A Usage protects by its name, by the label, and where it cannot be read.
func TestProtectedBy(t *testing.T) {
	id := manifest.IDOf(configMap("a"))
	q := Question{Ask: Protectors, Of: id}
	served := map[schema.GroupKind]Kind{Usages[0]: {Resource: "usages"}}
	for name, tc := range map[string]struct {
		kinds   map[schema.GroupKind]Kind
		label   string
		answers map[Question]Answer
		want    Response
	}{
		"NotServed":  {nil, "", nil, Allowed},
		"Label":      {nil, "true", nil, Held},
		"NotRead":    {served, "", nil, Held},
		"Unreadable": {served, "", map[Question]Answer{q: {Unknown: "forbidden"}}, Held},
		"Named":      {served, "", map[Question]Answer{q: {Count: 1}}, Held},
		"LabelOnly":  {served, "true", map[Question]Answer{q: {}}, Held},
		"Free":       {served, "", map[Question]Answer{q: {}}, Allowed},
	} {
		c := Case{Seen: Observed{Kinds: tc.kinds, Answers: tc.answers, Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: live(configMap("a"), "u", labelled("crossplane.io/in-use", tc.label))}}}
		if r := protected(Step{Action: Prune, ID: id}, c); r.Answer != tc.want {
			t.Errorf("%s: %v (%s), want %v", name, r.Answer, r.Reason, tc.want)
		}
	}
}

// What a person approved does not count for the guard many: it is for what nobody looked at.
func TestManyWithoutApproved(t *testing.T) {
	want := render.Desired{Revision: "1", Objects: []render.Object{wanted(t, configMap("keep"))}}
	more := owning(t, "a", "b", "c", "d", "e", "f", "g", "h")
	p := Plan{Want: want}
	for id := range more.Inventory.Entries {
		p.Steps = append(p.Steps, Step{Action: Prune, ID: id})
	}
	approved := map[manifest.ID]bool{}
	for _, s := range p.Steps[3:] {
		approved[s.ID] = true
	}
	only := slices.DeleteFunc(Guarding{MaxPrunes: 3}.Guards(), func(g Guard) bool { return g.Name != "many" })
	p.rule(more, only, approved)
	if n := p.Count(Prune); n != len(p.Steps) {
		t.Errorf("three beside those that were approved go: %d of %d prunes", n, len(p.Steps))
	}
}

// Approvals are of what is wanted, too.
func TestApprovedContent(t *testing.T) {
	one := Step{Action: Hold, Would: Update, Guard: "schema", ID: CRD("a"), wants: "1"}
	other := one
	other.wants = "2"
	if approvalOf([]Step{one}).Digest == approvalOf([]Step{other}).Digest {
		t.Error("another content has the same digest")
	}
	other = one
	other.ID = CRD("b")
	if approvalOf([]Step{one}).Digest == approvalOf([]Step{other}).Digest {
		t.Error("another object has the same digest")
	}
}

// A namespace stays for as long as something in it stays.
func TestKeepHomes(t *testing.T) {
	space := manifest.ID{Kind: "Namespace", Name: "team"}
	inside := Step{Action: Keep, ID: manifest.ID{Kind: "ConfigMap", Namespace: "team", Name: "a"}}
	p := Plan{Steps: []Step{inside, {Action: Prune, ID: space}}}
	if p.keepHomes(); p.Steps[1].Action != Hold {
		t.Error("it goes from under what stays")
	}
	inside.Action = Prune
	p = Plan{Steps: []Step{inside, {Action: Prune, ID: space}}}
	if p.keepHomes(); p.Steps[1].Action != Prune {
		t.Error("it goes with what goes")
	}
}

// storedEntry reads an entry, with what only a newer binary knows.
func storedEntry(t *testing.T, data string) (e Entry) {
	t.Helper()
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// The intent records who makes the CRDs, what may be done to an object, and that one that comes back
// is another.
func TestIntentRecords(t *testing.T) {
	made, changed := manifest.IDOf(configMap("made")), manifest.IDOf(configMap("changed"))
	have := Inventory{Sync: sync, Entries: map[manifest.ID]Entry{
		made: storedEntry(t, `{"uid":"old","later":1}`), changed: storedEntry(t, `{"uid":"u","policy":"Undeletable","later":1}`),
	}}
	p := Plan{Sync: sync, Want: render.Desired{Owner: render.OwnerCrossplane}, Steps: []Step{
		{Action: Create, ID: made, Policy: Undeletable}, {Action: Update, ID: changed, Policy: Undeletable},
	}}
	intent := p.Intent(have)
	if intent.Owner != render.OwnerCrossplane || intent.Entries[made].UID != "" || intent.Entries[changed].UID != "u" {
		t.Errorf("intent: %+v", intent)
	}
	settled := p.Settled(have, []Outcome{{ID: made, Action: Create, UID: "new"}, {ID: changed, Action: Update, UID: "u"}})
	for _, inv := range []Inventory{intent, settled} {
		for _, id := range []manifest.ID{made, changed} {
			data, err := json.Marshal(inv.Entries[id])
			if e := inv.Entries[id]; err != nil || e.Policy != Undeletable || !strings.Contains(string(data), `"later":1`) {
				t.Errorf("%s: %s, %v", id, data, err)
			}
		}
	}
	if settled.Entries[made].UID != "new" {
		t.Errorf("settled: %+v", settled.Entries[made])
	}
}

// Opting out is read as the tools read it that invented it.
func TestSaysSo(t *testing.T) {
	got := []bool{
		saysSo(map[string]string{"a/B": "C"}, "a/b", "c"),
		saysSo(map[string]string{"a": "x, Prune=false"}, "a", "prune=false"),
		saysSo(map[string]string{"a": "x,y"}, "a", "z"),
		saysSo(map[string]string{"b": "z"}, "a", "z"),
	}
	if diff := cmp.Diff([]bool{true, true, false, false}, got); diff != "" {
		t.Error(diff)
	}
	for _, out := range optOuts {
		if !Kept(live(configMap("a"), "u", annotated(out.key, out.value))) || !Kept(live(configMap("a"), "u", labelled(out.key, out.value))) {
			t.Errorf("%s is ignored", out.key)
		}
	}
}

// By an inventory that is being rebuilt nothing is pruned, and whoever ends the sync looks first.
func TestRebuiltEnds(t *testing.T) {
	for ends, want := range map[Ending]Response{NoEnding: Retained, Delete: Held} {
		c := Case{Seen: Observed{Inventory: Inventory{Sync: sync, Rebuilt: true}, Ends: ends}}
		if r := rebuilt(Step{Action: Prune, ID: manifest.IDOf(configMap("a"))}, c); r.Answer != want {
			t.Errorf("%q: %v (%s), want %v", ends, r.Answer, r.Reason, want)
		}
	}
}

// Marks that another field manager owns are those of a copy, also if only one of them is.
func TestAppliedByUs(t *testing.T) {
	const label, annotation = `"f:labels":{"f:headgate.dev/sync":{}}`, `"f:annotations":{"f:config.k8s.io/owning-inventory":{}}`
	for name, tc := range map[string]struct {
		owned string
		want  bool
	}{
		"Both": {label + "," + annotation, true}, "Label": {label, false}, "Annotation": {annotation, false},
	} {
		o := live(configMap("a"), "u", func(m *metav1.PartialObjectMetadata) {
			fields := &metav1.FieldsV1{}
			fields.SetRawString(`{"f:metadata":{` + tc.owned + `}}`)
			m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: Manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: fields}}
		})
		if got := AppliedByUs(o, sync); got != tc.want {
			t.Errorf("%s: applied by us %t, want %t", name, got, tc.want)
		}
	}
}

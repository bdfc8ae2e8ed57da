package plan

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// ourMarks are managed fields in which a field manager owns both our marks.
const ourMarks = `{"f:metadata":{"f:annotations":{"f:config.k8s.io/owning-inventory":{}},"f:labels":{"f:headgate.dev/sync":{}}}}`

func markedBy(manager string, operation metav1.ManagedFieldsOperationType) func(*metav1.PartialObjectMetadata) {
	return managedBy(manager, operation, ourMarks)
}

func TestHolds(t *testing.T) {
	u := configMap("a")
	id := manifest.IDOf(u)
	applied := markedBy(Manager, metav1.ManagedFieldsOperationApply)
	copied := markedBy("kubectl-client-side-apply", metav1.ManagedFieldsOperationUpdate)
	intent, entry := &Entry{Actuation: "Pending"}, &Entry{UID: "u"}
	cases := map[string]struct {
		reason                   string
		entry                    *Entry
		live                     *metav1.PartialObjectMetadata
		holds, mine, along, back bool
	}{
		"ByUID":          {"The inventory holds this object.", entry, live(u, "u"), true, true, true, false},
		"Restored":       {"A backup restored it: it is wanted again under its new UID, and nothing is deleted for it.", entry, live(u, "other"), false, true, false, true},
		"RestoredWhole":  {"Its managed fields do not make it the object that was applied.", entry, live(u, "other", applied), false, true, false, true},
		"MarksTaken":     {"Who takes a mark off an object keeps it from being deleted.", entry, live(u, "u", labelled(SyncLabel, "")), true, true, false, false},
		"OtherUnmarked":  {"Another object under its name.", entry, unmarked(), true, true, false, false},
		"IntentMarked":   {"A crash came before the answer, and our field manager tells.", intent, live(u, "u", applied), true, true, true, false},
		"IntentCopied":   {"A copy took the name before we did.", intent, live(u, "u", copied), false, true, false, false},
		"IntentUnmarked": {"Somebody else made it.", intent, unmarked(), false, false, false, false},
		"Copy":           {"Labels and annotations get copied.", nil, live(u, "u", copied), false, false, false, false},
		"CopyWithNone":   {"Whoever wrote them.", nil, live(u, "u"), false, false, false, false},
		"LostEntry":      {"Our field manager applied it.", nil, live(u, "u", applied), false, true, false, false},
		"OnlyLabelOurs": {
			"Both marks are ours, or none.", nil,
			live(u, "u", managedBy(Manager, metav1.ManagedFieldsOperationApply, `{"f:metadata":{"f:labels":{"f:headgate.dev/sync":{}}}}`)), false, false, false, false,
		},
		"UpdatedByOurName": {
			"An update under our name is no apply.", nil,
			live(u, "u", markedBy(Manager, metav1.ManagedFieldsOperationUpdate)), false, false, false, false,
		},
		"Observed": {"What is only looked at never goes along.", &Entry{UID: "u", Policy: Observable}, live(u, "u"), true, true, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			have := Inventory{Sync: sync, ResourceVersion: "1", Entries: map[manifest.ID]Entry{}}
			if tc.entry != nil {
				have.Entries[id] = *tc.entry
			}
			seen := Observed{Inventory: have}
			got := []bool{have.Holds(id, tc.live), seen.Mine(id, tc.live), have.GoesAlong(id, tc.live), seen.Restored(id, tc.live)}
			if diff := cmp.Diff([]bool{tc.holds, tc.mine, tc.along, tc.back}, got); diff != "" {
				t.Errorf("%s\nHolds, Mine, GoesAlong, Restored (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	missing := Inventory{Sync: sync}
	if !missing.GoesAlong(id, live(u, "u", applied)) || missing.GoesAlong(id, live(u, "u", copied)) {
		t.Error("Without an inventory, the field manager tells what is ours.")
	}
}

// Foreign marks that the commit itself holds are no claim, also when the managed fields are gone.
func TestSentMarks(t *testing.T) {
	const fields = `{"f:metadata":{"f:annotations":{"f:meta.helm.sh/release-name":{},"f:crossplane.io/paused":{}},"f:labels":{"f:app.kubernetes.io/managed-by":{}}}}`
	rendered := both(labelled("app.kubernetes.io/managed-by", "Helm"), annotated("meta.helm.sh/release-name", "app"), annotated("crossplane.io/paused", "true"))
	u := configMap("a")
	id := manifest.IDOf(u)
	asApplied := live(u, "u", rendered, managedBy(Manager, metav1.ManagedFieldsOperationApply, fields))
	entry := applied(asApplied, "digest")
	cases := map[string]struct {
		reason string
		live   *metav1.PartialObjectMetadata
		entry  Entry
		want   string
	}{
		"AsApplied":    {"Managed fields tell that we sent them.", asApplied, Entry{UID: "u"}, ""},
		"Wiped":        {"The entry remembers them.", live(u, "u", rendered), entry, ""},
		"Restored":     {"Also in an object that a backup restored.", live(u, "other", rendered, markedBy("velero-server", metav1.ManagedFieldsOperationUpdate)), entry, ""},
		"NotSent":      {"What the entry does not remember is a claim, whatever the UID.", live(u, "u", labelled("app.kubernetes.io/managed-by", "Helm")), Entry{UID: "u"}, "Helm"},
		"AnotherValue": {"Another release took it over.", live(u, "u", rendered, annotated("meta.helm.sh/release-name", "other")), entry, "the Helm release other"},
		"AnotherMark":  {"Another tool took it over.", live(u, "u", rendered, labelled("kapp.k14s.io/app", "1")), entry, "the kapp app 1"},
		"Manager":      {"A field manager is no mark.", live(u, "u", rendered, managedBy("kapp-server", metav1.ManagedFieldsOperationUpdate, "{}")), entry, "kapp (field manager kapp-server)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := Observed{Inventory: Inventory{Sync: sync, Entries: map[manifest.ID]Entry{id: tc.entry}}}
			if diff := cmp.Diff(tc.want, seen.claim(id, tc.live).By); diff != "" {
				t.Errorf("%s\nclaim(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	seen := Observed{Inventory: Inventory{Sync: sync, Entries: map[manifest.ID]Entry{id: entry}}}
	seen.Objects = map[manifest.ID]*metav1.PartialObjectMetadata{id: live(u, "u", rendered)}
	if r := paused(Step{ID: id, Action: Update}, Case{Seen: seen}); r.Answer != Allowed {
		t.Errorf("The commit paused it, and not somebody else: %v", r)
	}
	seen.Objects[id].Annotations["crossplane.io/paused"] = "True" // is not what we sent
	if entry.Foreign == "" || sentByUs(seen.Objects[id], entry.Foreign, true, "crossplane.io/paused") {
		t.Error("Only the value that was sent is remembered.")
	}
	old := entry
	old.Foreign = ""
	o := wanted(t, u)
	old.Digest = sync.Digest(o)
	old.Mark = Mark(asApplied)
	seen = Observed{Inventory: Inventory{Sync: sync, Entries: map[manifest.ID]Entry{id: old}}, Kinds: core}
	seen.Objects = map[manifest.ID]*metav1.PartialObjectMetadata{id: asApplied}
	p := computed(t, render.Desired{Objects: []render.Object{o}}, seen, Guarding{}.Guards()...)
	if p.Writes() || p.Steps[0].Renew.Foreign != entry.Foreign {
		t.Errorf("What an older version did not remember is remembered as soon as it is seen: %+v", p.Steps[0])
	}
}

// Nothing that was refused becomes ours.
func TestRefusedAdoption(t *testing.T) {
	u := configMap("a")
	id := manifest.IDOf(u)
	errBoom := errors.New("conflict with kapp")
	p := Plan{Steps: []Step{{Action: Update, ID: id, Err: errBoom}}}
	done := []Outcome{{ID: id, Action: Update, Err: errBoom}}
	if have := p.Intent(Inventory{}); len(have.Entries) != 0 {
		t.Errorf("A step with an error is not sent, so it is no intent: %v", have.Entries)
	}
	if have := p.Settled(Inventory{}, done); len(have.Entries) != 0 {
		t.Errorf("and its failure owns nothing: %v", have.Entries)
	}
	owned := Inventory{Entries: map[manifest.ID]Entry{id: {UID: "u", Digest: "d"}}}
	if e := p.Settled(owned, done).Entries[id]; e.UID != "u" || e.Actuation != "Failed" {
		t.Errorf("What we own stays owned: %v", e)
	}

	other := wanted(t, configMap("other"))
	theirs := unmarked(labelled("kapp.k14s.io/app", "1"), managedBy("kapp", metav1.ManagedFieldsOperationUpdate, "{}"))
	cases := map[string]struct {
		reason string
		entry  Entry
		live   *metav1.PartialObjectMetadata
		gone   bool
	}{
		"Failed":    {"An older version recorded it, or the API server refused it only when it was sent.", Entry{Actuation: "Failed"}, theirs, true},
		"Pending":   {"A crash came before it was sent.", Entry{Actuation: "Pending"}, theirs, true},
		"Sent":      {"It was sent, and somebody took the marks off.", Entry{Actuation: "Failed"}, unmarked(managedBy(Manager, metav1.ManagedFieldsOperationApply, "{}")), false},
		"OneMark":   {"A mark is left.", Entry{Actuation: "Failed"}, unmarked(labelled(SyncLabel, sync.Key())), false},
		"Owned":     {"It was applied.", Entry{UID: "u", Actuation: "Failed"}, theirs, false},
		"Succeeded": {"cli-utils' own tools write no UID.", Entry{Actuation: "Succeeded"}, theirs, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := Observed{
				Inventory: Inventory{Sync: sync, Entries: map[manifest.ID]Entry{id: tc.entry}},
				Objects:   map[manifest.ID]*metav1.PartialObjectMetadata{id: tc.live},
				Kinds:     core,
			}
			p := computed(t, render.Desired{Objects: []render.Object{other}}, seen, Guarding{}.Guards()...)
			if gone := len(p.Gone) == 1; gone != tc.gone {
				t.Errorf("%s\nforgotten: %v, want %v; steps %v", tc.reason, gone, tc.gone, p.Steps)
			}
			for _, s := range p.Steps {
				if s.ID == id && s.Action != Hold {
					t.Errorf("What is not ours is never pruned: %v", s.Action)
				}
			}
		})
	}
}

// What only marks tell to be ours is one hold, whatever else is wrong with the plan.
func TestRebuiltHold(t *testing.T) {
	a, b, c := configMap("a"), configMap("b"), configMap("c")
	kept := wanted(t, c)
	seeing := func(uid string, approvals ...string) Observed {
		seen := Observed{Inventory: Inventory{Sync: sync, ResourceVersion: "1", Entries: map[manifest.ID]Entry{}}, Kinds: core, Approvals: Approvals{OnSync: approvals}}
		seen.Objects = map[manifest.ID]*metav1.PartialObjectMetadata{}
		for _, u := range []*unstructured.Unstructured{a, b} {
			o := live(u, "u")
			o.UID += "-" + o.UID
			seen.Objects[manifest.IDOf(u)] = o
			seen.Inventory.Entries[manifest.IDOf(u)] = Entry{UID: o.UID, Rebuilt: true, Mark: uid}
		}
		return seen
	}
	want := render.Desired{Objects: []render.Object{kept}}
	first := computed(t, want, seeing("x"), Guarding{}.Guards()...)
	if first.Approval == nil || first.Approval.Steps != 2 || first.Count(Hold) != 2 || first.Count(Prune) != 0 {
		t.Fatalf("want one hold of both, got %+v", first.Approval)
	}
	lost := seeing("x")
	lost.Inventory.ResourceVersion, lost.Inventory.Rebuilt = "", true
	if again := computed(t, want, lost, Guarding{}.Guards()...); again.Approval == nil || again.Approval.Digest != first.Approval.Digest {
		t.Errorf("The digest is the same before and after the inventory is stored: %+v, %+v", first.Approval, again.Approval)
	}
	if again := computed(t, want, seeing("another cluster"), Guarding{}.Guards()...); again.Approval.Digest != first.Approval.Digest {
		t.Error("It does not depend on what an inventory remembers.")
	}
	if p := computed(t, want, seeing("x", first.Approval.Digest), Guarding{}.Guards()...); p.Count(Prune) != 2 {
		t.Errorf("Approved, they are pruned: %v", p.Steps)
	}
	if p := computed(t, want, seeing("x", "00000000000000000000000000000000"), Guarding{}.Guards()...); p.Count(Prune) != 0 {
		t.Errorf("Another approval is none: %v", p.Steps)
	}
	ends := seeing("x")
	ends.Ends = Delete
	if p := computed(t, render.Desired{}, ends, Guarding{}.Guards()...); p.Count(Prune) != 0 || p.Count(Hold) != 2 {
		t.Errorf("A destroy holds them too: %v", p.Steps)
	}
	theirs := seeing("x", first.Approval.Digest)
	theirs.Objects[manifest.IDOf(a)].UID = "other"
	if p := computed(t, want, theirs, Guarding{}.Guards()...); p.Count(Prune) != 0 {
		t.Errorf("What changed since is not pruned, nor is what was approved with it: %v", p.Steps)
	}

	release, err := ReleaseRebuilt(seeing("x"))
	if err != nil || release.Count(Release) != 2 {
		t.Errorf("ReleaseRebuilt: %v %v", release.Steps, err)
	}
	have := seeing("x").Inventory
	have.Owner, have.Grants = render.OwnerHeadgate, []Grant{{Digest: "d", Commit: "c", Given: true, Left: []string{"l"}}}
	have.Entries[manifest.IDOf(c)] = Entry{UID: "c"}
	have.Record.Format, have.Record.Policies = 2, []string{"policy.yaml"}
	settled := release.Settled(have, []Outcome{{ID: manifest.IDOf(a), Action: Release}, {ID: manifest.IDOf(b), Action: Release, Err: errors.New("boom")}})
	if len(settled.Entries) != 2 || settled.Entries[manifest.IDOf(b)] != have.Entries[manifest.IDOf(b)] {
		t.Errorf("What was released is forgotten, and nothing else: %v", settled.Entries)
	}
	if diff := cmp.Diff(have.Grants, settled.Grants); diff != "" || settled.Owner != have.Owner || len(settled.Record.Policies) != 1 {
		t.Errorf("Approvals, owner and record stay as they are: %v (-want +got):\n%s", settled.Record, diff)
	}
	if _, err := ReleaseRebuilt(lost); err == nil {
		t.Error("Before a pass it is not known what the commit wants.")
	}
}

// What nobody can look at is not gone.
func TestHiddenKinds(t *testing.T) {
	logs := manifest.ID{Group: "example.org", Kind: "Bucket", Namespace: "team", Name: "logs"}
	space := manifest.ID{Kind: "Namespace", Name: "team"}
	kept := wanted(t, configMap("kept"))
	why := fmt.Errorf("%w the kind Bucket.example.org: the CRD exists and is not served", ErrUnserved)
	seen := Observed{
		Inventory: Inventory{Sync: sync, ResourceVersion: "1", Entries: map[manifest.ID]Entry{logs: {UID: "l", Digest: "d"}, space: {UID: "n"}}},
		Objects: map[manifest.ID]*metav1.PartialObjectMetadata{
			space: live(thing("v1", "Namespace", "", "team"), "n"),
		},
		Kinds:   core,
		Answers: map[Question]Answer{{Ask: Inside, Of: space}: {}},
	}
	want := render.Desired{Objects: []render.Object{kept}}
	if p := computed(t, want, seen, Guarding{}.Guards()...); len(p.Gone) != 1 {
		t.Errorf("Where neither CRD nor APIService exists, the object is gone: %v", p.Gone)
	}
	seen.Hidden = map[schema.GroupKind]error{{Group: "example.org", Kind: "Bucket"}: why}
	for _, ends := range []Ending{NoEnding, Delete, Orphan} {
		seen.Ends = ends
		p := computed(t, want, seen, Guarding{}.Guards()...)
		if len(p.Gone) != 0 {
			t.Errorf("%q: forgotten: %v", ends, p.Gone)
		}
		failed := false
		for _, s := range p.Steps {
			switch s.ID {
			case logs:
				failed = errors.Is(s.Err, ErrUnserved)
			case space:
				if s.Action == Prune {
					t.Errorf("%q: its namespace would take it along", ends)
				}
			}
		}
		if !failed {
			t.Errorf("%q: the object fails, and names its kind: %v", ends, p.Steps)
		}
		if e := p.Settled(seen.Inventory, []Outcome{{ID: logs, Action: Prune, Err: why}}).Entries[logs]; e.UID != "l" || e.Digest != "d" {
			t.Errorf("%q: the inventory keeps it: %v", ends, e)
		}
	}
	seen.Ends = NoEnding
	o := wanted(t, thing("example.org/v1", "Bucket", "team", "logs"))
	p := computed(t, render.Desired{Objects: []render.Object{o}}, seen, Guarding{}.Guards()...)
	for _, s := range p.Steps {
		if s.ID == logs && !errors.Is(s.Err, why) {
			t.Errorf("What is wanted fails for the same reason: %v", s.Err)
		}
	}
	if e := p.Intent(seen.Inventory).Entries[logs]; e.UID != "l" {
		t.Errorf("and stays known as it was: %v", e)
	}
}

func TestContinued(t *testing.T) {
	id := func(name string) manifest.ID { return manifest.ID{Kind: "ConfigMap", Namespace: "d", Name: name} }
	before := Plan{Steps: []Step{
		{ID: id("made"), Action: Create}, {ID: id("gone"), Action: Prune}, {ID: id("failed"), Action: Create},
		{ID: id("unreached"), Action: Update}, {ID: id("again"), Action: Create}, {ID: id("kept"), Action: Keep},
	}}
	done := []Outcome{
		{ID: id("made"), Action: Create}, {ID: id("gone"), Action: Prune}, {ID: id("failed"), Action: Create, Err: errors.New("boom")}, {ID: id("again"), Action: Create},
	}
	now := Plan{Steps: []Step{
		{ID: id("made"), Action: Keep}, {ID: id("failed"), Action: Keep}, {ID: id("unreached"), Action: Keep}, {ID: id("again"), Action: Update}, {ID: id("kept"), Action: Keep},
	}}
	got := map[string]Action{}
	for _, s := range now.continued(before, done).Steps {
		got[s.ID.Name] = s.Action
	}
	want := map[string]Action{"made": Create, "gone": Prune, "failed": Keep, "unreached": Keep, "again": Update, "kept": Keep}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("What was carried out is reported as such, and what is still to be done as that (-want +got):\n%s", diff)
	}
}

func thing(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

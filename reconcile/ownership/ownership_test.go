package ownership_test

import (
	"errors"
	"fmt"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestHolds(t *testing.T) {
	u := given.ConfigMap("a")
	id := manifest.IDOf(u)
	applied := given.MarkedBy(inventory.Manager, metav1.ManagedFieldsOperationApply)
	copied := given.MarkedBy("kubectl-client-side-apply", metav1.ManagedFieldsOperationUpdate)
	intent, entry := &inventory.Entry{Actuation: "Pending"}, &inventory.Entry{UID: "u"}
	cases := map[string]struct {
		reason                   string
		entry                    *inventory.Entry
		live                     *metav1.PartialObjectMetadata
		holds, mine, along, back bool
	}{
		"ByUID":          {"The inventory contains this object.", entry, given.Live(u, "u"), true, true, true, false},
		"Restored":       {"A backup restored the object: it is applied again with its new UID, and never deleted.", entry, given.Live(u, "other"), false, true, false, true},
		"RestoredWhole":  {"The managed fields of a restored object do not prove that it is the applied one.", entry, given.Live(u, "other", applied), false, true, false, true},
		"MarksTaken":     {"A user who removes a mark protects the object from deletion.", entry, given.Live(u, "u", given.Labelled(inventory.SyncLabel, "")), true, true, false, false},
		"OtherUnmarked":  {"Another object has the same name.", entry, unmarked(), true, true, false, false},
		"IntentMarked":   {"A crash came before the response, but our field manager proves that we created the object.", intent, given.Live(u, "u", applied), true, true, true, false},
		"IntentCopied":   {"A copy with this name was created before our object.", intent, given.Live(u, "u", copied), false, true, false, false},
		"IntentUnmarked": {"Another tool created the object.", intent, unmarked(), false, false, false, false},
		"Copy":           {"Labels and annotations are copied easily.", nil, given.Live(u, "u", copied), false, false, false, false},
		"CopyWithNone":   {"An object without managed fields may come from any writer.", nil, given.Live(u, "u"), false, false, false, false},
		"LostEntry":      {"Our field manager applied it.", nil, given.Live(u, "u", applied), false, true, false, false},
		"OnlyLabelOurs": {
			"Both marks are ours, or none.", nil,
			given.Live(u, "u", given.ManagedBy(inventory.Manager, metav1.ManagedFieldsOperationApply, `{"f:metadata":{"f:labels":{"f:headgate.dev/sync":{}}}}`)), false, false, false, false,
		},
		"UpdatedByOurName": {
			"An update under our name is no apply.", nil,
			given.Live(u, "u", given.MarkedBy(inventory.Manager, metav1.ManagedFieldsOperationUpdate)), false, false, false, false,
		},
		"Observed": {"An observe-only object is never deleted with others.", &inventory.Entry{UID: "u", Policy: inventory.Observable}, given.Live(u, "u"), true, true, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			have := inventory.Inventory{Sync: given.Sync, ResourceVersion: "1", Entries: map[manifest.ID]inventory.Entry{}}
			if tc.entry != nil {
				have.Entries[id] = *tc.entry
			}
			seen := facts.Observed{Ground: facts.Ground{Inventory: have}}
			got := []bool{have.Holds(id, tc.live), seen.Mine(id, tc.live), have.GoesAlong(id, tc.live), seen.Restored(id, tc.live)}
			if diff := cmp.Diff([]bool{tc.holds, tc.mine, tc.along, tc.back}, got); diff != "" {
				t.Errorf("%s\nHolds, Mine, GoesAlong, Restored (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	missing := inventory.Inventory{Sync: given.Sync}
	if !missing.GoesAlong(id, given.Live(u, "u", applied)) || missing.GoesAlong(id, given.Live(u, "u", copied)) {
		t.Error("Without an inventory, the field manager shows which objects are ours.")
	}
}

// An object whose adoption is refused does not become ours.
func TestRefusedAdoption(t *testing.T) {
	u := given.ConfigMap("a")
	id := manifest.IDOf(u)
	errBoom := errors.New("conflict with kapp")
	p := plan.Plan{Steps: []plan.Step{{Action: plan.Update, ID: id, Err: errBoom}}}
	done := []plan.Outcome{{ID: id, Action: plan.Update, Err: errBoom}}
	if have := record.Intent(p, inventory.Inventory{}); len(have.Entries) != 0 {
		t.Errorf("A step with an error is not sent, so it is no intent: %v", have.Entries)
	}
	if have := record.Settled(p, inventory.Inventory{}, done); len(have.Entries) != 0 {
		t.Errorf("and its failure owns nothing: %v", have.Entries)
	}
	owned := inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{id: {UID: "u", Digest: "d"}}}
	if e := record.Settled(p, owned, done).Entries[id]; e.UID != "u" || e.Actuation != "Failed" {
		t.Errorf("Owned objects stay owned: %v", e)
	}

	other := given.Wanted(t, given.ConfigMap("other"))
	theirs := unmarked(given.Labelled("kapp.k14s.io/app", "1"), given.ManagedBy("kapp", metav1.ManagedFieldsOperationUpdate, "{}"))
	cases := map[string]struct {
		reason string
		entry  inventory.Entry
		live   *metav1.PartialObjectMetadata
		gone   bool
	}{
		"Failed":    {"An older version recorded the object, or the API server refused it when it was sent.", inventory.Entry{Actuation: "Failed"}, theirs, true},
		"Pending":   {"A crash came before the object was sent.", inventory.Entry{Actuation: "Pending"}, theirs, true},
		"Sent":      {"The object was sent, and its marks were removed later.", inventory.Entry{Actuation: "Failed"}, unmarked(given.ManagedBy(inventory.Manager, metav1.ManagedFieldsOperationApply, "{}")), false},
		"OneMark":   {"One of the marks is still there.", inventory.Entry{Actuation: "Failed"}, unmarked(given.Labelled(inventory.SyncLabel, given.Sync.Key())), false},
		"Owned":     {"The object was applied.", inventory.Entry{UID: "u", Actuation: "Failed"}, theirs, false},
		"Succeeded": {"cli-utils' own tools write no UID.", inventory.Entry{Actuation: "Succeeded"}, theirs, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := facts.Observed{
				Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync, Entries: map[manifest.ID]inventory.Entry{id: tc.entry}}, Kinds: given.Kinds},
				Live:   facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: tc.live}},
			}
			p := given.Computed(t, render.Desired{Objects: []render.Object{other}}, seen, guard.Guarding{}.Guards()...)
			if gone := len(p.Gone) == 1; gone != tc.gone {
				t.Errorf("%s\nforgotten: %v, want %v; steps %v", tc.reason, gone, tc.gone, p.Steps)
			}
			for _, s := range p.Steps {
				if s.ID == id && s.Action != plan.Hold && s.Action != plan.Release {
					t.Errorf("What is not ours is held or released, and never pruned: %v", s.Action)
				}
			}
		})
	}
}

// All objects that are ours only because of their marks form one hold, even if the plan has other holds.
func TestRebuiltHold(t *testing.T) {
	a, b, c := given.ConfigMap("a"), given.ConfigMap("b"), given.ConfigMap("c")
	kept := given.Wanted(t, c)
	seeing := func(uid string, approvals ...string) facts.Observed {
		seen := facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync, ResourceVersion: "1", Entries: map[manifest.ID]inventory.Entry{}}, Kinds: given.Kinds}, Given: facts.Given{Approvals: approval.Given{inventory.OnSync: approval.Typed(approvals...)}}}
		seen.Objects = map[manifest.ID]*metav1.PartialObjectMetadata{}
		for _, u := range []*unstructured.Unstructured{a, b} {
			o := given.Live(u, "u")
			o.UID += "-" + o.UID
			seen.Objects[manifest.IDOf(u)] = o
			seen.Inventory.Entries[manifest.IDOf(u)] = inventory.Entry{UID: o.UID, Rebuilt: true, Mark: uid}
		}
		return seen
	}
	want := render.Desired{Objects: []render.Object{kept}}
	first := given.Computed(t, want, seeing("x"), guard.Guarding{}.Guards()...)
	if first.Approval == nil || first.Approval.Steps != 2 || first.Count(plan.Hold) != 2 || first.Count(plan.Prune) != 0 {
		t.Fatalf("want one hold of both, got %+v", first.Approval)
	}
	lost := seeing("x")
	lost.Inventory.ResourceVersion, lost.Inventory.Rebuilt = "", true
	if again := given.Computed(t, want, lost, guard.Guarding{}.Guards()...); again.Approval == nil || again.Approval.Digest != first.Approval.Digest {
		t.Errorf("The digest is the same before and after the inventory is stored: %+v, %+v", first.Approval, again.Approval)
	}
	if again := given.Computed(t, want, seeing("another cluster"), guard.Guarding{}.Guards()...); again.Approval.Digest != first.Approval.Digest {
		t.Error("It does not depend on what an inventory remembers.")
	}
	if p := given.Computed(t, want, seeing("x", first.Approval.Digest), guard.Guarding{}.Guards()...); p.Count(plan.Prune) != 2 {
		t.Errorf("Approved, they are pruned: %v", p.Steps)
	}
	if p := given.Computed(t, want, seeing("x", "00000000000000000000000000000000"), guard.Guarding{}.Guards()...); p.Count(plan.Prune) != 0 {
		t.Errorf("Another approval is none: %v", p.Steps)
	}
	ends := seeing("x")
	ends.Stance = plan.Destroying
	if p := given.Computed(t, render.Desired{}, ends, guard.Guarding{}.Guards()...); p.Count(plan.Prune) != 0 || p.Count(plan.Hold) != 2 {
		t.Errorf("A destroy holds them too: %v", p.Steps)
	}
	theirs := seeing("x", first.Approval.Digest)
	theirs.Objects[manifest.IDOf(a)].UID = "other"
	if p := given.Computed(t, want, theirs, guard.Guarding{}.Guards()...); p.Count(plan.Prune) != 0 {
		t.Errorf("A later change is not pruned, nor is anything approved with it: %v", p.Steps)
	}

	release, err := draft.ReleaseRebuilt(seeing("x"))
	if err != nil || release.Count(plan.Release) != 2 {
		t.Errorf("ReleaseRebuilt: %v %v", release.Steps, err)
	}
	have := seeing("x").Inventory
	have.Owner, have.Grants = render.OwnerHeadgate, []inventory.Grant{{Digest: "d", Commit: "c", Given: true, Left: []string{"l"}}}
	have.Entries[manifest.IDOf(c)] = inventory.Entry{UID: "c"}
	have.Record.Format, have.Record.Policies = 2, []string{"policy.yaml"}
	settled := record.Settled(release, have, []plan.Outcome{{ID: manifest.IDOf(a), Action: plan.Release}, {ID: manifest.IDOf(b), Action: plan.Release, Err: errors.New("boom")}})
	begun := have.Entries[manifest.IDOf(b)]
	begun.Releasing = true
	if len(settled.Entries) != 2 || settled.Entries[manifest.IDOf(b)] != begun {
		t.Errorf("What was released is forgotten, and what was not is never pruned: %v", settled.Entries)
	}
	if diff := cmp.Diff(have.Grants, settled.Grants, cmpopts.IgnoreUnexported(inventory.Grant{})); diff != "" || settled.Owner != have.Owner || len(settled.Record.Policies) != 1 {
		t.Errorf("Approvals, owner and record stay as they are: %v (-want +got):\n%s", settled.Record, diff)
	}
	if _, err := draft.ReleaseRebuilt(lost); err == nil {
		t.Error("Before a pass it is not known what the commit wants.")
	}
}

// An object that cannot be read does not count as gone.
func TestHiddenKinds(t *testing.T) {
	logs := manifest.ID{Group: "example.org", Kind: "Bucket", Namespace: "team", Name: "logs"}
	space := manifest.ID{Kind: "Namespace", Name: "team"}
	kept := given.Wanted(t, given.ConfigMap("kept"))
	why := fmt.Errorf("%w the kind Bucket.example.org: the CRD exists and is not served", reason.ErrUnserved)
	seen := facts.Observed{
		Ground: facts.Ground{
			Inventory: inventory.Inventory{Sync: given.Sync, ResourceVersion: "1", Entries: map[manifest.ID]inventory.Entry{logs: {UID: "l", Digest: "d"}, space: {UID: "n"}}},
			Kinds:     given.Kinds,
		},
		Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{
			space: given.Live(thing("v1", "Namespace", "", "team"), "n"),
		}},
		Answers: question.Answers{question.Inside{Of: space}: question.Counted{}},
	}
	want := render.Desired{Objects: []render.Object{kept}}
	if p := given.Computed(t, want, seen, guard.Guarding{}.Guards()...); len(p.Gone) != 1 {
		t.Errorf("If neither CRD nor APIService exists, the object is gone: %v", p.Gone)
	}
	seen.Hidden = map[schema.GroupKind]error{{Group: "example.org", Kind: "Bucket"}: why}
	for _, ends := range []plan.Stance{plan.Applying, plan.Destroying, plan.Orphaning} {
		seen.Stance = ends
		p := given.Computed(t, want, seen, guard.Guarding{}.Guards()...)
		if len(p.Gone) != 0 {
			t.Errorf("%q: forgotten: %v", ends, p.Gone)
		}
		failed := false
		for _, s := range p.Steps {
			switch s.ID {
			case logs:
				failed = errors.Is(s.Err, reason.ErrUnserved)
			case space:
				if s.Action == plan.Prune {
					t.Errorf("%q: its namespace would take it along", ends)
				}
			}
		}
		if !failed {
			t.Errorf("%q: the object fails, and names its kind: %v", ends, p.Steps)
		}
		if e := record.Settled(p, seen.Inventory, []plan.Outcome{{ID: logs, Action: plan.Prune, Err: why}}).Entries[logs]; e.UID != "l" || e.Digest != "d" {
			t.Errorf("%q: the inventory keeps it: %v", ends, e)
		}
	}
	seen.Stance = plan.Applying
	o := given.Wanted(t, thing("example.org/v1", "Bucket", "team", "logs"))
	p := given.Computed(t, render.Desired{Objects: []render.Object{o}}, seen, guard.Guarding{}.Guards()...)
	for _, s := range p.Steps {
		if s.ID == logs && !errors.Is(s.Err, why) {
			t.Errorf("A wanted object fails for the same reason: %v", s.Err)
		}
	}
	if e := record.Intent(p, seen.Inventory).Entries[logs]; e.UID != "l" {
		t.Errorf("and stays known as it was: %v", e)
	}
}

func thing(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// One object that may not be read fails alone: others of its kind are written, and it does not count as gone.
func TestDeniedObject(t *testing.T) {
	in := func(namespace string) manifest.ID {
		return manifest.ID{Kind: "ConfigMap", Namespace: namespace, Name: "settings"}
	}
	why := errors.New("not allowed")
	seen := facts.Observed{
		Ground: facts.Ground{
			Inventory: inventory.Inventory{Sync: given.Sync, ResourceVersion: "1", Entries: map[manifest.ID]inventory.Entry{in("theirs"): {UID: "t", Digest: "d"}}},
			Kinds:     given.Kinds, Denied: map[manifest.ID]error{in("theirs"): why},
		},
		Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}},
	}
	own, theirs := given.Wanted(t, thing("v1", "ConfigMap", "own", "settings")), given.Wanted(t, thing("v1", "ConfigMap", "theirs", "settings"))
	for name, want := range map[string][]render.Object{"wanted": {own, theirs}, "gone": {own}} {
		p := given.Computed(t, render.Desired{Objects: want}, seen, guard.Guarding{}.Guards()...)
		failed := map[string]bool{}
		for _, s := range p.Steps {
			failed[s.ID.Namespace] = errors.Is(s.Err, why)
		}
		if diff := cmp.Diff(map[string]bool{"own": false, "theirs": true}, failed); diff != "" || len(p.Gone) > 0 {
			t.Errorf("%s: forgotten: %v; failed steps (-want +got):\n%s", name, p.Gone, diff)
		}
	}
	seen.Denied = nil
	if p := given.Computed(t, render.Desired{Objects: []render.Object{own}}, seen, guard.Guarding{}.Guards()...); len(p.Gone) != 1 {
		t.Errorf("An object that was looked for and not found is gone: %v", p.Gone)
	}
}

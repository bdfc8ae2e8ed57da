package main

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestStatusOf(t *testing.T) {
	crd := plan.CRD("buckets.example.org")
	live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: crd.Name, UID: "u", Generation: 1}}
	edited := live.DeepCopy()
	edited.Generation = 2
	leaving := live.DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{}
	ours := given.ManagedBy(inventory.Manager, metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:names":{}}}`)
	ours(live)
	added := edited.DeepCopy()
	ours(added)
	left := plan.Applied(live, "d")
	with := func(change func(*inventory.Entry)) inventory.Entry {
		e := left
		change(&e)
		return e
	}
	cases := map[string]struct {
		reason   string
		entry    inventory.Entry
		live     *metav1.PartialObjectMetadata
		unserved bool
		want     condition
		code     int
	}{
		"AsLeft":    {"The object has the resource version of the last write.", left, live, false, asLeft, 0},
		"Edited":    {"Another writer changed the object.", left, edited, false, changed, 3},
		"AddedTo":   {"Another writer added its own field, which a sync does not remove.", left, added, false, asLeft, 0},
		"Unknown":   {"The inventory of an older version does not list the fields that Headgate applied.", with(func(e *inventory.Entry) { e.Fields = "" }), added, false, changed, 3},
		"Recreated": {"A new object with the same name is not the one that Headgate applied.", with(func(e *inventory.Entry) { e.UID = "other" }), live, false, changed, 3},
		"Deleted":   {"Another writer deleted the object.", left, nil, false, missing, 3},
		"Leaving":   {"A finalizer delays the deletion of the object.", left, leaving, false, deleting, 3},
		"Dying":     {"A finalizer delays the prune of the object, which the commit does not declare any more.", with(func(e *inventory.Entry) { *e = e.Deletes(); e.Undeclared = true }), leaving, false, deleting, 0},
		"Pruned":    {"The object is gone since the last pass.", with(func(e *inventory.Entry) { *e = e.Deletes() }), nil, false, "", 0},
		"Replaced":  {"Another writer made a new object after the prune.", with(func(e *inventory.Entry) { *e = e.Deletes(); e.UID = "other" }), live, false, "", 0},
		"Hidden":    {"The kind is not served, so the object may still exist.", with(func(e *inventory.Entry) { *e = e.Deletes() }), nil, true, unserved, 1},
		"NotServed": {"A CRD that is not served cannot be used, whichever tool changed it.", left, edited, true, unserved, 1},
		"Timeout":   {"The object was not ready in time, and its metadata does not show whether it is ready now.", with(func(e *inventory.Entry) { e.Reconcile = "Timeout" }), live, false, unready, 1},
		"Failed":    {"The last write of the object was refused.", with(func(e *inventory.Entry) { e.Actuation = "Failed" }), live, false, broken, 1},
		"Crashed":   {"The inventory records an intent but no result: the next sync completes it.", with(func(e *inventory.Entry) { e.UID = "" }), nil, false, unsettled, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := facts.Observed{
				Ground: facts.Ground{
					Inventory: inventory.Inventory{ResourceVersion: "1", Entries: map[manifest.ID]inventory.Entry{crd: tc.entry}},
					Kinds:     map[schema.GroupKind]plan.Kind{{Group: "example.org", Kind: "Bucket"}: {Resource: "buckets"}},
				},
				Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}},
			}
			if tc.live != nil {
				seen.Objects[crd] = tc.live
			}
			if tc.unserved {
				seen.Kinds = nil
			}
			if name == "Hidden" {
				seen.Hidden = map[schema.GroupKind]error{crd.GroupKind(): reason.ErrUnserved}
			}
			seen.Inventory.Failures = inventory.Failures{{Object: crd, Why: "because"}}
			s := statusOf(seen)
			var got owned
			if len(s.Objects) > 0 {
				got = s.Objects[0]
			}
			if got.Condition != tc.want || s.ExitCode != tc.code {
				t.Errorf("%s\nwant %q and exit code %d, got %q and %d", tc.reason, tc.want, tc.code, got.Condition, s.ExitCode)
			}
			if got.Condition == broken && got.Reason != "because" || got.Condition == deleting && got.Reason == "" || got.Condition == asLeft && got.Reason != "" {
				t.Errorf("%s: the reason is %q", tc.reason, got.Reason)
			}
		})
	}
}

package guard

import (
	"maps"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// bucketsOf returns a cluster with one of our Buckets, and a commit without it. Only the name of its kind is known.
func bucketsOf(t *testing.T) (render.Desired, facts.Observed, manifest.ID) {
	t.Helper()
	bucket := given.Thing("example.org/v1", "Bucket", "logs", "spec", map[string]any{})
	id := manifest.IDOf(bucket)
	kinds := maps.Clone(given.Kinds)
	kinds[schema.GroupKind{Group: "example.org", Kind: "Bucket"}] = plan.Kind{Resource: "buckets", Namespaced: true, Categories: []string{"crossplane"}}
	return render.Desired{Objects: []render.Object{given.Wanted(t, given.ConfigMap("kept")), given.Wanted(t, given.CRD("others", "Other"))}}, facts.Observed{
		Ground: facts.Ground{
			Inventory: inventory.Inventory{Sync: given.Sync, Record: inventory.Record{Format: inventory.Format}, Entries: map[manifest.ID]inventory.Entry{id: {UID: "u"}}},
			Kinds:     kinds,
		},
		Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: given.Live(bucket, "u")}},
	}, id
}

// The guard knows without the kind's category whether deleting an object would delete a bucket in the cloud.
func TestExternal(t *testing.T) {
	const buckets = "buckets.example.org"
	cases := map[string]struct {
		reason string
		edit   func(want *render.Desired, seen *facts.Observed, id manifest.ID)
		how    Guarding
		want   plan.Action
	}{
		"Ordinary": {reason: "An ordinary object can be pruned.", edit: func(*render.Desired, *facts.Observed, manifest.ID) {}, want: plan.Prune},
		"Finalizer": {
			reason: "A controller with external resources sets its finalizer.",
			edit: func(_ *render.Desired, seen *facts.Observed, id manifest.ID) {
				seen.Objects[id].Finalizers = []string{"other", "finalizer.managedresource.crossplane.io"}
			},
			want: plan.Hold,
		},
		"OtherFinalizer": {
			reason: "Other finalizers do not indicate external resources.",
			edit: func(_ *render.Desired, seen *facts.Observed, id manifest.ID) {
				seen.Objects[id].Finalizers = []string{"foregroundDeletion"}
			},
			want: plan.Prune,
		},
		"MRDLeavesToo": {
			reason: "The definition leaves in the same commit, but is still in the inventory.",
			edit: func(_ *render.Desired, seen *facts.Observed, _ manifest.ID) {
				seen.Inventory.Entries[crossplane.MRD(buckets)] = inventory.Entry{UID: "u"}
			},
			want: plan.Hold,
		},
		"XRDLeavesToo": {
			reason: "The same applies to the definition of a composite resource.",
			edit: func(_ *render.Desired, seen *facts.Observed, _ manifest.ID) {
				seen.Inventory.Entries[crossplane.XRD(buckets)] = inventory.Entry{UID: "u"}
			},
			want: plan.Hold,
		},
		"CRDLeavesToo": {
			reason: "If this sync makes the CRDs, it records which ones belong to definitions.",
			edit: func(_ *render.Desired, seen *facts.Observed, _ manifest.ID) {
				seen.Inventory.Entries[plan.CRD(buckets)] = inventory.Entry{UID: "u", Definition: true}
			},
			want: plan.Hold,
		},
		"PlainCRDLeavesToo": {
			reason: "The CRD belongs to no definition, so its objects are ordinary.",
			edit: func(_ *render.Desired, seen *facts.Observed, _ manifest.ID) {
				seen.Inventory.Entries[plan.CRD(buckets)] = inventory.Entry{UID: "u"}
			},
			want: plan.Prune,
		},
		"NotRecorded": {
			reason: "An older version may have made the CRD of a definition without a record.",
			edit: func(_ *render.Desired, seen *facts.Observed, _ manifest.ID) {
				seen.Inventory.Entries[plan.CRD(buckets)], seen.Inventory.Record = inventory.Entry{UID: "u"}, inventory.Record{}
			},
			want: plan.Hold,
		},
		"OfTheCluster": {
			reason: "The definition belongs to another sync or a package.",
			edit: func(_ *render.Desired, seen *facts.Observed, _ manifest.ID) {
				seen.Upstream.Definitions = map[string]crossplane.LiveDefinition{buckets: {}}
			},
			want: plan.Hold,
		},
		"OfTheClusterWithoutKind": {
			reason: "Only the name of a live definition is known.",
			edit: func(want *render.Desired, _ *facts.Observed, _ manifest.ID) {
				want.Live, want.Definitions = true, []render.DecidedDefinition{{Decision: activation.Decision{Definition: &catalogue.Definition{Name: buckets, Plural: "buckets", Group: "example.org"}}}}
			},
			want: plan.Hold,
		},
		"OfTheCommit": {
			reason: "The definition stays, and only the object leaves.",
			edit: func(want *render.Desired, _ *facts.Observed, _ manifest.ID) {
				want.Definitions = []render.DecidedDefinition{{Decision: activation.Decision{Definition: &catalogue.Definition{Name: "b.example.org", Group: "example.org", Kind: "Bucket", Document: &manifest.Document{}}}}}
			},
			want: plan.Hold,
		},
		"Allowed": {
			reason: "The sync allows pruning of managed resources.",
			edit: func(_ *render.Desired, seen *facts.Observed, id manifest.ID) {
				seen.Objects[id].Finalizers = []string{"finalizer.managedresource.crossplane.io"}
			},
			how: Guarding{PruneInstances: true}, want: plan.Prune,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want, seen, id := bucketsOf(t)
			tc.edit(&want, &seen, id)
			p, err := given.Compute(want, seen, tc.how.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range p.Steps {
				if s.ID == id && (s.Action != tc.want || s.Action == plan.Hold && s.Guard != "external") {
					t.Errorf("%s\n%s by %q, want %s", tc.reason, s.Action, s.Guard, tc.want)
				}
			}
		})
	}
}

// The inventory records which of its CRDs belong to definitions, even after the definitions are removed. An older inventory without
// this record is updated once.
func TestRecordDefinitions(t *testing.T) {
	ofDefinition, plain := given.Wanted(t, given.CRD("buckets", "Bucket")), given.Wanted(t, given.CRD("others", "Other"))
	ofDefinition.Definition = "buckets.example.org"
	want := render.Desired{Objects: []render.Object{ofDefinition, plain}, Definitions: []render.DecidedDefinition{{
		Decision: activation.Decision{Definition: &catalogue.Definition{Name: "buckets.example.org", Group: "example.org", Kind: "Bucket", Document: &manifest.Document{}}, Active: true},
	}}}
	seen := facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync}, Kinds: given.Kinds}, Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}}}
	p := given.Computed(t, want, seen, Guarding{}.Guards()...)
	recorded := func(inv inventory.Inventory) [2]bool {
		return [2]bool{inv.Entries[ofDefinition.ID].Definition, inv.Entries[plain.ID].Definition}
	}
	exactly := [2]bool{true, false}
	intent := record.Intent(p, seen.Inventory)
	if recorded(intent) != exactly {
		t.Errorf("before the first write: %v", intent.Entries)
	}
	settled := record.Settled(p, seen.Inventory, []plan.Outcome{{ID: ofDefinition.ID, Action: plan.Create, UID: "u"}, {ID: plain.ID, Action: plan.Create, UID: "v"}})
	if recorded(settled) != exactly {
		t.Errorf("after the last write: %v", settled.Entries)
	}

	seen.Objects[ofDefinition.ID], seen.Objects[plain.ID] = given.Live(given.CRD("buckets", "Bucket"), "u"), given.Live(given.CRD("others", "Other"), "v")
	settled.Record.Format = inventory.Format // as a store writes it
	seen.Inventory = settled
	if p := given.Computed(t, want, seen, Guarding{}.Guards()...); p.Remembers() {
		t.Error("what is recorded is not recorded again")
	}
	seen.Inventory.Entries = maps.Clone(settled.Entries)
	for id, e := range seen.Inventory.Entries {
		e.Definition = false
		seen.Inventory.Entries[id] = e
	}
	p = given.Computed(t, want, seen, Guarding{}.Guards()...)
	if !p.Remembers() {
		t.Error("a missing record is written, though there is nothing else to do")
	}
	if got := record.Settled(p, seen.Inventory, nil); recorded(got) != exactly {
		t.Errorf("of a pass that writes nothing else: %v", got.Entries)
	}

	// The definition leaves the commit. The record of its CRD must stay, even if the entry is renewed.
	left := render.Desired{Objects: []render.Object{plain}}
	seen.Inventory = settled
	if got := record.Intent(given.Computed(t, left, seen, Guarding{}.Guards()...), seen.Inventory); recorded(got) != exactly {
		t.Errorf("after the definition left: %v", got.Entries)
	}
	p = given.Computed(t, want, seen, Guarding{}.Guards()...)
	for i := range p.Steps {
		p.Steps[i].Definition, p.Steps[i].Renew = false, inventory.Entry{UID: "u"}
	}
	if got := record.Settled(p, settled, nil); recorded(got) != exactly {
		t.Errorf("after an entry was renewed: %v", got.Entries)
	}

	// In an inventory of an older version, an entry outside the commit may be any kind of object.
	settled.Record = inventory.Record{}
	for id, e := range settled.Entries {
		e.Definition = false
		settled.Entries[id] = e
	}
	seen.Inventory = settled
	if got := record.Intent(given.Computed(t, left, seen, Guarding{}.Guards()...), seen.Inventory); recorded(got) != exactly {
		t.Errorf("of an inventory that records nothing: %v", got.Entries)
	}
}

// A commit that lost all definitions, or all objects, is held for every owner of CRDs, whatever definitions the cluster has.
func TestEmpty(t *testing.T) {
	definition := func(name string, d catalogue.Definition) render.DecidedDefinition {
		d.Name = name
		return render.DecidedDefinition{Decision: activation.Decision{Definition: &d}}
	}
	declared := definition("a.example.org", catalogue.Definition{Document: &manifest.Document{}})
	pulled := definition("a.example.org", catalogue.Definition{Document: &manifest.Document{}, Package: &catalogue.Package{Digest: "sha256:1"}})
	liveOnly := definition("a.example.org", catalogue.Definition{})
	kept, plain := given.Wanted(t, given.ConfigMap("kept")), given.Wanted(t, given.CRD("plain", "Plain"))
	cases := map[string]struct {
		reason string
		want   render.Desired
		owns   manifest.ID
		ends   plan.Stance
		held   bool
	}{
		"AnObject":           {reason: "A commit that declares none and owns none never had any definitions.", want: render.Desired{Objects: []render.Object{kept}}, owns: kept.ID},
		"Nothing":            {reason: "An empty commit is most likely a mistake.", owns: kept.ID, held: true},
		"NothingButLive":     {reason: "Definitions that are only in the cluster are not part of the commit.", want: render.Desired{Live: true, Definitions: []render.DecidedDefinition{liveOnly}}, owns: kept.ID, held: true},
		"MRDs":               {reason: "With Crossplane, definitions are MRDs.", want: render.Desired{Objects: []render.Object{kept}}, owns: crossplane.MRD("b.example.org"), held: true},
		"MRDsAndPlainCRD":    {reason: "A CRD without a definition does not count as a definition.", want: render.Desired{Objects: []render.Object{plain}}, owns: crossplane.MRD("b.example.org"), held: true},
		"MRDsAndLive":        {reason: "The cluster still has these definitions, because this sync owns them.", want: render.Desired{Live: true, Objects: []render.Object{kept}, Definitions: []render.DecidedDefinition{liveOnly}}, owns: crossplane.MRD("b.example.org"), held: true},
		"MRDsAndPulled":      {reason: "Definitions of a package in a registry do not replace those of the commit.", want: render.Desired{Objects: []render.Object{kept}, Definitions: []render.DecidedDefinition{pulled}}, owns: crossplane.MRD("b.example.org"), held: true},
		"MRDsAndAnother":     {reason: "One of several definitions left the commit.", want: render.Desired{Objects: []render.Object{kept}, Definitions: []render.DecidedDefinition{declared}}, owns: crossplane.MRD("b.example.org")},
		"CRDs":               {reason: "Without Crossplane, definitions are CRDs.", want: render.Desired{Objects: []render.Object{kept}}, owns: plan.CRD("b.example.org"), held: true},
		"CRDsAndLive":        {reason: "Definitions that are only in the cluster are not part of the commit.", want: render.Desired{Live: true, Objects: []render.Object{kept}, Definitions: []render.DecidedDefinition{liveOnly}}, owns: plan.CRD("b.example.org"), held: true},
		"CRDsAndPlainCRD":    {reason: "A commit with other CRDs may drop one of them.", want: render.Desired{Objects: []render.Object{plain}}, owns: plan.CRD("b.example.org")},
		"CRDsAndPulled":      {reason: "Without Crossplane, definitions of a package count as definitions of the commit.", want: render.Desired{Objects: []render.Object{kept}, Definitions: []render.DecidedDefinition{pulled}}, owns: plan.CRD("b.example.org")},
		"LiveAndOwnedByElse": {reason: "A team's repository never had definitions.", want: render.Desired{Live: true, Objects: []render.Object{kept}, Definitions: []render.DecidedDefinition{liveOnly}}, owns: kept.ID},
		"Ending":             {reason: "A user who destroys a sync wants to remove everything.", owns: crossplane.MRD("b.example.org"), ends: plan.Destroying},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := draft.Case{Want: tc.want, Seen: facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{tc.owns: {}}}, Stance: tc.ends}}}
			if r := onPrune(Empty, c, plan.Step{}); (r.Response() == plan.Held) != tc.held {
				t.Errorf("%s\nheld: %t (%s), want %t", tc.reason, !tc.held, r.Reason, tc.held)
			}
		})
	}
}

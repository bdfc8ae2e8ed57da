package draft_test

import (
	"errors"
	"maps"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestDecide(t *testing.T) {
	u := given.ConfigMap("a")
	id := manifest.IDOf(u)
	o := given.Wanted(t, u)
	digest := given.Sync.Digest(o)
	edited := given.ConfigMap("a")
	edited.Object["data"] = map[string]any{"k": "edited"}
	conflict := errors.New("conflict with kubectl over .data.k")

	type want struct {
		Action, Would plan.Action
		Cause         plan.Cause
		Guard         plan.GuardName
		Err           error
		Sends, Renews bool
	}
	cases := map[string]struct {
		reason string
		seen   facts.Observed
		want   want
	}{
		"Absent": {
			reason: "A missing object is created.",
			seen:   facts.Observed{},
			want:   want{Action: plan.Create, Cause: plan.Commit, Sends: true},
		},
		"DeletedByHand": {
			reason: "An applied object that was deleted is created again, and counts as drift.",
			seen:   facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{id: {UID: "u", Digest: digest}}}}},
			want:   want{Action: plan.Create, Cause: plan.Drift, Sends: true},
		},
		"IntentNeverCarriedOut": {
			reason: "After a crash between intent and write, the entry has no UID, so nothing was deleted.",
			seen:   facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{id: {}}}}},
			want:   want{Action: plan.Create, Cause: plan.Commit, Sends: true},
		},
		"Untouched": {
			reason: "An object with the recorded mark and digest costs no request.",
			seen: facts.Observed{
				Ground: facts.Ground{Inventory: inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{id: plan.Applied(given.Live(u, "u"), digest)}}},
				Live:   facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: given.Live(u, "u")}},
			},
			want: want{Action: plan.Keep, Cause: plan.Commit},
		},
		"TouchedAndClean": {
			reason: "If the API server shows no difference for us, the mark is renewed, so that the next pass skips the object.",
			seen: facts.Observed{
				Ground: facts.Ground{Inventory: inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{id: {UID: "u", Digest: digest}}}},
				Live:   facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: given.Live(u, "u")}, Trials: map[manifest.ID]facts.Trial{id: {}}},
			},
			want: want{Action: plan.Keep, Cause: plan.Commit, Renews: true},
		},
		"EditedByHand": {
			reason: "The same request was applied before, so someone else caused the difference.",
			seen: facts.Observed{
				Ground: facts.Ground{Inventory: inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{id: {UID: "u", Digest: digest}}}},
				Live: facts.Live{
					Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: given.Live(u, "u")},
					Trials:  map[manifest.ID]facts.Trial{id: {Live: edited, After: u}},
				},
			},
			want: want{Action: plan.Update, Cause: plan.Drift, Sends: true},
		},
		"EditedInGit": {
			reason: "The commit has changed, so the difference is not drift.",
			seen: facts.Observed{
				Ground: facts.Ground{Inventory: inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{id: {UID: "u", Digest: "before"}}}},
				Live: facts.Live{
					Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: given.Live(u, "u")},
					Trials:  map[manifest.ID]facts.Trial{id: {Live: edited, After: u}},
				},
			},
			want: want{Action: plan.Update, Cause: plan.Commit, Sends: true},
		},
		"MadeByNobody": {
			reason: "An existing object without an owner is adopted.",
			seen: facts.Observed{
				Live: facts.Live{
					Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: {ObjectMeta: metav1.ObjectMeta{UID: "u"}}},
					Trials:  map[manifest.ID]facts.Trial{id: {Live: edited, After: u}},
				},
			},
			want: want{Action: plan.Update, Cause: plan.Commit, Sends: true},
		},
		"Conflict": {
			reason: "A conflict is reported before anything is written.",
			seen: facts.Observed{
				Live: facts.Live{
					Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: given.Live(u, "u")},
					Trials:  map[manifest.ID]facts.Trial{id: {Err: conflict}},
				},
			},
			want: want{Action: plan.Update, Cause: plan.Commit, Err: conflict, Sends: true},
		},
		"OfFlux": {
			reason: "An object of another tool is never changed, only reported.",
			seen: facts.Observed{
				Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: {ObjectMeta: metav1.ObjectMeta{
					Labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
				}}}},
			},
			want: want{Action: plan.Hold, Would: plan.Update, Cause: plan.Commit, Guard: "not ours"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.seen.Inventory.Sync = given.Sync
			tc.seen.Kinds = given.Kinds
			p, err := given.Compute(render.Desired{Objects: []render.Object{o}}, tc.seen, guard.Guarding{}.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Steps) != 1 {
				t.Fatalf("%s\nCompute(...): %d steps, want 1", tc.reason, len(p.Steps))
			}
			s := p.Steps[0]
			_, none := s.Object()
			got := want{Action: s.Action, Would: s.Would, Cause: s.Cause, Guard: s.Guard, Err: s.Err, Sends: none == nil, Renews: s.Renew.UID != ""}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\nCompute(...) (-want +got):\n%s", tc.reason, diff)
			}
			if got.Sends {
				sent, err := s.Object()
				if err != nil || sent.GetLabels()[inventory.SyncLabel] != given.Sync.Key() || sent.GetAnnotations()[inventory.InventoryAnnotation] != given.Sync.Key() {
					t.Errorf("%s\nwhat is sent lacks our marks: %v, %v", tc.reason, sent, err)
				}
			}
			if len(u.GetLabels()) != 0 {
				t.Errorf("%s\nthe wanted object was changed", tc.reason)
			}
		})
	}
}

func TestReportDrift(t *testing.T) {
	u, edited := given.ConfigMap("a"), given.ConfigMap("a")
	edited.Object["data"] = map[string]any{"k": "edited"}
	id := manifest.IDOf(u)
	o := given.Wanted(t, u)
	here := map[manifest.ID]*metav1.PartialObjectMetadata{id: given.Live(u, "u")}
	ours := map[manifest.ID]inventory.Entry{id: {UID: "u", Digest: given.Sync.Digest(o)}}

	type want struct {
		Action, Would plan.Action
		Cause         plan.Cause
		Reason        string
		Changes       []diff.Change
	}
	cases := map[string]struct {
		reason string
		seen   facts.Observed
		want   want
	}{
		"Edited": {
			reason: "A changed field is reported with both values, and stays.",
			seen:   facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Entries: ours}}, Live: facts.Live{Objects: here, Trials: map[manifest.ID]facts.Trial{id: {Live: edited, After: u}}}},
			want:   want{plan.Keep, plan.Update, plan.Drift, "drift is reported, not corrected", []diff.Change{{Path: "data.k", From: `"edited"`, To: `"v"`}}},
		},
		"Deleted": {
			reason: "A deleted object is not created again.",
			seen:   facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Entries: ours}}},
			want:   want{plan.Keep, plan.Create, plan.Drift, "drift is reported, not corrected", nil},
		},
		"TakenByAnApplier": {
			reason: "A conflict over a field that we applied before is also drift, not a failure.",
			seen:   facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Entries: ours}}, Live: facts.Live{Objects: here, Trials: map[manifest.ID]facts.Trial{id: {Err: errors.New("conflict with argocd over .data.k")}}}},
			want:   want{plan.Keep, plan.Update, plan.Drift, "drift is reported, not corrected: conflict with argocd over .data.k", nil},
		},
		"PutBackByHand": {
			reason: "A restored value is not drift, but Headgate writes its field ownership again.",
			seen:   facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Entries: ours}}, Live: facts.Live{Objects: here, Trials: map[manifest.ID]facts.Trial{id: {Live: u, After: u}}}},
			want:   want{plan.Update, "", plan.Drift, "", nil},
		},
		"OfTheCommit": {
			reason: "A change in the commit is written.",
			seen: facts.Observed{
				Ground: facts.Ground{Inventory: inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{id: {UID: "u", Digest: "before"}}}},
				Live:   facts.Live{Objects: here, Trials: map[manifest.ID]facts.Trial{id: {Live: edited, After: u}}},
			},
			want: want{plan.Update, "", plan.Commit, "", []diff.Change{{Path: "data.k", From: `"edited"`, To: `"v"`}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.seen.Inventory.Sync, tc.seen.Kinds = given.Sync, given.Kinds
			p, err := given.Compute(render.Desired{Objects: []render.Object{o}}, tc.seen, guard.Guarding{ReportDrift: true}.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			s := p.Steps[0]
			if diff := cmp.Diff(tc.want, want{s.Action, s.Would, s.Cause, words.Of(s.Reason), s.Changes()}); diff != "" {
				t.Errorf("%s\nCompute(...) (-want +got):\n%s", tc.reason, diff)
			}
			if s.Err != nil {
				t.Errorf("%s\nit fails: %v", tc.reason, s.Err)
			}
		})
	}
}

func TestPaused(t *testing.T) {
	u := given.ConfigMap("a")
	id := manifest.IDOf(u)
	byUs := func(m *metav1.PartialObjectMetadata) {
		fields := &metav1.FieldsV1{}
		fields.SetRawString(`{"f:metadata":{"f:annotations":{"f:crossplane.io/paused":{}}}}`)
		m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: inventory.Manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: fields}}
	}
	pause := given.Annotated("crossplane.io/paused", "true")
	for reason, tc := range map[string]struct {
		edits []func(*metav1.PartialObjectMetadata)
		want  plan.Action
	}{
		"An object that a user paused stays as it is.":                        {[]func(*metav1.PartialObjectMetadata){pause}, plan.Keep},
		"A pause in the commit belongs to the commit, which can also end it.": {[]func(*metav1.PartialObjectMetadata){pause, byUs}, plan.Update},
		"An explicit \"not paused\" is no pause.":                             {[]func(*metav1.PartialObjectMetadata){given.Annotated("crossplane.io/paused", "false")}, plan.Update},
	} {
		p, err := given.Compute(render.Desired{Objects: []render.Object{given.Wanted(t, u)}}, facts.Observed{
			Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync, Entries: map[manifest.ID]inventory.Entry{id: {UID: "u"}}}, Kinds: given.Kinds},
			Live: facts.Live{
				Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: given.Live(u, "u", tc.edits...)},
				Trials:  map[manifest.ID]facts.Trial{id: {Live: u, After: given.ConfigMap("b")}},
			},
		}, guard.Guarding{}.Guards()...)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Steps[0].Action; got != tc.want {
			t.Errorf("%s\n%s, want %s", reason, got, tc.want)
		}
	}
}

func TestUnservedKinds(t *testing.T) {
	bucket := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Bucket", "metadata": map[string]any{"namespace": "default", "name": "b"},
	}}
	definition := given.Wanted(t, given.CRD("buckets", "Bucket"))
	optional := given.Wanted(t, bucket)
	optional.Optional = true

	cases := map[string]struct {
		reason string
		want   []render.Object
		needs  []string // expected wait of each step; steps after the last are absent
		fails  bool     // the last one
	}{
		"ServedByTheCommit": {
			reason: "A custom resource in the same commit as its CRD waits for the CRD in one pass.",
			want:   []render.Object{definition, given.Wanted(t, bucket)},
			needs:  []string{"", "buckets.example.org"},
		},
		"ServedByNobody": {
			reason: "A kind that nothing will serve fails immediately, because waiting would not help.",
			want:   []render.Object{given.Wanted(t, bucket)},
			needs:  []string{""},
			fails:  true,
		},
		"Optional": {
			reason: "In a cluster without Crossplane, a policy is only an input of the catalogue.",
			want:   []render.Object{optional},
		},
		"OptionalAndComing": {
			reason: "A policy in the same commit as Crossplane's CRDs is applied once they are served.",
			want:   []render.Object{definition, optional},
			needs:  []string{"", "buckets.example.org"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := given.Compute(render.Desired{Objects: tc.want}, facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync}, Kinds: given.Kinds}})
			if err != nil {
				t.Fatal(err)
			}
			var needs []string
			fails := false
			for _, s := range p.Steps {
				needs, fails = append(needs, s.Needs), s.Err != nil
			}
			if diff := cmp.Diff(tc.needs, needs); diff != "" || fails != tc.fails {
				t.Errorf("%s\nfails: %t, needs (-want +got):\n%s", tc.reason, fails, diff)
			}
		})
	}
}

func TestGuards(t *testing.T) {
	cm, bucketCRD, namespace := given.ConfigMap("a"), given.CRD("buckets", "Bucket"), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team"},
	}}
	bucket := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Bucket", "metadata": map[string]any{"namespace": "default", "name": "b"},
	}}
	kept := given.Wanted(t, given.ConfigMap("kept"))
	type want struct {
		Action plan.Action
		Guard  plan.GuardName
		Opens  int
	}
	managed := map[schema.GroupKind]plan.Kind{{Group: "example.org", Kind: "Bucket"}: {Categories: []string{"crossplane", "managed"}}}

	cases := map[string]struct {
		reason  string
		owned   *unstructured.Unstructured
		live    *metav1.PartialObjectMetadata
		want    []render.Object
		kinds   map[schema.GroupKind]plan.Kind
		answers question.Answers
		rebuilt bool
		how     guard.Guarding
		result  want
	}{
		"Unneeded": {
			reason: "An unwanted, unprotected object is pruned.",
			owned:  cm, want: []render.Object{kept},
			result: want{Action: plan.Prune},
		},
		"OptedOut": {
			reason: "A user opted the object out of pruning.",
			owned:  cm, live: given.Live(cm, "u", given.Annotated("helm.sh/resource-policy", "keep")), want: []render.Object{kept},
			result: want{Action: plan.Keep, Guard: "asked"},
		},
		"OptedOutByLabel": {
			reason: "Flux also reads its settings from labels, in any case.",
			owned:  cm, live: given.Live(cm, "u", given.Labelled("kustomize.toolkit.fluxcd.io/Prune", "Disabled")), want: []render.Object{kept},
			result: want{Action: plan.Keep, Guard: "asked"},
		},
		"OptedOutAmongOtherOptions": {
			reason: "Argo CD's sync options are a list.",
			owned:  cm, live: given.Live(cm, "u", given.Annotated("argocd.argoproj.io/sync-options", "ServerSideApply=true, Prune=false")), want: []render.Object{kept},
			result: want{Action: plan.Keep, Guard: "asked"},
		},
		"Paused": {
			reason: "A user has paused the object.",
			owned:  cm, live: given.Live(cm, "u", given.Annotated("crossplane.io/paused", "true")), want: []render.Object{kept},
			result: want{Action: plan.Hold, Guard: "paused"},
		},
		"MarkLost": {
			reason: "Without our mark, the object may belong to someone else.",
			owned:  cm, live: given.Live(cm, "u", given.Labelled(inventory.SyncLabel, "")), want: []render.Object{kept},
			result: want{Action: plan.Hold, Guard: "not ours"},
		},
		"Recreated": {
			reason: "Another UID means another object, unless a person confirms that a backup restored it.",
			owned:  cm, live: given.Live(cm, "other"), want: []render.Object{kept},
			result: want{Action: plan.Hold, Guard: "rebuilt"},
		},
		"TakenByHelm": {
			reason: "Helm deletes its own objects, and a hold would never end.",
			owned:  cm, live: given.Live(cm, "u", given.Annotated("meta.helm.sh/release-name", "app")), want: []render.Object{kept},
			result: want{Action: plan.Release},
		},
		"TakenByAnotherSync": {
			reason: "The other sync has the object in its inventory.",
			owned:  cm, live: given.Live(cm, "u", given.Labelled(inventory.SyncLabel, "team.other")), want: []render.Object{kept},
			result: want{Action: plan.Release},
		},
		"ReleasedByAnnotation": {
			reason: "A user announced the release of the object.",
			owned:  cm, live: given.Live(cm, "u", given.Annotated("headgate.dev/release", "true")), want: []render.Object{kept},
			result: want{Action: plan.Release},
		},
		"ReleaseTakenBack": {
			reason: "The annotation withdraws the release.",
			owned:  cm, live: given.Live(cm, "u", given.Annotated("headgate.dev/release", "false")), want: []render.Object{kept},
			result: want{Action: plan.Prune},
		},
		"ReleasedAndPaused": {
			reason: "A release only changes marks, so the guards of prunes do not apply.",
			owned:  cm, live: given.Live(cm, "u", given.Annotated("headgate.dev/release", "true"), given.Annotated("crossplane.io/paused", "true")), want: []render.Object{kept},
			result: want{Action: plan.Release},
		},
		"ReleasedFromAnEmptyCommit": {
			reason: "A release deletes nothing, so it needs no approval.",
			owned:  cm, live: given.Live(cm, "u", given.Annotated("headgate.dev/release", "true")),
			result: want{Action: plan.Release},
		},
		"MovesAway": {
			reason: "The object waits for the other sync, without our marks.",
			owned:  cm, live: given.Live(cm, "u", given.Annotated("headgate.dev/release", "team/other")), want: []render.Object{kept},
			result: want{Action: plan.Release},
		},
		"MovedHere": {
			reason: "The annotation names this sync, so the object has arrived, and the commit now drops it.",
			owned:  cm, live: given.Live(cm, "u", given.Annotated("headgate.dev/release", given.Sync.String())), want: []render.Object{kept},
			result: want{Action: plan.Prune},
		},
		"OwnedByCrossplane": {
			reason: "A CRD that Crossplane has taken over is not ours to delete.",
			owned:  bucketCRD, live: given.Live(bucketCRD, "u", func(m *metav1.PartialObjectMetadata) {
				m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apiextensions.crossplane.io/v1alpha1", Kind: "ManagedResourceDefinition", Name: "buckets.example.org"}}
			}), want: []render.Object{given.Wanted(t, given.CRD("others", "Other"))},
			result: want{Action: plan.Release},
		},
		"Protected": {
			reason: "A Usage would refuse the deletion, so Headgate reports it before trying.",
			owned:  cm, live: given.Live(cm, "u", given.Labelled("crossplane.io/in-use", "true")), want: []render.Object{kept},
			result: want{Action: plan.Hold, Guard: "protected"},
		},
		"ManagedResource": {
			reason: "Deleting the object would delete the bucket in the cloud.",
			owned:  bucket, want: []render.Object{kept}, kinds: managed,
			result: want{Action: plan.Hold, Guard: "external"},
		},
		"ManagedResourceAllowed": {
			reason: "The sync allows pruning of managed resources.",
			owned:  bucket, want: []render.Object{kept}, kinds: managed, how: guard.Guarding{PruneInstances: true},
			result: want{Action: plan.Prune},
		},
		"NotCounted": {
			reason: "The custom resources of the CRD are not counted yet, so the CRD stays until the answer is known.",
			owned:  bucketCRD, want: []render.Object{given.Wanted(t, given.CRD("others", "Other"))},
			result: want{Action: plan.Hold, Guard: "in use", Opens: 1},
		},
		"InUse": {
			reason: "Deleting a CRD in use would delete its custom resources.",
			owned:  bucketCRD, want: []render.Object{given.Wanted(t, given.CRD("others", "Other"))},
			answers: question.Answers{question.Dependents{Of: manifest.IDOf(bucketCRD)}: question.Counted{Count: 2, Example: "Bucket default/b"}},
			result:  want{Action: plan.Hold, Guard: "in use"},
		},
		"NotCountable": {
			reason: "If custom resources cannot be counted, the CRD counts as in use.",
			owned:  bucketCRD, want: []render.Object{given.Wanted(t, given.CRD("others", "Other"))},
			answers: question.Answers{question.Dependents{Of: manifest.IDOf(bucketCRD)}: given.Unknown(reason.Failed.With("forbidden"))},
			result:  want{Action: plan.Hold, Guard: "in use"},
		},
		"Unused": {
			reason: "A CRD without custom resources is pruned.",
			owned:  bucketCRD, want: []render.Object{given.Wanted(t, given.CRD("others", "Other"))},
			answers: question.Answers{question.Dependents{Of: manifest.IDOf(bucketCRD)}: question.Counted{}},
			result:  want{Action: plan.Prune},
		},
		"OthersInside": {
			reason: "Deleting a namespace would delete the objects of others in it.",
			owned:  namespace, want: []render.Object{kept},
			answers: question.Answers{question.Inside{Of: manifest.IDOf(namespace)}: question.Counted{Count: 1}},
			result:  want{Action: plan.Hold, Guard: "others inside"},
		},
		"OursStillInside": {
			reason: "A wanted object must not be deleted with its namespace.",
			owned:  namespace, want: []render.Object{given.Wanted(t, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "team", "name": "a"},
			}})},
			result: want{Action: plan.Hold, Guard: "others inside"},
		},
		"NothingWanted": {
			reason: "An empty repository counts as a mistake until a user approves it.",
			owned:  cm,
			result: want{Action: plan.Hold, Guard: "empty"},
		},
		"NoDefinitions": {
			reason: "A wrong path looks like a repository without definitions.",
			owned:  bucketCRD, want: []render.Object{kept},
			answers: question.Answers{question.Dependents{Of: manifest.IDOf(bucketCRD)}: question.Counted{}},
			result:  want{Action: plan.Hold, Guard: "empty"},
		},
		"Rebuilt": {
			reason: "Marks are copied too easily to delete an object because of marks alone.",
			owned:  cm, want: []render.Object{kept}, rebuilt: true,
			result: want{Action: plan.Keep, Guard: "rebuilt"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			id := manifest.IDOf(tc.owned)
			if tc.live == nil {
				tc.live = given.Live(tc.owned, "u")
			}
			seen := facts.Observed{
				Ground: facts.Ground{
					Inventory: inventory.Inventory{Sync: given.Sync, Rebuilt: tc.rebuilt, Entries: map[manifest.ID]inventory.Entry{id: {UID: "u"}}},
					Kinds:     maps.Clone(given.Kinds),
				},
				Live:    facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: tc.live}},
				Answers: tc.answers,
			}
			maps.Copy(seen.Kinds, tc.kinds)
			p, err := given.Compute(render.Desired{Objects: tc.want}, seen, tc.how.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			var got want
			for _, s := range p.Steps {
				if s.ID == id {
					got = want{Action: s.Action, Guard: s.Guard, Opens: len(p.Open())}
					if s.Action == plan.Hold && s.Would != plan.Prune {
						t.Errorf("%s\na held prune would %q", tc.reason, s.Would)
					}
				}
			}
			if diff := cmp.Diff(tc.result, got); diff != "" {
				t.Errorf("%s\nCompute(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMany(t *testing.T) {
	cases := map[string]struct {
		reason        string
		owned, pruned int
		max           int
		want          plan.Action
	}{
		"Few":       {"Up to three prunes are always allowed.", 4, 3, 0, plan.Prune},
		"TooMany":   {"With too many prunes, all are held, because it is unclear which are intended.", 5, 4, 0, plan.Hold},
		"FifthOf50": {"Up to a fifth of the owned objects may be pruned.", 50, 10, 0, plan.Prune},
		"MoreOf50":  {"More than a fifth of the owned objects are held.", 50, 11, 0, plan.Hold},
		"HugeSync":  {"More than 20 prunes are held, whatever the number of owned objects.", 500, 21, 0, plan.Hold},
		"Raised":    {"The Sync may set a higher limit.", 500, 21, 21, plan.Prune},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := facts.Observed{
				Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync, Entries: map[manifest.ID]inventory.Entry{}}, Kinds: given.Kinds},
				Live:   facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}},
			}
			var want render.Desired
			for i := range tc.owned {
				u := given.ConfigMap("c" + string(rune('a'+i/26)) + string(rune('a'+i%26)))
				id := manifest.IDOf(u)
				seen.Inventory.Entries[id] = inventory.Entry{UID: types.UID(id.Name)}
				seen.Objects[id] = given.Live(u, types.UID(id.Name))
				if i >= tc.pruned {
					want.Objects = append(want.Objects, given.Wanted(t, u))
				}
			}
			p, err := given.Compute(want, seen, guard.Guarding{MaxPrunes: tc.max}.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Count(tc.want); got != tc.pruned {
				t.Errorf("%s\n%d steps %s, want %d", tc.reason, got, tc.want, tc.pruned)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	// Objects in a namespace are applied after it and pruned before it.
	want := []render.Object{given.Wanted(t, given.ConfigMap("a")), given.Wanted(t, given.CRD("buckets", "Bucket"))}
	gone := map[manifest.ID]inventory.Entry{}
	objects := map[manifest.ID]*metav1.PartialObjectMetadata{}
	for _, u := range []*unstructured.Unstructured{given.ConfigMap("old"), {Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "old"}}}} {
		gone[manifest.IDOf(u)] = inventory.Entry{UID: "u"}
		objects[manifest.IDOf(u)] = given.Live(u, "u")
	}
	p, err := given.Compute(render.Desired{Objects: want}, facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync, Entries: gone}, Kinds: given.Kinds}, Live: facts.Live{Objects: objects}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.Steps {
		got = append(got, string(s.Action)+" "+s.ID.String())
	}
	if diff := cmp.Diff([]string{
		"create CustomResourceDefinition.apiextensions.k8s.io/buckets.example.org",
		"create ConfigMap/default/a",
		"prune ConfigMap/default/old",
		"prune Namespace/old",
	}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestFight(t *testing.T) {
	u, edited := given.ConfigMap("a"), given.ConfigMap("a")
	edited.Object["data"] = map[string]any{"k": "edited"}
	id := manifest.IDOf(u)
	o := given.Wanted(t, u)
	rival := facts.Fight{ID: id, Path: "data.k", Manager: "rival", Times: 4, Rests: true}
	awake := rival
	awake.Rests = false
	other := rival
	other.ID.Name = "b"
	cases := map[string]struct {
		reason string
		fight  facts.Fight
		before string // digest of the previous apply
		want   plan.Action
	}{
		"Rests":       {"An object that another writer changes back is left unchanged for a while.", rival, given.Sync.Digest(o), plan.Keep},
		"Again":       {"After a while, the object is corrected again.", awake, given.Sync.Digest(o), plan.Update},
		"Another":     {"Other objects are corrected meanwhile.", other, given.Sync.Digest(o), plan.Update},
		"OfTheCommit": {"A change by a commit is applied at once.", rival, "before", plan.Update},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := facts.Observed{
				Ground: facts.Ground{
					Inventory: inventory.Inventory{Sync: given.Sync, Entries: map[manifest.ID]inventory.Entry{id: {UID: "u", Digest: tc.before}}},
					Kinds:     given.Kinds,
				},
				Live: facts.Live{
					Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: given.Live(u, "u")},
					Trials:  map[manifest.ID]facts.Trial{id: {Live: edited, After: u}},
				},
				Given: facts.Given{Fights: []facts.Fight{tc.fight}},
			}
			p, err := given.Compute(render.Desired{Objects: []render.Object{o}}, seen, guard.Guarding{}.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			s := p.Steps[0]
			if s.Action != tc.want {
				t.Errorf("%s\n%s, want %s", tc.reason, s.Action, tc.want)
			}
			if want := "fight: rival changed data.k again 4 times after Headgate corrected it; it is left alone for a while"; tc.want == plan.Keep && words.Of(s.Reason) != want {
				t.Errorf("%s\nreason %q, want %q", tc.reason, s.Reason, want)
			}
		})
	}
}

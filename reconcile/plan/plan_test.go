package plan

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

var (
	sync    = Sync{Namespace: "headgate-system", Name: "prod"}
	errBoom = errors.New("boom")
)

// configMap is an ordinary object.
func configMap(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"namespace": "default", "name": name},
		"data":       map[string]any{"k": "v"},
	}}
}

// crd is the CRD of <plural>.example.org.
func crd(plural, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": plural + ".example.org"},
		"spec": map[string]any{
			"group": "example.org",
			"names": map[string]any{"plural": plural, "kind": kind},
		},
	}}
}

func wanted(t *testing.T, u *unstructured.Unstructured) render.Object {
	t.Helper()
	o, err := render.NewObject(u, manifest.Origin{Path: "a.yaml", Line: 1})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// live is an object as it is after we applied it.
func live(u *unstructured.Unstructured, uid types.UID, edit ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: u.GetAPIVersion(), Kind: u.GetKind()},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: u.GetNamespace(), Name: u.GetName(), UID: uid, ResourceVersion: "7", Generation: 1,
			Labels:      map[string]string{SyncLabel: sync.Key()},
			Annotations: map[string]string{InventoryAnnotation: sync.Key()},
		},
	}
	for _, e := range edit {
		e(m)
	}
	return m
}

func labelled(key, value string) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) { m.Labels[key] = value }
}

func annotated(key, value string) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) { m.Annotations[key] = value }
}

var core = map[schema.GroupKind]Kind{
	{Kind: "ConfigMap"}: {Version: "v1", Resource: "configmaps", Namespaced: true},
	{Kind: "Namespace"}: {Version: "v1", Resource: "namespaces"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {Version: "v1", Resource: "customresourcedefinitions"},
}

func TestDecide(t *testing.T) {
	u := configMap("a")
	id := manifest.IDOf(u)
	o := wanted(t, u)
	digest := sync.Digest(o)
	edited := configMap("a")
	edited.Object["data"] = map[string]any{"k": "edited"}
	conflict := errors.New("conflict with kubectl over .data.k")

	type want struct {
		Action, Would Action
		Cause         Cause
		Guard         string
		Err           error
		Sends, Renews bool
	}
	cases := map[string]struct {
		reason string
		seen   Observed
		want   want
	}{
		"Absent": {
			reason: "What nobody made yet is created.",
			seen:   Observed{},
			want:   want{Action: Create, Cause: Commit, Sends: true},
		},
		"DeletedByHand": {
			reason: "What we made and someone deleted is created again, and that is drift.",
			seen:   Observed{Inventory: Inventory{Entries: map[manifest.ID]Entry{id: {UID: "u", Digest: digest}}}},
			want:   want{Action: Create, Cause: Drift, Sends: true},
		},
		"IntentNeverCarriedOut": {
			reason: "A crash between intent and write left an entry without UID: nobody deleted anything.",
			seen:   Observed{Inventory: Inventory{Entries: map[manifest.ID]Entry{id: {}}}},
			want:   want{Action: Create, Cause: Commit, Sends: true},
		},
		"Untouched": {
			reason: "What has the mark and digest that we remember costs nothing.",
			seen: Observed{
				Inventory: Inventory{Entries: map[manifest.ID]Entry{id: applied(live(u, "u"), digest)}},
				Objects:   map[manifest.ID]*metav1.PartialObjectMetadata{id: live(u, "u")},
			},
			want: want{Action: Keep, Cause: Commit},
		},
		"TouchedAndClean": {
			reason: "A change that the API server says is none to us renews the mark, so that it is not looked at again.",
			seen: Observed{
				Inventory: Inventory{Entries: map[manifest.ID]Entry{id: {UID: "u", Digest: digest}}},
				Objects:   map[manifest.ID]*metav1.PartialObjectMetadata{id: live(u, "u")},
				Trials:    map[manifest.ID]Trial{id: {}},
			},
			want: want{Action: Keep, Cause: Commit, Renews: true},
		},
		"EditedByHand": {
			reason: "We asked for exactly this before, so the difference is someone else's.",
			seen: Observed{
				Inventory: Inventory{Entries: map[manifest.ID]Entry{id: {UID: "u", Digest: digest}}},
				Objects:   map[manifest.ID]*metav1.PartialObjectMetadata{id: live(u, "u")},
				Trials:    map[manifest.ID]Trial{id: {Live: edited, After: u}},
			},
			want: want{Action: Update, Cause: Drift, Sends: true},
		},
		"EditedInGit": {
			reason: "The commit asks for something else than before: that is no drift.",
			seen: Observed{
				Inventory: Inventory{Entries: map[manifest.ID]Entry{id: {UID: "u", Digest: "before"}}},
				Objects:   map[manifest.ID]*metav1.PartialObjectMetadata{id: live(u, "u")},
				Trials:    map[manifest.ID]Trial{id: {Live: edited, After: u}},
			},
			want: want{Action: Update, Cause: Commit, Sends: true},
		},
		"MadeByNobody": {
			reason: "What exists and nobody owns is adopted.",
			seen: Observed{
				Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: {ObjectMeta: metav1.ObjectMeta{UID: "u"}}},
				Trials:  map[manifest.ID]Trial{id: {Live: edited, After: u}},
			},
			want: want{Action: Update, Cause: Commit, Sends: true},
		},
		"Conflict": {
			reason: "A conflict is known before anything is written, and named.",
			seen: Observed{
				Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: live(u, "u")},
				Trials:  map[manifest.ID]Trial{id: {Err: conflict}},
			},
			want: want{Action: Update, Cause: Commit, Err: conflict, Sends: true},
		},
		"OfFlux": {
			reason: "What another tool owns is never touched, only named.",
			seen: Observed{
				Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: {ObjectMeta: metav1.ObjectMeta{
					Labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
				}}},
			},
			want: want{Action: Hold, Would: Update, Cause: Commit, Guard: "not ours"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.seen.Inventory.Sync = sync
			tc.seen.Kinds = core
			p, err := Compute(render.Desired{Objects: []render.Object{o}}, tc.seen)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Steps) != 1 {
				t.Fatalf("%s\nCompute(...): %d steps, want 1", tc.reason, len(p.Steps))
			}
			s := p.Steps[0]
			got := want{Action: s.Action, Would: s.Would, Cause: s.Cause, Guard: s.Guard, Err: s.Err, Sends: s.sends(), Renews: s.Renew.UID != ""}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\nCompute(...) (-want +got):\n%s", tc.reason, diff)
			}
			if got.Sends {
				sent, err := s.Object()
				if err != nil || sent.GetLabels()[SyncLabel] != sync.Key() || sent.GetAnnotations()[InventoryAnnotation] != sync.Key() {
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
	u, edited := configMap("a"), configMap("a")
	edited.Object["data"] = map[string]any{"k": "edited"}
	id := manifest.IDOf(u)
	o := wanted(t, u)
	here := map[manifest.ID]*metav1.PartialObjectMetadata{id: live(u, "u")}
	ours := map[manifest.ID]Entry{id: {UID: "u", Digest: sync.Digest(o)}}

	type want struct {
		Action, Would Action
		Cause         Cause
		Reason        string
		Changes       []Change
	}
	cases := map[string]struct {
		reason string
		seen   Observed
		want   want
	}{
		"Edited": {
			reason: "What somebody changed is said, with both values, and left as it is.",
			seen:   Observed{Inventory: Inventory{Entries: ours}, Objects: here, Trials: map[manifest.ID]Trial{id: {Live: edited, After: u}}},
			want:   want{Keep, Update, Drift, "drift is reported, not corrected", []Change{{Path: "data.k", From: `"edited"`, To: `"v"`}}},
		},
		"Deleted": {
			reason: "What somebody deleted is not made again.",
			seen:   Observed{Inventory: Inventory{Entries: ours}},
			want:   want{Keep, Create, Drift, "drift is reported, not corrected", nil},
		},
		"TakenByAnApplier": {
			reason: "A conflict over what we applied before is drift too, and no failure of ours.",
			seen:   Observed{Inventory: Inventory{Entries: ours}, Objects: here, Trials: map[manifest.ID]Trial{id: {Err: errors.New("conflict with argocd over .data.k")}}},
			want:   want{Keep, Update, Drift, "drift is reported, not corrected: conflict with argocd over .data.k", nil},
		},
		"PutBackByHand": {
			reason: "What has its value back has not drifted; that it is ours is written.",
			seen:   Observed{Inventory: Inventory{Entries: ours}, Objects: here, Trials: map[manifest.ID]Trial{id: {Live: u, After: u}}},
			want:   want{Update, "", Drift, "", nil},
		},
		"OfTheCommit": {
			reason: "What the commit asks for is written.",
			seen: Observed{
				Inventory: Inventory{Entries: map[manifest.ID]Entry{id: {UID: "u", Digest: "before"}}}, Objects: here,
				Trials: map[manifest.ID]Trial{id: {Live: edited, After: u}},
			},
			want: want{Update, "", Commit, "", []Change{{Path: "data.k", From: `"edited"`, To: `"v"`}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.seen.Inventory.Sync, tc.seen.Kinds = sync, core
			p, err := Compute(render.Desired{Objects: []render.Object{o}}, tc.seen, Guarding{ReportDrift: true}.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			s := p.Steps[0]
			if diff := cmp.Diff(tc.want, want{s.Action, s.Would, s.Cause, s.Reason, s.Changes()}); diff != "" {
				t.Errorf("%s\nCompute(...) (-want +got):\n%s", tc.reason, diff)
			}
			if s.Err != nil {
				t.Errorf("%s\nit fails: %v", tc.reason, s.Err)
			}
		})
	}
}

func TestPaused(t *testing.T) {
	u := configMap("a")
	id := manifest.IDOf(u)
	byUs := func(m *metav1.PartialObjectMetadata) {
		fields := &metav1.FieldsV1{}
		fields.SetRawString(`{"f:metadata":{"f:annotations":{"f:crossplane.io/paused":{}}}}`)
		m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: Manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: fields}}
	}
	pause := annotated("crossplane.io/paused", "true")
	for reason, tc := range map[string]struct {
		edits []func(*metav1.PartialObjectMetadata)
		want  Action
	}{
		"What somebody paused stays as it is.":                     {[]func(*metav1.PartialObjectMetadata){pause}, Keep},
		"What the commit paused is the commit's, also to wake up.": {[]func(*metav1.PartialObjectMetadata){pause, byUs}, Update},
		"What says that it is not paused is not.":                  {[]func(*metav1.PartialObjectMetadata){annotated("crossplane.io/paused", "false")}, Update},
	} {
		p, err := Compute(render.Desired{Objects: []render.Object{wanted(t, u)}}, Observed{
			Inventory: Inventory{Sync: sync, Entries: map[manifest.ID]Entry{id: {UID: "u"}}}, Kinds: core,
			Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: live(u, "u", tc.edits...)},
			Trials:  map[manifest.ID]Trial{id: {Live: u, After: configMap("b")}},
		}, Guarding{}.Guards()...)
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
	definition := wanted(t, crd("buckets", "Bucket"))
	optional := wanted(t, bucket)
	optional.Optional = true

	cases := map[string]struct {
		reason string
		want   []render.Object
		needs  []string // of each step; a step that is missing is not there
		fails  bool     // the last one
	}{
		"ServedByTheCommit": {
			reason: "A custom resource beside its CRD waits for it, in one pass.",
			want:   []render.Object{definition, wanted(t, bucket)},
			needs:  []string{"", "buckets.example.org"},
		},
		"ServedByNobody": {
			reason: "A kind that nothing is going to serve fails at once: waiting would help nobody.",
			want:   []render.Object{wanted(t, bucket)},
			needs:  []string{""},
			fails:  true,
		},
		"Optional": {
			reason: "A policy in a cluster without Crossplane feeds the catalogue only.",
			want:   []render.Object{optional},
		},
		"OptionalAndComing": {
			reason: "A policy beside the CRDs of Crossplane is applied once they serve it.",
			want:   []render.Object{definition, optional},
			needs:  []string{"", "buckets.example.org"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := Compute(render.Desired{Objects: tc.want}, Observed{Inventory: Inventory{Sync: sync}, Kinds: core})
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
	cm, bucketCRD, namespace := configMap("a"), crd("buckets", "Bucket"), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team"},
	}}
	bucket := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Bucket", "metadata": map[string]any{"namespace": "default", "name": "b"},
	}}
	kept := wanted(t, configMap("kept"))
	type want struct {
		Action Action
		Guard  string
		Opens  int
	}
	question := func(u *unstructured.Unstructured, ask Ask) Question { return Question{Ask: ask, Of: manifest.IDOf(u)} }
	managed := map[schema.GroupKind]Kind{{Group: "example.org", Kind: "Bucket"}: {Categories: []string{"crossplane", "managed"}}}

	cases := map[string]struct {
		reason  string
		owned   *unstructured.Unstructured
		live    *metav1.PartialObjectMetadata
		want    []render.Object
		kinds   map[schema.GroupKind]Kind
		answers map[Question]Answer
		rebuilt bool
		how     Guarding
		result  want
	}{
		"Unneeded": {
			reason: "What nobody wants and nothing protects goes.",
			owned:  cm, want: []render.Object{kept},
			result: want{Action: Prune},
		},
		"OptedOut": {
			reason: "A person asked on the object that it stays.",
			owned:  cm, live: live(cm, "u", annotated("helm.sh/resource-policy", "keep")), want: []render.Object{kept},
			result: want{Action: Keep, Guard: "asked"},
		},
		"OptedOutByLabel": {
			reason: "Flux reads its words from labels too, however they are written.",
			owned:  cm, live: live(cm, "u", labelled("kustomize.toolkit.fluxcd.io/Prune", "Disabled")), want: []render.Object{kept},
			result: want{Action: Keep, Guard: "asked"},
		},
		"OptedOutAmongOtherOptions": {
			reason: "Argo CD's options are a list.",
			owned:  cm, live: live(cm, "u", annotated("argocd.argoproj.io/sync-options", "ServerSideApply=true, Prune=false")), want: []render.Object{kept},
			result: want{Action: Keep, Guard: "asked"},
		},
		"Paused": {
			reason: "Somebody is working on it.",
			owned:  cm, live: live(cm, "u", annotated("crossplane.io/paused", "true")), want: []render.Object{kept},
			result: want{Action: Hold, Guard: "paused"},
		},
		"MarkLost": {
			reason: "Without our mark it may be someone else's by now.",
			owned:  cm, live: live(cm, "u", labelled(SyncLabel, "")), want: []render.Object{kept},
			result: want{Action: Hold, Guard: "not ours"},
		},
		"Recreated": {
			reason: "Another UID is another object, whatever its name and labels say.",
			owned:  cm, live: live(cm, "other"), want: []render.Object{kept},
			result: want{Action: Hold, Guard: "not ours"},
		},
		"TakenByHelm": {
			reason: "A foreign owner deletes its own things.",
			owned:  cm, live: live(cm, "u", annotated("meta.helm.sh/release-name", "app")), want: []render.Object{kept},
			result: want{Action: Hold, Guard: "not ours"},
		},
		"OwnedByCrossplane": {
			reason: "A CRD that Crossplane took over is not ours to delete.",
			owned:  bucketCRD, live: live(bucketCRD, "u", func(m *metav1.PartialObjectMetadata) {
				m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apiextensions.crossplane.io/v1alpha1", Kind: "ManagedResourceDefinition", Name: "buckets.example.org"}}
			}), want: []render.Object{wanted(t, crd("others", "Other"))},
			result: want{Action: Hold, Guard: "not ours"},
		},
		"Protected": {
			reason: "A Usage would refuse the delete; say so before trying.",
			owned:  cm, live: live(cm, "u", labelled("crossplane.io/in-use", "true")), want: []render.Object{kept},
			result: want{Action: Hold, Guard: "protected"},
		},
		"ManagedResource": {
			reason: "Deleting the object deletes the bucket in the cloud.",
			owned:  bucket, want: []render.Object{kept}, kinds: managed,
			result: want{Action: Hold, Guard: "external"},
		},
		"ManagedResourceAllowed": {
			reason: "Unless the sync says that instances may be pruned.",
			owned:  bucket, want: []render.Object{kept}, kinds: managed, how: Guarding{PruneInstances: true},
			result: want{Action: Prune},
		},
		"NotCounted": {
			reason: "Nobody knows yet what would go with the CRD, so it stays and the question is open.",
			owned:  bucketCRD, want: []render.Object{wanted(t, crd("others", "Other"))},
			result: want{Action: Hold, Guard: "in use", Opens: 1},
		},
		"InUse": {
			reason: "This is what people are paged for.",
			owned:  bucketCRD, want: []render.Object{wanted(t, crd("others", "Other"))},
			answers: map[Question]Answer{question(bucketCRD, Dependents): {Count: 2, Example: "Bucket default/b"}},
			result:  want{Action: Hold, Guard: "in use"},
		},
		"NotCountable": {
			reason: "What cannot be counted is in use.",
			owned:  bucketCRD, want: []render.Object{wanted(t, crd("others", "Other"))},
			answers: map[Question]Answer{question(bucketCRD, Dependents): {Unknown: "forbidden"}},
			result:  want{Action: Hold, Guard: "in use"},
		},
		"Unused": {
			reason: "A CRD that is counted and empty goes.",
			owned:  bucketCRD, want: []render.Object{wanted(t, crd("others", "Other"))},
			answers: map[Question]Answer{question(bucketCRD, Dependents): {}},
			result:  want{Action: Prune},
		},
		"OthersInside": {
			reason: "A namespace is a home, and its deletion an eviction.",
			owned:  namespace, want: []render.Object{kept},
			answers: map[Question]Answer{question(namespace, Inside): {Count: 1}},
			result:  want{Action: Hold, Guard: "others inside"},
		},
		"OursStillInside": {
			reason: "What the commit wants in a namespace must not go with it.",
			owned:  namespace, want: []render.Object{wanted(t, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "team", "name": "a"},
			}})},
			result: want{Action: Hold, Guard: "others inside"},
		},
		"NothingWanted": {
			reason: "An emptied repository is a mistake until someone says otherwise.",
			owned:  cm,
			result: want{Action: Hold, Guard: "empty"},
		},
		"NoDefinitions": {
			reason: "A wrong path looks like a repository without definitions.",
			owned:  bucketCRD, want: []render.Object{kept},
			answers: map[Question]Answer{question(bucketCRD, Dependents): {}},
			result:  want{Action: Hold, Guard: "empty"},
		},
		"Rebuilt": {
			reason: "Marks are copied too easily to delete by them alone.",
			owned:  cm, want: []render.Object{kept}, rebuilt: true,
			result: want{Action: Keep, Guard: "rebuilt"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			id := manifest.IDOf(tc.owned)
			if tc.live == nil {
				tc.live = live(tc.owned, "u")
			}
			seen := Observed{
				Inventory: Inventory{Sync: sync, Rebuilt: tc.rebuilt, Entries: map[manifest.ID]Entry{id: {UID: "u"}}},
				Objects:   map[manifest.ID]*metav1.PartialObjectMetadata{id: tc.live},
				Kinds:     tc.kinds,
				Answers:   tc.answers,
			}
			p, err := Compute(render.Desired{Objects: tc.want}, seen, tc.how.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			var got want
			for _, s := range p.Steps {
				if s.ID == id {
					got = want{Action: s.Action, Guard: s.Guard, Opens: len(p.Open())}
					if s.Action == Hold && s.Would != Prune {
						t.Errorf("%s\na held prune says that it would %q", tc.reason, s.Would)
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
		want          Action
	}{
		"Few":       {"Three may always go.", 4, 3, 0, Prune},
		"TooMany":   {"Then not one of them goes: which were meant?", 5, 4, 0, Hold},
		"FifthOf50": {"A fifth of what we own may go.", 50, 10, 0, Prune},
		"MoreOf50":  {"And not one more.", 50, 11, 0, Hold},
		"HugeSync":  {"Twenty is much, however much we own.", 500, 21, 0, Hold},
		"Raised":    {"A person may raise it.", 500, 21, 21, Prune},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := Observed{
				Inventory: Inventory{Sync: sync, Entries: map[manifest.ID]Entry{}},
				Objects:   map[manifest.ID]*metav1.PartialObjectMetadata{},
			}
			var want render.Desired
			for i := range tc.owned {
				u := configMap("c" + string(rune('a'+i/26)) + string(rune('a'+i%26)))
				id := manifest.IDOf(u)
				seen.Inventory.Entries[id] = Entry{UID: "u"}
				seen.Objects[id] = live(u, "u")
				if i >= tc.pruned {
					want.Objects = append(want.Objects, wanted(t, u))
				}
			}
			p, err := Compute(want, seen, Guarding{MaxPrunes: tc.max}.Guards()...)
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
	// What is inside goes in after, and comes out before.
	want := []render.Object{wanted(t, configMap("a")), wanted(t, crd("buckets", "Bucket"))}
	gone := map[manifest.ID]Entry{}
	objects := map[manifest.ID]*metav1.PartialObjectMetadata{}
	for _, u := range []*unstructured.Unstructured{configMap("old"), {Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "old"}}}} {
		gone[manifest.IDOf(u)] = Entry{UID: "u"}
		objects[manifest.IDOf(u)] = live(u, "u")
	}
	p, err := Compute(render.Desired{Objects: want}, Observed{Inventory: Inventory{Sync: sync, Entries: gone}, Objects: objects, Kinds: core})
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
	u, edited := configMap("a"), configMap("a")
	edited.Object["data"] = map[string]any{"k": "edited"}
	id := manifest.IDOf(u)
	o := wanted(t, u)
	rival := Fight{ID: id, Path: "data.k", Manager: "rival", Times: 4, Rests: true}
	awake := rival
	awake.Rests = false
	other := rival
	other.ID.Name = "b"
	cases := map[string]struct {
		reason string
		fight  Fight
		before string // the digest of what was applied before
		want   Action
	}{
		"Rests":       {"What is fought over is left alone for a while.", rival, sync.Digest(o), Keep},
		"Again":       {"And then it is tried again.", awake, sync.Digest(o), Update},
		"Another":     {"Others are put right meanwhile.", other, sync.Digest(o), Update},
		"OfTheCommit": {"What a commit asks for is no part of a fight.", rival, "before", Update},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := Observed{
				Inventory: Inventory{Sync: sync, Entries: map[manifest.ID]Entry{id: {UID: "u", Digest: tc.before}}},
				Objects:   map[manifest.ID]*metav1.PartialObjectMetadata{id: live(u, "u")}, Kinds: core,
				Trials: map[manifest.ID]Trial{id: {Live: edited, After: u}},
				Fights: []Fight{tc.fight},
			}
			p, err := Compute(render.Desired{Objects: []render.Object{o}}, seen, Guarding{}.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			s := p.Steps[0]
			if s.Action != tc.want {
				t.Errorf("%s\n%s, want %s", tc.reason, s.Action, tc.want)
			}
			if want := "fight: rival changed data.k again 4 times after it was put right; it is left alone for a while"; tc.want == Keep && s.Reason != want {
				t.Errorf("%s\nreason %q, want %q", tc.reason, s.Reason, want)
			}
		})
	}
}

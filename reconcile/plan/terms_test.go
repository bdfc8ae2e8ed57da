package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// unmarked is an object that nobody of ours ever touched.
func unmarked(edit ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "u", Labels: map[string]string{}, Annotations: map[string]string{},
	}}
	for _, e := range edit {
		e(m)
	}
	return m
}

func managedBy(manager string, operation metav1.ManagedFieldsOperationType, fields string) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) {
		m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(fields)})
	}
}

func ownedBy(apiVersion, kind, name string, controller bool) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) {
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, Controller: &controller})
	}
}

func both(edits ...func(*metav1.PartialObjectMetadata)) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) {
		for _, e := range edits {
			e(m)
		}
	}
}

func TestForeign(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(*metav1.PartialObjectMetadata)
		want   Claim
	}{
		"Nobody":  {"Other labels say nothing.", labelled("app", "a"), Claim{}},
		"Another": {"Another sync of ours.", labelled(SyncLabel, "team.shop"), Claim{By: "the Headgate sync team.shop", Sync: "team.shop"}},
		"CliUtils": {
			"kpt, and whatever else is made of cli-utils.",
			annotated(InventoryAnnotation, "1234"), Claim{By: "the inventory 1234"},
		},
		"Kustomization": {
			"Flux names the Kustomization.",
			both(labelled("kustomize.toolkit.fluxcd.io/name", "apps"), labelled("kustomize.toolkit.fluxcd.io/namespace", "flux-system")),
			Claim{By: "the Flux Kustomization flux-system/apps"},
		},
		"HelmRelease": {
			"And the HelmRelease.",
			both(labelled("helm.toolkit.fluxcd.io/name", "app"), labelled("helm.toolkit.fluxcd.io/namespace", "prod")),
			Claim{By: "the Flux HelmRelease prod/app"},
		},
		"ResourceSet": {
			"And the flux-operator.",
			both(labelled("resourceset.fluxcd.controlplane.io/name", "app"), labelled("resourceset.fluxcd.controlplane.io/namespace", "prod")),
			Claim{By: "the Flux ResourceSet prod/app"},
		},
		"FluxWithoutLabels": {
			"Whoever took the labels off did not stop Flux.",
			managedBy("kustomize-controller", metav1.ManagedFieldsOperationApply, "{}"), Claim{By: "Flux (field manager kustomize-controller)"},
		},
		"Argo": {
			"Argo CD names the application, and the object once more.",
			annotated("argocd.argoproj.io/tracking-id", "app:/ConfigMap:default/a"), Claim{By: "the Argo CD application app"},
		},
		"ArgoOnCRD": {
			"It marks no CRD; its field manager is all that it leaves.",
			managedBy("argocd-controller", metav1.ManagedFieldsOperationApply, "{}"), Claim{By: "Argo CD (field manager argocd-controller)"},
		},
		"ArgoClientSide": {
			"The same without server-side apply.",
			managedBy("argocd-application-controller", metav1.ManagedFieldsOperationUpdate, "{}"), Claim{By: "Argo CD (field manager argocd-application-controller)"},
		},
		"Helm": {
			"A release.",
			both(annotated("meta.helm.sh/release-name", "app"), annotated("meta.helm.sh/release-namespace", "prod")), Claim{By: "the Helm release prod/app"},
		},
		"HelmLabel":   {"A chart that only labels.", labelled("app.kubernetes.io/managed-by", "Helm"), Claim{By: "Helm"}},
		"NotHelm":     {"The label has other values.", labelled("app.kubernetes.io/managed-by", "us"), Claim{}},
		"ConfigSync":  {"Config Sync has an annotation,", annotated("configsync.gke.io/manager", ":root"), Claim{By: "Config Sync :root"}},
		"ConfigSync2": {"a label,", both(labelled("configsync.gke.io/sync-name", "r"), labelled("configsync.gke.io/sync-namespace", "n")), Claim{By: "Config Sync n/r"}},
		"ConfigSync3": {"and an older annotation.", annotated("configmanagement.gke.io/managed", "enabled"), Claim{By: "Config Sync"}},
		"Unmanaged":   {"Which may also say that it is not managed.", annotated("configmanagement.gke.io/managed", "disabled"), Claim{}},
		"Kapp":        {"kapp has a label,", labelled("kapp.k14s.io/app", "1700"), Claim{By: "the kapp app 1700"}},
		"KappMark":    {"and an annotation.", annotated("kapp.k14s.io/identity", "v1;default//ConfigMap/a;v1"), Claim{By: "the kapp app"}},
		"ApplySet":    {"kubectl apply --applyset.", labelled("applyset.kubernetes.io/part-of", "applyset-x-v1"), Claim{By: "the apply set applyset-x-v1"}},
		"Sveltos":     {"Sveltos.", labelled("projectsveltos.io/cluster-summary-name", "a"), Claim{By: "the Sveltos profile a"}},
		"Fleet":       {"Fleet has an annotation,", annotated("objectset.rio.cattle.io/id", "b"), Claim{By: "the Fleet bundle b"}},
		"FleetHash":   {"and a label.", labelled("objectset.rio.cattle.io/hash", "123"), Claim{By: "the Fleet bundle"}},
		"OLM":         {"OLM has a label,", labelled("olm.managed", "true"), Claim{By: "OLM"}},
		"OLMOperator": {"and one whose key holds the name.", labelled("operators.coreos.com/etcd.prod", ""), Claim{By: "OLM"}},
		"Revision": {
			"What a package revision owns, Crossplane makes again: it is never taken.",
			ownedBy("pkg.crossplane.io/v1", "ProviderRevision", "aws-1", true), Claim{By: "Crossplane (ProviderRevision aws-1)", Final: true},
		},
		"Definition": {
			"The CRD of an MRD.",
			ownedBy("apiextensions.crossplane.io/v1alpha1", "ManagedResourceDefinition", "a", false), Claim{By: "Crossplane (ManagedResourceDefinition a)", Final: true},
		},
		"Composed": {
			"What an XR is composed of.",
			both(labelled("crossplane.io/composite", "x"), ownedBy("example.org/v1", "XApp", "x", true)), Claim{By: "Crossplane (XApp x)", Final: true},
		},
		"Composite": {"An XR bears that label too, and nobody owns it.", labelled("crossplane.io/composite", "a"), Claim{}},
		"CrossplanesManager": {
			"The CRD of an MRD whose owner references somebody took off.",
			managedBy("apiextensions.crossplane.io/managed", metav1.ManagedFieldsOperationApply, "{}"), Claim{By: "Crossplane (field manager apiextensions.crossplane.io/managed)", Final: true},
		},
		"FluxAndCrossplane": {
			"Of several owners the one counts from whom it cannot be taken.",
			both(labelled("kustomize.toolkit.fluxcd.io/name", "apps"), ownedBy("pkg.crossplane.io/v1", "ProviderRevision", "aws-1", true)),
			Claim{By: "Crossplane (ProviderRevision aws-1)", Final: true},
		},
		"PackageLabel": {"What comes with a package.", labelled("pkg.crossplane.io/revision", "aws-1"), Claim{By: "the Crossplane package revision aws-1", Final: true}},
		"OurOwnLabel": {
			"Manifests that Helm once rendered carry its label into the commit: we applied it, and Helm has no part in it.",
			both(labelled("app.kubernetes.io/managed-by", "Helm"), managedBy(Manager, metav1.ManagedFieldsOperationApply, `{"f:metadata":{"f:labels":{"f:app.kubernetes.io/managed-by":{}}}}`)),
			Claim{},
		},
		"OurOwnAnnotation": {
			"The same with an annotation.",
			both(annotated("meta.helm.sh/release-name", "app"), managedBy(Manager, metav1.ManagedFieldsOperationApply, `{"f:metadata":{"f:annotations":{"f:meta.helm.sh/release-name":{}}}}`)),
			Claim{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Foreign(unmarked(tc.edit), sync, "")); diff != "" {
				t.Errorf("%s\nForeign(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAdoption(t *testing.T) {
	u, other := configMap("a"), configMap("a")
	other.Object["data"] = map[string]any{"k": "other"}
	id := manifest.IDOf(u)
	o := wanted(t, u)
	flux := labelled("kustomize.toolkit.fluxcd.io/name", "apps")
	others := labelled(SyncLabel, "team.shop")
	ours := map[manifest.ID]Entry{id: {UID: "u", Digest: sync.Digest(o)}}

	type want struct {
		Action Action
		Guard  string
		Reason string
	}
	update := want{Action: Update}
	held := func(reason string) want { return want{Hold, guardNotOurs, reason} }
	cases := map[string]struct {
		reason string
		terms  Adoption
		seen   Observed
		live   *metav1.PartialObjectMetadata
		want   want
	}{
		"Unowned": {
			reason: "By default what nobody owns is taken up.",
			live:   unmarked(), want: update,
		},
		"UnownedRefused": {
			reason: "A sync that does not adopt leaves what is there.", terms: AdoptNone,
			live: unmarked(), want: held("it was there before, and this sync does not adopt (adoption: Refuse); delete it, or set adoption: AdoptIfUnowned"),
		},
		"OursWithoutMarks": {
			reason: "What we applied stays ours when somebody takes the label off.", terms: AdoptNone,
			seen: Observed{Inventory: Inventory{Entries: ours}}, live: unmarked(), want: update,
		},
		"OursInANewPlace": {
			reason: "A restored cluster has what we applied under new UIDs, with our marks.", terms: AdoptNone,
			seen: Observed{Inventory: Inventory{Entries: ours}}, live: live(u, "restored"), want: update,
		},
		"RecreatedByHand": {
			reason: "What somebody made in the place of ours is theirs.", terms: AdoptNone,
			seen: Observed{Inventory: Inventory{Entries: ours}}, live: unmarked(func(m *metav1.PartialObjectMetadata) { m.UID = "other" }),
			want: held("it was there before, and this sync does not adopt (adoption: Refuse); delete it, or set adoption: AdoptIfUnowned"),
		},
		"OfFlux": {
			reason: "By default what another tool owns is not touched, and the way out is named.",
			live:   unmarked(flux), want: held("the Flux Kustomization apps owns it; take it out of there, or out of this repository, or set adoption: Adopt"),
		},
		"OfFluxAdopted": {
			reason: "A sync that adopts takes it, and says from whom.", terms: AdoptAll,
			live: unmarked(flux), want: want{Update, "", "it is taken over from the Flux Kustomization apps"},
		},
		"OfFluxAndOurs": {
			reason: "It was taken over before; its marks stay, for they are not ours to remove.", terms: AdoptAll,
			seen: Observed{Inventory: Inventory{Entries: ours}}, live: live(u, "u", flux), want: update,
		},
		"OfCrossplane": {
			reason: "Crossplane would make it again as it likes.", terms: AdoptAll,
			live: unmarked(ownedBy("pkg.crossplane.io/v1", "ProviderRevision", "aws-1", true)),
			want: held("Crossplane (ProviderRevision aws-1) owns it; take it out of this repository"),
		},
		"OfAnotherSync": {
			reason: "Two syncs would prune each other's objects.", terms: AdoptAll,
			live: unmarked(others),
			want: held("the Headgate sync team.shop owns it, and its inventory still holds it; take it out of there, or out of this repository"),
		},
		"LeftByAnotherSync": {
			reason: "A sync that was renamed left its objects behind.", terms: AdoptAll,
			seen: Observed{Left: map[manifest.ID]bool{id: true}},
			live: unmarked(others), want: want{Update, "", "it is taken over from the Headgate sync team.shop"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.seen.Inventory.Sync, tc.seen.Kinds, tc.seen.Terms.Adoption = sync, core, tc.terms
			tc.seen.Objects = map[manifest.ID]*metav1.PartialObjectMetadata{id: tc.live}
			asked, err := AskFor(render.Desired{Objects: []render.Object{o}}, tc.seen.Inventory)
			if err != nil {
				t.Fatal(err)
			}
			tc.seen.Trials = map[manifest.ID]Trial{}
			for _, a := range tc.seen.Doubtful(asked, false) { // what an observer does
				tc.seen.Trials[a.ID] = Trial{Live: other, After: u}
			}
			p, err := Compute(render.Desired{Objects: []render.Object{o}}, tc.seen)
			if err != nil {
				t.Fatal(err)
			}
			s := p.Steps[0]
			if diff := cmp.Diff(tc.want, want{s.Action, s.Guard, s.Reason}); diff != "" {
				t.Errorf("%s\nCompute(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTakenFields(t *testing.T) {
	was := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"versions": []any{map[string]any{"name": "v1", "served": false}}, "scope": "x"}, "specs": "a",
	}}
	will := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"versions": []any{map[string]any{"name": "v1", "served": true}}, "scope": "y"}, "specs": "b",
	}}
	s := Step{Action: Update, Live: was, After: will, Takes: []Taken{{"kubectl-edit", []string{"spec.versions"}}, {"helm", []string{"spec.scope"}}}}
	want := []Change{
		{Path: "spec.scope", From: `"x"`, To: `"y"`, By: "helm"},
		{Path: "spec.versions[v1].served", From: "false", To: "true", By: "kubectl-edit"},
		{Path: "specs", From: `"a"`, To: `"b"`},
	}
	if diff := cmp.Diff(want, s.Changes()); diff != "" {
		t.Errorf("Who did it is said of every path, also below the one that they hold.\nChanges() (-want +got):\n%s", diff)
	}
}

func TestSyncOf(t *testing.T) {
	s := Sync{Namespace: "team", Name: "shop.example.org"}
	if got, ok := SyncOf(s.Key()); !ok || got != s {
		t.Errorf("SyncOf(%q) = %v, %v; want %v", s.Key(), got, ok, s)
	}
	long := Sync{Namespace: "team", Name: "a-name-that-is-so-long-that-it-does-not-fit-into-the-value-of-a-label"}
	if got, ok := SyncOf(long.Key()); ok {
		t.Errorf("SyncOf(%q) = %v; the end of that key is a hash", long.Key(), got)
	}
}

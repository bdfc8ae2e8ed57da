package ownership_test

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// unmarked returns an object that no sync ever changed.
func unmarked(edit ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "u", Labels: map[string]string{}, Annotations: map[string]string{},
	}}
	for _, e := range edit {
		e(m)
	}
	return m
}

func ownedBy(apiVersion, kind, name string, controller bool) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) {
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, Controller: &controller})
	}
}

func TestForeign(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(*metav1.PartialObjectMetadata)
		want   ownership.Claim
	}{
		"Nobody":  {"Other labels are not marks.", given.Labelled("app", "a"), ownership.Claim{}},
		"Another": {"Another Headgate sync has a mark.", given.Labelled(inventory.SyncLabel, "team.shop"), ownership.Claim{By: "the Headgate sync team.shop", Sync: "team.shop"}},
		"CliUtils": {
			"kpt and other tools with cli-utils have an annotation.",
			given.Annotated(inventory.InventoryAnnotation, "1234"), ownership.Claim{By: "the inventory 1234"},
		},
		"Kustomization": {
			"Flux has labels with the Kustomization.",
			given.Both(given.Labelled("kustomize.toolkit.fluxcd.io/name", "apps"), given.Labelled("kustomize.toolkit.fluxcd.io/namespace", "flux-system")),
			ownership.Claim{By: "the Flux Kustomization flux-system/apps"},
		},
		"HelmRelease": {
			"Flux has labels with the HelmRelease.",
			given.Both(given.Labelled("helm.toolkit.fluxcd.io/name", "app"), given.Labelled("helm.toolkit.fluxcd.io/namespace", "prod")),
			ownership.Claim{By: "the Flux HelmRelease prod/app"},
		},
		"ResourceSet": {
			"The flux-operator has labels.",
			given.Both(given.Labelled("resourceset.fluxcd.controlplane.io/name", "app"), given.Labelled("resourceset.fluxcd.controlplane.io/namespace", "prod")),
			ownership.Claim{By: "the Flux ResourceSet prod/app"},
		},
		"FluxWithoutLabels": {
			"Removing the labels does not stop Flux.",
			given.ManagedBy("kustomize-controller", metav1.ManagedFieldsOperationApply, "{}"), ownership.Claim{By: "Flux (field manager kustomize-controller)"},
		},
		"Argo": {
			"Argo CD has an annotation with the application and the object.",
			given.Annotated("argocd.argoproj.io/tracking-id", "app:/ConfigMap:default/a"), ownership.Claim{By: "the Argo CD application app"},
		},
		"ArgoOnCRD": {
			"Argo CD does not mark CRDs; only its field manager shows that it applied them.",
			given.ManagedBy("argocd-controller", metav1.ManagedFieldsOperationApply, "{}"), ownership.Claim{By: "Argo CD (field manager argocd-controller)"},
		},
		"ArgoClientSide": {
			"Without server-side apply, Argo CD also leaves only its field manager.",
			given.ManagedBy("argocd-application-controller", metav1.ManagedFieldsOperationUpdate, "{}"), ownership.Claim{By: "Argo CD (field manager argocd-application-controller)"},
		},
		"Helm": {
			"A release.",
			given.Both(given.Annotated("meta.helm.sh/release-name", "app"), given.Annotated("meta.helm.sh/release-namespace", "prod")), ownership.Claim{By: "the Helm release prod/app"},
		},
		"HelmLabel":   {"Some charts only set the label.", given.Labelled("app.kubernetes.io/managed-by", "Helm"), ownership.Claim{By: "Helm"}},
		"NotHelm":     {"The label may have other values.", given.Labelled("app.kubernetes.io/managed-by", "us"), ownership.Claim{}},
		"ConfigSync":  {"Config Sync has an annotation.", given.Annotated("configsync.gke.io/manager", ":root"), ownership.Claim{By: "Config Sync :root"}},
		"ConfigSync2": {"a label,", given.Both(given.Labelled("configsync.gke.io/sync-name", "r"), given.Labelled("configsync.gke.io/sync-namespace", "n")), ownership.Claim{By: "Config Sync n/r"}},
		"ConfigSync3": {"Config Sync has an older annotation, too.", given.Annotated("configmanagement.gke.io/managed", "enabled"), ownership.Claim{By: "Config Sync"}},
		"Unmanaged":   {"Config Sync's annotation may also mean that it does not manage the object.", given.Annotated("configmanagement.gke.io/managed", "disabled"), ownership.Claim{}},
		"Kapp":        {"kapp has a label.", given.Labelled("kapp.k14s.io/app", "1700"), ownership.Claim{By: "the kapp app 1700"}},
		"KappMark":    {"kapp has an annotation, too.", given.Annotated("kapp.k14s.io/identity", "v1;default//ConfigMap/a;v1"), ownership.Claim{By: "the kapp app"}},
		"ApplySet":    {"kubectl apply --applyset has a label.", given.Labelled("applyset.kubernetes.io/part-of", "applyset-x-v1"), ownership.Claim{By: "the apply set applyset-x-v1"}},
		"Sveltos":     {"Sveltos.", given.Labelled("projectsveltos.io/cluster-summary-name", "a"), ownership.Claim{By: "the Sveltos profile a"}},
		"Fleet":       {"Fleet has an annotation.", given.Annotated("objectset.rio.cattle.io/id", "b"), ownership.Claim{By: "the Fleet bundle b"}},
		"FleetHash":   {"Fleet has a label, too.", given.Labelled("objectset.rio.cattle.io/hash", "123"), ownership.Claim{By: "the Fleet bundle"}},
		"OLM":         {"OLM has a label.", given.Labelled("olm.managed", "true"), ownership.Claim{By: "OLM"}},
		"OLMOperator": {"OLM has a label whose key contains the operator's name.", given.Labelled("operators.coreos.com/etcd.prod", ""), ownership.Claim{By: "OLM"}},
		"Revision": {
			"Crossplane reverts changes to the objects of a package revision, so they are never adopted.",
			ownedBy("pkg.crossplane.io/v1", "ProviderRevision", "aws-1", true), ownership.Claim{By: "Crossplane (ProviderRevision aws-1)", Final: true},
		},
		"Definition": {
			"An MRD owns its CRD.",
			ownedBy("apiextensions.crossplane.io/v1alpha1", "ManagedResourceDefinition", "a", false), ownership.Claim{By: "Crossplane (ManagedResourceDefinition a)", Final: true},
		},
		"Composed": {
			"A composite resource owns its resources.",
			given.Both(given.Labelled("crossplane.io/composite", "x"), ownedBy("example.org/v1", "XApp", "x", true)), ownership.Claim{By: "Crossplane (XApp x)", Final: true},
		},
		"Composite": {"A composite resource also has the label, but no owner.", given.Labelled("crossplane.io/composite", "a"), ownership.Claim{}},
		"CrossplanesManager": {
			"The CRD of an MRD may lack its owner references.",
			given.ManagedBy("apiextensions.crossplane.io/managed", metav1.ManagedFieldsOperationApply, "{}"), ownership.Claim{By: "Crossplane (field manager apiextensions.crossplane.io/managed)", Final: true},
		},
		"FluxAndCrossplane": {
			"Of several owners, the one that cannot be replaced counts.",
			given.Both(given.Labelled("kustomize.toolkit.fluxcd.io/name", "apps"), ownedBy("pkg.crossplane.io/v1", "ProviderRevision", "aws-1", true)),
			ownership.Claim{By: "Crossplane (ProviderRevision aws-1)", Final: true},
		},
		"PackageLabel": {"An object of a package has a label.", given.Labelled("pkg.crossplane.io/revision", "aws-1"), ownership.Claim{By: "the Crossplane package revision aws-1", Final: true}},
		"OurOwnLabel": {
			"Manifests that Helm rendered carry its label into the commit, but Headgate applied them.",
			given.Both(given.Labelled("app.kubernetes.io/managed-by", "Helm"), given.ManagedBy(inventory.Manager, metav1.ManagedFieldsOperationApply, `{"f:metadata":{"f:labels":{"f:app.kubernetes.io/managed-by":{}}}}`)),
			ownership.Claim{},
		},
		"OurOwnAnnotation": {
			"An annotation of Helm in the commit does not make Helm the owner either.",
			given.Both(given.Annotated("meta.helm.sh/release-name", "app"), given.ManagedBy(inventory.Manager, metav1.ManagedFieldsOperationApply, `{"f:metadata":{"f:annotations":{"f:meta.helm.sh/release-name":{}}}}`)),
			ownership.Claim{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ownership.Of(unmarked(tc.edit), given.Sync, "")
			got.Tool, got.Namespace, got.Name = "", "", "" // see TestStillReconciled
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nForeign(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAdoption(t *testing.T) {
	u, other := given.ConfigMap("a"), given.ConfigMap("a")
	other.Object["data"] = map[string]any{"k": "other"}
	id := manifest.IDOf(u)
	o := given.Wanted(t, u)
	flux := given.Labelled("kustomize.toolkit.fluxcd.io/name", "apps")
	others := given.Labelled(inventory.SyncLabel, "team.shop")
	ours := map[manifest.ID]inventory.Entry{id: {UID: "u", Digest: given.Sync.Digest(o)}}

	type want struct {
		Action plan.Action
		Guard  plan.GuardName
		Reason string
	}
	update := want{Action: plan.Update}
	held := func(reason string) want { return want{plan.Hold, guard.NotOurs, reason} }
	cases := map[string]struct {
		reason string
		terms  facts.Adoption
		seen   facts.Observed
		live   *metav1.PartialObjectMetadata
		want   want
	}{
		"Unowned": {
			reason: "By default, objects without an owner are adopted.",
			live:   unmarked(), want: update,
		},
		"UnownedRefused": {
			reason: "A sync that does not adopt leaves existing objects alone.", terms: facts.AdoptNone,
			live: unmarked(), want: held("it was there before, and this sync does not adopt (adoption: Refuse); delete it, or set adoption: AdoptIfUnowned"),
		},
		"OursWithoutMarks": {
			reason: "An applied object stays ours after the label is removed.", terms: facts.AdoptNone,
			seen: facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Entries: ours}}}, live: unmarked(), want: update,
		},
		"OursInANewPlace": {
			reason: "In a restored cluster, applied objects have new UIDs and our marks.", terms: facts.AdoptNone,
			seen: facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Entries: ours}}}, live: given.Live(u, "restored"), want: update,
		},
		"RecreatedByHand": {
			reason: "An object that replaced ours belongs to its creator.", terms: facts.AdoptNone,
			seen: facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Entries: ours}}}, live: unmarked(func(m *metav1.PartialObjectMetadata) { m.UID = "other" }),
			want: held("it was there before, and this sync does not adopt (adoption: Refuse); delete it, or set adoption: AdoptIfUnowned"),
		},
		"OfFlux": {
			reason: "By default, objects of other tools are not changed, and the hold names the way out.",
			live:   unmarked(flux), want: held("the Flux Kustomization apps owns it; take it out of there, or out of this repository, or set adoption: Adopt"),
		},
		"OfFluxAdopted": {
			reason: "A sync that adopts takes the object over, and the step names the previous owner.", terms: facts.AdoptAll,
			live: unmarked(flux), want: want{plan.Update, "", "Headgate takes it over from the Flux Kustomization apps"},
		},
		"OfFluxAndOurs": {
			reason: "The object was adopted before, and Headgate does not remove the other tool's marks.", terms: facts.AdoptAll,
			seen: facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Entries: ours}}}, live: given.Live(u, "u", flux), want: update,
		},
		"OfCrossplane": {
			reason: "Crossplane would revert the object.", terms: facts.AdoptAll,
			live: unmarked(ownedBy("pkg.crossplane.io/v1", "ProviderRevision", "aws-1", true)),
			want: held("Crossplane (ProviderRevision aws-1) owns it; take it out of this repository"),
		},
		"OfAnotherSync": {
			reason: "Two syncs would prune each other's objects.", terms: facts.AdoptAll,
			live: unmarked(others),
			want: held("the Headgate sync team.shop owns it, and its inventory still holds it; take it out of there, or out of this repository"),
		},
		"LeftByAnotherSync": {
			reason: "A renamed sync left its objects behind.", terms: facts.AdoptAll,
			seen: facts.Observed{Live: facts.Live{Left: map[manifest.ID]bool{id: true}}},
			live: unmarked(others), want: want{plan.Update, "", "Headgate takes it over from the Headgate sync team.shop"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.seen.Inventory.Sync, tc.seen.Kinds, tc.seen.Terms.Adoption = given.Sync, given.Kinds, tc.terms
			tc.seen.Objects = map[manifest.ID]*metav1.PartialObjectMetadata{id: tc.live}
			tc.seen.Trials = map[manifest.ID]facts.Trial{}
			seen, err := demand.Ask(tc.seen, render.Desired{Objects: []render.Object{o}})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range seen.Doubtful(false) { // like an observer
				seen.Trials[a.ID] = facts.Trial{Live: other, After: u}
			}
			p, err := draft.Compute(seen, guard.Guarding{}.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			s := p.Steps[0]
			if diff := cmp.Diff(tc.want, want{s.Action, s.Guard, words.Of(s.Reason)}); diff != "" {
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
	s := plan.Step{Action: plan.Update, Write: plan.Write{Live: was, After: will, Takes: []diff.Taken{{Manager: "kubectl-edit", Fields: []string{"spec.versions"}}, {Manager: "helm", Fields: []string{"spec.scope"}}}}}
	want := []diff.Change{
		{Path: "spec.scope", From: `"x"`, To: `"y"`, By: "helm"},
		{Path: "spec.versions[v1].served", From: "false", To: "true", By: "kubectl-edit"},
		{Path: "specs", From: `"a"`, To: `"b"`},
	}
	if diff := cmp.Diff(want, s.Changes()); diff != "" {
		t.Errorf("Every path names its writer, also below the owned one.\nChanges() (-want +got):\n%s", diff)
	}
}

func TestSyncOf(t *testing.T) {
	s := inventory.Sync{Namespace: "team", Name: "shop.example.org"}
	if got, ok := inventory.SyncOf(s.Key()); !ok || got != s {
		t.Errorf("SyncOf(%q) = %v, %v; want %v", s.Key(), got, ok, s)
	}
	long := inventory.Sync{Namespace: "team", Name: "a-name-that-is-so-long-that-it-does-not-fit-into-the-value-of-a-label"}
	if got, ok := inventory.SyncOf(long.Key()); ok {
		t.Errorf("SyncOf(%q) = %v; the end of that key is a hash", long.Key(), got)
	}
}

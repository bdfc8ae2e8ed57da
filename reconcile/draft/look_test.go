package draft_test

import (
	"testing"
	"time"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// theirs returns an object that another tool applied.
func theirs(u *unstructured.Unstructured, edit ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	m := given.Live(u, "u")
	m.Labels, m.Annotations = map[string]string{}, map[string]string{}
	for _, e := range edit {
		e(m)
	}
	return m
}

func byFlux(name string) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) {
		m.Labels["kustomize.toolkit.fluxcd.io/name"] = name
		m.Labels["kustomize.toolkit.fluxcd.io/namespace"] = "flux-system"
	}
}

func deleting(m *metav1.PartialObjectMetadata) {
	at := metav1.NewTime(time.Unix(1, 0))
	m.DeletionTimestamp = &at
}

func TestLook(t *testing.T) {
	u := given.ConfigMap("a")
	id, digest := manifest.IDOf(u), given.Sync.Digest(given.Wanted(t, u))
	other := given.ConfigMap("other")
	differing := facts.Trial{
		Live:  &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"k": "x"}}},
		After: &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"k": "v"}}},
	}
	with := func(edit func(*facts.Trial)) facts.Trial {
		made := differing
		edit(&made)
		return made
	}
	stale := with(func(t *facts.Trial) { t.Stale = true })
	missing := with(func(t *facts.Trial) { t.Missing = true })
	edited := with(func(t *facts.Trial) { t.TakenBy = []diff.Taken{{Manager: "kubectl-edit", Fields: []string{"data.k"}}} })
	both := with(func(t *facts.Trial) { t.Stale, t.TakenBy = true, edited.TakenBy })
	seenBefore := map[manifest.ID]inventory.Entry{id: {UID: "u", Digest: digest}}

	type step struct {
		Action, Would plan.Action
		Cause         plan.Cause
		Takes         []string
	}
	type check struct {
		Would      plan.Action
		By, Reason string
	}
	kept := []step{{Action: plan.Keep, Cause: plan.Commit}}
	drifted := []step{{Action: plan.Keep, Would: plan.Update, Cause: plan.Drift, Takes: []string{"kubectl-edit"}}}
	const flux = "the Flux Kustomization flux-system/apps"
	cases := map[string]struct {
		reason string
		entry  map[manifest.ID]inventory.Entry
		live   *metav1.PartialObjectMetadata
		trial  *facts.Trial
		steps  []step
		checks []check
	}{
		"AsWanted": {
			reason: "Objects of Flux belong to Flux, so they are neither held nor adopted.",
			live:   theirs(u, byFlux("apps")), steps: kept,
		},
		"Absent": {
			reason: "The tool that applies the other objects will also apply a missing one.",
			checks: []check{{plan.Create, flux, flux + " has not applied it"}},
		},
		"Deleted": {
			reason: "A missing object that was up to date before was deleted.",
			entry:  seenBefore, steps: []step{{Action: plan.Keep, Would: plan.Create, Cause: plan.Drift}},
		},
		"ChangedAndAbsent": {
			reason: "Nobody knows whether an object of a new commit ever existed.",
			entry:  map[manifest.ID]inventory.Entry{}, checks: []check{{plan.Create, flux, flux + " has not applied it"}},
		},
		"Behind": {
			reason: "The applier has not yet updated its own field.",
			live:   theirs(u, byFlux("apps")), trial: &stale,
			checks: []check{{plan.Update, flux, flux + " has not applied the version of this commit"}},
		},
		"PutBackByTheApplier": {
			reason: "If the applier writes an older value, it is late and not an editor.",
			entry:  seenBefore, live: theirs(u, byFlux("apps")), trial: &stale,
			checks: []check{{plan.Update, flux, flux + " has not applied the version of this commit"}},
		},
		"Edited": {
			reason: "A hand edit is drift, with the name of the manager.",
			live:   theirs(u, byFlux("apps")), trial: &edited, steps: drifted,
		},
		"EditedAndBehind": {
			reason: "One field is out of date and another was edited, and both statuses must show that.",
			live:   theirs(u, byFlux("apps")), trial: &both, steps: drifted,
			checks: []check{{plan.Update, flux, flux + " has not applied the version of this commit"}},
		},
		"FieldRemoved": {
			reason: "A removed field has no manager; its earlier presence is the evidence.",
			entry:  seenBefore, live: theirs(u, byFlux("apps")), trial: &missing,
			steps: []step{{Action: plan.Keep, Would: plan.Update, Cause: plan.Drift}},
		},
		"FieldNeverSeen": {
			reason: "A field that was never observed may not have been applied yet.",
			live:   theirs(u, byFlux("apps")), trial: &missing,
			checks: []check{{plan.Update, flux, flux + " has not applied the version of this commit"}},
		},
		"Deleting": {
			reason: "An object that is being deleted counts as missing.",
			live:   theirs(u, byFlux("apps"), deleting),
			checks: []check{{plan.Create, flux, "it is being deleted"}},
		},
		"Refused": {
			reason: "No tool can apply an object that the API server refuses.",
			live:   theirs(u), trial: &facts.Trial{Err: given.ErrBoom},
			checks: []check{{plan.Update, flux, "boom"}},
		},
		"AnotherSync": {
			reason: "A Headgate sync that writes is an applier like any other, even one with the same name.",
			live:   given.Live(u, "u"), trial: &stale,
			checks: []check{{plan.Update, "the Headgate sync headgate-system.prod", "the Headgate sync headgate-system.prod has not applied the version of this commit"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := facts.Observed{
				Ground: facts.Ground{
					Stance:    plan.Looking,
					Kinds:     given.Kinds,
					Inventory: inventory.Inventory{Sync: given.Sync, Owner: render.OwnerHeadgate, Entries: tc.entry},
				},
				Live: facts.Live{
					Objects: map[manifest.ID]*metav1.PartialObjectMetadata{manifest.IDOf(other): theirs(other, byFlux("apps"))},
					Trials:  map[manifest.ID]facts.Trial{},
				},
			}
			if tc.live != nil {
				seen.Objects[id] = tc.live
			}
			if tc.trial != nil {
				seen.Trials[id] = *tc.trial
			}
			want := render.Desired{Owner: render.OwnerHeadgate, Objects: []render.Object{given.Wanted(t, u), given.Wanted(t, other)}}
			p, err := given.Compute(want, seen, guard.Guarding{}.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			if p.Writes() || p.Remembers() || len(p.Open()) > 0 {
				t.Errorf("%s\nNothing is ever written, nor remembered, nor asked.", tc.reason)
			}
			var steps []step
			for _, s := range p.Steps {
				if s.ID == id {
					steps = append(steps, step{s.Action, s.Would, s.Cause, s.TakesFrom()})
				}
			}
			if diff := cmp.Diff(tc.steps, steps); diff != "" {
				t.Errorf("%s\nsteps (-want +got):\n%s", tc.reason, diff)
			}
			var checks []check
			for _, e := range p.Effects {
				checks = append(checks, check{e.Would(), e.By, words.Of(e.Reason)})
				if e.Kind != plan.Apply || e.State != plan.Pending || e.On != id {
					t.Errorf("%s\nOnly time shows whether a tool is late: %v", tc.reason, e)
				}
			}
			if diff := cmp.Diff(tc.checks, checks); diff != "" {
				t.Errorf("%s\nchecks (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// The report names the tool that has to act.
func TestApplier(t *testing.T) {
	at := func(path string, u *unstructured.Unstructured) render.Object {
		o := given.Wanted(t, u)
		o.Origin.Path = path
		return o
	}
	wrote := func(manager, operation string) func(*metav1.PartialObjectMetadata) {
		return func(m *metav1.PartialObjectMetadata) {
			m.ManagedFields = []metav1.ManagedFieldsEntry{given.Wrote(manager, operation, `{"f:data":{"f:k":{}}}`)}
		}
	}
	none := func(*metav1.PartialObjectMetadata) {}
	cases := map[string]struct {
		reason string
		beside map[string]func(*metav1.PartialObjectMetadata) // by path
		want   string
	}{
		"Nobody": {"No object near it has an owner.", nil, ""},
		"Nearest": {
			"Two Kustomizations share a repository: the one in the same directory counts, although the other has more objects.",
			map[string]func(*metav1.PartialObjectMetadata){"infra/a.yaml": byFlux("infra"), "infra/b.yaml": byFlux("infra"), "apps/x/y.yaml": byFlux("apps")},
			"the Flux Kustomization flux-system/apps",
		},
		"Most": {
			"If several are equally near, the majority counts.",
			map[string]func(*metav1.PartialObjectMetadata){"apps/1.yaml": byFlux("one"), "apps/2.yaml": byFlux("two"), "apps/3.yaml": byFlux("two")},
			"the Flux Kustomization flux-system/two",
		},
		"MarksBeforeManagers": {
			"The mark of a tool has priority over a field manager.",
			map[string]func(*metav1.PartialObjectMetadata){"apps/a.yaml": wrote("kubectl", "Apply"), "b.yaml": given.Annotated("argocd.argoproj.io/tracking-id", "platform:/ConfigMap:default/b")},
			"the Argo CD application platform",
		},
		"KnownManager": {
			"Argo CD does not mark CRDs, but applies them under its own field manager.",
			map[string]func(*metav1.PartialObjectMetadata){"apps/a.yaml": wrote("argocd-controller", "Update")},
			"Argo CD (field manager argocd-controller)",
		},
		"AnyManager": {
			"A pipeline that runs kubectl leaves only its field manager.",
			map[string]func(*metav1.PartialObjectMetadata){"apps/a.yaml": wrote("kubectl-client-side-apply", "Update"), "apps/b.yaml": none},
			"the field manager kubectl-client-side-apply",
		},
		"NotCrossplane": {
			"Objects that Crossplane made are in no commit.",
			map[string]func(*metav1.PartialObjectMetadata){"apps/a.yaml": func(m *metav1.PartialObjectMetadata) {
				m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "aws-1"}}
			}, "b.yaml": byFlux("apps")},
			"the Flux Kustomization flux-system/apps",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := render.Desired{Owner: render.OwnerHeadgate, Objects: []render.Object{at("apps/a.yaml", given.ConfigMap("missing"))}}
			seen := facts.Observed{Ground: facts.Ground{Stance: plan.Looking, Kinds: given.Kinds, Inventory: inventory.Inventory{Sync: given.Sync}}, Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}}}
			for path, edit := range tc.beside {
				u := given.ConfigMap(path)
				want.Objects = append(want.Objects, at(path, u))
				seen.Objects[manifest.IDOf(u)] = theirs(u, edit)
			}
			p, err := given.Compute(want, seen)
			if err != nil || len(p.Effects) != 1 {
				t.Fatalf("%v, %v", p.Effects, err)
			}
			if got := p.Effects[0].By; got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// If another tool applies, Crossplane's effects are checked as usual, and a delay is reported once.
func TestLookBesideCrossplane(t *testing.T) {
	mrap := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "ManagedResourceActivationPolicy",
		"metadata": map[string]any{"name": "storage"}, "spec": map[string]any{"activate": []any{"*"}},
	}}
	definition := func(name string, active bool) render.DecidedDefinition {
		d := render.DecidedDefinition{Decision: activation.Decision{Definition: &catalogue.Definition{Name: name}, Active: active}}
		if active {
			d.Reasons = []activation.Activator{{Cause: activation.Matched, Policy: "storage"}}
		}
		return d
	}
	want := render.Desired{
		Owner: render.OwnerCrossplane, Objects: []render.Object{given.Wanted(t, mrap)}, Policies: []catalogue.Policy{{Name: "storage", Patterns: []catalogue.Pattern{{Glob: "buckets.example.org"}}}},
		Definitions: []render.DecidedDefinition{definition("buckets.example.org", true), definition("queues.example.org", false)},
		Findings:    []manifest.Finding{{Rule: catalogue.RuleUnsubstituted}, {Rule: "other"}},
	}
	seen := facts.Observed{
		Ground: facts.Ground{
			Stance:    plan.Looking,
			Inventory: inventory.Inventory{Sync: given.Sync, Owner: render.OwnerCrossplane},
			Kinds:     map[schema.GroupKind]plan.Kind{crossplane.MRAP("").GroupKind(): {Version: "v1alpha1"}},
		},
		Upstream: facts.Upstream{Definitions: map[string]crossplane.LiveDefinition{"buckets.example.org": {}, "queues.example.org": {Active: true}}},
	}
	p, err := given.Compute(want, seen, guard.Guarding{}.Guards()...)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range p.Effects {
		got = append(got, string(e.State)+" "+e.On.String()+": "+words.Of(e.Reason))
	}
	if diff := cmp.Diff([]string{
		"pending ManagedResourceActivationPolicy.apiextensions.crossplane.io/storage: no tool has applied it, and its owner is not known",
		"pending ManagedResourceDefinition.apiextensions.crossplane.io/buckets.example.org: Crossplane has not activated it yet",
	}, got); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"queues.example.org"}, p.Retained); diff != "" {
		t.Errorf("An active definition without a policy is retained (-want +got):\n%s", diff)
	}
	if len(p.Want.Findings) != 1 || len(want.Findings) != 2 {
		t.Errorf("That nothing is substituted is not for us to say here: %v", p.Want.Findings)
	}

	// Without Crossplane, a retained definition is recognized by its CRD alone.
	want.Owner, want.Objects = render.OwnerHeadgate, nil
	left := given.CRD("queues", "Queue")
	seen.Objects = map[manifest.ID]*metav1.PartialObjectMetadata{manifest.IDOf(left): theirs(left)}
	if p, err = given.Compute(want, seen); err != nil || !cmp.Equal(p.Retained, []string{"queues.example.org"}) || len(p.Steps) > 0 {
		t.Errorf("retained %v, steps %v, %v", p.Retained, p.Steps, err)
	}
}

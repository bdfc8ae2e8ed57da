package draft_test

import (
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestCrossplaneMakesTheCRDs(t *testing.T) {
	want := given.Desired(t, render.OwnerCrossplane, map[string]string{"policy.yaml": given.Policy("team", given.Buckets)})
	_, got := given.Steps(t, want, given.Seen(facts.Upstream{}), guard.Guarding{}.Guards()...)
	for name, s := range got {
		if s.ID.IsCRD() {
			t.Errorf("%s: a CRD that an MRD makes is Crossplane's to write", name)
		}
		sent, err := s.Object()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok, _ := unstructured.NestedString(sent.Object, "spec", "state"); ok {
			t.Errorf("%s: spec.state is never applied: dropping it later means Inactive, which the API refuses for ever", name)
		}
	}
	if len(got) != 4 {
		t.Errorf("%d steps, want 3 definitions and a policy: %v", len(got), got)
	}
	if s := got["ManagedResourceDefinition "+given.Buckets]; s.Activates {
		t.Error("the policy activates it: that is Crossplane's to do")
	}
}

func TestNoSafeStartIsActivated(t *testing.T) {
	want := given.Desired(t, render.OwnerCrossplane, map[string]string{"package/crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: provider-toy\n"})
	_, got := given.Steps(t, want, given.Seen(facts.Upstream{}), guard.Guarding{}.Guards()...)
	if s := got["ManagedResourceDefinition "+given.Buckets]; !s.Activates || s.Action != plan.Create {
		t.Errorf("without safe-start everything is Active, by a patch beside the apply: %+v", s)
	}
	live := given.Seen(facts.Upstream{Definitions: map[string]crossplane.LiveDefinition{given.Buckets: {Active: true}}})
	_, got = given.Steps(t, want, live, guard.Guarding{}.Guards()...)
	if s := got["ManagedResourceDefinition "+given.Buckets]; s.Activates {
		t.Error("what is Active already needs no patch")
	}
}

func TestInstalledByCrossplane(t *testing.T) {
	// The package manager has installed the package, so the commit's copy is only a catalogue.
	inCommit := given.Desired(t, render.OwnerCrossplane, map[string]string{"policy.yaml": given.Policy("team", given.Buckets), "provider.yaml": given.Provider})
	_, got := given.Steps(t, inCommit, given.Seen(facts.Upstream{}), guard.Guarding{}.Guards()...)
	if _, ok := got["ManagedResourceDefinition "+given.Buckets]; ok || len(got) != 2 {
		t.Errorf("only the Provider installs the definitions: %v", got)
	}

	inCluster := given.Desired(t, render.OwnerCrossplane, nil)
	seen := given.Seen(facts.Upstream{})
	isController := true
	seen.Objects[crossplane.MRD(given.Buckets)] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "provider-toy-abc", Controller: &isController},
	}}}
	seen.Inventory.Entries = map[manifest.ID]inventory.Entry{crossplane.MRD(given.Buckets): {UID: "u"}}
	p, got := given.Steps(t, inCluster, seen, guard.Guarding{}.Guards()...)
	if s := got["ManagedResourceDefinition "+given.Buckets]; s.Action != plan.Keep || s.Guard != guard.Installed {
		t.Errorf("a revision took it over: %+v", s)
	}
	if diff := cmp.Diff([]manifest.ID{crossplane.MRD(given.Buckets)}, p.Gone); diff != "" {
		t.Errorf("what Crossplane took over leaves the inventory (-want +got):\n%s", diff)
	}
}

// converts is a definition with two versions and a conversion webhook without a service.
const converts = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: buckets.example.org
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  scope: Cluster
  conversion: {strategy: Webhook, webhook: {clientConfig: {service: {path: /convert}}, conversionReviewVersions: [v1]}}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
`

func TestUnsettledConversion(t *testing.T) {
	files := map[string]string{"package/crds/buckets.yaml": converts, "policy.yaml": given.Policy("team", given.Buckets)}
	isController := true
	byRevision := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "provider-toy-abc", Controller: &isController},
	}}}
	cases := map[string]struct {
		reason string
		policy string
		up     facts.Upstream
		live   *metav1.PartialObjectMetadata
		want   plan.Action
		fails  bool
	}{
		"Active":   {reason: "The API server would refuse the CRD that Crossplane makes.", policy: given.Buckets, want: plan.Create, fails: true},
		"Inactive": {reason: "An inactive definition has no CRD that needs a webhook.", policy: "queues.*", want: plan.Create},
		"ActiveInTheCluster": {
			reason: "An active definition stays active, whatever the policies name.", policy: "queues.*", want: plan.Create, fails: true,
			up: facts.Upstream{Definitions: map[string]crossplane.LiveDefinition{given.Buckets: {Active: true}}},
		},
		"Installed": {reason: "The package manager has completed the webhook.", policy: given.Buckets, live: byRevision, want: plan.Keep},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files["policy.yaml"] = given.Policy("team", tc.policy)
			seen := given.Seen(tc.up)
			if tc.live != nil {
				seen.Objects[crossplane.MRD(given.Buckets)] = tc.live
			}
			_, got := given.Steps(t, given.Desired(t, render.OwnerCrossplane, files), seen, guard.Guarding{}.Guards()...)
			if s := got["ManagedResourceDefinition "+given.Buckets]; s.Action != tc.want || (s.Err != nil) != tc.fails {
				t.Errorf("%s\n%s, %v", tc.reason, s.Action, s.Err)
			}
		})
	}
}

func TestHandover(t *testing.T) {
	// Headgate made the CRDs so far, and now Crossplane does: they are released, not pruned.
	want := given.Desired(t, render.OwnerCrossplane, map[string]string{"policy.yaml": given.Policy("team", given.Buckets)})
	seen := given.Seen(facts.Upstream{})
	made := given.CRD("buckets", "Bucket")
	seen.Inventory.Owner = render.OwnerHeadgate
	seen.Inventory.Entries = map[manifest.ID]inventory.Entry{plan.CRD(given.Buckets): {UID: "u"}}
	seen.Objects[plan.CRD(given.Buckets)] = given.Live(made, "u")
	p, got := given.Steps(t, want, seen, guard.Guarding{OwnerIsSet: true}.Guards()...)
	for name, s := range got {
		if s.Action == plan.Prune || s.Would == plan.Prune {
			t.Errorf("%s: a handover never prunes: %+v", name, s)
		}
	}
	if diff := cmp.Diff([]manifest.ID{plan.CRD(given.Buckets)}, p.Gone); diff != "" {
		t.Errorf("released (-want +got):\n%s", diff)
	}
	if !p.Remembers() {
		t.Error("the new owner has to be recorded")
	}
}

func TestOwnerDisagrees(t *testing.T) {
	want := given.Desired(t, render.OwnerHeadgate, map[string]string{"policy.yaml": given.Policy("team", given.Buckets)})
	_, got := given.Steps(t, want, given.Seen(facts.Upstream{}), guard.Guarding{}.Guards()...)
	if s := got["CustomResourceDefinition "+given.Buckets]; s.Action != plan.Hold || s.Guard != "owner" {
		t.Errorf("the record says Headgate, the cluster runs Crossplane: a person decides: %+v", s)
	}
	if s := got["ManagedResourceActivationPolicy team"]; s.Action != plan.Hold || s.Guard != "owner" {
		t.Errorf("a policy would have Crossplane make the CRDs that we make: %+v", s)
	}
	_, got = given.Steps(t, want, given.Seen(facts.Upstream{}), guard.Guarding{OwnerIsSet: true}.Guards()...)
	if s := got["CustomResourceDefinition "+given.Buckets]; s.Action != plan.Create {
		t.Errorf("a person decided: %+v", s)
	}

	// A CRD is not deleted while it is unclear who makes it.
	removed := given.Seen(facts.Upstream{})
	removed.Inventory.Entries = map[manifest.ID]inventory.Entry{plan.CRD("old.example.org"): {UID: "u"}}
	removed.Objects[plan.CRD("old.example.org")] = given.Live(given.CRD("old", "Old"), "u")
	removed.Answers = question.Answers{question.Dependents{Of: plan.CRD("old.example.org")}: question.Counted{}}
	for isSet, action := range map[bool]plan.Action{false: plan.Hold, true: plan.Prune} {
		_, got = given.Steps(t, want, removed, guard.Guarding{OwnerIsSet: isSet}.Guards()...)
		if s := got["CustomResourceDefinition old.example.org"]; s.Action != action && s.Guard != plan.Unfinished { // the policy is held
			t.Errorf("the prune of a CRD, crdOwner set: %t: %s %q, want %s", isSet, s.Action, s.Guard, action)
		}
	}
}

func TestFlood(t *testing.T) {
	everything := map[string]crossplane.LivePolicy{"default": {Patterns: []string{"*"}}}
	elsewhere := map[string]crossplane.LivePolicy{"default": {Patterns: []string{"*.other.example.com"}}}
	cases := map[string]struct {
		reason string
		files  map[string]string
		up     facts.Upstream
		trials map[manifest.ID]facts.Trial
		owned  []manifest.ID
		step   string
		most   int
		want   plan.Action
	}{
		"Policy": {
			reason: "A policy that activates few definitions is allowed.",
			files:  map[string]string{"policy.yaml": given.Policy("team", "*")}, step: "ManagedResourceActivationPolicy team", most: 3, want: plan.Create,
		},
		"PolicyOfTooMuch": {
			reason: "Nobody can review so many activations at once.",
			files:  map[string]string{"policy.yaml": given.Policy("team", "*")}, step: "ManagedResourceActivationPolicy team", most: 2, want: plan.Hold,
		},
		"PolicyOfWhatIsActive": {
			reason: "A definition that is already active does not count.",
			files:  map[string]string{"policy.yaml": given.Policy("team", "*")}, step: "ManagedResourceActivationPolicy team", most: 2, want: plan.Create,
			up: facts.Upstream{Definitions: map[string]crossplane.LiveDefinition{given.Buckets: {Active: true}}},
		},
		"PolicyOfWhatThisSyncMade": {
			reason: "In a handover, the CRDs already exist, so nothing is activated.",
			files:  map[string]string{"policy.yaml": given.Policy("team", "*")}, step: "ManagedResourceActivationPolicy team", most: 2, want: plan.Create,
			owned: []manifest.ID{plan.CRD(given.Buckets)},
		},
		"ProviderUnderDefault": {
			reason: "The default policy would activate all of a new provider before anyone can narrow it.",
			files:  map[string]string{"provider.yaml": given.Provider, "policy.yaml": given.Policy("team", given.Buckets)}, step: "Provider provider-toy", want: plan.Hold,
			up: facts.Upstream{Policies: everything},
		},
		"UnknownProviderUnderDefault": {
			reason: "The provider is held even if the commit does not contain its definitions.",
			files:  map[string]string{"other.yaml": strings.ReplaceAll(given.Provider, "provider-toy", "provider-other")}, step: "Provider provider-other", want: plan.Hold,
			up: facts.Upstream{Policies: everything},
		},
		"ProviderBesideAPolicyOfOthers": {
			reason: "A policy that names other definitions does not hold a provider.",
			files:  map[string]string{"provider.yaml": given.Provider}, step: "Provider provider-toy", want: plan.Create,
			up: facts.Upstream{Policies: elsewhere},
		},
		"ProviderUnderPausedDefault": {
			reason: "A paused policy activates nothing.",
			files:  map[string]string{"provider.yaml": given.Provider}, step: "Provider provider-toy", want: plan.Create,
			up: facts.Upstream{Policies: map[string]crossplane.LivePolicy{"default": {Patterns: []string{"*"}, Paused: true}}},
		},
		"DefaultNarrowedByTheCommit": {
			reason: "A policy that the same commit narrows is narrow before the package is installed.",
			files:  map[string]string{"provider.yaml": given.Provider, "policy.yaml": given.Policy("default", given.Buckets)}, step: "Provider provider-toy", want: plan.Create,
			up: facts.Upstream{Policies: everything},
		},
		"DefaultNarrowedInVain": {
			reason: "If the API server refuses the change, the policy stays as wide as before.",
			files:  map[string]string{"provider.yaml": given.Provider, "policy.yaml": given.Policy("default", given.Buckets)}, step: "Provider provider-toy", want: plan.Hold,
			up:     facts.Upstream{Policies: everything},
			trials: map[manifest.ID]facts.Trial{crossplane.MRAP("default"): {Err: given.ErrBoom}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := given.Seen(tc.up)
			seen.Trials = tc.trials
			seen.Inventory.Entries = map[manifest.ID]inventory.Entry{}
			for _, id := range tc.owned {
				seen.Inventory.Entries[id] = inventory.Entry{UID: "u"}
			}
			_, got := given.Steps(t, given.Desired(t, render.OwnerCrossplane, tc.files), seen, guard.Guarding{MaxActivations: tc.most}.Guards()...)
			s := got[tc.step]
			if s.Action != tc.want || tc.want == plan.Hold && s.Guard != "flood" {
				t.Errorf("%s\n%s: %s %q (%s), want %s", tc.reason, tc.step, s.Action, s.Guard, s.Reason, tc.want)
			}
		})
	}
}

func TestExpected(t *testing.T) {
	want := given.Desired(t, render.OwnerCrossplane, map[string]string{"policy.yaml": given.Policy("team", given.Buckets), "provider.yaml": given.Provider})
	toyProvider := manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "provider-toy"}
	cases := map[string]struct {
		reason string
		up     facts.Upstream
		want   map[string]plan.EffectState
	}{
		"NothingYet": {
			reason: "A missing object is still pending.",
			want:   map[string]plan.EffectState{given.Buckets: plan.Pending, "team": plan.Pending, "provider-toy": plan.Pending},
		},
		"AllHolds": {
			up: facts.Upstream{
				Definitions: map[string]crossplane.LiveDefinition{given.Buckets: {Active: true, Established: metav1.ConditionTrue}},
				Policies:    map[string]crossplane.LivePolicy{"team": {Healthy: metav1.ConditionTrue}},
				Packages:    map[manifest.ID]crossplane.LivePackage{toyProvider: {Installed: metav1.ConditionTrue, Healthy: metav1.ConditionTrue}},
			},
			want: map[string]plan.EffectState{given.Buckets: plan.Holds, "team": plan.Holds, "provider-toy": plan.Holds},
		},
		"AwaitingActivation": {
			reason: "A provider without active definitions runs nothing, which is correct.",
			up: facts.Upstream{
				Definitions: map[string]crossplane.LiveDefinition{given.Buckets: {Active: true, Established: metav1.ConditionUnknown}},
				Policies:    map[string]crossplane.LivePolicy{"team": {}},
				Packages:    map[manifest.ID]crossplane.LivePackage{toyProvider: {Installed: metav1.ConditionTrue, Healthy: metav1.ConditionFalse, Reason: "AwaitingActivation"}},
			},
			want: map[string]plan.EffectState{given.Buckets: plan.Pending, "team": plan.Pending, "provider-toy": plan.Holds},
		},
		"UpgradeNotSeen": {
			reason: "Until Crossplane has seen the new version, the status of a package is about the old one.",
			up: facts.Upstream{
				Definitions: map[string]crossplane.LiveDefinition{given.Buckets: {Active: true, Established: metav1.ConditionTrue}},
				Policies:    map[string]crossplane.LivePolicy{"team": {Healthy: metav1.ConditionTrue}},
				Packages:    map[manifest.ID]crossplane.LivePackage{toyProvider: {Installed: metav1.ConditionTrue, Healthy: metav1.ConditionTrue, Behind: true}},
			},
			want: map[string]plan.EffectState{given.Buckets: plan.Holds, "team": plan.Holds, "provider-toy": plan.Pending},
		},
		"UpgradeNotPulled": {
			up: facts.Upstream{
				Definitions: map[string]crossplane.LiveDefinition{given.Buckets: {Active: true, Established: metav1.ConditionTrue}},
				Policies:    map[string]crossplane.LivePolicy{"team": {Healthy: metav1.ConditionTrue}},
				Packages:    map[manifest.ID]crossplane.LivePackage{toyProvider: {Installed: metav1.ConditionFalse, Message: "cannot unpack package", Behind: true}},
			},
			want: map[string]plan.EffectState{given.Buckets: plan.Holds, "team": plan.Holds, "provider-toy": plan.Pending},
		},
		"UpgradeOfWhatIsPaused": {
			reason: "Crossplane ignores a paused package until a user resumes it.",
			up: facts.Upstream{
				Definitions: map[string]crossplane.LiveDefinition{given.Buckets: {Active: true, Established: metav1.ConditionTrue}},
				Policies:    map[string]crossplane.LivePolicy{"team": {Healthy: metav1.ConditionTrue}},
				Packages:    map[manifest.ID]crossplane.LivePackage{toyProvider: {Installed: metav1.ConditionTrue, Healthy: metav1.ConditionTrue, Behind: true, Paused: true}},
			},
			want: map[string]plan.EffectState{given.Buckets: plan.Holds, "team": plan.Holds, "provider-toy": plan.Broken},
		},
		"Blocked": {
			reason: "Crossplane uses one reason for blocked and pending; only the status distinguishes them.",
			up: facts.Upstream{
				Definitions: map[string]crossplane.LiveDefinition{given.Buckets: {Active: true, Established: metav1.ConditionFalse, Message: "unable to apply"}},
				Policies:    map[string]crossplane.LivePolicy{"team": {Healthy: metav1.ConditionUnknown, Message: "failed to activate 1 of 2"}},
				Packages:    map[manifest.ID]crossplane.LivePackage{toyProvider: {Installed: metav1.ConditionFalse, Message: "cannot unpack package"}},
			},
			want: map[string]plan.EffectState{given.Buckets: plan.Broken, "team": plan.Broken, "provider-toy": plan.Pending},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, _ := given.Steps(t, want, given.Seen(tc.up), guard.Guarding{}.Guards()...)
			got := map[string]plan.EffectState{}
			for _, e := range p.Effects {
				got[e.On.Name] = e.State
				if (e.State == plan.Holds) != e.Reason.None() {
					t.Errorf("%s: %s has the reason %q", e.On, e.State, e.Reason)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\neffects (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNothingIsExpectedOfWhatIsHeld(t *testing.T) {
	up := facts.Upstream{Definitions: map[string]crossplane.LiveDefinition{given.Buckets: {}, "queues.example.org": {}, "tables.example.org": {}}}
	names := func(p plan.Plan) (names []string) {
		for _, e := range p.Effects {
			names = append(names, e.On.Name)
		}
		return names
	}
	held, _ := given.Steps(t, given.Desired(t, render.OwnerCrossplane, map[string]string{"wide.yaml": given.Policy("wide", "*"), "team.yaml": given.Policy("team", given.Buckets)}), given.Seen(up), guard.Guarding{MaxActivations: 1}.Guards()...)
	if diff := cmp.Diff([]string{given.Buckets, "team"}, names(held)); diff != "" {
		t.Errorf("The pass does not wait for a definition that only a held policy activates (-want +got):\n%s", diff)
	}
	seen := given.Seen(up)
	seen.Objects[crossplane.MRAP("team")] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	seen.Trials = map[manifest.ID]facts.Trial{crossplane.MRAP("team"): {Err: given.ErrBoom}}
	refused, _ := given.Steps(t, given.Desired(t, render.OwnerCrossplane, map[string]string{"team.yaml": given.Policy("team", given.Buckets)}), seen, guard.Guarding{}.Guards()...)
	if len(names(refused)) > 0 {
		t.Errorf("Nor what a policy activates that the API server refuses: %v", names(refused))
	}
}

func TestActivates(t *testing.T) {
	want := given.Desired(t, render.OwnerCrossplane, map[string]string{"team.yaml": given.Policy("team", "*")})
	before := facts.Upstream{Definitions: map[string]crossplane.LiveDefinition{given.Buckets: {Active: true, Established: metav1.ConditionTrue}, "queues.example.org": {}}}
	after := facts.Upstream{Definitions: map[string]crossplane.LiveDefinition{given.Buckets: {Active: true, Established: metav1.ConditionTrue}, "queues.example.org": {Active: true, Established: metav1.ConditionTrue}}}
	p, _ := given.Steps(t, want, given.Seen(before), guard.Guarding{}.Guards()...)
	if n := facts.Activates(p, false); n != 2 {
		t.Errorf("queues and tables are going to be activated: %d", n)
	}
	now, _ := given.Steps(t, want, given.Seen(after), guard.Guarding{}.Guards()...)
	p.Effects = now.Effects
	if n := facts.Activates(p, true); n != 1 {
		t.Errorf("queues was activated, and tables not yet: %d", n)
	}
}

func TestCompareWhereCrossplaneMakesTheCRDs(t *testing.T) {
	compare := func(base, head map[string]string, how guard.Guarding) plan.Plan {
		t.Helper()
		want := given.Desired(t, render.OwnerCrossplane, head)
		seen, err := baseline.Baseline{Base: given.Desired(t, render.OwnerCrossplane, base), Sync: given.Sync}.Observe(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		p, _ := given.Steps(t, want, seen, how.Guards()...)
		return p
	}
	narrow, wide := map[string]string{"team.yaml": given.Policy("team", given.Buckets)}, map[string]string{"team.yaml": given.Policy("team", "*")}

	wider := compare(narrow, wide, guard.Guarding{MaxActivations: 2})
	if n := facts.Activates(wider, false); n != 2 || wider.Count(plan.Hold) > 0 {
		t.Errorf("Two more become active, and active ones do not count: %d, %d held", n, wider.Count(plan.Hold))
	}
	if held := compare(narrow, wide, guard.Guarding{MaxActivations: 1}); held.Count(plan.Hold) != 1 {
		t.Errorf("A flood is seen before the merge: %d held", held.Count(plan.Hold))
	}
	narrower := compare(wide, narrow, guard.Guarding{})
	if n := facts.Activates(narrower, false); n != 0 || len(narrower.Retained) != 2 || len(narrower.Notes) != 1 || !strings.Contains(narrower.Notes[0].Message, "before this commit") {
		t.Errorf("Nothing becomes active, and nothing goes: %d, %v, %v", n, narrower.Retained, narrower.Notes)
	}
	if slices.ContainsFunc(slices.Concat(wider.Effects, narrower.Effects), plan.Effect.Awaited) {
		t.Errorf("There is no Crossplane that could make anything of it: %v", wider.Effects)
	}
}

func TestUnexplained(t *testing.T) {
	want := given.Desired(t, render.OwnerCrossplane, map[string]string{"policy.yaml": given.Policy("team", given.Buckets)})
	p, _ := given.Steps(t, want, given.Seen(facts.Upstream{
		Definitions: map[string]crossplane.LiveDefinition{given.Buckets: {Active: true}, "queues.example.org": {Active: true}, "tables.example.org": {}},
		Policies:    map[string]crossplane.LivePolicy{"default": {Patterns: []string{"q*"}}, "team": {Patterns: []string{given.Buckets}}},
	}), guard.Guarding{}.Guards()...)
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0].Message, "queues.example.org") || !strings.Contains(p.Notes[0].Message, "default") {
		t.Errorf("an active definition that no policy in Git names has a name and a culprit: %+v", p.Notes)
	}
}

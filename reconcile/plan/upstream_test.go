package plan

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

const buckets = "buckets.example.org"

// toy is a repository with a package of three definitions, and more files.
func toy(more map[string]string) render.Input {
	files := fstest.MapFS{"package/crossplane.yaml": {Data: []byte(`apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata:
  name: provider-toy
spec:
  capabilities: [SafeStart]
`)}}
	for plural, kind := range map[string]string{"buckets": "Bucket", "queues": "Queue", "tables": "Table"} {
		files["package/crds/"+plural+".yaml"] = &fstest.MapFile{Data: []byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ` + plural + `.example.org
spec:
  group: example.org
  names:
    kind: ` + kind + `
    plural: ` + plural + `
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
`)}
	}
	for name, data := range more {
		files[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return render.Input{Files: files}
}

func mrap(name string, globs ...string) string {
	return `apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceActivationPolicy
metadata:
  name: ` + name + `
spec:
  activate: ["` + strings.Join(globs, `", "`) + `"]
`
}

const provider = `apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata:
  name: provider-toy
spec:
  package: registry.example.org/toy/provider-toy:v1.0.0
`

func desired(t *testing.T, owner render.Owner, files map[string]string) render.Desired {
	t.Helper()
	want, err := render.Render(toy(files), render.Options{Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// crossplane are the kinds that it serves.
var crossplane = map[string]Kind{
	"ManagedResourceDefinition":       {Version: "v1alpha1", Resource: "managedresourcedefinitions"},
	"ManagedResourceActivationPolicy": {Version: "v1alpha1", Resource: "managedresourceactivationpolicies"},
}

// seenWith is a cluster in which Crossplane runs.
func seenWith(up Upstream) Observed {
	seen := Observed{Inventory: Inventory{Sync: sync}, Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}, Natural: render.OwnerCrossplane, Upstream: up}
	seen.Kinds = map[schema.GroupKind]Kind{{Group: "pkg.crossplane.io", Kind: "Provider"}: {Version: "v1", Resource: "providers"}}
	for kind, k := range crossplane {
		seen.Kinds[schema.GroupKind{Group: "apiextensions.crossplane.io", Kind: kind}] = k
	}
	return seen
}

func steps(t *testing.T, want render.Desired, seen Observed, guards ...Guard) (Plan, map[string]Step) {
	t.Helper()
	p, err := Compute(want, seen, guards...)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Step{}
	for _, s := range p.Steps {
		byName[s.ID.Kind+" "+s.ID.Name] = s
	}
	return p, byName
}

func TestCrossplaneMakesTheCRDs(t *testing.T) {
	want := desired(t, render.OwnerCrossplane, map[string]string{"policy.yaml": mrap("team", buckets)})
	_, got := steps(t, want, seenWith(Upstream{}), Guarding{}.Guards()...)
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
	if s := got["ManagedResourceDefinition "+buckets]; s.Activates {
		t.Error("the policy activates it: that is Crossplane's to do")
	}
}

func TestNoSafeStartIsActivated(t *testing.T) {
	want := desired(t, render.OwnerCrossplane, map[string]string{"package/crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: provider-toy\n"})
	_, got := steps(t, want, seenWith(Upstream{}), Guarding{}.Guards()...)
	if s := got["ManagedResourceDefinition "+buckets]; !s.Activates || s.Action != Create {
		t.Errorf("without safe-start everything is Active, by a patch beside the apply: %+v", s)
	}
	live := seenWith(Upstream{Definitions: map[string]LiveDefinition{buckets: {Active: true}}})
	_, got = steps(t, want, live, Guarding{}.Guards()...)
	if s := got["ManagedResourceDefinition "+buckets]; s.Activates {
		t.Error("what is Active already needs no patch")
	}
}

func TestInstalledByCrossplane(t *testing.T) {
	// The package manager has the package: the commit's copy of it is a catalogue.
	inCommit := desired(t, render.OwnerCrossplane, map[string]string{"policy.yaml": mrap("team", buckets), "provider.yaml": provider})
	_, got := steps(t, inCommit, seenWith(Upstream{}), Guarding{}.Guards()...)
	if _, ok := got["ManagedResourceDefinition "+buckets]; ok || len(got) != 2 {
		t.Errorf("the Provider installs the definitions, nobody else does: %v", got)
	}

	inCluster := desired(t, render.OwnerCrossplane, nil)
	seen := seenWith(Upstream{})
	isController := true
	seen.Objects[MRD(buckets)] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "provider-toy-abc", Controller: &isController},
	}}}
	seen.Inventory.Entries = map[manifest.ID]Entry{MRD(buckets): {UID: "u"}}
	p, got := steps(t, inCluster, seen, Guarding{}.Guards()...)
	if s := got["ManagedResourceDefinition "+buckets]; s.Action != Keep || s.Guard != guardInstalled {
		t.Errorf("a revision took it over: %+v", s)
	}
	if diff := cmp.Diff([]manifest.ID{MRD(buckets)}, p.Gone); diff != "" {
		t.Errorf("what Crossplane took over leaves the inventory (-want +got):\n%s", diff)
	}
}

// converts is a definition of two versions between which a webhook converts that nobody named.
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
	files := map[string]string{"package/crds/buckets.yaml": converts, "policy.yaml": mrap("team", buckets)}
	isController := true
	byRevision := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "provider-toy-abc", Controller: &isController},
	}}}
	cases := map[string]struct {
		reason string
		policy string
		up     Upstream
		live   *metav1.PartialObjectMetadata
		want   Action
		fails  bool
	}{
		"Active":   {reason: "The CRD that Crossplane makes of it would be refused.", policy: buckets, want: Create, fails: true},
		"Inactive": {reason: "As long as no CRD is made of it, nobody has to answer.", policy: "queues.*", want: Create},
		"ActiveInTheCluster": {
			reason: "Active is final, whatever the policies say now.", policy: "queues.*", want: Create, fails: true,
			up: Upstream{Definitions: map[string]LiveDefinition{buckets: {Active: true}}},
		},
		"Installed": {reason: "The package manager settles it.", policy: buckets, live: byRevision, want: Keep},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files["policy.yaml"] = mrap("team", tc.policy)
			seen := seenWith(tc.up)
			if tc.live != nil {
				seen.Objects[MRD(buckets)] = tc.live
			}
			_, got := steps(t, desired(t, render.OwnerCrossplane, files), seen, Guarding{}.Guards()...)
			if s := got["ManagedResourceDefinition "+buckets]; s.Action != tc.want || (s.Err != nil) != tc.fails {
				t.Errorf("%s\n%s, %v", tc.reason, s.Action, s.Err)
			}
		})
	}
}

func TestHandover(t *testing.T) {
	// Headgate made the CRDs so far. Now Crossplane does: they are let go, not pruned.
	want := desired(t, render.OwnerCrossplane, map[string]string{"policy.yaml": mrap("team", buckets)})
	seen := seenWith(Upstream{})
	made := crd("buckets", "Bucket")
	seen.Inventory.Owner = render.OwnerHeadgate
	seen.Inventory.Entries = map[manifest.ID]Entry{CRD(buckets): {UID: "u"}}
	seen.Objects[CRD(buckets)] = live(made, "u")
	p, got := steps(t, want, seen, Guarding{OwnerIsSet: true}.Guards()...)
	for name, s := range got {
		if s.Action == Prune || s.Would == Prune {
			t.Errorf("%s: a handover never prunes: %+v", name, s)
		}
	}
	if diff := cmp.Diff([]manifest.ID{CRD(buckets)}, p.Gone); diff != "" {
		t.Errorf("released (-want +got):\n%s", diff)
	}
	if !p.Remembers() {
		t.Error("the new owner is to be recorded")
	}
}

func TestOwnerDisagrees(t *testing.T) {
	want := desired(t, render.OwnerHeadgate, map[string]string{"policy.yaml": mrap("team", buckets)})
	_, got := steps(t, want, seenWith(Upstream{}), Guarding{}.Guards()...)
	if s := got["CustomResourceDefinition "+buckets]; s.Action != Hold || s.Guard != "owner" {
		t.Errorf("the record says Headgate, the cluster runs Crossplane: a person decides: %+v", s)
	}
	if s := got["ManagedResourceActivationPolicy team"]; s.Action != Hold || s.Guard != "owner" {
		t.Errorf("a policy would have Crossplane make the CRDs that we make: %+v", s)
	}
	_, got = steps(t, want, seenWith(Upstream{}), Guarding{OwnerIsSet: true}.Guards()...)
	if s := got["CustomResourceDefinition "+buckets]; s.Action != Create {
		t.Errorf("a person decided: %+v", s)
	}

	// Nor is a CRD deleted while it is not clear who makes it.
	removed := seenWith(Upstream{})
	removed.Inventory.Entries = map[manifest.ID]Entry{CRD("old.example.org"): {UID: "u"}}
	removed.Objects[CRD("old.example.org")] = live(crd("old", "Old"), "u")
	removed.Answers = map[Question]Answer{{Ask: Dependents, Of: CRD("old.example.org")}: {}}
	for isSet, action := range map[bool]Action{false: Hold, true: Prune} {
		_, got = steps(t, want, removed, Guarding{OwnerIsSet: isSet}.Guards()...)
		if s := got["CustomResourceDefinition old.example.org"]; s.Action != action {
			t.Errorf("the prune of a CRD, crdOwner set: %t: %s %q, want %s", isSet, s.Action, s.Guard, action)
		}
	}
}

func TestFlood(t *testing.T) {
	everything := map[string]LivePolicy{"default": {Patterns: []string{"*"}}}
	elsewhere := map[string]LivePolicy{"default": {Patterns: []string{"*.other.example.com"}}}
	cases := map[string]struct {
		reason string
		files  map[string]string
		up     Upstream
		trials map[manifest.ID]Trial
		owned  []manifest.ID
		step   string
		most   int
		want   Action
	}{
		"Policy": {
			reason: "A policy that names a few is what policies are for.",
			files:  map[string]string{"policy.yaml": mrap("team", "*")}, step: "ManagedResourceActivationPolicy team", most: 3, want: Create,
		},
		"PolicyOfTooMuch": {
			reason: "Activation is final: nobody reviews so many at once.",
			files:  map[string]string{"policy.yaml": mrap("team", "*")}, step: "ManagedResourceActivationPolicy team", most: 2, want: Hold,
		},
		"PolicyOfWhatIsActive": {
			reason: "What is active already is not opened by it.",
			files:  map[string]string{"policy.yaml": mrap("team", "*")}, step: "ManagedResourceActivationPolicy team", most: 2, want: Create,
			up: Upstream{Definitions: map[string]LiveDefinition{buckets: {Active: true}}},
		},
		"PolicyOfWhatThisSyncMade": {
			reason: "A handover opens nothing: the CRDs are there.",
			files:  map[string]string{"policy.yaml": mrap("team", "*")}, step: "ManagedResourceActivationPolicy team", most: 2, want: Create,
			owned: []manifest.ID{CRD(buckets)},
		},
		"ProviderUnderDefault": {
			reason: "The default policy would open all of a new provider before anyone narrows it.",
			files:  map[string]string{"provider.yaml": provider, "policy.yaml": mrap("team", buckets)}, step: "Provider provider-toy", want: Hold,
			up: Upstream{Policies: everything},
		},
		"UnknownProviderUnderDefault": {
			reason: "Also where the commit does not hold what the provider brings.",
			files:  map[string]string{"other.yaml": strings.ReplaceAll(provider, "provider-toy", "provider-other")}, step: "Provider provider-other", want: Hold,
			up: Upstream{Policies: everything},
		},
		"ProviderBesideAPolicyOfOthers": {
			reason: "A policy that names other things is no reason to wait.",
			files:  map[string]string{"provider.yaml": provider}, step: "Provider provider-toy", want: Create,
			up: Upstream{Policies: elsewhere},
		},
		"ProviderUnderPausedDefault": {
			reason: "A paused policy activates nothing.",
			files:  map[string]string{"provider.yaml": provider}, step: "Provider provider-toy", want: Create,
			up: Upstream{Policies: map[string]LivePolicy{"default": {Patterns: []string{"*"}, Paused: true}}},
		},
		"DefaultNarrowedByTheCommit": {
			reason: "A commit that narrows the default policy has it narrowed before the package arrives.",
			files:  map[string]string{"provider.yaml": provider, "policy.yaml": mrap("default", buckets)}, step: "Provider provider-toy", want: Create,
			up: Upstream{Policies: everything},
		},
		"DefaultNarrowedInVain": {
			reason: "Where the API server refuses to narrow it, it is as wide as before.",
			files:  map[string]string{"provider.yaml": provider, "policy.yaml": mrap("default", buckets)}, step: "Provider provider-toy", want: Hold,
			up:     Upstream{Policies: everything},
			trials: map[manifest.ID]Trial{MRAP("default"): {Err: errBoom}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := seenWith(tc.up)
			seen.Trials = tc.trials
			seen.Inventory.Entries = map[manifest.ID]Entry{}
			for _, id := range tc.owned {
				seen.Inventory.Entries[id] = Entry{UID: "u"}
			}
			_, got := steps(t, desired(t, render.OwnerCrossplane, tc.files), seen, Guarding{MaxActivations: tc.most}.Guards()...)
			s := got[tc.step]
			if s.Action != tc.want || tc.want == Hold && s.Guard != "flood" {
				t.Errorf("%s\n%s: %s %q (%s), want %s", tc.reason, tc.step, s.Action, s.Guard, s.Reason, tc.want)
			}
		})
	}
}

func TestChecks(t *testing.T) {
	want := desired(t, render.OwnerCrossplane, map[string]string{"policy.yaml": mrap("team", buckets), "provider.yaml": provider})
	toyProvider := manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "provider-toy"}
	cases := map[string]struct {
		reason string
		up     Upstream
		want   map[string]CheckState
	}{
		"NothingYet": {
			reason: "What is not there yet is on its way.",
			want:   map[string]CheckState{buckets: Pending, "team": Pending, "provider-toy": Pending},
		},
		"AllHolds": {
			up: Upstream{
				Definitions: map[string]LiveDefinition{buckets: {Active: true, Established: metav1.ConditionTrue}},
				Policies:    map[string]LivePolicy{"team": {Healthy: metav1.ConditionTrue}},
				Packages:    map[manifest.ID]LivePackage{toyProvider: {Installed: metav1.ConditionTrue, Healthy: metav1.ConditionTrue}},
			},
			want: map[string]CheckState{buckets: Holds, "team": Holds, "provider-toy": Holds},
		},
		"AwaitingActivation": {
			reason: "A provider of which nothing is active runs nothing, and that is right.",
			up: Upstream{
				Definitions: map[string]LiveDefinition{buckets: {Active: true, Established: metav1.ConditionUnknown}},
				Policies:    map[string]LivePolicy{"team": {}},
				Packages:    map[manifest.ID]LivePackage{toyProvider: {Installed: metav1.ConditionTrue, Healthy: metav1.ConditionFalse, Reason: "AwaitingActivation"}},
			},
			want: map[string]CheckState{buckets: Pending, "team": Pending, "provider-toy": Holds},
		},
		"UpgradeNotSeen": {
			reason: "What a package says before Crossplane has looked at its new version is of the old one.",
			up: Upstream{
				Definitions: map[string]LiveDefinition{buckets: {Active: true, Established: metav1.ConditionTrue}},
				Policies:    map[string]LivePolicy{"team": {Healthy: metav1.ConditionTrue}},
				Packages:    map[manifest.ID]LivePackage{toyProvider: {Installed: metav1.ConditionTrue, Healthy: metav1.ConditionTrue, Behind: true}},
			},
			want: map[string]CheckState{buckets: Holds, "team": Holds, "provider-toy": Pending},
		},
		"UpgradeNotPulled": {
			up: Upstream{
				Definitions: map[string]LiveDefinition{buckets: {Active: true, Established: metav1.ConditionTrue}},
				Policies:    map[string]LivePolicy{"team": {Healthy: metav1.ConditionTrue}},
				Packages:    map[manifest.ID]LivePackage{toyProvider: {Installed: metav1.ConditionFalse, Message: "cannot unpack package", Behind: true}},
			},
			want: map[string]CheckState{buckets: Holds, "team": Holds, "provider-toy": Pending},
		},
		"UpgradeOfWhatIsPaused": {
			reason: "Crossplane will not look until somebody lets it.",
			up: Upstream{
				Definitions: map[string]LiveDefinition{buckets: {Active: true, Established: metav1.ConditionTrue}},
				Policies:    map[string]LivePolicy{"team": {Healthy: metav1.ConditionTrue}},
				Packages:    map[manifest.ID]LivePackage{toyProvider: {Installed: metav1.ConditionTrue, Healthy: metav1.ConditionTrue, Behind: true, Paused: true}},
			},
			want: map[string]CheckState{buckets: Holds, "team": Holds, "provider-toy": Broken},
		},
		"Blocked": {
			reason: "Crossplane gives blocked and pending one reason; only the status tells them apart.",
			up: Upstream{
				Definitions: map[string]LiveDefinition{buckets: {Active: true, Established: metav1.ConditionFalse, Message: "unable to apply"}},
				Policies:    map[string]LivePolicy{"team": {Healthy: metav1.ConditionUnknown, Message: "failed to activate 1 of 2"}},
				Packages:    map[manifest.ID]LivePackage{toyProvider: {Installed: metav1.ConditionFalse, Message: "cannot unpack package"}},
			},
			want: map[string]CheckState{buckets: Broken, "team": Broken, "provider-toy": Pending},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, _ := steps(t, want, seenWith(tc.up), Guarding{}.Guards()...)
			got := map[string]CheckState{}
			for _, c := range p.Checks {
				got[c.ID.Name] = c.State
				if (c.State == Holds) != (c.Reason == "") {
					t.Errorf("%s: %s has the reason %q", c.ID, c.State, c.Reason)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nchecks (-want +got):\n%s", tc.reason, diff)
			}
			late := map[manifest.ID]bool{}
			for _, c := range p.Checks {
				late[c.ID] = true
			}
			for _, c := range p.overdue("5m", late).Checks {
				if c.State == Pending {
					t.Errorf("%s is still pending when the time is over", c.ID)
				}
			}
		})
	}
}

func TestNothingIsExpectedOfWhatIsHeld(t *testing.T) {
	up := Upstream{Definitions: map[string]LiveDefinition{buckets: {}, "queues.example.org": {}, "tables.example.org": {}}}
	names := func(p Plan) (names []string) {
		for _, c := range p.Checks {
			names = append(names, c.ID.Name)
		}
		return names
	}
	held, _ := steps(t, desired(t, render.OwnerCrossplane, map[string]string{"wide.yaml": mrap("wide", "*"), "team.yaml": mrap("team", buckets)}), seenWith(up), Guarding{MaxActivations: 1}.Guards()...)
	if diff := cmp.Diff([]string{buckets, "team"}, names(held)); diff != "" {
		t.Errorf("What only a held policy activates nobody waits for (-want +got):\n%s", diff)
	}
	seen := seenWith(up)
	seen.Objects[MRAP("team")] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	seen.Trials = map[manifest.ID]Trial{MRAP("team"): {Err: errBoom}}
	refused, _ := steps(t, desired(t, render.OwnerCrossplane, map[string]string{"team.yaml": mrap("team", buckets)}), seen, Guarding{}.Guards()...)
	if len(names(refused)) > 0 {
		t.Errorf("Nor what a policy activates that the API server refuses: %v", names(refused))
	}
}

func TestActivates(t *testing.T) {
	want := desired(t, render.OwnerCrossplane, map[string]string{"team.yaml": mrap("team", "*")})
	before := Upstream{Definitions: map[string]LiveDefinition{buckets: {Active: true, Established: metav1.ConditionTrue}, "queues.example.org": {}}}
	after := Upstream{Definitions: map[string]LiveDefinition{buckets: {Active: true, Established: metav1.ConditionTrue}, "queues.example.org": {Active: true, Established: metav1.ConditionTrue}}}
	p, _ := steps(t, want, seenWith(before), Guarding{}.Guards()...)
	if n := p.Activates(false); n != 2 {
		t.Errorf("queues and tables are going to be activated: %d", n)
	}
	now, _ := steps(t, want, seenWith(after), Guarding{}.Guards()...)
	if n := p.refreshed(now).Activates(true); n != 1 {
		t.Errorf("queues was activated, and tables not yet: %d", n)
	}
}

func TestCompareWhereCrossplaneMakesTheCRDs(t *testing.T) {
	compare := func(base, head map[string]string, how Guarding) Plan {
		t.Helper()
		want := desired(t, render.OwnerCrossplane, head)
		seen, err := Baseline{Base: desired(t, render.OwnerCrossplane, base), Sync: sync}.Observe(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		p, _ := steps(t, want, seen, how.Guards()...)
		return p
	}
	narrow, wide := map[string]string{"team.yaml": mrap("team", buckets)}, map[string]string{"team.yaml": mrap("team", "*")}

	wider := compare(narrow, wide, Guarding{MaxActivations: 2})
	if n := wider.Activates(false); n != 2 || wider.Count(Hold) > 0 {
		t.Errorf("Two more become active, and what is active already floods nobody: %d, %d held", n, wider.Count(Hold))
	}
	if held := compare(narrow, wide, Guarding{MaxActivations: 1}); held.Count(Hold) != 1 {
		t.Errorf("A flood is seen before the merge: %d held", held.Count(Hold))
	}
	narrower := compare(wide, narrow, Guarding{})
	if n := narrower.Activates(false); n != 0 || len(narrower.Retained) != 2 || len(narrower.Notes) != 1 || !strings.Contains(narrower.Notes[0].Message, "before this commit") {
		t.Errorf("Nothing becomes active, and nothing goes: %d, %v, %v", n, narrower.Retained, narrower.Notes)
	}
	if len(wider.Checks)+len(narrower.Checks) > 0 {
		t.Errorf("There is no Crossplane that could make anything of it: %v", wider.Checks)
	}
}

func TestUnexplained(t *testing.T) {
	want := desired(t, render.OwnerCrossplane, map[string]string{"policy.yaml": mrap("team", buckets)})
	p, _ := steps(t, want, seenWith(Upstream{
		Definitions: map[string]LiveDefinition{buckets: {Active: true}, "queues.example.org": {Active: true}, "tables.example.org": {}},
		Policies:    map[string]LivePolicy{"default": {Patterns: []string{"q*"}}, "team": {Patterns: []string{buckets}}},
	}), Guarding{}.Guards()...)
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0].Message, "queues.example.org") || !strings.Contains(p.Notes[0].Message, "default") {
		t.Errorf("an active definition that no policy in Git names has a name and a culprit: %+v", p.Notes)
	}
}

func TestPackageDiffers(t *testing.T) {
	const queues, tables, topics = "queues.example.org", "tables.example.org", "topics.example.org"
	provided := manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "provider-toy"}
	live := func(revision string, names ...string) Upstream {
		up := Upstream{Definitions: map[string]LiveDefinition{}, Packages: map[manifest.ID]LivePackage{provided: {Installed: metav1.ConditionTrue}}}
		for _, name := range names {
			up.Definitions[name] = LiveDefinition{Revision: revision}
		}
		return up
	}
	installing := live("toy-1", buckets)
	installing.Packages[provided] = LivePackage{Installed: metav1.ConditionFalse}
	cases := map[string]struct {
		reason string
		up     Upstream
		want   []string
	}{
		"Same":       {"A copy of what is installed.", live("toy-1", buckets, queues, tables), nil},
		"NotThere":   {"Nothing is installed yet.", live("toy-1"), nil},
		"Another":    {"What another package brings is its own.", live("other-1", topics), nil},
		"NotAPart":   {"What somebody applied by hand is no package's.", live("", buckets, topics), nil},
		"Installing": {"Crossplane brings one after the other.", installing, nil},
		"Older": {
			"The installed one is newer: a policy that names what it adds matches nothing in the copy.", live("toy-2", buckets, queues, tables, topics),
			[]string{"warning package/crossplane.yaml:1: this copy of the package provider-toy is not what the revision toy-2 installed: it has none that the revision lacks, and lacks 1 definition (" + topics + ") that it has"},
		},
		"Newer": {
			"The copy is newer: what it promises is not there.", live("toy-0", buckets),
			[]string{"warning package/crossplane.yaml:1: this copy of the package provider-toy is not what the revision toy-0 installed: it has 2 definitions (" + queues + ", …) that the revision lacks, and lacks none that it has"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := desired(t, render.OwnerCrossplane, map[string]string{"provider.yaml": provider})
			p, _ := steps(t, want, seenWith(tc.up), Guarding{}.Guards()...)
			var got []string
			for _, f := range p.Notes {
				if f.Rule == "package-differs" {
					got = append(got, fmt.Sprintf("%s %s: %s", f.Severity, f.Origin, f.Message))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nfindings (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

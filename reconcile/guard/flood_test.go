package guard

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// withAnnotation adds an annotation to a manifest.
func withAnnotation(manifest, annotation string) string {
	return strings.Replace(manifest, "metadata:", "metadata:\n  annotations: {"+annotation+"}", 1)
}

// policyObject returns a policy like an API server.
func policyObject(name string, globs ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "ManagedResourceActivationPolicy",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"activate": globs},
	}}
}

func TestFloodKnowsWhatIsWritten(t *testing.T) {
	narrow := given.Policy("default", given.Buckets)
	// ours is the live policy, applied by this sync and widened by a user.
	ours := given.Live(policyObject("default", "*"), "u")
	cases := map[string]struct {
		reason string
		policy string // of the commit
		live   *metav1.PartialObjectMetadata
		trial  facts.Trial
		edit   func(*facts.Observed)
		how    Guarding
		want   plan.Action // of the Provider
	}{
		"Written": {
			reason: "The policy becomes narrow before the package is installed.", policy: narrow, live: ours,
			trial: facts.Trial{Live: policyObject("default", "*"), After: policyObject("default", given.Buckets)}, want: plan.Create,
		},
		"NotOurs": {
			reason: "Helm keeps its default policy unchanged.", policy: narrow,
			live: given.WithOwner(given.Seen(facts.Upstream{}), crossplane.MRAP("default")).Objects[crossplane.MRAP("default")], want: plan.Hold,
		},
		"NotAdopted": {
			reason: "Crossplane created the policy, and this sync adopts nothing.", policy: narrow,
			live: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "c"}},
			edit: func(o *facts.Observed) { o.Terms.Adoption = facts.AdoptNone }, want: plan.Hold,
		},
		"Retained": {
			reason: "The commit retains the policy.", policy: withAnnotation(narrow, "kustomize.toolkit.fluxcd.io/reconcile: disabled"), live: ours,
			trial: facts.Trial{Live: policyObject("default", "*"), After: policyObject("default", given.Buckets)}, want: plan.Hold,
		},
		"Reported": {
			reason: "The sync does not correct drift.", policy: narrow, live: ours,
			trial: facts.Trial{Live: policyObject("default", "*"), After: policyObject("default", given.Buckets)},
			edit: func(o *facts.Observed) {
				o.Inventory.Entries = map[manifest.ID]inventory.Entry{crossplane.MRAP("default"): {UID: "u", Digest: digestOf(t, narrow)}}
			},
			how: Guarding{ReportDrift: true}, want: plan.Hold,
		},
		"Observed": {
			reason: "The policy is observe-only.", policy: withAnnotation(narrow, "headgate.dev/management-policy: Observable"), live: ours,
			trial: facts.Trial{Live: policyObject("default", "*"), After: policyObject("default", given.Buckets)}, want: plan.Hold,
		},
		"Paused": {
			reason: "A user has paused the policy.", policy: narrow,
			live: given.Live(policyObject("default", "*"), "u", func(o *metav1.PartialObjectMetadata) {
				o.Annotations[crossplane.PausedAnnotation] = "true"
			}),
			trial: facts.Trial{Live: policyObject("default", "*"), After: policyObject("default", given.Buckets)}, want: plan.Hold,
		},
		"Refused": {
			reason: "The API server refuses the change of the policy.", policy: narrow, live: ours, trial: facts.Trial{Err: given.ErrBoom}, want: plan.Hold,
		},
		"Ignored": {
			reason: "The sync ignores the patterns, so they stay.", policy: narrow, live: ours,
			trial: facts.Trial{Live: policyObject("default", "*"), After: policyObject("default", "*")}, want: plan.Hold,
		},
		"Waiting": {
			reason: "The policy would become narrow only after the package that it should limit.", live: ours,
			policy: withAnnotation(narrow, "config.kubernetes.io/depends-on: pkg.crossplane.io/Provider/provider-toy"),
			trial:  facts.Trial{Live: policyObject("default", "*"), After: policyObject("default", given.Buckets)}, want: plan.Hold,
		},
		"WaitingForWhatIsReady": {
			reason: "The policy's dependency is already ready, so the policy does not wait.", live: ours,
			policy: withAnnotation(narrow, "config.kubernetes.io/depends-on: /namespaces/a/ConfigMap/b"),
			trial:  facts.Trial{Live: policyObject("default", "*"), After: policyObject("default", given.Buckets)},
			edit: func(o *facts.Observed) {
				o.Answers = question.Answers{question.Ready{Of: manifest.ID{Kind: "ConfigMap", Namespace: "a", Name: "b"}}: question.Readiness{Exists: true}}
			},
			want: plan.Create,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := given.Seen(facts.Upstream{Policies: map[string]crossplane.LivePolicy{"default": {Patterns: []string{"*"}}}})
			seen.Objects[crossplane.MRAP("default")] = tc.live
			seen.Trials = map[manifest.ID]facts.Trial{crossplane.MRAP("default"): tc.trial}
			if tc.edit != nil {
				tc.edit(&seen)
			}
			p, got := given.Steps(t, given.Desired(t, render.OwnerCrossplane, map[string]string{"provider.yaml": given.Provider, "policy.yaml": tc.policy}), seen, tc.how.Guards()...)
			s, policy := got["Provider provider-toy"], got["ManagedResourceActivationPolicy default"]
			if s.Action != tc.want || tc.want == plan.Hold && s.Guard != Flood {
				t.Errorf("%s\nProvider: %s %q (%s), want %s; policy: %s %q (%s)", tc.reason, s.Action, s.Guard, s.Reason, tc.want, policy.Action, policy.Guard, policy.Reason)
			}
			asItWas := plan.Wider(p, map[string]crossplane.LivePolicy{"default": {Patterns: []string{"*"}}})
			if (asItWas == nil) != (tc.want == plan.Hold) {
				t.Errorf("%s\nright before the package is sent, the policy is as wide as before: %v", tc.reason, asItWas)
			}
		})
	}
}

// digestOf returns the digest of the request for the only policy of a manifest.
func digestOf(t *testing.T, policy string) string {
	t.Helper()
	for _, o := range given.Desired(t, render.OwnerCrossplane, map[string]string{"policy.yaml": policy}).Objects {
		if o.ID == crossplane.MRAP(o.ID.Name) {
			return given.Sync.Digest(o)
		}
	}
	t.Fatal("no policy")
	return ""
}

func TestFinalKnowsWhatIsWritten(t *testing.T) {
	up := facts.Upstream{Policies: map[string]crossplane.LivePolicy{"team": {Patterns: []string{given.Buckets}}}}
	want := given.Desired(t, render.OwnerCrossplane, map[string]string{"policy.yaml": given.Policy("team", "queues.example.org"), "provider.yaml": given.Provider})
	taken := plan.Step{Action: plan.Prune, Deactivates: true, Definition: true, ID: crossplane.MRD(given.Buckets)}
	for name, tc := range map[string]struct {
		policy plan.Step
		held   bool
	}{
		"Written":  {plan.Step{Action: plan.Update}, false},
		"Held":     {plan.Step{Action: plan.Hold, Would: plan.Update}, true},
		"Retained": {plan.Step{Action: plan.Keep, Cause: plan.Retain}, true},
		"Refused":  {plan.Step{Action: plan.Update, Err: given.ErrBoom}, true},
		"Waiting":  {plan.Step{Action: plan.Update, Waits: []reason.Reason{reason.AwaitsGone.With()}}, true},
	} {
		tc.policy.ID, tc.policy.After = crossplane.MRAP("team"), policyObject("team", "queues.example.org")
		r := final(taken, draft.Case{Want: want, Seen: given.Seen(up), Steps: []plan.Step{tc.policy, taken}})
		if held := r.Response() == plan.Held && strings.Contains(Sentence(r.Reason), "the policy team"); held != tc.held {
			t.Errorf("%s: a definition that a live policy names is not deactivated: %+v", name, r)
		}
	}
}

// family returns a repository with two packages of 150 definitions each, by directory.
func family(t *testing.T, owner render.Owner, safeStart string, more map[string]string) render.Desired {
	t.Helper()
	files := map[string]string{}
	for _, dir := range []string{"aws", "gcp"} {
		files[dir+"/crossplane.yaml"] = fmt.Sprintf("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: provider-%s\nspec:\n  capabilities: [%s]\n", dir, safeStart)
		for i := range 150 {
			files[fmt.Sprintf("%s/crds/%d.yaml", dir, i)] = fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: t%d.%s.example.org
spec:
  group: %s.example.org
  names: {kind: T%d, plural: t%d}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`, i, dir, dir, i, i)
		}
	}
	files["aws/crds/config.yaml"] = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: providerconfigs.aws.example.org
spec:
  group: aws.example.org
  names: {kind: ProviderConfig, plural: providerconfigs}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`
	maps.Copy(files, more)
	in := render.Input{Files: fstest.MapFS{}}
	for name, data := range files {
		in.Files.(fstest.MapFS)[name] = &fstest.MapFile{Data: []byte(data)}
	}
	want, err := render.Render(in, render.Options{Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// inFullUpTo returns the names of the first n definitions of a package of a family.
func inFullUpTo(n int, dir string) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("t%d.%s.example.org", i, dir)
	}
	return names
}

func TestFloodWhereThisSyncMakesTheCRDs(t *testing.T) {
	crds := func(n int, dir string) []manifest.ID {
		var ids []manifest.ID
		for _, name := range inFullUpTo(n, dir) {
			ids = append(ids, plan.CRD(name))
		}
		return ids
	}
	cases := map[string]struct {
		reason    string
		safeStart string // "" if the packages have the capability
		policies  []string
		entries   map[manifest.ID]inventory.Entry
		live      []manifest.ID
		most      int
		held      map[string]int // by directory
		created   int            // CRDs of definitions
	}{
		"InFull": {
			reason:   "Restoring a cluster from Git with 180 named kinds needs no approval.",
			policies: []string{given.Policy("team", append(inFullUpTo(90, "aws"), inFullUpTo(90, "gcp")...)...)}, created: 180,
		},
		"Wildcard": {
			reason: "Nobody can review so many definitions at once.", policies: []string{given.Policy("team", "*")}, held: map[string]int{"aws": 150, "gcp": 150},
		},
		"OtherWildcards": {
			reason: "Any pattern that matches more than one name is a wildcard.", policies: []string{given.Policy("team", "t?*.aws.example.org", "[t]*.gcp.example.org")}, held: map[string]int{"aws": 150, "gcp": 150},
		},
		"MoreAllowed": {
			reason: "The Sync sets the limit.", policies: []string{given.Policy("team", "*")}, most: 300, created: 300,
		},
		"Few": {
			reason: "A wildcard that activates few definitions is an ordinary policy.", policies: []string{given.Policy("team", "t1?.aws.example.org")}, created: 10,
		},
		"NothingElseStops": {
			reason:   "Only the flood is held; another policy may activate definitions of another package.",
			policies: []string{given.Policy("all", "*.aws.example.org"), given.Policy("team", "t1?.gcp.example.org")}, held: map[string]int{"aws": 150}, created: 10,
		},
		"NamedBeside": {
			reason:   "Fully named definitions do not count.",
			policies: []string{given.Policy("all", "*.aws.example.org"), given.Policy("team", inFullUpTo(20, "aws")...)}, held: map[string]int{"aws": 130}, created: 20,
		},
		"NamedByAPausedPolicy": {
			reason:   "A paused policy does not count as naming its definitions.",
			policies: []string{given.Policy("all", "*.aws.example.org"), withAnnotation(given.Policy("team", inFullUpTo(20, "aws")...), `crossplane.io/paused: "true"`)}, held: map[string]int{"aws": 150},
		},
		"ManyPolicies": {
			reason:   "Sharing a flood between policies must not make it smaller, so definitions are also counted by package.",
			policies: []string{given.Policy("a", "t?.aws.example.org", "t??.aws.example.org"), given.Policy("b", "t1*.aws.example.org")}, held: map[string]int{"aws": 150},
		},
		"ManyPackages": {
			reason: "Sharing a flood between packages must not make it smaller, so definitions are also counted by policy.", policies: []string{given.Policy("a", "t?.*", "t??.*")}, most: 150, held: map[string]int{"aws": 100, "gcp": 100},
		},
		"Exactly": {
			reason: "The limit itself is allowed.", policies: []string{given.Policy("a", "t?.*")}, most: 20, created: 20,
		},
		"OneMore": {
			reason: "One more than the limit is held.", policies: []string{given.Policy("a", "t?.*")}, most: 19, held: map[string]int{"aws": 10, "gcp": 10},
		},
		"Open": {
			reason: "Definitions that are already active do not count.", policies: []string{given.Policy("team", "*.aws.example.org")}, live: crds(100, "aws"), created: 50,
			entries: entriesOf(crds(100, "aws"), "u"),
		},
		"Adopted": {
			reason: "CRDs that were applied by hand are adopted, not activated.", policies: []string{given.Policy("team", "*.aws.example.org")}, live: crds(60, "aws"), created: 90,
		},
		"DeletedByHand": {
			reason: "Restoring the deleted CRD of an active definition is not an activation.", policies: []string{given.Policy("team", "*.aws.example.org")}, entries: entriesOf(crds(150, "aws"), "u"), created: 150,
		},
		"Intended": {
			reason: "A pass that only intended to activate the definitions did not activate them.", policies: []string{given.Policy("team", "*.aws.example.org")}, entries: entriesOf(crds(150, "aws"), ""),
			held: map[string]int{"aws": 150},
		},
		"NoSafeStart": {
			reason: "Without safe-start, the packages activate everything themselves.", safeStart: "safestart2", held: map[string]int{"aws": 150, "gcp": 150},
		},
		"NoSafeStartInFull": {
			reason: "Named definitions of a package without safe-start are intended; the others are not.", safeStart: "none", policies: []string{given.Policy("team", inFullUpTo(150, "aws")...)},
			held: map[string]int{"gcp": 150}, created: 150,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for i, policy := range tc.policies {
				files[fmt.Sprintf("policies/%d.yaml", i)] = policy
			}
			if tc.safeStart == "" {
				tc.safeStart = "safe-start"
			}
			seen := given.Seen(facts.Upstream{})
			seen.Natural, seen.Inventory.Entries = render.OwnerHeadgate, tc.entries
			for _, id := range tc.live {
				seen.Objects[id] = given.Live(&unstructured.Unstructured{Object: map[string]any{"kind": id.Kind, "metadata": map[string]any{"name": id.Name}}}, "u")
			}
			p, got := given.Steps(t, family(t, render.OwnerHeadgate, tc.safeStart, files), seen, Guarding{MaxActivations: tc.most}.Guards()...)
			held, created := map[string]int{}, 0
			for _, s := range p.Steps {
				switch {
				case s.Guard == Flood && s.Action == plan.Hold:
					held[strings.Split(s.ID.Name, ".")[1]]++
				case s.Definition && s.Action == plan.Create:
					created++
				}
			}
			if !maps.Equal(held, tc.held) && len(held)+len(tc.held) > 0 || created != tc.created {
				t.Errorf("%s\nheld %v and created %d, want %v and %d", tc.reason, held, created, tc.held, tc.created)
			}
			if s := got["CustomResourceDefinition providerconfigs.aws.example.org"]; s.Action != plan.Create {
				t.Errorf("an exempt CRD is never part of a flood: %+v", s)
			}
			if total := len(tc.held); total == 0 {
				return
			}
			if p.Approval == nil {
				t.Fatalf("%s\na flood can be approved", tc.reason)
			}
			seen.Approvals = approval.Given{inventory.OnSync: approval.UpTo(p.Approval.UpTo, p.Approval.Digest)}
			if approved, _ := given.Steps(t, p.Want, seen, Guarding{MaxActivations: tc.most}.Guards()...); approved.Count(plan.Hold) > 0 {
				t.Errorf("%s\n%d are held although they are approved", tc.reason, approved.Count(plan.Hold))
			}
		})
	}
}

func entriesOf(ids []manifest.ID, uid types.UID) map[manifest.ID]inventory.Entry {
	entries := map[manifest.ID]inventory.Entry{}
	for _, id := range ids {
		entries[id] = inventory.Entry{UID: uid, Digest: "before"}
	}
	return entries
}

func TestFloodIsTheSameInAPreview(t *testing.T) {
	base := family(t, render.OwnerHeadgate, "safe-start", map[string]string{"policy.yaml": given.Policy("team", "t1.aws.example.org")})
	head := family(t, render.OwnerHeadgate, "safe-start", map[string]string{"policy.yaml": given.Policy("team", "*")})
	seen, err := baseline.Baseline{Base: base, Sync: given.Sync}.Observe(t.Context(), head)
	if err != nil {
		t.Fatal(err)
	}
	preview, _ := given.Steps(t, head, seen, Guarding{}.Guards()...)
	cluster := given.Seen(facts.Upstream{})
	cluster.Natural = render.OwnerHeadgate
	cluster.Inventory.Entries = map[manifest.ID]inventory.Entry{}
	for _, o := range base.Objects {
		content, err := o.Content()
		if err != nil {
			t.Fatal(err)
		}
		cluster.Objects[o.ID] = given.Live(content, "u")
		cluster.Inventory.Entries[o.ID] = inventory.Entry{UID: "u", Digest: given.Sync.Digest(o)}
	}
	pass, _ := given.Steps(t, head, cluster, Guarding{}.Guards()...)
	if preview.Count(plan.Hold) != 299 || preview.Approval == nil || pass.Approval == nil || preview.Approval.Digest != pass.Approval.Digest {
		t.Errorf("a preview and a cluster hold the same and ask for the same approval: %d and %d held, %+v and %+v",
			preview.Count(plan.Hold), pass.Count(plan.Hold), preview.Approval, pass.Approval)
	}
}

func TestFloodOfAPolicyAndAPackage(t *testing.T) {
	want := given.Desired(t, render.OwnerCrossplane, map[string]string{"provider.yaml": given.Provider, "policy.yaml": given.Policy("team", "*")})
	p, got := given.Steps(t, want, given.Seen(facts.Upstream{Definitions: map[string]crossplane.LiveDefinition{"a.example.org": {}}}), Guarding{MaxActivations: 2}.Guards()...)
	if s := got["Provider provider-toy"]; s.Action != plan.Hold || s.Guard != Flood || p.Approval == nil || p.Approval.Steps != 2 {
		t.Errorf("a policy is held together with the package that it would open, and one approval is for both: %+v, %+v", s, p.Approval)
	}
}

func TestWhatDependsOnAFloodWaits(t *testing.T) {
	want := family(t, render.OwnerHeadgate, "safe-start", map[string]string{
		"policy.yaml": given.Policy("all", "*.aws.example.org"), "team.yaml": given.Policy("team", "t1.gcp.example.org"),
		"a.yaml": "apiVersion: aws.example.org/v1\nkind: T1\nmetadata: {name: a}\n",
		"b.yaml": "apiVersion: gcp.example.org/v1\nkind: T1\nmetadata: {name: b}\n",
	})
	seen := given.Seen(facts.Upstream{})
	seen.Natural = render.OwnerHeadgate
	p, got := given.Steps(t, want, seen, Guarding{}.Guards()...)
	if s := got["T1 a"]; !s.Waiting() || len(s.Waits) != 1 || s.Waits[0].Code != reason.CRDHeld || s.Waits[0].Values[1] != "flood" {
		t.Errorf("its kind is not served before a person approves the flood: %+v", s)
	}
	if s := got["T1 b"]; !s.Writes() {
		t.Errorf("nothing else stops: %+v", s)
	}
	if plan.Coming(p, nil) {
		t.Error("a held flood does not come by itself, so the pass does not wait for it")
	}
}

func TestFloodOfMRDs(t *testing.T) {
	everything := facts.Upstream{Policies: map[string]crossplane.LivePolicy{"default": {Patterns: []string{"*"}}}}
	cases := map[string]struct {
		reason    string
		safeStart string
		up        facts.Upstream
		policies  string
		held      int
	}{
		"Inactive":    {"Inactive definitions take little memory.", "safe-start", facts.Upstream{}, "", 0},
		"NoSafeStart": {"Without safe-start, all definitions become Active.", "none", facts.Upstream{}, "", 300},
		"Default":     {"Crossplane's default policy activates all of them.", "safe-start", everything, "", 300},
		"WideInGit":   {"The policy was allowed when it activated few definitions.", "safe-start", facts.Upstream{Policies: map[string]crossplane.LivePolicy{"all": {Patterns: []string{"*"}}}}, given.Policy("all", "*"), 300},
		"InFull":      {"Fully named definitions are intended.", "safe-start", everything, given.Policy("team", append(inFullUpTo(150, "aws"), inFullUpTo(150, "gcp")...)...), 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			if tc.policies != "" {
				files["policy.yaml"] = tc.policies
			}
			seen := given.Seen(tc.up)
			if tc.up.Policies["all"].Patterns != nil { // only if this sync applied the policy
				seen.Objects[crossplane.MRAP("all")] = given.Live(policyObject("all", "*"), "u")
				seen.Inventory.Entries = map[manifest.ID]inventory.Entry{crossplane.MRAP("all"): {UID: "u"}}
			}
			p, _ := given.Steps(t, family(t, render.OwnerCrossplane, tc.safeStart, files), seen, Guarding{}.Guards()...)
			held := 0
			for _, s := range p.Steps {
				if s.Guard == Flood && crossplane.IsMRD(s.ID) {
					held++
				}
			}
			if held != tc.held {
				t.Errorf("%s\nheld %d, want %d", tc.reason, held, tc.held)
			}
		})
	}
}

// A Provider is held because of all definitions that may become active with it.
func TestFloodOfAProvider(t *testing.T) {
	id := manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "provider-toy"}
	inFull := given.Policy("team", given.Buckets, "queues.example.org", "tables.example.org")
	others := map[string]crossplane.LiveDefinition{}
	for _, name := range []string{"a", "b", "c"} {
		others[name+".other.example.org"] = crossplane.LiveDefinition{}
	}
	cases := map[string]struct {
		reason string
		files  map[string]string
		edit   func(*render.Desired)
		up     facts.Upstream
		want   plan.Action
		says   string // part of the hold's reason
	}{
		"InFull": {
			reason: "All definitions of the package are known and named.", files: map[string]string{"policy.yaml": inFull},
			up: facts.Upstream{Policies: map[string]crossplane.LivePolicy{"default": {Patterns: []string{"*"}}}}, want: plan.Create,
		},
		"Unread": {
			reason: "A dependency of the package was not read, so its definitions are unknown.", files: map[string]string{"policy.yaml": inFull},
			edit: func(want *render.Desired) { want.Unread = []catalogue.Unread{{Installers: []manifest.ID{id}}} },
			up:   facts.Upstream{Policies: map[string]crossplane.LivePolicy{"default": {Patterns: []string{"*"}}}}, want: plan.Hold,
			says: "the policy default in the cluster activates every definition that it brings",
		},
		"UnreadUnderNarrowPolicies": {
			reason: "No policy matches unknown definitions.", files: map[string]string{"policy.yaml": inFull},
			edit: func(want *render.Desired) { want.Unread = []catalogue.Unread{{Installers: []manifest.ID{id}}} }, want: plan.Create,
		},
		"NoSafeStart": {
			reason: "Without safe-start, its definitions are active whatever policies name.",
			files:  map[string]string{"package/crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-toy}\n"}, want: plan.Hold,
		},
		"BringsAPolicy": {
			reason: "Crossplane also installs the package's policy, which activates definitions of other packages.",
			edit: func(want *render.Desired) {
				for _, p := range want.Packages {
					want.Left = append(want.Left, render.Left{ID: crossplane.MRAP("shipped"), Package: p.Directory})
				}
				want.Policies = append(want.Policies, catalogue.Policy{Name: "shipped", Patterns: []catalogue.Pattern{{Glob: "*.other.example.org"}}})
			},
			up: facts.Upstream{Definitions: others}, want: plan.Hold,
		},
		"BringsNone": {reason: "No policy activates the definitions of other packages.", up: facts.Upstream{Definitions: others}, want: plan.Create},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"provider.yaml": given.Provider}
			maps.Copy(files, tc.files)
			want := given.Desired(t, render.OwnerCrossplane, files)
			if tc.edit != nil {
				tc.edit(&want)
			}
			_, got := given.Steps(t, want, given.Seen(tc.up), Guarding{MaxActivations: 2}.Guards()...)
			if s := got["Provider provider-toy"]; s.Action != tc.want || tc.want == plan.Hold && s.Guard != Flood || !strings.Contains(Sentence(s.Reason), tc.says) {
				t.Errorf("%s\n%s %q (%s), want %s", tc.reason, s.Action, s.Guard, s.Reason, tc.want)
			}
		})
	}
}

func TestNamed(t *testing.T) {
	live := map[string]crossplane.LivePolicy{"b": {Patterns: []string{given.Buckets}}, "a": {Patterns: []string{"*.example.org"}}, "paused": {Patterns: []string{"*"}, Paused: true}}
	for definition, want := range map[string]string{given.Buckets: "a", "a.example.com": ""} {
		if got := facts.Named(live, definition); got != want {
			t.Errorf("Named(%s) = %q, want %q", definition, got, want)
		}
	}
}

func TestOnlyWildcardsFlood(t *testing.T) {
	reasons := []activation.Activator{
		{Cause: activation.Matched, Policy: "a", Pattern: given.Buckets}, {Cause: activation.Matched, Policy: "b", Pattern: "*"},
		{Cause: activation.Matched, Policy: "b", Pattern: "b*"}, {Cause: activation.Declared},
	}
	if got := wildcards(reasons, given.Buckets); len(got) != 1 || got[0] != "b" {
		t.Errorf("wildcards(%v) = %v", reasons, got)
	}
}

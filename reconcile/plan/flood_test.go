package plan

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// withAnnotation is a manifest with an annotation.
func withAnnotation(manifest, annotation string) string {
	return strings.Replace(manifest, "metadata:", "metadata:\n  annotations: {"+annotation+"}", 1)
}

// policyObject is a policy as an API server returns it.
func policyObject(name string, globs ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "ManagedResourceActivationPolicy",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"activate": globs},
	}}
}

func TestFloodKnowsWhatIsWritten(t *testing.T) {
	narrow := mrap("default", buckets)
	// ours is the live policy, applied by this sync; somebody made it wide.
	ours := live(policyObject("default", "*"), "u")
	cases := map[string]struct {
		reason string
		policy string // of the commit
		live   *metav1.PartialObjectMetadata
		trial  Trial
		edit   func(*Observed)
		how    Guarding
		want   Action // of the Provider
	}{
		"Written": {
			reason: "The policy is narrow before the package arrives.", policy: narrow, live: ours,
			trial: Trial{Live: policyObject("default", "*"), After: policyObject("default", buckets)}, want: Create,
		},
		"NotOurs": {
			reason: "Helm keeps its default policy.", policy: narrow,
			live: withOwner(seenWith(Upstream{}), MRAP("default")).Objects[MRAP("default")], want: Hold,
		},
		"NotAdopted": {
			reason: "Crossplane made it, and this sync adopts nothing.", policy: narrow,
			live: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "c"}},
			edit: func(o *Observed) { o.Terms.Adoption = AdoptNone }, want: Hold,
		},
		"Retained": {
			reason: "The commit itself asks not to write it.", policy: withAnnotation(narrow, "kustomize.toolkit.fluxcd.io/reconcile: disabled"), live: ours,
			trial: Trial{Live: policyObject("default", "*"), After: policyObject("default", buckets)}, want: Hold,
		},
		"Reported": {
			reason: "Drift is not corrected.", policy: narrow, live: ours,
			trial: Trial{Live: policyObject("default", "*"), After: policyObject("default", buckets)},
			edit: func(o *Observed) {
				o.Inventory.Entries = map[manifest.ID]Entry{MRAP("default"): {UID: "u", Digest: digestOf(t, narrow)}}
			},
			how: Guarding{ReportDrift: true}, want: Hold,
		},
		"Observed": {
			reason: "The commit only looks at it.", policy: withAnnotation(narrow, "headgate.dev/management-policy: Observable"), live: ours,
			trial: Trial{Live: policyObject("default", "*"), After: policyObject("default", buckets)}, want: Hold,
		},
		"Paused": {
			reason: "A person works on it.", policy: narrow,
			live: live(policyObject("default", "*"), "u", func(o *metav1.PartialObjectMetadata) {
				o.Annotations[pauseAnnotation] = "true"
			}),
			trial: Trial{Live: policyObject("default", "*"), After: policyObject("default", buckets)}, want: Hold,
		},
		"Refused": {
			reason: "The API server refuses it.", policy: narrow, live: ours, trial: Trial{Err: errBoom}, want: Hold,
		},
		"Ignored": {
			reason: "The patterns stay as they are, because the sync ignores them.", policy: narrow, live: ours,
			trial: Trial{Live: policyObject("default", "*"), After: policyObject("default", "*")}, want: Hold,
		},
		"Waiting": {
			reason: "It is narrowed after the package that it is to limit.", live: ours,
			policy: withAnnotation(narrow, "config.kubernetes.io/depends-on: pkg.crossplane.io/Provider/provider-toy"),
			trial:  Trial{Live: policyObject("default", "*"), After: policyObject("default", buckets)}, want: Hold,
		},
		"WaitingForWhatIsReady": {
			reason: "What it depends on is there: it waits for nothing.", live: ours,
			policy: withAnnotation(narrow, "config.kubernetes.io/depends-on: /namespaces/a/ConfigMap/b"),
			trial:  Trial{Live: policyObject("default", "*"), After: policyObject("default", buckets)},
			edit: func(o *Observed) {
				o.Dependencies = map[manifest.ID]Dependency{{Kind: "ConfigMap", Namespace: "a", Name: "b"}: {Exists: true}}
			},
			want: Create,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := seenWith(Upstream{Policies: map[string]LivePolicy{"default": {Patterns: []string{"*"}}}})
			seen.Objects[MRAP("default")] = tc.live
			seen.Trials = map[manifest.ID]Trial{MRAP("default"): tc.trial}
			if tc.edit != nil {
				tc.edit(&seen)
			}
			p, got := steps(t, desired(t, render.OwnerCrossplane, map[string]string{"provider.yaml": provider, "policy.yaml": tc.policy}), seen, tc.how.Guards()...)
			s, policy := got["Provider provider-toy"], got["ManagedResourceActivationPolicy default"]
			if s.Action != tc.want || tc.want == Hold && s.Guard != guardFlood {
				t.Errorf("%s\nProvider: %s %q (%s), want %s; policy: %s %q (%s)", tc.reason, s.Action, s.Guard, s.Reason, tc.want, policy.Action, policy.Guard, policy.Reason)
			}
			asItWas := p.Wider(map[string]LivePolicy{"default": {Patterns: []string{"*"}}})
			if (asItWas == "") != (tc.want == Hold) {
				t.Errorf("%s\nright before the package is sent, the policy is as wide as before: %q", tc.reason, asItWas)
			}
		})
	}
}

// digestOf is the digest of what is sent for the only policy of a manifest.
func digestOf(t *testing.T, policy string) string {
	t.Helper()
	for _, o := range desired(t, render.OwnerCrossplane, map[string]string{"policy.yaml": policy}).Objects {
		if o.ID == MRAP(o.ID.Name) {
			return sync.Digest(o)
		}
	}
	t.Fatal("no policy")
	return ""
}

func TestWider(t *testing.T) {
	p := Plan{policies: policiesInForce{
		{LivePolicy{Patterns: []string{"a.*", "b.*"}}, "team", true}, {LivePolicy{Patterns: []string{"*"}, Paused: true}, "all", true},
	}}
	cases := map[string]struct {
		reason string
		live   map[string]LivePolicy
		wider  bool
	}{
		"AsExpected": {"Nothing changed.", map[string]LivePolicy{"team": {Patterns: []string{"b.*", "a.*"}}, "all": {Patterns: []string{"*"}, Paused: true}}, false},
		"Narrower":   {"Less is activated than the guards allowed.", map[string]LivePolicy{"team": {Patterns: []string{"a.*"}}}, false},
		"Gone":       {"Nothing is activated.", nil, false},
		"Elsewhere":  {"It does not matter which policy activates it.", map[string]LivePolicy{"other": {Patterns: []string{"a.*"}}}, false},
		"Widened":    {"A hand edit, or an update that failed.", map[string]LivePolicy{"team": {Patterns: []string{"a.*", "c.*"}}}, true},
		"Back":       {"Crossplane restarted, and made its default policy again.", map[string]LivePolicy{"team": {Patterns: []string{"a.*"}}, "default": {Patterns: []string{"*"}}}, true},
		"Resumed":    {"Somebody took the pause annotation off.", map[string]LivePolicy{"all": {Patterns: []string{"*"}}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if why := p.Wider(tc.live); (why != "") != tc.wider {
				t.Errorf("%s\nWider(%v) = %q", tc.reason, tc.live, why)
			}
		})
	}
}

func TestFinalKnowsWhatIsWritten(t *testing.T) {
	up := Upstream{Policies: map[string]LivePolicy{"team": {Patterns: []string{buckets}}}}
	want := desired(t, render.OwnerCrossplane, map[string]string{"policy.yaml": mrap("team", "queues.example.org"), "provider.yaml": provider})
	taken := Step{Action: Prune, TakesBack: true, Definition: true, ID: MRD(buckets)}
	for name, tc := range map[string]struct {
		policy Step
		held   bool
	}{
		"Written":  {Step{Action: Update}, false},
		"Held":     {Step{Action: Hold, Would: Update}, true},
		"Retained": {Step{Action: Keep, Cause: Retain}, true},
		"Refused":  {Step{Action: Update, Err: errBoom}, true},
		"Waiting":  {Step{Action: Update, Waits: "a Provider"}, true},
	} {
		tc.policy.ID, tc.policy.After = MRAP("team"), policyObject("team", "queues.example.org")
		r := final(taken, Case{Want: want, Seen: seenWith(up), Steps: []Step{tc.policy, taken}})
		if held := r.Answer == Held && strings.Contains(r.Reason, "the policy team"); held != tc.held {
			t.Errorf("%s: a definition that a live policy names is not deactivated: %+v", name, r)
		}
	}
}

// family is a repository with two packages of 150 definitions each, by directory.
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

// inFullUpTo are the names of the first definitions of a package of a family.
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
			ids = append(ids, CRD(name))
		}
		return ids
	}
	cases := map[string]struct {
		reason    string
		safeStart string // "" is that the packages have it
		policies  []string
		entries   map[manifest.ID]Entry
		live      []manifest.ID
		most      int
		held      map[string]int // by directory
		created   int            // CRDs of definitions
	}{
		"InFull": {
			reason:   "A cluster that is made again from Git with 180 named kinds needs nobody.",
			policies: []string{mrap("team", append(inFullUpTo(90, "aws"), inFullUpTo(90, "gcp")...)...)}, created: 180,
		},
		"Wildcard": {
			reason: "Nobody reviews so many at once.", policies: []string{mrap("team", "*")}, held: map[string]int{"aws": 150, "gcp": 150},
		},
		"OtherWildcards": {
			reason: "Whatever matches more than one name is a wildcard.", policies: []string{mrap("team", "t?*.aws.example.org", "[t]*.gcp.example.org")}, held: map[string]int{"aws": 150, "gcp": 150},
		},
		"MoreAllowed": {
			reason: "The Sync says how many are allowed.", policies: []string{mrap("team", "*")}, most: 300, created: 300,
		},
		"Few": {
			reason: "A wildcard that opens few is what policies are for.", policies: []string{mrap("team", "t1?.aws.example.org")}, created: 10,
		},
		"NothingElseStops": {
			reason:   "Only the flood is held: what another policy opens in another package is made.",
			policies: []string{mrap("all", "*.aws.example.org"), mrap("team", "t1?.gcp.example.org")}, held: map[string]int{"aws": 150}, created: 10,
		},
		"NamedBeside": {
			reason:   "What is named in full is not the flood's.",
			policies: []string{mrap("all", "*.aws.example.org"), mrap("team", inFullUpTo(20, "aws")...)}, held: map[string]int{"aws": 130}, created: 20,
		},
		"NamedByAPausedPolicy": {
			reason:   "A paused policy names nothing.",
			policies: []string{mrap("all", "*.aws.example.org"), withAnnotation(mrap("team", inFullUpTo(20, "aws")...), `crossplane.io/paused: "true"`)}, held: map[string]int{"aws": 150},
		},
		"ManyPolicies": {
			reason:   "A flood is not smaller for being shared between policies: it is counted by package, too.",
			policies: []string{mrap("a", "t?.aws.example.org", "t??.aws.example.org"), mrap("b", "t1*.aws.example.org")}, held: map[string]int{"aws": 150},
		},
		"ManyPackages": {
			reason: "Nor for being shared between packages: it is counted by policy.", policies: []string{mrap("a", "t?.*", "t??.*")}, most: 150, held: map[string]int{"aws": 100, "gcp": 100},
		},
		"Exactly": {
			reason: "As many as are allowed.", policies: []string{mrap("a", "t?.*")}, most: 20, created: 20,
		},
		"OneMore": {
			reason: "One more than is allowed.", policies: []string{mrap("a", "t?.*")}, most: 19, held: map[string]int{"aws": 10, "gcp": 10},
		},
		"Open": {
			reason: "What is open already is not opened.", policies: []string{mrap("team", "*.aws.example.org")}, live: crds(100, "aws"), created: 50,
			entries: entriesOf(crds(100, "aws"), "u"),
		},
		"Adopted": {
			reason: "CRDs that somebody applied by hand are adopted, not opened.", policies: []string{mrap("team", "*.aws.example.org")}, live: crds(60, "aws"), created: 90,
		},
		"DeletedByHand": {
			reason: "What was open is put back.", policies: []string{mrap("team", "*.aws.example.org")}, entries: entriesOf(crds(150, "aws"), "u"), created: 150,
		},
		"Intended": {
			reason: "That a pass was about to make them opened nothing.", policies: []string{mrap("team", "*.aws.example.org")}, entries: entriesOf(crds(150, "aws"), ""),
			held: map[string]int{"aws": 150},
		},
		"NoSafeStart": {
			reason: "The packages activate everything themselves.", safeStart: "safestart2", held: map[string]int{"aws": 150, "gcp": 150},
		},
		"NoSafeStartInFull": {
			reason: "What is named was meant, and the rest was not.", safeStart: "none", policies: []string{mrap("team", inFullUpTo(150, "aws")...)},
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
			seen := seenWith(Upstream{})
			seen.Natural, seen.Inventory.Entries = render.OwnerHeadgate, tc.entries
			for _, id := range tc.live {
				seen.Objects[id] = live(&unstructured.Unstructured{Object: map[string]any{"kind": id.Kind, "metadata": map[string]any{"name": id.Name}}}, "u")
			}
			p, got := steps(t, family(t, render.OwnerHeadgate, tc.safeStart, files), seen, Guarding{MaxActivations: tc.most}.Guards()...)
			held, created := map[string]int{}, 0
			for _, s := range p.Steps {
				switch {
				case s.Guard == guardFlood && s.Action == Hold:
					held[strings.Split(s.ID.Name, ".")[1]]++
				case s.Definition && s.Action == Create:
					created++
				}
			}
			if !maps.Equal(held, tc.held) && len(held)+len(tc.held) > 0 || created != tc.created {
				t.Errorf("%s\nheld %v and created %d, want %v and %d", tc.reason, held, created, tc.held, tc.created)
			}
			if s := got["CustomResourceDefinition providerconfigs.aws.example.org"]; s.Action != Create {
				t.Errorf("an exempt CRD is never part of a flood: %+v", s)
			}
			if total := len(tc.held); total == 0 {
				return
			}
			if p.Approval == nil {
				t.Fatalf("%s\na flood can be approved", tc.reason)
			}
			seen.Approvals = Approvals{OnSync: {p.Approval.Digest}}
			if approved, _ := steps(t, p.Want, seen, Guarding{MaxActivations: tc.most}.Guards()...); approved.Count(Hold) > 0 {
				t.Errorf("%s\n%d are held although they are approved", tc.reason, approved.Count(Hold))
			}
		})
	}
}

func entriesOf(ids []manifest.ID, uid types.UID) map[manifest.ID]Entry {
	entries := map[manifest.ID]Entry{}
	for _, id := range ids {
		entries[id] = Entry{UID: uid, Digest: "before"}
	}
	return entries
}

func TestFloodIsTheSameInAPreview(t *testing.T) {
	base := family(t, render.OwnerHeadgate, "safe-start", map[string]string{"policy.yaml": mrap("team", "t1.aws.example.org")})
	head := family(t, render.OwnerHeadgate, "safe-start", map[string]string{"policy.yaml": mrap("team", "*")})
	seen, err := Baseline{Base: base, Sync: sync}.Observe(t.Context(), head)
	if err != nil {
		t.Fatal(err)
	}
	preview, _ := steps(t, head, seen, Guarding{}.Guards()...)
	cluster := seenWith(Upstream{})
	cluster.Natural = render.OwnerHeadgate
	cluster.Inventory.Entries = map[manifest.ID]Entry{}
	for _, o := range base.Objects {
		content, err := o.Content()
		if err != nil {
			t.Fatal(err)
		}
		cluster.Objects[o.ID] = live(content, "u")
		cluster.Inventory.Entries[o.ID] = Entry{UID: "u", Digest: sync.Digest(o)}
	}
	pass, _ := steps(t, head, cluster, Guarding{}.Guards()...)
	if preview.Count(Hold) != 299 || preview.Approval == nil || pass.Approval == nil || preview.Approval.Digest != pass.Approval.Digest {
		t.Errorf("a preview and a cluster hold the same and ask for the same approval: %d and %d held, %+v and %+v",
			preview.Count(Hold), pass.Count(Hold), preview.Approval, pass.Approval)
	}
}

func TestFloodOfAPolicyAndAPackage(t *testing.T) {
	want := desired(t, render.OwnerCrossplane, map[string]string{"provider.yaml": provider, "policy.yaml": mrap("team", "*")})
	p, got := steps(t, want, seenWith(Upstream{Definitions: map[string]LiveDefinition{"a.example.org": {}}}), Guarding{MaxActivations: 2}.Guards()...)
	if s := got["Provider provider-toy"]; s.Action != Hold || s.Guard != guardFlood || p.Approval == nil || p.Approval.Steps != 2 {
		t.Errorf("a policy is held together with the package that it would open, and one approval is for both: %+v, %+v", s, p.Approval)
	}
}

func TestWhatDependsOnAFloodWaits(t *testing.T) {
	want := family(t, render.OwnerHeadgate, "safe-start", map[string]string{
		"policy.yaml": mrap("all", "*.aws.example.org"), "team.yaml": mrap("team", "t1.gcp.example.org"),
		"a.yaml": "apiVersion: aws.example.org/v1\nkind: T1\nmetadata: {name: a}\n",
		"b.yaml": "apiVersion: gcp.example.org/v1\nkind: T1\nmetadata: {name: b}\n",
	})
	seen := seenWith(Upstream{})
	seen.Natural = render.OwnerHeadgate
	p, got := steps(t, want, seen, Guarding{}.Guards()...)
	if s := got["T1 a"]; !s.Waiting() || !strings.Contains(s.Waits, `the guard "flood" holds`) {
		t.Errorf("its kind is not served before somebody approves the flood: %+v", s)
	}
	if s := got["T1 b"]; !s.Writes() {
		t.Errorf("nothing else stops: %+v", s)
	}
	if p.Coming(nil) {
		t.Error("a flood that is held does not come by itself, so nobody waits for it")
	}
}

func TestFloodOfMRDs(t *testing.T) {
	everything := Upstream{Policies: map[string]LivePolicy{"default": {Patterns: []string{"*"}}}}
	cases := map[string]struct {
		reason    string
		safeStart string
		up        Upstream
		policies  string
		held      int
	}{
		"Inactive":    {"Definitions are light as long as nothing activates them.", "safe-start", Upstream{}, "", 0},
		"NoSafeStart": {"All of them are made Active.", "none", Upstream{}, "", 300},
		"Default":     {"The default policy of Crossplane activates all of them at once.", "safe-start", everything, "", 300},
		"WideInGit":   {"The policy was allowed when it opened little.", "safe-start", Upstream{Policies: map[string]LivePolicy{"all": {Patterns: []string{"*"}}}}, mrap("all", "*"), 300},
		"InFull":      {"They are meant.", "safe-start", everything, mrap("team", append(inFullUpTo(150, "aws"), inFullUpTo(150, "gcp")...)...), 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			if tc.policies != "" {
				files["policy.yaml"] = tc.policies
			}
			seen := seenWith(tc.up)
			if tc.up.Policies["all"].Patterns != nil { // as this sync left it
				seen.Objects[MRAP("all")] = live(policyObject("all", "*"), "u")
				seen.Inventory.Entries = map[manifest.ID]Entry{MRAP("all"): {UID: "u"}}
			}
			p, _ := steps(t, family(t, render.OwnerCrossplane, tc.safeStart, files), seen, Guarding{}.Guards()...)
			held := 0
			for _, s := range p.Steps {
				if s.Guard == guardFlood && s.ID.IsMRD() {
					held++
				}
			}
			if held != tc.held {
				t.Errorf("%s\nheld %d, want %d", tc.reason, held, tc.held)
			}
		})
	}
}

// A Provider is held for everything that may become active when it arrives.
func TestFloodOfAProvider(t *testing.T) {
	id := manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "provider-toy"}
	inFull := mrap("team", buckets, "queues.example.org", "tables.example.org")
	others := map[string]LiveDefinition{}
	for _, name := range []string{"a", "b", "c"} {
		others[name+".other.example.org"] = LiveDefinition{}
	}
	cases := map[string]struct {
		reason string
		files  map[string]string
		edit   func(*render.Desired)
		up     Upstream
		want   Action
		says   string // part of the reason
	}{
		"InFull": {
			reason: "All that it brings is known, and named.", files: map[string]string{"policy.yaml": inFull},
			up: Upstream{Policies: map[string]LivePolicy{"default": {Patterns: []string{"*"}}}}, want: Create,
		},
		"Unread": {
			reason: "A package that it depends on was not read: what it brings is not known.", files: map[string]string{"policy.yaml": inFull},
			edit: func(want *render.Desired) { want.Unread = []catalogue.Unread{{Installers: []manifest.ID{id}}} },
			up:   Upstream{Policies: map[string]LivePolicy{"default": {Patterns: []string{"*"}}}}, want: Hold,
			says: "the policy default in the cluster activates every definition that it brings",
		},
		"UnreadUnderNarrowPolicies": {
			reason: "No policy opens what is not known.", files: map[string]string{"policy.yaml": inFull},
			edit: func(want *render.Desired) { want.Unread = []catalogue.Unread{{Installers: []manifest.ID{id}}} }, want: Create,
		},
		"NoSafeStart": {
			reason: "Its definitions are active whatever policies name.",
			files:  map[string]string{"package/crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-toy}\n"}, want: Hold,
		},
		"BringsAPolicy": {
			reason: "Crossplane installs a policy with it, which opens what other packages brought.",
			edit: func(want *render.Desired) {
				for _, p := range want.Packages {
					want.Left = append(want.Left, render.Left{ID: MRAP("shipped"), Package: p.Directory})
				}
				want.Policies = append(want.Policies, catalogue.Policy{Name: "shipped", Patterns: []catalogue.Pattern{{Glob: "*.other.example.org"}}})
			},
			up: Upstream{Definitions: others}, want: Hold,
		},
		"BringsNone": {reason: "Nothing opens them.", up: Upstream{Definitions: others}, want: Create},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"provider.yaml": provider}
			maps.Copy(files, tc.files)
			want := desired(t, render.OwnerCrossplane, files)
			if tc.edit != nil {
				tc.edit(&want)
			}
			_, got := steps(t, want, seenWith(tc.up), Guarding{MaxActivations: 2}.Guards()...)
			if s := got["Provider provider-toy"]; s.Action != tc.want || tc.want == Hold && s.Guard != guardFlood || !strings.Contains(s.Reason, tc.says) {
				t.Errorf("%s\n%s %q (%s), want %s", tc.reason, s.Action, s.Guard, s.Reason, tc.want)
			}
		})
	}
}

func TestNamed(t *testing.T) {
	live := map[string]LivePolicy{"b": {Patterns: []string{buckets}}, "a": {Patterns: []string{"*.example.org"}}, "paused": {Patterns: []string{"*"}, Paused: true}}
	for definition, want := range map[string]string{buckets: "a", "a.example.com": ""} {
		if got := Named(live, definition); got != want {
			t.Errorf("Named(%s) = %q, want %q", definition, got, want)
		}
	}
}

func TestOnlyWildcardsFlood(t *testing.T) {
	reasons := []activation.Reason{
		{Cause: activation.Matched, Policy: "a", Pattern: buckets}, {Cause: activation.Matched, Policy: "b", Pattern: "*"},
		{Cause: activation.Matched, Policy: "b", Pattern: "b*"}, {Cause: activation.Declared},
	}
	if got := wildcards(reasons, buckets); len(got) != 1 || got[0] != "b" {
		t.Errorf("wildcards(%v) = %v", reasons, got)
	}
}

package plan

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

const dark = `apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata:
  name: provider-dark
spec:
  package: registry.example.org/dark/provider-dark:v2.0.0
`

var darkID = manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "provider-dark"}

// darkness is a commit with a Provider whose package nobody could read, and a policy.
func darkness(t *testing.T, files map[string]string) render.Desired {
	t.Helper()
	files["provider.yaml"] = dark
	want := desired(t, render.OwnerCrossplane, files)
	want.Unread = []catalogue.Unread{{Source: "registry.example.org/dark/provider-dark", Installers: []manifest.ID{darkID}, Err: errors.New("package registry.example.org/dark/provider-dark:v2.0.0 cannot be read: 403")}}
	return want
}

// A package that cannot be read declares an unknown number of definitions, and not none.
func TestFloodOfAnUnreadPackage(t *testing.T) {
	const policy, provider = "ManagedResourceActivationPolicy team", "Provider provider-dark"
	image := func(version string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": map[string]any{"name": "provider-dark"},
			"spec": map[string]any{"package": "registry.example.org/dark/provider-dark:" + version},
		}}
	}
	// there is a Provider that is installed, and the policies that are live.
	there := func(seen *Observed, p LivePackage) {
		seen.Objects[darkID] = live(image("v2.0.0"), "p")
		seen.Upstream.Packages = map[manifest.ID]LivePackage{darkID: p}
	}
	installed := LivePackage{Revision: "r", Healthy: metav1.ConditionTrue}
	policies := func(seen *Observed, of map[string][]string) {
		seen.Upstream.Policies = map[string]LivePolicy{}
		for name, globs := range of {
			seen.Upstream.Policies[name] = LivePolicy{Patterns: globs}
			all := make([]any, len(globs))
			for i, glob := range globs {
				all[i] = glob
			}
			seen.Objects[MRAP(name)] = live(policyObject(name, all...), types.UID(name))
		}
	}
	cases := map[string]struct {
		reason           string
		commit           map[string]string
		edit             func(*Observed)
		policy, provider Action
	}{
		"Star": {
			reason: "The policy waits until the package is installed, and can be counted.",
			commit: map[string]string{"policy.yaml": mrap("team", "*")}, policy: Hold, provider: Create,
		},
		"Group": {
			reason: "A wildcard for one group may match a thousand definitions of it.",
			commit: map[string]string{"policy.yaml": mrap("team", "*.dark.example.org")}, policy: Hold, provider: Create,
		},
		"InFull": {
			reason: "What a policy names in full does not count.",
			commit: map[string]string{"policy.yaml": mrap("team", "lamps.dark.example.org")}, policy: Create, provider: Create,
		},
		"Malformed": {
			reason: "A pattern that is malformed matches nothing.",
			commit: map[string]string{"policy.yaml": mrap("team", "[*")}, policy: Create, provider: Create,
		},
		"Installed": {
			reason: "The cluster has all definitions of it.", commit: map[string]string{"policy.yaml": mrap("team", "*")},
			edit: func(o *Observed) { there(o, installed) }, policy: Create, provider: Keep,
		},
		"Installing": {
			reason: "Crossplane is still making them.", commit: map[string]string{"policy.yaml": mrap("team", "*")},
			edit: func(o *Observed) { there(o, LivePackage{Revision: "r", Healthy: metav1.ConditionFalse}) }, policy: Hold, provider: Keep,
		},
		"AsBefore": {
			reason: "The policy is in force already, and the package arrives under it.", commit: map[string]string{"policy.yaml": mrap("team", "*.dark.example.org")},
			edit: func(o *Observed) { policies(o, map[string][]string{"team": {"*.dark.example.org"}}) }, policy: Keep, provider: Hold,
		},
		"NarrowedFirst": {
			reason: "Policies are written before packages.", commit: map[string]string{"policy.yaml": mrap("team", "lamps.dark.example.org")},
			edit: func(o *Observed) {
				policies(o, map[string][]string{"team": {"*"}})
				o.Trials = map[manifest.ID]Trial{MRAP("team"): {Live: policyObject("team", "*"), After: policyObject("team", "lamps.dark.example.org")}}
			}, policy: Update, provider: Create,
		},
		"Widened": {
			reason: "The wildcard is new.", commit: map[string]string{"policy.yaml": mrap("team", "lamps.dark.example.org", "*.dark.example.org")},
			edit: func(o *Observed) {
				policies(o, map[string][]string{"team": {"lamps.dark.example.org"}})
				o.Trials = map[manifest.ID]Trial{MRAP("team"): {Live: policyObject("team", "lamps.dark.example.org"), After: policyObject("team", "lamps.dark.example.org", "*.dark.example.org")}}
			}, policy: Hold, provider: Create,
		},
		"UnderAWiderOne": {
			reason: "The package is held anyway, so the policy changes nothing.", commit: map[string]string{"policy.yaml": mrap("team", "*.dark.example.org"), "all.yaml": mrap("all", "*")},
			edit: func(o *Observed) { policies(o, map[string][]string{"all": {"*"}}) }, policy: Create, provider: Hold,
		},
		"WiderOneNarrowed": {
			reason: "The wider policy is narrowed by the same commit, so the wildcard of this one counts.",
			commit: map[string]string{"policy.yaml": mrap("team", "*.dark.example.org"), "all.yaml": mrap("all", "lamps.dark.example.org")},
			edit: func(o *Observed) {
				policies(o, map[string][]string{"all": {"*"}})
				o.Trials = map[manifest.ID]Trial{MRAP("all"): {Live: policyObject("all", "*"), After: policyObject("all", "lamps.dark.example.org")}}
			}, policy: Hold, provider: Create,
		},
		"PausedBefore": {
			reason: "A policy that was paused opens what it names when it is not.", commit: map[string]string{"policy.yaml": mrap("team", "*.dark.example.org")},
			edit: func(o *Observed) {
				policies(o, map[string][]string{"team": {"*.dark.example.org"}})
				o.Upstream.Policies["team"] = LivePolicy{Patterns: []string{"*.dark.example.org"}, Paused: true}
				o.Trials = map[manifest.ID]Trial{MRAP("team"): {Live: policyObject("team", "*"), After: policyObject("team", "*.dark.example.org")}}
			}, policy: Hold, provider: Create,
		},
		"Upgraded": {
			reason: "A new version has new definitions, and the policy opens all.", commit: map[string]string{"policy.yaml": mrap("team", "*")},
			edit: func(o *Observed) {
				policies(o, map[string][]string{"team": {"*"}})
				there(o, installed)
				o.Trials = map[manifest.ID]Trial{darkID: {Live: image("v1.0.0"), After: image("v2.0.0")}}
			}, policy: Keep, provider: Hold,
		},
		"UpgradedUnderAGroup": {
			reason: "A new version of what is installed is not a new provider.", commit: map[string]string{"policy.yaml": mrap("team", "*.dark.example.org")},
			edit: func(o *Observed) {
				policies(o, map[string][]string{"team": {"*.dark.example.org"}})
				there(o, installed)
				o.Trials = map[manifest.ID]Trial{darkID: {Live: image("v1.0.0"), After: image("v2.0.0")}}
			}, policy: Keep, provider: Update,
		},
		"Relabelled": {
			reason: "It is the same package.", commit: map[string]string{"policy.yaml": mrap("team", "*")},
			edit: func(o *Observed) {
				policies(o, map[string][]string{"team": {"*"}})
				there(o, installed)
				o.Trials = map[manifest.ID]Trial{darkID: {Live: image("v2.0.0"), After: image("v2.0.0")}}
			}, policy: Keep, provider: Update,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := seenWith(Upstream{})
			if tc.edit != nil {
				tc.edit(&seen)
			}
			want := darkness(t, tc.commit)
			p, got := steps(t, want, seen, Guarding{}.Guards()...)
			for name, action := range map[string]Action{policy: tc.policy, provider: tc.provider} {
				s := got[name]
				if s.Action != action || action == Hold && (s.Guard != guardFlood || !strings.Contains(s.Reason, "cannot be read: 403")) {
					t.Errorf("%s\n%s: %s %q (%s), want %s", tc.reason, name, s.Action, s.Guard, s.Reason, action)
				}
			}
			if p.Approval == nil {
				return
			}
			seen.Inventory.ResourceVersion, seen.Approvals = "1", Approvals{OnCommand: {p.Approval.Digest}}
			if p, _ := steps(t, want, seen, Guarding{}.Guards()...); p.Count(Hold) > 0 {
				t.Errorf("%s\nOne approval lets all of it pass, and %d are held", tc.reason, p.Count(Hold))
			}
		})
	}
}

// A Configuration that cannot be read may hold policies, so nothing is known to be unnamed.
func TestUnreadPoliciesDeactivateNothing(t *testing.T) {
	by := func(kind string) render.Desired {
		return render.Desired{Unread: []catalogue.Unread{{Source: "s", Installers: []manifest.ID{{Group: "pkg.crossplane.io", Kind: kind, Name: "n"}}, Err: errBoom}}}
	}
	seen := Observed{Terms: Terms{TakeBack: true}}
	if seen.takesBack(by("Configuration")) || len(noteSkippedPolicy(by("Configuration"), seen)) != 1 {
		t.Error("What a Configuration holds is not known, so nothing is deactivated, and a note tells that")
	}
	for _, kind := range []string{"Provider", "Function"} {
		if !seen.takesBack(by(kind)) || len(noteSkippedPolicy(by(kind), seen)) != 0 {
			t.Errorf("A %s holds no policy", kind)
		}
	}
}

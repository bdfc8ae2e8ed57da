package guard

import (
	"errors"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const dark = `apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata:
  name: provider-dark
spec:
  package: registry.example.org/dark/provider-dark:v2.0.0
`

var darkID = manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "provider-dark"}

// darkness returns a commit with a policy and a Provider with an unreadable package.
func darkness(t *testing.T, files map[string]string) render.Desired {
	t.Helper()
	files["provider.yaml"] = dark
	want := given.Desired(t, render.OwnerCrossplane, files)
	want.Unread = []catalogue.Unread{{Source: "registry.example.org/dark/provider-dark", Installers: []manifest.ID{darkID}, Err: errors.New("package registry.example.org/dark/provider-dark:v2.0.0 cannot be read: 403")}}
	return want
}

// A package that cannot be read has an unknown number of definitions, which must not count as zero.
func TestFloodOfAnUnreadPackage(t *testing.T) {
	const policy, provider = "ManagedResourceActivationPolicy team", "Provider provider-dark"
	image := func(version string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": map[string]any{"name": "provider-dark"},
			"spec": map[string]any{"package": "registry.example.org/dark/provider-dark:" + version},
		}}
	}
	// there adds an installed Provider to the cluster.
	there := func(seen *facts.Observed, p crossplane.LivePackage) {
		seen.Objects[darkID] = given.Live(image("v2.0.0"), "p")
		seen.Upstream.Packages = map[manifest.ID]crossplane.LivePackage{darkID: p}
	}
	installed := crossplane.LivePackage{Revision: "r", Healthy: metav1.ConditionTrue}
	policies := func(seen *facts.Observed, of map[string][]string) {
		seen.Upstream.Policies = map[string]crossplane.LivePolicy{}
		for name, globs := range of {
			seen.Upstream.Policies[name] = crossplane.LivePolicy{Patterns: globs}
			all := make([]any, len(globs))
			for i, glob := range globs {
				all[i] = glob
			}
			seen.Objects[crossplane.MRAP(name)] = given.Live(policyObject(name, all...), types.UID(name))
		}
	}
	cases := map[string]struct {
		reason           string
		commit           map[string]string
		edit             func(*facts.Observed)
		policy, provider plan.Action
	}{
		"Star": {
			reason: "The policy waits until the package is installed and its definitions can be counted.",
			commit: map[string]string{"policy.yaml": given.Policy("team", "*")}, policy: plan.Hold, provider: plan.Create,
		},
		"Group": {
			reason: "A wildcard for one group may match a thousand definitions of the package.",
			commit: map[string]string{"policy.yaml": given.Policy("team", "*.dark.example.org")}, policy: plan.Hold, provider: plan.Create,
		},
		"InFull": {
			reason: "Fully named definitions do not count.",
			commit: map[string]string{"policy.yaml": given.Policy("team", "lamps.dark.example.org")}, policy: plan.Create, provider: plan.Create,
		},
		"Malformed": {
			reason: "A malformed pattern matches nothing.",
			commit: map[string]string{"policy.yaml": given.Policy("team", "[*")}, policy: plan.Create, provider: plan.Create,
		},
		"Installed": {
			reason: "The cluster already has all definitions of the package.", commit: map[string]string{"policy.yaml": given.Policy("team", "*")},
			edit: func(o *facts.Observed) { there(o, installed) }, policy: plan.Create, provider: plan.Keep,
		},
		"Installing": {
			reason: "Crossplane is still creating the definitions.", commit: map[string]string{"policy.yaml": given.Policy("team", "*")},
			edit: func(o *facts.Observed) {
				there(o, crossplane.LivePackage{Revision: "r", Healthy: metav1.ConditionFalse})
			}, policy: plan.Hold, provider: plan.Keep,
		},
		"AsBefore": {
			reason: "The policy is already in force, so the package is held.", commit: map[string]string{"policy.yaml": given.Policy("team", "*.dark.example.org")},
			edit: func(o *facts.Observed) { policies(o, map[string][]string{"team": {"*.dark.example.org"}}) }, policy: plan.Keep, provider: plan.Hold,
		},
		"NarrowedFirst": {
			reason: "Policies are applied before packages, so the package finds a narrow one.", commit: map[string]string{"policy.yaml": given.Policy("team", "lamps.dark.example.org")},
			edit: func(o *facts.Observed) {
				policies(o, map[string][]string{"team": {"*"}})
				o.Trials = map[manifest.ID]facts.Trial{crossplane.MRAP("team"): {Live: policyObject("team", "*"), After: policyObject("team", "lamps.dark.example.org")}}
			}, policy: plan.Update, provider: plan.Create,
		},
		"Widened": {
			reason: "The wildcard is new, so the policy is held.", commit: map[string]string{"policy.yaml": given.Policy("team", "lamps.dark.example.org", "*.dark.example.org")},
			edit: func(o *facts.Observed) {
				policies(o, map[string][]string{"team": {"lamps.dark.example.org"}})
				o.Trials = map[manifest.ID]facts.Trial{crossplane.MRAP("team"): {Live: policyObject("team", "lamps.dark.example.org"), After: policyObject("team", "lamps.dark.example.org", "*.dark.example.org")}}
			}, policy: plan.Hold, provider: plan.Create,
		},
		"UnderAWiderOne": {
			reason: "The package is held anyway because of the wider policy, so this policy changes nothing.", commit: map[string]string{"policy.yaml": given.Policy("team", "*.dark.example.org"), "all.yaml": given.Policy("all", "*")},
			edit: func(o *facts.Observed) { policies(o, map[string][]string{"all": {"*"}}) }, policy: plan.Create, provider: plan.Hold,
		},
		"WiderOneNarrowed": {
			reason: "The same commit narrows the wider policy, so the wildcard of this one counts.",
			commit: map[string]string{"policy.yaml": given.Policy("team", "*.dark.example.org"), "all.yaml": given.Policy("all", "lamps.dark.example.org")},
			edit: func(o *facts.Observed) {
				policies(o, map[string][]string{"all": {"*"}})
				o.Trials = map[manifest.ID]facts.Trial{crossplane.MRAP("all"): {Live: policyObject("all", "*"), After: policyObject("all", "lamps.dark.example.org")}}
			}, policy: plan.Hold, provider: plan.Create,
		},
		"PausedBefore": {
			reason: "The policy was paused and takes effect with this commit.", commit: map[string]string{"policy.yaml": given.Policy("team", "*.dark.example.org")},
			edit: func(o *facts.Observed) {
				policies(o, map[string][]string{"team": {"*.dark.example.org"}})
				o.Upstream.Policies["team"] = crossplane.LivePolicy{Patterns: []string{"*.dark.example.org"}, Paused: true}
				o.Trials = map[manifest.ID]facts.Trial{crossplane.MRAP("team"): {Live: policyObject("team", "*"), After: policyObject("team", "*.dark.example.org")}}
			}, policy: plan.Hold, provider: plan.Create,
		},
		"Upgraded": {
			reason: "A new version may contain new definitions, and the policy activates all of them.", commit: map[string]string{"policy.yaml": given.Policy("team", "*")},
			edit: func(o *facts.Observed) {
				policies(o, map[string][]string{"team": {"*"}})
				there(o, installed)
				o.Trials = map[manifest.ID]facts.Trial{darkID: {Live: image("v1.0.0"), After: image("v2.0.0")}}
			}, policy: plan.Keep, provider: plan.Hold,
		},
		"UpgradedUnderAGroup": {
			reason: "A new version of an installed provider is not a new provider.", commit: map[string]string{"policy.yaml": given.Policy("team", "*.dark.example.org")},
			edit: func(o *facts.Observed) {
				policies(o, map[string][]string{"team": {"*.dark.example.org"}})
				there(o, installed)
				o.Trials = map[manifest.ID]facts.Trial{darkID: {Live: image("v1.0.0"), After: image("v2.0.0")}}
			}, policy: plan.Keep, provider: plan.Update,
		},
		"Relabelled": {
			reason: "The update does not change the package.", commit: map[string]string{"policy.yaml": given.Policy("team", "*")},
			edit: func(o *facts.Observed) {
				policies(o, map[string][]string{"team": {"*"}})
				there(o, installed)
				o.Trials = map[manifest.ID]facts.Trial{darkID: {Live: image("v2.0.0"), After: image("v2.0.0")}}
			}, policy: plan.Keep, provider: plan.Update,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := given.Seen(facts.Upstream{})
			if tc.edit != nil {
				tc.edit(&seen)
			}
			want := darkness(t, tc.commit)
			p, got := given.Steps(t, want, seen, Guarding{}.Guards()...)
			for name, action := range map[string]plan.Action{policy: tc.policy, provider: tc.provider} {
				s := got[name]
				if s.Action != action || action == plan.Hold && (s.Guard != Flood || !strings.Contains(Sentence(s.Reason), "cannot be read: 403")) {
					t.Errorf("%s\n%s: %s %q (%s), want %s", tc.reason, name, s.Action, s.Guard, s.Reason, action)
				}
			}
			if p.Approval == nil {
				return
			}
			seen.Inventory.ResourceVersion, seen.Approvals = "1", approval.Given{inventory.OnCommand: approval.UpTo(p.Approval.UpTo, p.Approval.Digest)}
			if p, _ := given.Steps(t, want, seen, Guarding{}.Guards()...); p.Count(plan.Hold) > 0 {
				t.Errorf("%s\nOne approval lets all of it pass, and %d are held", tc.reason, p.Count(plan.Hold))
			}
		})
	}
}

// An unreadable Configuration may contain policies, so Headgate cannot know that a definition is unnamed.
func TestUnreadPoliciesDeactivateNothing(t *testing.T) {
	by := func(kind string) render.Desired {
		return render.Desired{Unread: []catalogue.Unread{{Source: "s", Installers: []manifest.ID{{Group: "pkg.crossplane.io", Kind: kind, Name: "n"}}, Err: given.ErrBoom}}}
	}
	seen := facts.Observed{Given: facts.Given{Terms: facts.Terms{Deactivate: true}}}
	if draft.Deactivates(seen, by("Configuration")) || len(draft.NoteSkippedPolicy(by("Configuration"), seen)) != 1 {
		t.Error("The content of a Configuration is not known, so nothing is deactivated, and a note reports that")
	}
	for _, kind := range []string{"Provider", "Function"} {
		if !draft.Deactivates(seen, by(kind)) || len(draft.NoteSkippedPolicy(by(kind), seen)) != 0 {
			t.Errorf("A %s holds no policy", kind)
		}
	}
}

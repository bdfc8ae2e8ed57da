package draft_test

import (
	"errors"
	"slices"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Only Crossplane itself serves its own kinds. A cluster without Crossplane never will, unless the commit installs it.
func TestWithoutCrossplane(t *testing.T) {
	const (
		provider   = "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: p}\nspec: {package: registry.example.org/p:v1}\n"
		usage      = "apiVersion: protection.crossplane.io/v1beta1\nkind: ClusterUsage\nmetadata: {name: u}\nspec: {of: {apiVersion: v1, kind: Namespace, resourceRef: {name: a}}, reason: r}\n"
		release    = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: crossplane, namespace: d}\nspec: {chart: {spec: {chart: crossplane}}}\n"
		deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: core, namespace: d}\nspec: {template: {spec: {containers: [{name: c, image: registry.example.org/other}]}}}\n"
		core       = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: core, namespace: d}\nspec: {template: {spec: {containers: [{name: c, image: xpkg.crossplane.io/crossplane/crossplane:v2}]}}}\n"
		policy     = "apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: a}\nspec: {activate: [buckets.example.org]}\n"
	)
	all := []string{"ClusterUsage u", "ManagedResourceActivationPolicy a", "ManagedResourceDefinition buckets.example.org", "Provider p"}
	for name, tc := range map[string]struct {
		reason string
		also   string
		kinds  []schema.GroupKind
		absent bool // Crossplane is named as absent
		comes  bool // the steps wait for Crossplane
	}{
		"Never":     {reason: "It is not there, and the commit does not install it.", absent: true},
		"Others":    {reason: "Another program does not bring it.", also: deployment, absent: true},
		"Comes":     {reason: "A Helm release of the commit installs it.", also: release, comes: true},
		"Rendered":  {reason: "The commit has the rendered chart.", also: core, comes: true},
		"Installed": {reason: "An installed Crossplane may be too old for a kind.", kinds: []schema.GroupKind{crossplane.KindProvider, crossplane.KindMRD}},
	} {
		want := given.Desired(t, render.OwnerCrossplane, map[string]string{"a.yaml": provider + "---\n" + usage + "---\n" + policy + "---\n" + tc.also})
		seen := given.Seen(facts.Upstream{})
		seen.Natural, seen.Kinds = render.OwnerHeadgate, map[schema.GroupKind]plan.Kind{{Group: "apps", Kind: "Deployment"}: {Namespaced: true}, {Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}: {Namespaced: true}}
		for _, gk := range tc.kinds {
			seen.Kinds[gk], seen.Natural = plan.Kind{}, render.OwnerCrossplane
		}
		p, steps := given.Steps(t, want, seen, guard.Guarding{}.Guards()...)
		for _, id := range all {
			s := steps[id]
			absent := s.Err != nil && reason.Of(s.Err).Code == reason.CrossplaneAbsent
			comes := slices.ContainsFunc(s.Waits, func(r reason.Reason) bool { return r.Code == reason.CrossplaneComes })
			if absent != tc.absent || comes != tc.comes || s.Action != plan.Create || absent && !errors.Is(s.Err, reason.ErrUnserved) {
				t.Errorf("%s: %s: %s %s: %v %v", name, tc.reason, s.Action, id, s.Err, s.Waits)
			}
		}
		if tc.absent && plan.Coming(p, nil) {
			t.Errorf("%s: a pass waits for nothing", name)
		}
	}

	// It was there, so a person may have removed it by mistake.
	want, id := given.Desired(t, render.OwnerCrossplane, map[string]string{"a.yaml": policy}), crossplane.MRD("buckets.example.org")
	for uid, held := range map[types.UID]bool{"u": true, "": false} {
		seen := given.Seen(facts.Upstream{})
		seen.Natural, seen.Kinds = render.OwnerHeadgate, nil
		seen.Inventory.Owner, seen.Inventory.Entries = render.OwnerCrossplane, map[manifest.ID]inventory.Entry{id: {UID: uid}}
		_, steps := given.Steps(t, want, seen, guard.Guarding{}.Guards()...)
		if s := steps["ManagedResourceDefinition buckets.example.org"]; (s.Guard == guard.Owner && s.Reason.Code == reason.CrossplaneLeft) != held {
			t.Errorf("%q: %+v", uid, s)
		}
	}
}

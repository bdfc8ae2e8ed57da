package rounds_test

import (
	"slices"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/rounds"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const config = `apiVersion: example.org/v1
kind: ProviderConfig
metadata:
  name: default
`

func TestResumed(t *testing.T) {
	files := map[string]string{"provider.yaml": given.Provider, "config.yaml": config}
	want := given.Desired(t, render.OwnerCrossplane, files)
	toyProvider := manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "provider-toy"}
	ready := facts.Upstream{Packages: map[manifest.ID]crossplane.LivePackage{toyProvider: {Installed: metav1.ConditionTrue, Healthy: metav1.ConditionTrue}}}
	before, _ := given.Steps(t, want, given.Seen(facts.Upstream{}), guard.Guarding{}.Guards()...)
	served := given.Seen(ready)
	served.Kinds[schema.GroupKind{Group: "example.org", Kind: "ProviderConfig"}] = plan.Kind{Version: "v1", Resource: "providerconfigs"}
	now, _ := given.Steps(t, want, served, guard.Guarding{}.Guards()...)

	pass := rounds.Pass{First: before, Last: before}
	next := pass.Resumed(now, true)
	if len(next.Steps) != 1 || next.Steps[0].ID.Kind != "ProviderConfig" || !next.Steps[0].Writes() {
		t.Errorf("only what waited is carried out later: %+v", next.Steps)
	}
	after := rounds.Replaced(before, next)
	if len(after.Steps) != len(before.Steps) || plan.Coming(after, nil) {
		t.Errorf("nothing waits any more, and nothing is forgotten: %+v", after.Steps)
	}

	// The package is installed, but the API server does not serve the kind yet.
	unaware, _ := given.Steps(t, want, given.Seen(ready), guard.Guarding{}.Guards()...)
	if next := pass.Resumed(unaware, true); len(next.Steps) != 0 {
		t.Errorf("a kind that was awaited may be served a moment later: %+v", next.Steps)
	}
	if next := pass.Resumed(unaware, false); len(next.Steps) != 1 || next.Steps[0].Err == nil {
		t.Errorf("but not for ever: %+v", next.Steps)
	}

	late := map[manifest.ID]bool{next.Steps[0].ID: true}
	if plan.Coming(before, late) {
		t.Error("what is late is not waited for again")
	}
	for _, s := range rounds.Overdue(before, late).Steps {
		if (s.Err != nil) != late[s.ID] {
			t.Errorf("what did not come in time has failed, and nothing else: %+v", s)
		}
	}
	all := map[manifest.ID]bool{}
	for _, e := range before.Effects {
		all[e.On] = true
	}
	after = rounds.Overdue(before, all)
	if len(all) == 0 || slices.ContainsFunc(after.Effects, func(e plan.Effect) bool { return e.State == plan.Pending }) {
		t.Errorf("no effect is pending when the time is over: %+v", after.Effects)
	}
}

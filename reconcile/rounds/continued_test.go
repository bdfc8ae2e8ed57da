package rounds

import (
	"errors"
	"testing"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

func TestWithCarried(t *testing.T) {
	id := func(name string) manifest.ID { return manifest.ID{Kind: "ConfigMap", Namespace: "d", Name: name} }
	before := plan.Plan{Steps: []plan.Step{
		{ID: id("made"), Action: plan.Create}, {ID: id("gone"), Action: plan.Prune}, {ID: id("failed"), Action: plan.Create},
		{ID: id("unreached"), Action: plan.Update}, {ID: id("again"), Action: plan.Create}, {ID: id("kept"), Action: plan.Keep},
	}}
	done := []plan.Outcome{
		{ID: id("made"), Action: plan.Create}, {ID: id("gone"), Action: plan.Prune}, {ID: id("failed"), Action: plan.Create, Err: errors.New("boom")}, {ID: id("again"), Action: plan.Create},
	}
	now := plan.Plan{Steps: []plan.Step{
		{ID: id("made"), Action: plan.Keep}, {ID: id("failed"), Action: plan.Keep}, {ID: id("unreached"), Action: plan.Keep}, {ID: id("again"), Action: plan.Update}, {ID: id("kept"), Action: plan.Keep},
	}}
	got := map[string]plan.Action{}
	for _, s := range withCarried(now, before, done).Steps {
		got[s.ID.Name] = s.Action
	}
	want := map[string]plan.Action{"made": plan.Create, "gone": plan.Prune, "failed": plan.Keep, "unreached": plan.Keep, "again": plan.Update, "kept": plan.Keep}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Completed steps are reported as such, and open ones as open (-want +got):\n%s", diff)
	}
}

package controller

import (
	"errors"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
)

// Flux's notification-controller finds the commit of an Event, and takes no other revision for one.
func TestMetadataOf(t *testing.T) {
	for revision, want := range map[string]map[string]string{
		commit:         {"event.toolkit.fluxcd.io/revision": commit, "event.toolkit.fluxcd.io/commit": commit},
		"v1@sha256:ab": {"event.toolkit.fluxcd.io/revision": "v1@sha256:ab"},
	} {
		if diff := cmp.Diff(want, metadataOf(revision)); diff != "" {
			t.Errorf("metadataOf(%q) (-want +got):\n%s", revision, diff)
		}
	}
}

// An Event tells what happened: what a pass did and who let it, why it failed, and that it is over. A quiet pass tells nothing.
func TestTell(t *testing.T) {
	create := func(name string) plan.Step { return plan.Step{Action: plan.Create, Cause: plan.Commit, ID: id(name)} }
	made := func(names ...string) (steps []plan.Step, done []plan.Outcome) {
		for _, name := range names {
			steps, done = append(steps, create(name)), append(done, plan.Outcome{ID: id(name), Action: plan.Create})
		}
		return steps, done
	}
	two, done := made("a", "b")
	approved := plan.Step{Action: plan.Prune, Cause: plan.Commit, ID: id("c"), Approved: true}
	used := passed([]plan.Step{approved}, plan.Outcome{ID: id("c"), Action: plan.Prune})
	used.Report.Approvals = []report.Approved{{By: "alice", How: []inventory.ApprovalPlace{inventory.OnSync}, Digests: []string{digest}}}
	for name, tc := range map[string]struct {
		reason string
		events []reconcile.Event
		want   []string
	}{
		"First":    {"The first pass tells what it did.", []reconcile.Event{passed(two, done...)}, []string{"Normal Succeeded: applied 0123456789ab: 2 created"}},
		"Nothing":  {"A Sync that becomes ready without a write is told.", []reconcile.Event{passed(nil)}, []string{"Normal Succeeded: applied 0123456789ab: 0 objects"}},
		"Quiet":    {"A pass that changes nothing tells nothing.", []reconcile.Event{passed(two, done...), passed(nil)}, []string{"Normal Succeeded: applied 0123456789ab: 2 created"}},
		"Approved": {"A person asks who let Headgate prune.", []reconcile.Event{used}, []string{"Normal Succeeded: applied 0123456789ab: 1 pruned; approved by alice with the annotation of the Sync"}},
		"Failed": {
			"The cause and what to do come with the failure, and its end is told.",
			[]reconcile.Event{passed([]plan.Step{create("a")}, plan.Outcome{ID: id("a"), Action: plan.Create, Err: errors.New("boom")}), passed(nil)},
			[]string{
				"Warning Failed: 1 failed: a; 0 objects; ConfigMap/team/a: boom; correct the file, or what refuses the object in the cluster: each pass tries again",
				"Normal Succeeded: applied 0123456789ab: 0 objects",
			},
		},
		"Untouched": {"A commit that changes nothing makes no Event in hundreds of Syncs.", []reconcile.Event{passed(nil), {Kind: reconcile.Untouched, Revision: strings.Repeat("f", 40)}}, []string{"Normal Succeeded: applied 0123456789ab: 0 objects"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := &subject{object: &v1alpha1.Sync{}, of: &controller{events: make(chan *core.Event, 9)}}
			for _, e := range tc.events {
				before := j.status
				j.status, _ = at(before, 1, noon).after(e)
				j.tell(before, j.status, e.Report.Done())
			}
			var got []string
			for len(j.of.events) > 0 {
				e := <-j.of.events
				got = append(got, e.Type+" "+e.Reason+": "+e.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nEvents (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A Sync object with a field that goes runs, and an Event warns once.
func TestWarn(t *testing.T) {
	j := &subject{object: &v1alpha1.Sync{}, of: &controller{events: make(chan *core.Event, 9)}}
	prunes := 3
	s := v1alpha1.Sync{Spec: v1alpha1.Spec{MaxPrunes: &prunes}}
	all := []v1alpha1.Removal{{Field: "spec.maxPrunes", Since: "v0.4", Instead: "set spec.prunes"}, {Field: "spec.ignore", Since: "v0.4", Instead: "leave it out"}}
	j.warn(s, nil)
	j.warn(s, all[1:])
	j.warn(s, all)
	j.warn(s, all)
	if len(j.of.events) != 1 {
		t.Fatalf("%d Events", len(j.of.events))
	}
	e := <-j.of.events
	if want := "spec.maxPrunes: goes after two minor versions from v0.4: set spec.prunes"; e.Reason != v1alpha1.EventFieldGoes || e.Type != core.EventTypeWarning || e.Message != want {
		t.Errorf("%s %s: %s", e.Type, e.Reason, e.Message)
	}
}

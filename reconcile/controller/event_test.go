package controller

import (
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

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
	if want := "spec.maxPrunes: goes after two minor versions from v0.4: set spec.prunes"; e.Reason != v1alpha1.FieldGoes || e.Type != core.EventTypeWarning || e.Message != want {
		t.Errorf("%s %s: %s", e.Type, e.Reason, e.Message)
	}
}

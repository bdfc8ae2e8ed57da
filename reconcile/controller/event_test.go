package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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

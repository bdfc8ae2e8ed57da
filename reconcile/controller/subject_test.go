package controller

import (
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
)

// An API server with an older CRD drops the fields that it does not know. To write them again and again would change nothing.
func TestStatusWithOlderCRD(t *testing.T) {
	full := v1alpha1.Status{LastAttemptedRevision: "a", LastHandledReconcileAt: "1"}
	kept := v1alpha1.Status{LastAttemptedRevision: "a"}
	for name, tc := range map[string]struct {
		reason       string
		status, have v1alpha1.Status
		want         bool
	}{
		"Kept":    {"The API server has all that it knows.", full, kept, true},
		"Changed": {"A later pass has another status.", v1alpha1.Status{LastAttemptedRevision: "b"}, kept, false},
		"Edited":  {"A user changed the status.", full, v1alpha1.Status{LastAttemptedRevision: "c"}, false},
		"Newer":   {"The CRD was upgraded, and the status written in full.", full, full, true},
	} {
		t.Run(name, func(t *testing.T) {
			j := &subject{object: &v1alpha1.Sync{Status: tc.have}, status: tc.status, sent: full, answered: kept}
			if got := j.isWritten(); got != tc.want {
				t.Errorf("%s\nwritten: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

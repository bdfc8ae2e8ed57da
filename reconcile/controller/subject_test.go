package controller

import (
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// A status that someone edited is written again. One that this process wrote, or that an older CRD left of it, is known: to write it again
// would never end.
func TestKnowsStatus(t *testing.T) {
	full := v1alpha1.Status{LastAttemptedRevision: "a", LastHandledReconcileAt: "1"}
	kept := v1alpha1.Status{LastAttemptedRevision: "a"}
	edited := v1alpha1.Status{LastAttemptedRevision: "z"}
	for name, tc := range map[string]struct {
		reason  string
		version string
		status  v1alpha1.Status
		want    bool
	}{
		"Own":     {"It was written, and the answer is still on its way.", "12", full, true},
		"Pruned":  {"An older CRD has fewer fields.", "12", kept, true},
		"Earlier": {"A watch is behind the writes of this process.", "9", edited, true},
		"Edited":  {"A person changed it.", "12", edited, false},
	} {
		j := &subject{object: &v1alpha1.Sync{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "10"}, Status: kept}, status: full, sent: full, answered: kept}
		if got := j.knows(&v1alpha1.Sync{ObjectMeta: metav1.ObjectMeta{ResourceVersion: tc.version}, Status: tc.status}); got != tc.want {
			t.Errorf("%s: %s\nknown: %t, want %t", name, tc.reason, got, tc.want)
		}
	}
	j := &subject{of: new(controller), object: &v1alpha1.Sync{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "10"}, Status: kept}, status: full}
	j.see(&v1alpha1.Sync{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Generation: 2}, Status: edited})
	if j.object.Generation != 2 || j.object.ResourceVersion != "10" || j.object.Status.LastAttemptedRevision != "a" {
		t.Errorf("an old object of the cache replaced what was written: %+v", j.object)
	}
}

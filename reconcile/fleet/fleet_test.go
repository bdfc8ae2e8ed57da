//test:package raced
package fleet

import (
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/audit"

	"github.com/google/go-cmp/cmp"
)

// The audit log shows who suspended a Sync, and why.
func TestSuspension(t *testing.T) {
	s := v1alpha1.Sync{}
	s.Namespace, s.Name = "team", "apps"
	if diff := cmp.Diff(audit.Entry{Event: audit.Resumed, Sync: "team/apps"}, Suspension(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Spec.Suspend = true
	if diff := cmp.Diff(audit.Entry{Event: audit.Suspended, Sync: "team/apps"}, Suspension(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Spec.Suspension = &v1alpha1.Suspension{By: "ann", Why: "migration"}
	if diff := cmp.Diff(audit.Entry{Event: audit.Suspended, Sync: "team/apps", By: "ann", Reason: "migration"}, Suspension(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

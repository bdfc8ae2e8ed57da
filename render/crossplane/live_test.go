package crossplane_test

import (
	"testing"

	"headgate.dev/headgate/render/crossplane"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The condition Established of a policy counts if Crossplane reports it.
func TestPolicyState(t *testing.T) {
	condition := func(kind, status, reason, message string) any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": message}
	}
	healthy := condition("Healthy", "True", "Running", "")
	for name, tc := range map[string]struct {
		reason     string
		conditions []any
		want       crossplane.State
		message    string
	}{
		"New":          {"Crossplane has not handled the policy.", nil, crossplane.Pending, ""},
		"Healthy":      {"Released versions report only that the policy is healthy.", []any{healthy}, crossplane.Ready, ""},
		"Established":  {"The CRDs are established.", []any{healthy, condition("Established", "True", "Any", "")}, crossplane.Ready, ""},
		"Establishing": {"The CRDs are not established yet.", []any{healthy, condition("Established", "False", "PendingAny", "1 of 2 is not")}, crossplane.Pending, "1 of 2 is not"},
		"Unknown":      {"It is not known whether the CRDs are established.", []any{healthy, condition("Established", "Unknown", "PendingAny", "")}, crossplane.Pending, ""},
		"Stale":        {"An earlier failure to list definitions stays in the status for good.", []any{healthy, condition("Established", "False", "BlockedManagedResourceActivationPolicy", "cannot list")}, crossplane.Ready, ""},
		"Unhealthy":    {"Some definitions cannot be activated.", []any{condition("Healthy", "Unknown", "EncounteredErrors", "failed"), condition("Established", "False", "PendingAny", "1 of 2 is not")}, crossplane.Blocked, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			p := crossplane.LivePolicyOf(&unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": tc.conditions}}})
			if p.State() != tc.want || p.Message != tc.message {
				t.Errorf("%s\nState() = %s with %q, want %s with %q", tc.reason, p.State(), p.Message, tc.want, tc.message)
			}
		})
	}
}

//test:package raced
package controller

import (
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
)

// With --no-cross-namespace-refs, a Sync names only sources of its namespace.
func TestCrossNamespace(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace string
		refuses   bool
		want      string
	}{
		"Own":     {"", true, ""},
		"Same":    {"team", true, ""},
		"Other":   {"flux-system", true, "--no-cross-namespace-refs"},
		"Allowed": {"flux-system", false, ""},
	} {
		c := &controller{Options: Options{ServiceAccount: "default", NoCrossNamespaceRefs: tc.refuses}}
		s := v1alpha1.Sync{Spec: v1alpha1.Spec{Source: v1alpha1.Source{SourceRef: &v1alpha1.SourceRef{Kind: "GitRepository", Name: "platform", Namespace: tc.namespace}}}}
		s.Name, s.Namespace = "shop", "team"
		if err := c.admit(s); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

package plan

import (
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/render"
)

// A paused policy asks for no change: what it names is not deactivated.
func TestPausedPolicyOfTheCommit(t *testing.T) {
	policy := mrap("team", buckets)
	base := desired(t, render.OwnerHeadgate, map[string]string{"policy.yaml": policy})
	for reason, tc := range map[string]struct {
		policy string
		stays  bool
	}{
		"it is paused":                      {strings.Replace(policy, "metadata:", "metadata:\n  annotations: {crossplane.io/paused: \"true\"}", 1), true},
		"it is paused and names others now": {strings.Replace(mrap("team", "other.example.org"), "metadata:", "metadata:\n  annotations: {crossplane.io/paused: \"true\"}", 1), false},
		"it names others now":               {mrap("team", "other.example.org"), false},
	} {
		head := desired(t, render.OwnerHeadgate, map[string]string{"policy.yaml": tc.policy})
		seen, err := Baseline{Base: base, Sync: sync, Terms: Terms{TakeBack: true}}.Observe(t.Context(), head)
		if err != nil {
			t.Fatal(err)
		}
		p := computed(t, head, seen, Guarding{}.Guards()...)
		if taken := slices.ContainsFunc(p.Steps, func(s Step) bool { return s.ID == CRD(buckets) && s.TakesBack }); taken == tc.stays {
			t.Errorf("%s: taken back %t", reason, taken)
		}
		p.Want.Owner = render.OwnerCrossplane
		if names := p.unnamed(Upstream{}); slices.Contains(names, buckets) == tc.stays {
			t.Errorf("%s: nothing in the commit names %q", reason, names)
		}
	}
}

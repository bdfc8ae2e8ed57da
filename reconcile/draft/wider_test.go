package draft

import (
	"testing"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/crossplane"
)

func TestWider(t *testing.T) {
	p := plan.Plan{Policies: plan.PoliciesInForce{
		{LivePolicy: crossplane.LivePolicy{Patterns: []string{"a.*", "b.*"}}, Name: "team", Live: true}, {LivePolicy: crossplane.LivePolicy{Patterns: []string{"*"}, Paused: true}, Name: "all", Live: true},
	}}
	cases := map[string]struct {
		reason string
		live   map[string]crossplane.LivePolicy
		wider  bool
	}{
		"AsExpected": {"The live policies have not changed.", map[string]crossplane.LivePolicy{"team": {Patterns: []string{"b.*", "a.*"}}, "all": {Patterns: []string{"*"}, Paused: true}}, false},
		"Narrower":   {"The live policies activate less than the guards allowed.", map[string]crossplane.LivePolicy{"team": {Patterns: []string{"a.*"}}}, false},
		"Gone":       {"There is no live policy.", nil, false},
		"Elsewhere":  {"Another policy may activate the same definitions.", map[string]crossplane.LivePolicy{"other": {Patterns: []string{"a.*"}}}, false},
		"Widened":    {"A user widened the policy, or its update failed.", map[string]crossplane.LivePolicy{"team": {Patterns: []string{"a.*", "c.*"}}}, true},
		"Back":       {"Crossplane created its default policy again after a restart.", map[string]crossplane.LivePolicy{"team": {Patterns: []string{"a.*"}}, "default": {Patterns: []string{"*"}}}, true},
		"Resumed":    {"A user removed the annotation that paused the policy.", map[string]crossplane.LivePolicy{"all": {Patterns: []string{"*"}}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if why := plan.Wider(p, tc.live); (why != nil) != tc.wider {
				t.Errorf("%s\nWider(%v) = %v", tc.reason, tc.live, why)
			}
		})
	}
}

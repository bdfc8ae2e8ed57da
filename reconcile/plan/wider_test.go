package plan

import (
	"testing"

	"headgate.dev/headgate/render/crossplane"
)

func TestWider(t *testing.T) {
	p := Plan{policies: PoliciesInForce{
		{crossplane.LivePolicy{Patterns: []string{"a.*", "b.*"}}, "team", true}, {crossplane.LivePolicy{Patterns: []string{"*"}, Paused: true}, "all", true},
	}}
	cases := map[string]struct {
		reason string
		live   map[string]crossplane.LivePolicy
		wider  bool
	}{
		"AsExpected": {"Nothing changed.", map[string]crossplane.LivePolicy{"team": {Patterns: []string{"b.*", "a.*"}}, "all": {Patterns: []string{"*"}, Paused: true}}, false},
		"Narrower":   {"Less is activated than the guards allowed.", map[string]crossplane.LivePolicy{"team": {Patterns: []string{"a.*"}}}, false},
		"Gone":       {"Nothing is activated.", nil, false},
		"Elsewhere":  {"It does not matter which policy activates it.", map[string]crossplane.LivePolicy{"other": {Patterns: []string{"a.*"}}}, false},
		"Widened":    {"A hand edit, or an update that failed.", map[string]crossplane.LivePolicy{"team": {Patterns: []string{"a.*", "c.*"}}}, true},
		"Back":       {"Crossplane restarted, and made its default policy again.", map[string]crossplane.LivePolicy{"team": {Patterns: []string{"a.*"}}, "default": {Patterns: []string{"*"}}}, true},
		"Resumed":    {"A user removed the pause annotation.", map[string]crossplane.LivePolicy{"all": {Patterns: []string{"*"}}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if why := p.Wider(tc.live); (why != nil) != tc.wider {
				t.Errorf("%s\nWider(%v) = %v", tc.reason, tc.live, why)
			}
		})
	}
}

package plan

import (
	"testing"
)

func TestWider(t *testing.T) {
	p := Plan{policies: PoliciesInForce{
		{LivePolicy{Patterns: []string{"a.*", "b.*"}}, "team", true}, {LivePolicy{Patterns: []string{"*"}, Paused: true}, "all", true},
	}}
	cases := map[string]struct {
		reason string
		live   map[string]LivePolicy
		wider  bool
	}{
		"AsExpected": {"Nothing changed.", map[string]LivePolicy{"team": {Patterns: []string{"b.*", "a.*"}}, "all": {Patterns: []string{"*"}, Paused: true}}, false},
		"Narrower":   {"Less is activated than the guards allowed.", map[string]LivePolicy{"team": {Patterns: []string{"a.*"}}}, false},
		"Gone":       {"Nothing is activated.", nil, false},
		"Elsewhere":  {"It does not matter which policy activates it.", map[string]LivePolicy{"other": {Patterns: []string{"a.*"}}}, false},
		"Widened":    {"A hand edit, or an update that failed.", map[string]LivePolicy{"team": {Patterns: []string{"a.*", "c.*"}}}, true},
		"Back":       {"Crossplane restarted, and made its default policy again.", map[string]LivePolicy{"team": {Patterns: []string{"a.*"}}, "default": {Patterns: []string{"*"}}}, true},
		"Resumed":    {"Somebody took the pause annotation off.", map[string]LivePolicy{"all": {Patterns: []string{"*"}}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if why := p.Wider(tc.live); (why != "") != tc.wider {
				t.Errorf("%s\nWider(%v) = %q", tc.reason, tc.live, why)
			}
		})
	}
}

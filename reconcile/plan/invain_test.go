package plan

import (
	"errors"
	"testing"

	"headgate.dev/headgate/render/manifest"
)

// TestInVain proves that an object is not pruned if what replaces it was not created, unless it may be
// in the way of that.
func TestInVain(t *testing.T) {
	from := manifest.ID{Kind: "ConfigMap", Namespace: "team", Name: "a"}
	to := manifest.ID{Kind: "ConfigMap", Namespace: "team", Name: "b"}
	elsewhere := manifest.ID{Kind: "ConfigMap", Namespace: "other", Name: "a"}
	home := manifest.ID{Kind: "Namespace", Name: "team"}
	no := errors.New(`ConfigMap "b" is invalid`)
	create := func(id manifest.ID, path string) Step {
		return Step{Action: Create, Cause: Commit, ID: id, Origin: manifest.Origin{Path: path, Line: 1}}
	}
	again := create(to, "a.yaml")
	again.Cause = Drift
	cases := map[string]struct {
		reason string
		goes   Step
		other  Step
		err    error
		stays  bool
	}{
		"Created":     {"the object was renamed", Step{Action: Prune, ID: from, Removal: Removal{path: "a.yaml"}}, create(to, "a.yaml"), nil, false},
		"Refused":     {"the new name is not valid", Step{Action: Prune, ID: from, Removal: Removal{path: "a.yaml"}}, create(to, "a.yaml"), no, true},
		"Elsewhere":   {"the file moved, and the namespace is misspelt", Step{Action: Prune, ID: from, Removal: Removal{path: "a.yaml"}}, create(elsewhere, "b.yaml"), no, true},
		"Unrelated":   {"another file declares it", Step{Action: Prune, ID: from, Removal: Removal{path: "a.yaml"}}, create(to, "b.yaml"), no, false},
		"NoPath":      {"what is not known is not equal", Step{Action: Prune, ID: from}, create(to, ""), no, false},
		"Recreated":   {"it was there before, and somebody deleted it", Step{Action: Prune, ID: from, Removal: Removal{path: "a.yaml"}}, again, no, false},
		"Port":        {"the object that goes has the port", Step{Action: Prune, ID: from, Removal: Removal{path: "a.yaml"}}, create(to, "a.yaml"), errors.New("provided port is already allocated"), false},
		"Quota":       {"the object that goes counts", Step{Action: Prune, ID: from, Removal: Removal{path: "a.yaml"}}, create(to, "a.yaml"), errors.New("exceeded quota: few"), false},
		"Webhook":     {"it may look for what is there", Step{Action: Prune, ID: from, Removal: Removal{path: "a.yaml"}}, create(to, "a.yaml"), errors.New(`admission webhook "x" denied the request`), false},
		"Home":        {"what is in the namespace was not deleted", Step{Action: Prune, ID: home}, Step{Action: Prune, ID: from}, no, true},
		"OtherHome":   {"what is in another one was not deleted", Step{Action: Prune, ID: home}, Step{Action: Prune, ID: elsewhere}, no, false},
		"EmptiedHome": {"what is in the namespace was deleted", Step{Action: Prune, ID: home}, Step{Action: Prune, ID: from}, nil, false},
		"TakenBack":   {"no file declares a CRD that is made of a definition", Step{Action: Prune, ID: CRD("buckets.example.org"), Deactivates: true, Removal: Removal{path: "a.yaml"}}, create(to, "a.yaml"), no, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Plan{Steps: []Step{tc.other, tc.goes}}
			done := []Outcome{{ID: tc.other.ID, Action: tc.other.Action, Err: tc.err}}
			if err := p.InVain(tc.goes, done); (err != nil) != tc.stays {
				t.Errorf("%s: %v", tc.reason, err)
			}
			p.Ends = Delete
			if err := p.InVain(tc.goes, done); err != nil {
				t.Errorf("a sync that ends waits for nothing: %v", err)
			}
		})
	}
}

package guard

import (
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// TestMisspeltKinds proves that a misspelt kind never prunes the object that the file declared before, nor deactivates a definition,
// and that both happen once the document is removed. A sync that ends waits for nothing.
func TestMisspeltKinds(t *testing.T) {
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"
	policy := given.Policy("team", given.Buckets)
	base := map[string]string{"a.yaml": text, "policies/team.yaml": policy, "keep.yaml": strings.Replace(text, "name: a", "name: keep", 1)}
	object, bucket := manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: "a"}, plan.CRD(given.Buckets)
	cases := map[string]struct {
		reason          string
		object, policy  string // objects that the files declared
		prunes, retakes bool
	}{
		"Object":        {"The kind has a wrong upper or lower case letter.", strings.Replace(text, "ConfigMap", "Configmap", 1), policy, false, false},
		"Group":         {"The core group has no name in apiVersion.", strings.Replace(text, "v1", "core/v1", 1), policy, false, false},
		"Policy":        {"the plural", text, strings.Replace(policy, "Policy", "Policies", 1), false, false},
		"PolicyGroup":   {"One letter of the group is missing.", text, strings.Replace(policy, "apiextensions", "apiextension", 1), false, false},
		"ObjectOnly":    {"The policy was removed, and the other file has the misspelt kind.", strings.Replace(text, "ConfigMap", "Configmap", 1), "", false, false},
		"PolicyOnly":    {"The object was removed, and the other file has the misspelt kind.", "", strings.Replace(policy, "Policy", "Policies", 1), false, false},
		"BothAreGone":   {"Both documents were removed.", "", "", true, true},
		"NothingIsGone": {"Both documents are unchanged.", text, policy, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := inCluster(t, given.Desired(t, render.OwnerHeadgate, base))
			files := map[string]string{"keep.yaml": base["keep.yaml"]}
			for path, text := range map[string]string{"a.yaml": tc.object, "policies/team.yaml": tc.policy} {
				if text != "" {
					files[path] = text
				}
			}
			head := given.Desired(t, render.OwnerHeadgate, files)
			for pass := range 2 {
				p := given.Computed(t, head, seen, Guarding{}.Guards()...)
				goes := func(id manifest.ID) bool {
					return slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.ID == id && s.Action == plan.Prune })
				}
				if goes(object) != tc.prunes || goes(bucket) != tc.retakes {
					t.Errorf("%s\npass %d: prunes %t, takes back %t", tc.reason, pass, goes(object), goes(bucket))
				}
				if tc.prunes || tc.retakes {
					return
				}
				seen.Inventory = record.Settled(p, seen.Inventory, nil)
			}
		})
	}
}

// Nothing holds the prunes of a sync that ends.
func TestEndingIsNotUnfinished(t *testing.T) {
	failed := plan.Step{Action: plan.Create, ID: manifest.ID{Kind: "ConfigMap", Name: "a"}, Err: given.ErrBoom}
	goes := plan.Step{Action: plan.Prune, ID: manifest.ID{Kind: "ConfigMap", Name: "b"}}
	for ends, want := range map[plan.Stance]plan.Response{plan.Applying: plan.Held, plan.Destroying: plan.Allowed} {
		if r := onPrune(plan.Unfinished, draft.Case{Seen: facts.Observed{Ground: facts.Ground{Stance: ends}}, Steps: []plan.Step{failed, goes}}, goes); r.Response() != want {
			t.Errorf("%q: %+v", ends, r)
		}
	}
}

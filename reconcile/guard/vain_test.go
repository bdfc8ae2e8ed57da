package guard

import (
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReplacedInVain proves that a misspelt kind never prunes the object that the file declared before, and that the object is
// pruned once the document is removed.
func TestReplacedInVain(t *testing.T) {
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
		"ObjectOnly":    {"The policy was removed, and the other file has the misspelt kind.", strings.Replace(text, "ConfigMap", "Configmap", 1), "", false, true},
		"PolicyOnly":    {"The object was removed, and the other file has the misspelt kind.", "", strings.Replace(policy, "Policy", "Policies", 1), true, false},
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
				seen.Inventory = p.Settled(seen.Inventory, nil)
			}
		})
	}
}

// TestReplacedByAnothers proves that an object stays if its file now declares an object of another owner.
func TestReplacedByAnothers(t *testing.T) {
	from, to := manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: "a"}, manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: "b"}
	seen := given.Owning(t)
	seen.Inventory.Entries[from] = inventory.Entry{Path: "a.yaml"}
	held := plan.Step{Action: plan.Hold, Would: plan.Update, Guard: NotOurs, ID: to, Origin: manifest.Origin{Path: "a.yaml", Line: 1}}
	goes := plan.Step{Action: plan.Prune, ID: from}
	if r := replacedInVain(goes, plan.Case{Seen: seen, Steps: []plan.Step{goes, held}}); r.Answer != plan.Retained {
		t.Errorf("%+v", r)
	}
	seen.Inventory.Entries[to] = inventory.Entry{Path: "a.yaml"}
	if r := replacedInVain(goes, plan.Case{Seen: seen, Steps: []plan.Step{goes, held}}); r.Answer != plan.Allowed {
		t.Errorf("it was there before: %+v", r)
	}
}

// inCluster returns a cluster in which Headgate has applied a commit, for a sync that deactivates definitions.
func inCluster(t *testing.T, base render.Desired) plan.Observed {
	t.Helper()
	seen := given.Owning(t)
	seen.Terms.Deactivate = true
	seen.Inventory.Owner = base.Owner
	for _, o := range base.Objects {
		live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: o.ID.Namespace, Name: o.ID.Name, UID: "1",
			Labels: map[string]string{inventory.SyncLabel: given.Sync.Key()}, Annotations: map[string]string{inventory.InventoryAnnotation: given.Sync.Key()},
		}}
		live.APIVersion, live.Kind = o.APIVersion, o.ID.Kind
		seen.Objects[o.ID] = live
		seen.Inventory.Entries[o.ID] = plan.Applied(live, given.Sync.Digest(o))
	}
	seen.Inventory = given.Computed(t, base, seen, Guarding{}.Guards()...).Settled(seen.Inventory, nil)
	seen.Answers = map[plan.Question]plan.Answer{}
	for _, q := range given.Computed(t, render.Desired{Owner: base.Owner}, seen, Guarding{}.Guards()...).Open() {
		seen.Answers[q] = plan.Answer{}
	}
	return seen
}

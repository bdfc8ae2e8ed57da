package plan

import (
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReplacedByUnserved proves that a misspelt kind does not remove what its file declared before, in
// no pass, and that the object goes once the document is gone.
func TestReplacedByUnserved(t *testing.T) {
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"
	policy := mrap("team", buckets)
	base := map[string]string{"a.yaml": text, "policies/team.yaml": policy, "keep.yaml": strings.Replace(text, "name: a", "name: keep", 1)}
	object, bucket := manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: "a"}, CRD(buckets)
	cases := map[string]struct {
		reason          string
		object, policy  string // what their files hold
		prunes, retakes bool
	}{
		"Object":        {"the case of a letter", strings.Replace(text, "ConfigMap", "Configmap", 1), policy, false, false},
		"Group":         {"the core group has no name", strings.Replace(text, "v1", "core/v1", 1), policy, false, false},
		"Policy":        {"the plural", text, strings.Replace(policy, "Policy", "Policies", 1), false, false},
		"PolicyGroup":   {"one letter is missing", text, strings.Replace(policy, "apiextensions", "apiextension", 1), false, false},
		"ObjectOnly":    {"the policy was removed, and another file has the misspelt kind", strings.Replace(text, "ConfigMap", "Configmap", 1), "", false, true},
		"PolicyOnly":    {"the object was removed, and another file has the misspelt kind", "", strings.Replace(policy, "Policy", "Policies", 1), true, false},
		"BothAreGone":   {"nothing is misspelt", "", "", true, true},
		"NothingIsGone": {"nothing is misspelt", text, policy, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := inCluster(t, desired(t, render.OwnerHeadgate, base))
			files := map[string]string{"keep.yaml": base["keep.yaml"]}
			for path, text := range map[string]string{"a.yaml": tc.object, "policies/team.yaml": tc.policy} {
				if text != "" {
					files[path] = text
				}
			}
			head := desired(t, render.OwnerHeadgate, files)
			for pass := range 2 {
				p := computed(t, head, seen)
				goes := func(id manifest.ID) bool {
					return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.ID == id && s.Action == Prune })
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

// inCluster returns a cluster in which Headgate applied a commit, and that deactivates.
func inCluster(t *testing.T, base render.Desired) Observed {
	t.Helper()
	seen := owning(t)
	seen.Terms.TakeBack = true
	seen.Inventory.Owner = base.Owner
	for _, o := range base.Objects {
		live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: o.ID.Namespace, Name: o.ID.Name, UID: "1",
			Labels: map[string]string{SyncLabel: sync.Key()}, Annotations: map[string]string{InventoryAnnotation: sync.Key()},
		}}
		live.APIVersion, live.Kind = o.APIVersion, o.ID.Kind
		seen.Objects[o.ID] = live
		seen.Inventory.Entries[o.ID] = applied(live, sync.Digest(o))
	}
	seen.Inventory = computed(t, base, seen).Settled(seen.Inventory, nil)
	seen.Answers = map[Question]Answer{}
	for _, q := range computed(t, render.Desired{Owner: base.Owner}, seen).Open() {
		seen.Answers[q] = Answer{}
	}
	return seen
}

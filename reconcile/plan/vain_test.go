package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReplacedInVain proves that a misspelt kind does not remove what its file declared before, in
// no pass, and that the object goes once the document is gone.
func TestReplacedInVain(t *testing.T) {
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
				p := computed(t, head, seen, Guarding{}.Guards()...)
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
		"Created":     {"the object was renamed", Step{Action: Prune, ID: from, path: "a.yaml"}, create(to, "a.yaml"), nil, false},
		"Refused":     {"the new name is not valid", Step{Action: Prune, ID: from, path: "a.yaml"}, create(to, "a.yaml"), no, true},
		"Elsewhere":   {"the file moved, and the namespace is misspelt", Step{Action: Prune, ID: from, path: "a.yaml"}, create(elsewhere, "b.yaml"), no, true},
		"Unrelated":   {"another file declares it", Step{Action: Prune, ID: from, path: "a.yaml"}, create(to, "b.yaml"), no, false},
		"NoPath":      {"what is not known is not equal", Step{Action: Prune, ID: from}, create(to, ""), no, false},
		"Recreated":   {"it was there before, and somebody deleted it", Step{Action: Prune, ID: from, path: "a.yaml"}, again, no, false},
		"Port":        {"the object that goes has the port", Step{Action: Prune, ID: from, path: "a.yaml"}, create(to, "a.yaml"), errors.New("provided port is already allocated"), false},
		"Quota":       {"the object that goes counts", Step{Action: Prune, ID: from, path: "a.yaml"}, create(to, "a.yaml"), errors.New("exceeded quota: few"), false},
		"Webhook":     {"it may look for what is there", Step{Action: Prune, ID: from, path: "a.yaml"}, create(to, "a.yaml"), errors.New(`admission webhook "x" denied the request`), false},
		"Home":        {"what is in the namespace was not deleted", Step{Action: Prune, ID: home}, Step{Action: Prune, ID: from}, no, true},
		"OtherHome":   {"what is in another one was not deleted", Step{Action: Prune, ID: home}, Step{Action: Prune, ID: elsewhere}, no, false},
		"EmptiedHome": {"what is in the namespace was deleted", Step{Action: Prune, ID: home}, Step{Action: Prune, ID: from}, nil, false},
		"TakenBack":   {"no file declares a CRD that is made of a definition", Step{Action: Prune, ID: CRD("buckets.example.org"), TakesBack: true, path: "a.yaml"}, create(to, "a.yaml"), no, false},
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

// TestReplacedByAnothers proves that an object stays if its file declares an object now that another
// owner has.
func TestReplacedByAnothers(t *testing.T) {
	from, to := manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: "a"}, manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: "b"}
	seen := owning(t)
	seen.Inventory.Entries[from] = Entry{Path: "a.yaml"}
	held := Step{Action: Hold, Would: Update, Guard: guardNotOurs, ID: to, Origin: manifest.Origin{Path: "a.yaml", Line: 1}}
	goes := Step{Action: Prune, ID: from}
	if r := replacedInVain(goes, Case{Seen: seen, Steps: []Step{goes, held}}); r.Answer != Retained {
		t.Errorf("%+v", r)
	}
	seen.Inventory.Entries[to] = Entry{Path: "a.yaml"}
	if r := replacedInVain(goes, Case{Seen: seen, Steps: []Step{goes, held}}); r.Answer != Allowed {
		t.Errorf("it was there before: %+v", r)
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
	seen.Inventory = computed(t, base, seen, Guarding{}.Guards()...).Settled(seen.Inventory, nil)
	seen.Answers = map[Question]Answer{}
	for _, q := range computed(t, render.Desired{Owner: base.Owner}, seen, Guarding{}.Guards()...).Open() {
		seen.Answers[q] = Answer{}
	}
	return seen
}

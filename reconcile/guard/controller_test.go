package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Every object that the kustomization of examples/controller installs belongs to the controller; those of the files beside it do not: a
// tenant's, and a policy for Flux's namespace.
func TestControllerIsWhatItsExampleInstalls(t *testing.T) {
	const example = "../../examples/controller/"
	read := func(name string) []byte {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var installs struct {
		Resources []string `json:"resources"`
	}
	if err := yaml.Unmarshal(read(example+"kustomization.yaml"), &installs); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(example + "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crds, err := filepath.Glob(example + "crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range append(files, crds...) {
		file := strings.TrimPrefix(name, example)
		if file == "kustomization.yaml" {
			continue
		}
		for document := range strings.SplitSeq(string(read(name)), "\n---\n") {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
				t.Fatal(err)
			}
			found++
			if is := isController(manifest.IDOf(u), ""); is != slices.Contains(installs.Resources, file) {
				t.Errorf("%s: %s: belongs to the controller: %v", name, manifest.IDOf(u), is)
			}
		}
	}
	if found < 15 {
		t.Errorf("%d objects", found)
	}
}

// No pass deletes what belongs to the controller, also what a sync itself created, and no sync takes it over. Settings of the Sync
// change nothing about that.
func TestControllerStays(t *testing.T) {
	object := func(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
		u := given.ConfigMap(name)
		delete(u.Object, "data")
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		u.SetNamespace(namespace)
		return u
	}
	unmarked := func(m *metav1.PartialObjectMetadata) { m.Labels, m.Annotations = nil, nil }
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		home   string
		free   bool // it does not belong to the controller
		kept   bool // it may be updated, but not deleted
	}{
		"Role":           {reason: "Without its rights, the controller does nothing.", object: object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "headgate-controller")},
		"Binding":        {reason: "The binding gives the rights.", object: object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "headgate-controller")},
		"Policy":         {reason: "Without the policy, everyone approves.", object: object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "headgate-approvals")},
		"Deployment":     {reason: "It is the controller.", object: object("apps/v1", "Deployment", "headgate-system", "headgate-controller")},
		"Webhooks":       {reason: "The forge sends events there.", object: object("discovery.k8s.io/v1", "EndpointSlice", "headgate-system", "headgate-controller-webhooks")},
		"Shard":          {reason: "It is another controller.", object: object("apps/v1", "Deployment", "headgate-system", "headgate-controller-b")},
		"Moved":          {reason: "The controller runs in another namespace.", object: object("apps/v1", "Deployment", "platform", "headgate-controller"), home: "platform"},
		"Namespace":      {reason: "The controller goes with its namespace.", object: object("v1", "Namespace", "", "platform"), home: "platform"},
		"OwnNamespace":   {reason: "Headgate creates the namespace of an inventory before the commit does.", object: object("v1", "Namespace", "", given.Sync.Namespace), home: given.Sync.Namespace, kept: true},
		"Elsewhere":      {reason: "It only has the same name.", object: object("apps/v1", "Deployment", "team-a", "headgate-controller"), free: true},
		"OtherName":      {reason: "It is the Deployment of a user.", object: object("apps/v1", "Deployment", "headgate-system", "web"), free: true},
		"OtherNamespace": {reason: "It is the namespace of a team.", object: object("v1", "Namespace", "", "team-a"), free: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			guards := Guarding{Home: tc.home}.Guards()
			o := given.Wanted(t, tc.object)
			seen := given.Owning(t, "a", "b", "c", "d", "e")
			seen.Kinds = map[schema.GroupKind]plan.Kind{{Kind: "ConfigMap"}: given.Kinds[schema.GroupKind{Kind: "ConfigMap"}], o.ID.GroupKind(): {Version: "v1", Resource: "any", Namespaced: tc.object.GetNamespace() != ""}}
			keep := render.Desired{Owner: render.OwnerHeadgate}
			for _, n := range []string{"a", "b", "c", "d", "e"} {
				keep.Objects = append(keep.Objects, given.Wanted(t, given.ConfigMap(n)))
			}
			seen.Objects[o.ID] = given.Live(tc.object, "theirs")
			seen.Inventory.Entries[o.ID] = inventory.Entry{UID: "theirs", Strategy: "Apply"}
			for _, s := range given.Computed(t, keep, seen, guards...).Steps {
				if s.ID == o.ID && (tc.free && s.Guard == Controller || !tc.free && s.Action != plan.Keep) {
					t.Errorf("%s\nleaves the commit: %s by guard %q: %s", tc.reason, s.Action, s.Guard, s.Reason)
				}
			}
			delete(seen.Inventory.Entries, o.ID)
			seen.Objects[o.ID] = given.Live(tc.object, "theirs", unmarked)
			seen.Trials = map[manifest.ID]facts.Trial{o.ID: {Live: tc.object, After: given.ConfigMap("changed")}}
			seen.Terms.Adoption = "Adopt"
			with := keep
			with.Objects = append(with.Objects, o)
			for _, s := range given.Computed(t, with, seen, guards...).Steps {
				if s.ID == o.ID && (s.Guard != Controller) != (tc.free || tc.kept) {
					t.Errorf("%s\nis in the commit, and another tool created it: %s by guard %q: %s", tc.reason, s.Action, s.Guard, s.Reason)
				}
			}
		})
	}
}

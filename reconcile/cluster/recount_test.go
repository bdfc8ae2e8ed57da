package cluster_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

var (
	policies  = schema.GroupVersionResource{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Resource: "managedresourceactivationpolicies"}
	mrds      = schema.GroupVersionResource{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Resource: "managedresourcedefinitions"}
	providers = schema.GroupVersionResource{Group: "pkg.crossplane.io", Version: "v1", Resource: "providers"}
	revisions = schema.GroupVersionResource{Group: "pkg.crossplane.io", Version: "v1", Resource: "providerrevisions"}
)

// besideCrossplane returns a world with its own control plane. The control plane serves Crossplane's kinds, and no controller acts
// on them.
func besideCrossplane(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := worldOf(t, fixtures.ConfigOf(t, fixtures.OwnKubeconfig(t)))
	for _, file := range fixtures.Corpus(t, "crossplane-core") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(file.Data, &u.Object); err != nil {
			t.Fatal(err)
		}
		create(t, w.at(crds, ""), u)
	}
	for _, gvr := range []schema.GroupVersionResource{policies, mrds, providers, revisions} {
		eventually(t, func() error {
			_, err := w.at(gvr, "").List(t.Context(), metav1.ListOptions{})
			return err
		})
	}
	return w
}

func activationPolicy(name string, globs ...any) *unstructured.Unstructured {
	return thing("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", "", name, map[string]any{"spec": map[string]any{"activate": globs}})
}

// besidePolicies returns a commit with a Provider and policies.
func besidePolicies(t *testing.T, policies ...*unstructured.Unstructured) render.Desired {
	t.Helper()
	provider := thing("pkg.crossplane.io/v1", "Provider", "", "provider-toy", map[string]any{"spec": map[string]any{"package": "registry.example.org/toy:v1"}})
	d := want(t, append(policies, provider)...)
	d.Owner = render.OwnerCrossplane
	for _, u := range policies {
		globs, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "activate")
		p := catalogue.Policy{Name: u.GetName()}
		for _, glob := range globs {
			p.Patterns = append(p.Patterns, catalogue.Pattern{Glob: glob})
		}
		d.Policies = append(d.Policies, p)
	}
	return d
}

// Headgate sends a package only under the policies that the guards have seen, whatever has changed since.
//
//test:long
func TestPoliciesAreReadAgainBeforeAPackage(t *testing.T) {
	w := besideCrossplane(t)
	wide, narrow := activationPolicy("team", "*.example.org"), activationPolicy("team", "buckets.example.org")
	applied(t, w.cluster(t, cluster.Options{NoWait: true}), func() render.Desired {
		d := want(t, wide)
		d.Owner, d.Policies = render.OwnerCrossplane, besidePolicies(t, wide).Policies
		return d
	}())
	commit := besidePolicies(t, narrow)
	try := func(reason, why string, meanwhile func()) {
		t.Helper()
		c := w.cluster(t, cluster.Options{NoWait: true})
		p := planned(t, c, commit)
		meanwhile()
		done, err := c.Apply(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		output := ""
		for _, o := range done {
			if crossplane.IsPackage(o.ID) {
				output = "<nil>"
				if o.Err != nil {
					output = words.OfError(o.Err)
				}
			}
		}
		if !strings.Contains(output, why) {
			t.Errorf("%s\nthe Provider: %s, want %q", reason, output, why)
		}
		_, err = w.at(providers, "").Get(t.Context(), "provider-toy", metav1.GetOptions{})
		if apierrors.IsNotFound(err) != (why != "<nil>") {
			t.Errorf("%s\nthe Provider is in the cluster, or not: %v", reason, err)
		}
	}
	try("The update of the policy failed in this pass, so the policy is as wide as before.", "not sent: the policy team could not be applied", func() {
		applyAs(t, "somebody", w.at(policies, ""), activationPolicy("team", "*.example.org", "*.example.com"))
	})
	// The other tool reverts its change, so that the object is again as the first pass left it.
	applyAs(t, inventory.Manager, w.at(policies, ""), wide)
	applyAs(t, "somebody", w.at(policies, ""), thing("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", "", "team", nil))
	try("Crossplane restarted and recreated its default policy.", `not sent: the policy default in the cluster activates "*"`, func() {
		create(t, w.at(policies, ""), activationPolicy("default", "*"))
	})
	if err := w.at(policies, "").Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	fails := &atomic.Bool{}
	blind := clusterOf(t, w.unanswered(fails, func(req *http.Request) bool {
		return strings.HasSuffix(req.URL.Path, "/managedresourceactivationpolicies")
	}), w, cluster.Options{NoWait: true})
	p := planned(t, blind, commit)
	fails.Store(true)
	if why := carried(t, blind, p, "provider-toy"); !strings.Contains(why, "not sent: cannot read what policies activate") {
		t.Errorf("The effects of policies cannot be read any more: %q", why)
	}
	try("A policy that activates nothing more does not hold the package.", "<nil>", func() {
		create(t, w.at(policies, ""), activationPolicy("other", "buckets.example.org"))
	})
}

// installs creates a revision of a package with Active and Inactive definitions. Each has a CRD.
func (w *world) installs(t *testing.T, revision string, capabilities string, states map[string]string) {
	t.Helper()
	create(t, w.at(revisions, ""), thing("pkg.crossplane.io/v1", "ProviderRevision", "", revision, map[string]any{"spec": map[string]any{
		"image": "registry.example.org/" + revision, "desiredState": "Active", "revision": int64(1),
	}}))
	w.patch(t, w.at(revisions, ""), revision, `{"status":{"capabilities":[`+capabilities+`]}}`, "status")
	isController := true
	owners := []metav1.OwnerReference{{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: revision, UID: w.mustGet(t, revisions, "", revision).GetUID(), Controller: &isController}}
	for kind, state := range states {
		plural := strings.ToLower(kind) + "s"
		spec := func() map[string]any {
			return map[string]any{
				"group": "toy.example.org", "scope": "Cluster",
				"names":    map[string]any{"kind": kind, "plural": plural, "singular": strings.ToLower(kind), "listKind": kind + "List"},
				"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
			}
		}
		definition := thing("apiextensions.crossplane.io/v1alpha1", "ManagedResourceDefinition", "", plural+".toy.example.org", map[string]any{"spec": spec()})
		definition.Object["spec"].(map[string]any)["state"] = strings.TrimPrefix(state, "Paused ")
		if strings.HasPrefix(state, "Paused ") {
			definition.SetAnnotations(map[string]string{"crossplane.io/paused": "true"})
		}
		definition.SetOwnerReferences(owners)
		create(t, w.at(mrds, ""), definition)
		made := thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural+".toy.example.org", map[string]any{"spec": spec()})
		made.SetOwnerReferences(owners)
		create(t, w.at(crds, ""), made)
		eventually(t, func() error {
			_, err := w.at(schema.GroupVersionResource{Group: "toy.example.org", Version: "v1", Resource: plural}, "").List(t.Context(), metav1.ListOptions{})
			return err
		})
	}
}

// Headgate does not deactivate a definition if a policy in the cluster now names it. It does not delete the CRD of a deleted
// definition that has become active again.
//
//test:long
func TestPoliciesAreReadAgainBeforeADeactivation(t *testing.T) {
	w := besideCrossplane(t)
	w.installs(t, "toy-1", `"SafeStart"`, map[string]string{"Bucket": "Active", "Queue": "Inactive", "Table": "Inactive", "Stopped": "Paused Inactive"})
	w.installs(t, "old-1", ``, map[string]string{"Old": "Active"})

	commit := besidePolicies(t)
	commit.Live = true
	c := w.cluster(t, cluster.Options{NoWait: true, Terms: facts.Terms{Deactivate: true}})
	p := planned(t, c, commit)
	bucket, queue, table := crossplane.MRD("buckets.toy.example.org"), plan.CRD("queues.toy.example.org"), plan.CRD("tables.toy.example.org")
	var taken []manifest.ID
	for _, s := range p.Steps {
		if s.Action == plan.Prune {
			taken = append(taken, s.ID)
		}
	}
	slices.SortFunc(taken, manifest.ID.Compare)
	if diff := cmp.Diff([]manifest.ID{bucket, queue, table}, taken, cmpopts.SortSlices(func(a, b manifest.ID) bool { return a.Compare(b) < 0 })); diff != "" {
		t.Fatalf("One that is paused stays, and one that Crossplane would activate again (-want +got):\n%s\n%v", diff, actions(p))
	}
	create(t, w.at(policies, ""), activationPolicy("late", "buckets.toy.example.org", "queues.toy.example.org"))
	w.patch(t, w.at(mrds, ""), table.Name, `{"spec":{"state":"Active"}}`)
	done, err := c.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[manifest.ID]string{}
	for _, o := range done {
		texts[o.ID] = fmt.Sprint(o.Err)
	}
	for id, why := range map[manifest.ID]string{bucket: "the policy late activates it now", queue: "the policy late activates it now", table: "its definition was activated meanwhile"} {
		if !strings.Contains(texts[id], why) {
			t.Errorf("%s: %q, want %q", id, texts[id], why)
		}
		gvr := crds
		if crossplane.IsMRD(id) {
			gvr = mrds
		}
		if now := w.mustGet(t, gvr, "", id.Name); now.GetDeletionTimestamp() != nil {
			t.Errorf("%s is to stay", id)
		}
	}
}

package cluster_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
)

var (
	policies  = schema.GroupVersionResource{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Resource: "managedresourceactivationpolicies"}
	mrds      = schema.GroupVersionResource{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Resource: "managedresourcedefinitions"}
	providers = schema.GroupVersionResource{Group: "pkg.crossplane.io", Version: "v1", Resource: "providers"}
	revisions = schema.GroupVersionResource{Group: "pkg.crossplane.io", Version: "v1", Resource: "providerrevisions"}
)

// besideCrossplane is a world of its own that serves the kinds of Crossplane, and nobody acts on them.
func besideCrossplane(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.config = fixtures.ConfigOf(t, fixtures.OwnKubeconfig(t))
	var err error
	if w.live, err = dynamic.NewForConfig(w.config); err != nil {
		t.Fatal(err)
	}
	for _, file := range fixtures.Corpus(t, "crossplane-core") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(file.Data, &u.Object); err == nil && u.GetKind() == "CustomResourceDefinition" { // else it is the licence
			create(t, w.at(crds, ""), u)
		}
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

// besidePolicies is a commit of a Provider and of policies.
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

// A package is sent only under the policies that the guards have seen, whatever happened since.
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
		said := ""
		for _, o := range done {
			if plan.IsPackage(o.ID) {
				said = fmt.Sprint(o.Err)
			}
		}
		if !strings.Contains(said, why) {
			t.Errorf("%s\nthe Provider: %s, want %q", reason, said, why)
		}
		_, err = w.at(providers, "").Get(t.Context(), "provider-toy", metav1.GetOptions{})
		if apierrors.IsNotFound(err) != (why != "<nil>") {
			t.Errorf("%s\nthe Provider is in the cluster, or not: %v", reason, err)
		}
	}
	try("The update of the policy failed in this very pass: it is as wide as before.", "not sent: the policy team could not be applied", func() {
		applyAs(t, "somebody", w.at(policies, ""), activationPolicy("team", "*.example.org", "*.example.com"))
	})
	// What they took they give back, and it is as the first pass left it.
	applyAs(t, plan.Manager, w.at(policies, ""), wide)
	applyAs(t, "somebody", w.at(policies, ""), thing("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", "", "team", nil))
	try("Crossplane restarted, and made its default policy again.", `not sent: the policy default in the cluster activates "*"`, func() {
		create(t, w.at(policies, ""), activationPolicy("default", "*"))
	})
	if err := w.at(policies, "").Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	try("A policy that activates nothing more is in nobody's way.", "<nil>", func() {
		create(t, w.at(policies, ""), activationPolicy("other", "buckets.example.org"))
	})
}

// A definition is not deactivated once a policy of the cluster names it.
func TestPoliciesAreReadAgainBeforeADeactivation(t *testing.T) {
	w := besideCrossplane(t)
	revision := thing("pkg.crossplane.io/v1", "ProviderRevision", "", "toy-1", map[string]any{"spec": map[string]any{
		"image": "registry.example.org/toy:v1", "desiredState": "Active", "revision": int64(1),
	}})
	create(t, w.at(revisions, ""), revision)
	live, err := w.at(revisions, "").Get(t.Context(), "toy-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := edit(t.Context(), w.at(revisions, ""), "toy-1", `{"status":{"capabilities":["SafeStart"]}}`, "status"); err != nil {
		t.Fatal(err)
	}
	definition := written(t, `apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceDefinition
metadata: {name: buckets.toy.example.org}
spec:
  state: Active
  group: toy.example.org
  names: {kind: Bucket, plural: buckets, singular: bucket, listKind: BucketList}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`)
	isController := true
	definition.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "toy-1", UID: live.GetUID(), Controller: &isController}})
	create(t, w.at(mrds, ""), definition)
	made := written(t, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buckets.toy.example.org}
spec:
  group: toy.example.org
  names: {kind: Bucket, plural: buckets, singular: bucket, listKind: BucketList}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`)
	made.SetOwnerReferences(definition.GetOwnerReferences())
	create(t, w.at(crds, ""), made)
	eventually(t, func() error {
		_, err := w.at(schema.GroupVersionResource{Group: "toy.example.org", Version: "v1", Resource: "buckets"}, "").List(t.Context(), metav1.ListOptions{})
		return err
	})

	commit := besidePolicies(t)
	commit.Live = true
	c := w.cluster(t, cluster.Options{NoWait: true, Terms: plan.Terms{TakeBack: true}})
	seen, err := c.Observe(t.Context(), commit)
	if err != nil {
		t.Fatal(err)
	}
	seen.Answers = map[plan.Question]plan.Answer{}
	p, err := plan.Compute(commit, seen, plan.Guarding{}.Guards()...)
	for err == nil && len(p.Open()) > 0 { // one guard asks after another
		answers, failed := c.Answer(t.Context(), p.Open())
		if failed != nil {
			t.Fatal(failed)
		}
		maps.Copy(seen.Answers, answers)
		p, err = plan.Compute(commit, seen, plan.Guarding{}.Guards()...)
	}
	if err != nil {
		t.Fatal(err)
	}
	create(t, w.at(policies, ""), activationPolicy("late", "*.toy.example.org"))
	done, err := c.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, o := range done {
		if o.ID == plan.MRD("buckets.toy.example.org") {
			said = fmt.Sprint(o.Err)
		}
	}
	if !strings.Contains(said, "the policy late activates it by now") {
		t.Errorf("its deactivation: %q; plan: %v", said, actions(p))
	}
	now, err := w.at(mrds, "").Get(t.Context(), "buckets.toy.example.org", metav1.GetOptions{})
	if err != nil || now.GetDeletionTimestamp() != nil {
		t.Errorf("it is there as before: %v", err)
	}
}

package cluster_test

import (
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Crossplane that serves policies only in another version gets the policies of the commit in that version.
func TestPolicyInTheServedVersion(t *testing.T) {
	t.Parallel()
	w := worldOf(t, fixtures.ConfigOf(t, fixtures.OwnKubeconfig(t)))
	for name, file := range fixtures.Corpus(t, "crossplane-core") {
		if strings.Contains(name, "managedresourceactivationpolicies") {
			create(t, w.at(crds, ""), written(t, strings.ReplaceAll(string(file.Data), "name: v1alpha1", "name: v1beta1")))
		}
	}
	later := schema.GroupVersionResource{Group: policies.Group, Version: "v1beta1", Resource: policies.Resource}
	eventually(t, func() error {
		_, err := w.at(later, "").List(t.Context(), metav1.ListOptions{})
		return err
	})
	commit := besidePolicies(t, activationPolicy("team", "buckets.example.org"))
	commit.Objects = commit.Objects[:1]
	c := w.cluster(t, cluster.Options{NoWait: true})
	applied(t, c, commit)
	live := w.mustGet(t, later, "", "team")
	if globs, _, _ := unstructured.NestedStringSlice(live.Object, "spec", "activate"); len(globs) != 1 || globs[0] != "buckets.example.org" {
		t.Errorf("the policy activates %q", globs)
	}
	if p := planned(t, w.cluster(t, cluster.Options{NoWait: true}), commit); p.Count(plan.Update)+p.Count(plan.Create) > 0 {
		t.Errorf("the next pass writes again: %v", actions(p))
	}
}

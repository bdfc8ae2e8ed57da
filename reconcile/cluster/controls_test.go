package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A half-finished upgrade leaves CRDs under the control of the previous revision, and the next upgrade may get stuck on them.
func TestControls(t *testing.T) {
	w := besideCrossplane(t)
	id := manifest.ID{Group: crossplane.Packages, Kind: crossplane.Provider, Name: "provider-toy"}
	asked := func() question.Counted {
		t.Helper()
		q := question.Controls{Of: id}
		answers, err := w.cluster(t, cluster.Options{}).Answer(t.Context(), []question.Any{q})
		if err != nil {
			t.Fatal(err)
		}
		a, is := question.Get(question.Known{Answers: answers}, q)
		if !is.Known() {
			t.Fatal(is)
		}
		return a
	}
	if a := asked(); a.Count != 0 {
		t.Errorf("Nothing is installed: %+v", a)
	}
	w.installs(t, "provider-toy-1", "", map[string]string{"Bucket": "Active", "Queue": "Active"})
	w.installs(t, "provider-toy-2", "", map[string]string{"Topic": "Active"})
	create(t, w.at(providers, ""), thing("pkg.crossplane.io/v1", "Provider", "", "provider-toy", map[string]any{"spec": map[string]any{"package": "registry.example.org/toy:v1"}}))
	owner := w.mustGet(t, providers, "", "provider-toy").GetUID()
	for _, revision := range []string{"provider-toy-1", "provider-toy-2"} {
		w.patch(t, w.at(revisions, ""), revision, fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"pkg.crossplane.io/v1","kind":"Provider","name":"provider-toy","uid":%q}]}}`, owner))
	}
	w.patch(t, w.at(revisions, ""), "provider-toy-1", `{"spec":{"desiredState":"Inactive"}}`)
	a := asked()
	if a.Count != 4 || !strings.Contains(a.Example, "buckets.toy.example.org (controlled by provider-toy-1; provider-toy-2 is active)") {
		t.Errorf("Two CRDs and their definitions stayed with the revision before: %+v", a)
	}
	w.patch(t, w.at(revisions, ""), "provider-toy-2", `{"spec":{"desiredState":"Inactive"}}`)
	if a := asked(); a.Count != 0 {
		t.Errorf("No revision is active, because a person decides: %+v", a)
	}
}

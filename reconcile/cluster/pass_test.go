package cluster_test

import (
	"testing"

	"headgate.dev/headgate/reconcile/cluster"

	"github.com/google/go-cmp/cmp"
)

func TestFirstPassAndSecond(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	commit := want(t,
		namespace(space),
		w.crd("Bucket", "Namespaced"),
		w.crd("Region", "Cluster"),
		configMap(space, "settings", "1"),
		w.instance("Bucket", space, "logs"),
		w.instance("Region", "", "north"),
	)
	first := applied(t, w.cluster(t, cluster.Options{}), commit)
	t.Logf("first pass: %v", w.requests.Counts())
	if diff := cmp.Diff([]string{
		"create (commit) Namespace/" + space,
		"create (commit) CustomResourceDefinition.apiextensions.k8s.io/buckets." + w.group,
		"create (commit) CustomResourceDefinition.apiextensions.k8s.io/regions." + w.group,
		"create (commit) ConfigMap/" + space + "/settings",
		"create (commit) Bucket." + w.group + "/" + space + "/logs",
		"create (commit) Region." + w.group + "/north",
	}, actions(first)); diff != "" {
		t.Errorf("Missing objects are created, dependencies first.\nsteps (-want +got):\n%s", diff)
	}

	w.requests.Reset()
	second := applied(t, w.cluster(t, cluster.Options{}), commit)
	if diff := cmp.Diff([]string(nil), actions(second)); diff != "" {
		t.Errorf("Nothing changed, so there is nothing to do.\nsteps (-want +got):\n%s", diff)
	}
	// The requests are the inventory, /api, /apis, and one list for each of five kinds.
	if diff := cmp.Diff(map[string]int{"GET": 3, "LIST": 5}, w.requests.Counts()); diff != "" {
		t.Errorf("A pass with nothing to do is cheap.\nrequests (-want +got):\n%s\n%s", diff, w.requests.Log())
	}
}

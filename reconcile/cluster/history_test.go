package cluster_test

import (
	"testing"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/inventory"

	"github.com/google/go-cmp/cmp"
)

func TestHistory(t *testing.T) {
	w := newWorld(t)
	c := w.cluster(t, cluster.Options{})
	well := inventory.Past{Activation: "success", Drift: "success", Revision: "abc", Created: 2}
	record := func(c *cluster.Cluster, p inventory.Past) (writes int) {
		t.Helper()
		w.requests.Reset()
		if err := c.Record(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return w.requests.Writes()
	}
	if n := record(c, well); n != 0 {
		t.Errorf("Without an apply nothing is recorded, got %v", w.requests.Log())
	}
	commit := want(t, namespace(w.sync.Namespace), configMap(w.sync.Namespace, "a", "1"))
	applied(t, c, commit)
	record(c, well)
	idle := well
	idle.Created = 0
	if record(c, idle); w.requests.Total() != 0 {
		t.Errorf("A pass with nothing to do costs no request, got %v", w.requests.Log())
	}

	other := w.cluster(t, cluster.Options{})
	planned(t, other, commit)
	failed := inventory.Past{Activation: "failure", Drift: "success", ExitCode: 1, Failed: 1, Said: "1 failed: a"}
	record(other, failed)
	if record(c, well); w.requests.Writes() != 2 { // one request for the write that came too late, and one for the retry
		t.Errorf("Another process wrote meanwhile, got %v", w.requests.Log())
	}
	applied(t, c, want(t, namespace(w.sync.Namespace), configMap(w.sync.Namespace, "a", "2")))
	inv, err := c.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]inventory.Past{well, failed, well}, inv.History); diff != "" {
		t.Errorf("The inventory keeps it after every write (-want +got):\n%s", diff)
	}
	if p := planned(t, c, want(t, namespace(w.sync.Namespace), configMap(w.sync.Namespace, "a", "2"))); p.Writes() || p.Remembers() {
		t.Errorf("and it is no reason to write: %v", actions(p))
	}
}

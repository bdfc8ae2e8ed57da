package cluster_test

import (
	"testing"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// TestPaths proves that the inventory stores the file of each object, and that a moved file causes one write of the inventory and
// none of the object. An object whose document is skipped stays, even in the default namespace.
func TestPaths(t *testing.T) {
	w := newWorld(t)
	c := w.cluster(t, cluster.Options{DefaultNamespace: w.sync.Namespace})
	both := want(t, namespace(w.sync.Namespace), configMap("", "a", "1"), configMap("", "b", "1"))
	applied(t, c, both)
	path := func() string {
		t.Helper()
		have, err := c.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return have.Entries[manifest.ID{Kind: "ConfigMap", Namespace: w.sync.Namespace, Name: "a"}].Path
	}
	if got := path(); got != "all.yaml" {
		t.Errorf("the inventory has the path %q, want all.yaml", got)
	}
	for i := range both.Objects {
		both.Objects[i].Origin.Path = "moved/all.yaml"
	}
	if p := planned(t, c, both); p.Writes() || !p.Remembers() {
		t.Errorf("a file that moved is recorded, and no object is written: %v", actions(p))
	}
	applied(t, c, both)
	if got := path(); got != "moved/all.yaml" {
		t.Errorf("the inventory has the path %q, want moved/all.yaml", got)
	}
	if p := planned(t, c, both); p.Writes() || p.Remembers() {
		t.Errorf("it is recorded in every pass: %v", actions(p))
	}

	for name, omitted := range map[string]catalogue.Omitted{
		"encrypted, and leaves its namespace out": {Why: catalogue.Encrypted, Origin: manifest.Origin{Path: "all.yaml", Line: 1}, ID: manifest.ID{Kind: "ConfigMap", Name: "a"}},
		"below a symbolic link":                   {Why: catalogue.Symlink, Origin: manifest.Origin{Path: "moved"}},
	} {
		less := want(t, namespace(w.sync.Namespace), configMap("", "b", "1"))
		less.Omitted = []catalogue.Omitted{omitted}
		if p := applied(t, c, less); p.Count(plan.Prune) > 0 {
			t.Errorf("what is %s is pruned: %v", name, actions(p))
		}
		if path() == "" {
			t.Errorf("what is %s is forgotten", name)
		}
	}
	if p := applied(t, c, want(t, namespace(w.sync.Namespace), configMap("", "b", "1"))); p.Count(plan.Prune) != 1 {
		t.Errorf("what was removed is pruned: %v", actions(p))
	}
}

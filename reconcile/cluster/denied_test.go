package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A tenant adds an object in a namespace where its account has no right. That object fails, and names the account, the verb and the
// namespace. All others of the kind are applied, whether few are read by name or many with a list, now and once they are owned.
func TestOneForeignNamespace(t *testing.T) {
	for name, own := range map[string]int{"Named": 2, "Listed": 9} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space, other := w.sync.Namespace, w.sync.Namespace+"-other"
			w.made(t, namespace(space))
			w.made(t, namespace(other))
			var rights [][3]string
			for _, verb := range []string{"get", "list", "create", "patch", "update", "delete"} {
				rights = append(rights, [3]string{verb, "", "configmaps"}, [3]string{verb, "coordination.k8s.io", "leases"})
			}
			as := w.as(t, rights, space)
			objects := []*unstructured.Unstructured{configMap(other, "foreign", "1")}
			for i := range own {
				objects = append(objects, configMap(space, fmt.Sprintf("own-%d", i), "1"))
			}
			for _, now := range []string{"1", "2"} {
				for _, u := range objects {
					u.Object["data"] = map[string]any{"key": now}
				}
				c := clusterOf(t, as, w, cluster.Options{})
				done, err := c.Apply(t.Context(), planned(t, c, want(t, objects...)))
				if err != nil {
					t.Fatal(err)
				}
				failed := 0
				for _, o := range done {
					if o.Err == nil {
						continue
					}
					failed++
					for _, part := range []string{w.sync.Namespace + "-limited", `"` + other + `"`, "configmaps", `grant the verb "`} {
						if o.ID.Name != "foreign" || !strings.Contains(o.Err.Error(), part) {
							t.Errorf("%s, without %q: %v", o.ID, part, o.Err)
						}
					}
				}
				if failed != 1 {
					t.Errorf("%d objects failed, want 1", failed)
				}
				for _, u := range objects[1:] {
					if got := value(t, w.mustGet(t, configMaps, space, u.GetName())); got != now {
						t.Errorf("%s has %q, want %q", u.GetName(), got, now)
					}
				}
			}

			t.Log("an owned object that may not be read any more stays in the inventory, and is not taken for one that is gone")
			c := clusterOf(t, w.config, w, cluster.Options{})
			if _, err := c.Apply(t.Context(), planned(t, c, want(t, objects...))); err != nil {
				t.Fatal(err)
			}
			c = clusterOf(t, as, w, cluster.Options{})
			p := planned(t, c, want(t, objects[1:]...))
			if len(p.Gone) > 0 {
				t.Errorf("the plan forgets %v", p.Gone)
			}
			if _, err := c.Apply(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			inv, err := c.Inventory(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(inv.Entries) != len(objects) {
				t.Errorf("the inventory has %d objects, want %d", len(inv.Entries), len(objects))
			}
		})
	}
}

package cluster_test

import (
	"fmt"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An account that may get objects and not list them is enough for a Sync: its objects are read by name, few and many, in a namespace and in
// the cluster. What leaves the commit is pruned, and what another writer deleted is created again.
func TestWithoutLists(t *testing.T) {
	for name, own := range map[string]int{"Few": 2, "Many": 9} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace
			w.made(t, namespace(space))
			var rights [][3]string
			for _, verb := range []string{"get", "create", "patch", "update", "delete"} {
				rights = append(rights, [3]string{verb, "", "configmaps"}, [3]string{verb, "", "secrets"}, [3]string{verb, "", "namespaces"}, [3]string{verb, "coordination.k8s.io", "leases"})
			}
			as := w.as(t, rights) // in the whole cluster, because of Namespaces
			objects := []*unstructured.Unstructured{namespace(space + "-app"), thing("v1", "Secret", space, "login", nil)}
			for i := range own {
				objects = append(objects, configMap(space, fmt.Sprintf("own-%d", i), "1"))
			}
			pass := func(objects ...*unstructured.Unstructured) {
				t.Helper()
				applied(t, clusterOf(t, as, w, cluster.Options{}), want(t, objects...))
			}
			pass(objects...)
			for _, u := range objects[2:] {
				u.Object["data"] = map[string]any{"key": "2"}
			}
			pass(objects...)
			for _, u := range objects[2:] {
				if got := value(t, w.mustGet(t, configMaps, space, u.GetName())); got != "2" {
					t.Errorf("%s has %q, want 2", u.GetName(), got)
				}
			}
			if err := w.at(secrets, space).Delete(t.Context(), "login", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			pass(objects[:len(objects)-1]...)
			w.mustGet(t, secrets, space, "login")
			left := objects[len(objects)-1].GetName()
			if _, err := w.at(configMaps, space).Get(t.Context(), left, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("%s left the commit and is still there: %v", left, err)
			}
		})
	}
}

package cluster_test

import (
	"fmt"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/inventory"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Headgate never writes observe-only objects, and sends no requests for unchanged ones. If it may delete one, it deletes only the
// object that it saw.
func TestObserved(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	c := w.cluster(t, cluster.Options{})
	applied(t, c, want(t, namespace(space)))
	asked := func(name string, policy inventory.ManagementPolicy) *unstructured.Unstructured {
		u := configMap(space, name, "1")
		u.SetAnnotations(map[string]string{inventory.PolicyAnnotation: string(policy)})
		return u
	}
	for _, name := range []string{"only", "deletable", "replaced"} {
		if _, err := w.at(configMaps, space).Create(t.Context(), configMap(space, name, "1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	observing := want(t, namespace(space), asked("only", inventory.Observable), asked("deletable", inventory.ObservableAndDeletable), asked("replaced", inventory.ObservableAndDeletable))
	applied(t, c, observing)
	for _, name := range []string{"only", "deletable"} {
		if live := w.mustGet(t, configMaps, space, name); len(live.GetLabels())+len(live.GetAnnotations()) > 0 {
			t.Errorf("%s bears marks: %v, %v", name, live.GetLabels(), live.GetAnnotations())
		}
	}

	w.requests.Reset()
	if p := planned(t, c, observing); p.Writes() || p.Remembers() || w.requests.Total() > 8 { // objects without marks are read by name
		t.Errorf("nothing moved, and it costs %v", w.requests.Counts())
	}

	if err := w.at(configMaps, space).Delete(t.Context(), "replaced", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.at(configMaps, space).Create(t.Context(), configMap(space, "replaced", "1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// A user who may write ConfigMaps claims in the inventory that a foreign object may be deleted.
	foreign, err := w.at(configMaps, space).Create(t.Context(), configMap(space, "foreign", "1"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	entry := fmt.Sprintf(`{"data":{%q:%q}}`, space+"_foreign__ConfigMap", fmt.Sprintf(`{"uid":%q,"policy":"ObservableAndDeletable","proof":"x"}`, foreign.GetUID()))
	if _, err := w.at(configMaps, w.sync.Namespace).Patch(t.Context(), "headgate-main", types.MergePatchType, []byte(entry), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c = w.cluster(t, cluster.Options{}) // a new process must read the key first
	p := planned(t, c, want(t, namespace(space)))
	if diff := cmp.Diff([]string{"prune (commit) ConfigMap/" + space + "/deletable", "hold (not ours) ConfigMap/" + space + "/foreign", "hold (not ours) ConfigMap/" + space + "/replaced"}, actions(p)); diff != "" {
		t.Errorf("Only what was seen may be deleted.\nsteps (-want +got):\n%s", diff)
	}
	if _, err := c.Apply(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, err := w.at(configMaps, space).Get(t.Context(), "deletable", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("want it gone, got %v", err)
	}
	w.mustGet(t, configMaps, space, "foreign")
	w.mustGet(t, configMaps, space, "only")
	w.mustGet(t, configMaps, space, "replaced")
}

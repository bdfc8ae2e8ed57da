package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	cliinventory "sigs.k8s.io/cli-utils/pkg/inventory"
)

// large returns a commit whose inventory does not fit into one ConfigMap.
func large(t *testing.T, w *world, edition string) render.Desired {
	t.Helper()
	objects := []*unstructured.Unstructured{namespace(w.sync.Namespace)}
	for i := range 3000 {
		objects = append(objects, configMap(w.sync.Namespace, fmt.Sprintf("m%04d-%s", i, strings.Repeat("x", 180)), edition))
	}
	return want(t, objects...)
}

// stopped makes a pass that is cancelled after a few writes. The inventory then records what the pass intended to do.
func stopped(t *testing.T, w *world, commit render.Desired) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := w.cluster(t, cluster.Options{Concurrency: 1, Progress: func(e cluster.Event) {
		if e.Phase == "apply" && e.Done == 3 {
			cancel()
		}
	}})
	if _, err := c.Apply(ctx, planned(t, c, commit)); !errors.Is(err, context.Canceled) {
		t.Fatalf("want the pass stopped, got %v", err)
	}
}

func (w *world) siblings(t *testing.T) []string {
	t.Helper()
	l, err := w.at(configMaps, w.sync.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "headgate.dev/inventory-values-of=" + w.sync.Key()})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range l.Items {
		names = append(names, m.GetName())
	}
	return names
}

//test:long,unraced
func TestInventoryOfManyObjects(t *testing.T) {
	w := newWorld(t)
	commit := large(t, w, "1")
	stopped(t, w, commit)
	inventoryOf := func() inventory.Inventory {
		t.Helper()
		inv, err := w.cluster(t, cluster.Options{}).Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return inv
	}
	values := func(inv inventory.Inventory) (known int) {
		for _, e := range inv.Entries {
			if e.UID != "" {
				known++
			}
		}
		return known
	}
	before := w.siblings(t)
	inv := inventoryOf()
	if len(before) < 2 || len(inv.Entries) != 3001 || values(inv) != 3 || inv.Rebuilt {
		t.Fatalf("Values that do not fit go to siblings and come back complete: %d siblings, %d entries, %d known", len(before), len(inv.Entries), values(inv))
	}
	if got := theirSet(t, w); len(got) != 3001 {
		t.Errorf("cli-utils' own client sees the same set, got %d", len(got))
	}

	// The next write uses other siblings, and leaves none unreferenced.
	stopped(t, w, commit)
	inv = inventoryOf()
	after := w.siblings(t)
	if values(inv) != 6 || slices.Equal(before, after) || len(after) != len(before) {
		t.Errorf("after one more pass: %d known, siblings %v, before %v", values(inv), after, before)
	}

	// Forged values count as missing, and with missing values nothing is pruned.
	forged := thing("v1", "ConfigMap", w.sync.Namespace, after[0], map[string]any{"data": map[string]any{w.sync.Namespace + "_other__ConfigMap": `{"uid":"forged"}`}})
	if err := w.at(configMaps, w.sync.Namespace).Delete(t.Context(), after[0], metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"gone", "forged"} {
		if inv = inventoryOf(); !inv.Rebuilt || len(inv.Entries) != 3001 {
			t.Errorf("%s: want an inventory that prunes nothing and knows every object, got %d, rebuilt %t", how, len(inv.Entries), inv.Rebuilt)
		}
		if how == "gone" {
			w.made(t, forged)
		}
	}
	if p := planned(t, w.cluster(t, cluster.Options{}), want(t, namespace(w.sync.Namespace))); p.Count(plan.Prune) != 0 || !p.Remembers() {
		t.Errorf("want no prune, got %d; remembers %t", p.Count(plan.Prune), p.Remembers())
	}
	stopped(t, w, commit)
	if inv = inventoryOf(); inv.Rebuilt || len(w.siblings(t)) != len(before) {
		t.Errorf("The next pass heals it: rebuilt %t, siblings %v", inv.Rebuilt, w.siblings(t))
	}
}

// theirSet returns our inventory as cli-utils' own client reads it.
func theirSet(t *testing.T, w *world) []string {
	t.Helper()
	path := fixtures.Kubeconfig(t)
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &path
	theirs, err := cliinventory.NewClient(cmdutil.NewFactory(flags), cliinventory.WrapInventoryObj, cliinventory.InvInfoToConfigMap, cliinventory.StatusPolicyAll, cliinventory.ConfigMapGVK)
	if err != nil {
		t.Fatal(err)
	}
	info := thing("v1", "ConfigMap", w.sync.Namespace, "headgate-main", nil)
	info.SetLabels(map[string]string{"cli-utils.sigs.k8s.io/inventory-id": w.sync.Key()})
	set, err := theirs.GetClusterObjs(cliinventory.WrapInventoryInfoObj(info))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range set {
		got = append(got, o.String())
	}
	slices.Sort(got)
	return got
}

// A user adds foreign objects to the inventory, with and without the data that a deletion needs.
func TestTamperedInventory(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	c := w.cluster(t, cluster.Options{})
	commit := want(t, namespace(space), w.crd("Region", "Cluster"), configMap(space, "ours", "1"))
	applied(t, c, commit)
	foreign := w.foreign(t, space)
	other := configMap(space, "other-sync", "1")
	other.SetLabels(map[string]string{inventory.SyncLabel: "other.sync"})
	other.SetAnnotations(map[string]string{inventory.InventoryAnnotation: "other.sync"})
	made := w.made(t, other)
	entry := func(uid types.UID) string {
		return `{\"uid\":\"` + string(uid) + `\",\"strategy\":\"Apply\",\"actuation\":\"Succeeded\",\"reconcile\":\"Succeeded\"}`
	}
	w.patch(t, w.at(configMaps, w.sync.Namespace), "headgate-main", `{"data":{
		"`+space+`_copied__ConfigMap":"`+entry(foreign[configMaps].GetUID())+`",
		"`+space+`_plain__Secret":"",
		"`+space+`_other-sync__ConfigMap":"`+entry(made.GetUID())+`",
		"_kube-system__Namespace":"",
		"_nothing_example.org_Unserved":""}}`)
	p := planned(t, c, commit)
	if p.Count(plan.Prune) != 0 || p.Count(plan.Hold) != 3 || p.Count(plan.Release) != 1 {
		t.Errorf("What does not bear our marks is held, and what another sync owns is forgotten, got %v", actions(p))
	}
	if _, err := c.Apply(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	result, err := reconcilerOf(c, w).Destroy(t.Context(), plan.Destroying)
	if err != nil || result.Verdict.ExitCode == 0 {
		t.Errorf("The end of the sync is held too: %v, %v", ended(result), err)
	}
	w.unmoved(t, foreign)
	if diff := cmp.Diff(made.Object, w.mustGet(t, configMaps, space, "other-sync").Object); diff != "" {
		t.Errorf("What another sync owns is not touched (-was +is):\n%s", diff)
	}
	w.mustGet(t, namespaces, "", "kube-system")
	if result, err = reconcilerOf(c, w).Destroy(t.Context(), plan.Orphaning); err != nil || result.Verdict.ExitCode != 0 {
		t.Errorf("but it can be let go: %v, %v", ended(result), err)
	}
	w.unmoved(t, foreign)

	applied(t, c, commit)
	w.patch(t, w.at(configMaps, w.sync.Namespace), "headgate-main", `{"data":{"nonsense":""}}`)
	if _, err := c.Observe(t.Context(), commit); err == nil || !strings.Contains(err.Error(), `remove that key from its data: inventory key "nonsense"`) {
		t.Errorf("An unreadable inventory stops the pass, and the error gives advice: %v", err)
	}
}

// Another process writes the inventory during a pass, in spite of the lease.
func TestAnotherWriterInBetween(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace
	commit := want(t, namespace(space), configMap(space, "a", "1"))
	applied(t, w.cluster(t, cluster.Options{}), commit)
	var meddled atomic.Bool
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.HasSuffix(req.URL.Path, "/leases/headgate-main") && req.Method == http.MethodPut && meddled.CompareAndSwap(false, true) {
			resp, err := next.RoundTrip(req)
			w.patch(t, w.at(configMaps, space), "headgate-main", `{"data":{"_other__Namespace":""}}`)
			return resp, err
		}
		return next.RoundTrip(req)
	})
	c := clusterOf(t, config, w, cluster.Options{})
	p := planned(t, c, want(t, namespace(space), configMap(space, "a", "2")))
	w.requests.Reset()
	if _, err := c.Apply(t.Context(), p); !errors.Is(err, reason.ErrMoved) {
		t.Errorf("want ErrMoved, got %v", err)
	}
	if n := w.requests.Counts()["PATCH"]; n != 0 {
		t.Errorf("and no write after that, got %v", w.requests.Log())
	}
}

// A cluster that was restored from a backup has the same objects with new UIDs.
func TestRestoredCluster(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	c := w.cluster(t, cluster.Options{})
	commit := want(t, namespace(space), configMap(space, "kept", "1"), configMap(space, "dropped", "1"))
	applied(t, c, commit)
	for _, name := range []string{"kept", "dropped"} {
		o := w.mustGet(t, configMaps, space, name)
		if err := w.at(configMaps, space).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		o.SetUID("")
		o.SetResourceVersion("")
		o.SetManagedFields(nil)
		if _, err := w.at(configMaps, space).Create(t.Context(), o, metav1.CreateOptions{FieldManager: "velero"}); err != nil {
			t.Fatal(err)
		}
	}
	p := planned(t, c, want(t, namespace(space), configMap(space, "kept", "1")))
	if diff := cmp.Diff([]string{"update (drift) ConfigMap/" + space + "/kept", "hold (rebuilt) ConfigMap/" + space + "/dropped"}, actions(p)); diff != "" {
		t.Errorf("Wanted objects are adopted again; a person decides on the others.\nsteps (-want +got):\n%s", diff)
	}
	applied(t, c, commit)
	if p := planned(t, c, commit); p.Writes() || p.Remembers() {
		t.Errorf("Then it is as it was: %v", actions(p))
	}
	if p := planned(t, c, want(t, namespace(space), configMap(space, "kept", "1"))); p.Count(plan.Prune) != 1 {
		t.Errorf("and goes when the commit does not want it: %v", actions(p))
	}
}

// If a user removed the managed fields, a commit with another value causes no conflict.
func TestWipedAndWantedOtherwise(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	c := w.cluster(t, cluster.Options{})
	applied(t, c, want(t, namespace(space), configMap(space, "a", "1"), configMap(space, "unmarked", "1")))
	w.patch(t, w.at(configMaps, space), "a", `{"metadata":{"managedFields":[{}]}}`)
	w.patch(t, w.at(configMaps, space), "unmarked", `{"metadata":{"managedFields":[{}],"labels":null}}`)
	applied(t, c, want(t, namespace(space), configMap(space, "a", "2"), configMap(space, "unmarked", "2")))
	for _, name := range []string{"a", "unmarked"} {
		if got := w.mustGet(t, configMaps, space, name).Object["data"]; !cmp.Equal(got, map[string]any{"key": "2"}) {
			t.Errorf("%s: got %v", name, got)
		}
	}

	theirs := configMap(space, "theirs", "1")
	w.made(t, theirs)
	w.patch(t, w.at(configMaps, space), "theirs", `{"metadata":{"managedFields":[{}]}}`)
	p := planned(t, c, want(t, namespace(space), configMap(space, "a", "2"), configMap(space, "unmarked", "2"), configMap(space, "theirs", "2")))
	if i := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.ID.Name == "theirs" }); p.Steps[i].Err == nil {
		t.Error("A field that was never ours stays a conflict")
	}
}

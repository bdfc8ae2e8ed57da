package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// dying returns a process that dies at its nth change. If sent is set, the change still reaches the API server.
func dying(n int64, sent bool) *fixtures.Death {
	return &fixtures.Death{At: n, Sent: sent, Counts: fixtures.Changes}
}

//test:long,unraced
func TestEveryCrashIsSurvived(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	crd := w.crd("Bucket", "Namespaced")
	used := w.crd("Region", "Cluster") // it leaves the commit while it is in use
	applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(space), crd, used))
	foreign := w.foreign(t, space)
	foreign[w.resource("Region")] = w.made(t, w.instance("Region", "", "theirs"))

	finished := false
	for n := int64(1); !finished; n++ {
		if n > 30 {
			t.Fatal("a small pass takes more than 30 writes")
		}
		for _, sent := range []bool{false, true} {
			// The commit after the crash is either the same one, or one without the objects that the crash affected.
			for _, drops := range []bool{false, true} {
				round := fmt.Sprintf("%d-%t-%t", n, sent, drops)
				commit := want(t, namespace(space), crd,
					configMap(space, "kept", round), configMap(space, "new-"+round, "1"), w.instance("Bucket", space, "new-"+round))
				if drops { // remove the objects of earlier rounds, or the guard "many" would hold the prunes
					applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(space), crd, configMap(space, "kept", "before "+round)))
				}
				finished = w.dies(t, dying(n, sent), commit, 1)
				if drops {
					commit = want(t, namespace(space), crd, configMap(space, "kept", round))
				}
				next := w.cluster(t, cluster.Options{})
				if p := applied(t, next, commit); p.Count(plan.Hold) != 1 {
					t.Fatalf("An object in use is held in every pass, got %v", actions(p))
				}
				w.survived(t, space, round, next, commit, foreign)
			}
		}
	}
}

// Protection is added and removed over several passes, and a process may die in each. The process dies before every write and after
// the last one, because the result depends only on the writes.
//
//test:long,unraced
func TestEveryCrashOfProtection(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason     string
		usages     int // of a round
		finalizers int
	}{
		"ByFinalizer": {reason: "A finalizer that is left behind keeps its object forever.", finalizers: 2},
		"ByUsage":     {reason: "A Usage that is left behind keeps its object forever, and a lost one protects nothing.", usages: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace + "-app"
			applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(space)))
			foreign := w.foreign(t, space)
			if tc.usages > 0 {
				w.serveUsages(t)
				foreign[usages] = w.made(t, thing("protection.crossplane.io/v1beta1", "Usage", space, "theirs", map[string]any{
					"spec": map[string]any{"reason": "of others", "of": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "resourceRef": map[string]any{"name": "copied"}}},
				}))
			}
			finished := false
			for n := int64(1); !finished; n++ {
				if n > 60 {
					t.Fatal("a small change takes more than 60 writes")
				}
				finished = true
				// The commit after the crash is either the same one, or one without both sides of the dependency.
				for _, drops := range []bool{false, true} {
					round, usages, finalizers := fmt.Sprintf("%d-%t", n, drops), tc.usages, tc.finalizers
					commit := want(t, namespace(space), configMap(space, "kept", round), configMap(space, "base-"+round, "1"),
						protecting(space, "user-"+round, "kept", "base-"+round))
					if drops { // remove the objects of earlier rounds, or the guard "many" would hold the prunes
						before := want(t, namespace(space), configMap(space, "kept", "before "+round))
						settled(t, w.cluster(t, cluster.Options{}), before)
						applied(t, w.cluster(t, cluster.Options{}), before)
					}
					finished = w.dies(t, dying(n, false), commit, 8) && finished
					if drops {
						commit, usages, finalizers = want(t, namespace(space), configMap(space, "kept", round)), 0, 0
					}
					next := w.cluster(t, cluster.Options{})
					settled(t, next, commit)
					applied(t, next, commit) // this pass sees that the dependencies are gone, and forgets them
					w.survived(t, space, round, next, commit, foreign)
					if finalized, made := w.protected(t, space); len(finalized) != finalizers || len(made) != usages {
						t.Fatalf("%s\nAfter dying before write %s there are finalizers on %v, and the Usages %v", tc.reason, round, finalized, made)
					}
				}
			}
		})
	}
}

// protected returns the names of ConfigMaps with finalizers, and of our Usages.
func (w *world) protected(t *testing.T, space string) (finalized, made []string) {
	t.Helper()
	for gvr, found := range map[schema.GroupVersionResource]*[]string{configMaps: &finalized, usages: &made} {
		l, err := w.at(gvr, space).List(t.Context(), metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range l.Items {
			if u := &l.Items[i]; gvr == usages && inventory.Ours(u, w.sync) || gvr != usages && len(u.GetFinalizers()) > 0 {
				*found = append(*found, u.GetName())
			}
		}
	}
	return finalized, made
}

// dies runs at most the given number of passes for a commit, until the process dies. It reports whether the passes finished before.
// If the process died, its lease has expired.
func (w *world) dies(t *testing.T, death *fixtures.Death, commit render.Desired, passes int) (finished bool) {
	t.Helper()
	doomed := clusterOf(t, death.Config(w.config), w, cluster.Options{Concurrency: 1})
	var err error
	for again := true; again && err == nil && passes > 0; passes-- {
		var p plan.Plan
		until(t, func() bool {
			p, err = tryPlan(t.Context(), doomed, commit)
			return err != nil || !awaitsCrossplane(p)
		})
		if err == nil {
			again = p.Writes()
			_, err = doomed.Apply(t.Context(), p)
		}
	}
	if finished = !death.Came(); finished && err != nil {
		t.Fatal(err)
	}
	w.expire(t)
	return finished
}

// survived fails if a process after a crash left work undone, orphaned an object, or touched a foreign one.
func (w *world) survived(t *testing.T, space, round string, next *cluster.Cluster, commit render.Desired, foreign map[schema.GroupVersionResource]*unstructured.Unstructured) {
	t.Helper()
	w.unmoved(t, foreign)
	if left := planned(t, next, commit); left.Writes() || left.Remembers() || left.Waits() {
		t.Fatalf("After dying at write %s the passes after it must be enough, and leave %v", round, actions(left))
	}
	inv, err := next.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	owned := slices.SortedFunc(maps.Keys(inv.Entries), manifest.ID.Compare)
	if diff := cmp.Diff(w.marked(t, space), owned); diff != "" {
		t.Fatalf("After dying at write %s nothing may be orphaned.\nowned (-marked +inventory):\n%s", round, diff)
	}
}

// expire makes the lease of a dead process expire. A short lease duration instead could also expire under a running process on a
// busy machine.
func (w *world) expire(t *testing.T) {
	t.Helper()
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	_, err := w.at(leases, w.sync.Namespace).Patch(t.Context(), "headgate-main", types.MergePatchType,
		[]byte(`{"spec":{"holderIdentity":""}}`), metav1.PatchOptions{FieldManager: "test"})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// marked returns all objects with our marks.
func (w *world) marked(t *testing.T, space string) []manifest.ID {
	t.Helper()
	var ids []manifest.ID
	for gvr, in := range map[schema.GroupVersionResource]string{namespaces: "", crds: "", configMaps: space, secrets: space, usages: space, w.resource("Bucket"): space} {
		l, err := w.at(gvr, in).List(t.Context(), metav1.ListOptions{LabelSelector: inventory.SyncLabel + "=" + w.sync.Key()})
		if apierrors.IsNotFound(err) {
			continue // its CRD went
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range l.Items {
			if inventory.Ours(&l.Items[i], w.sync) && l.Items[i].GetDeletionTimestamp() == nil {
				ids = append(ids, manifest.IDOf(&l.Items[i]))
			}
		}
	}
	slices.SortFunc(ids, manifest.ID.Compare)
	return ids
}

// foreign creates objects that resemble ours. Headgate must never touch them, whenever a process dies.
func (w *world) foreign(t *testing.T, space string) map[schema.GroupVersionResource]*unstructured.Unstructured {
	t.Helper()
	copied := configMap(space, "copied", "1") // by a tool that copies labels
	copied.SetLabels(map[string]string{inventory.SyncLabel: w.sync.Key()})
	plain := thing("v1", "Secret", space, "plain", nil)
	return map[schema.GroupVersionResource]*unstructured.Unstructured{configMaps: w.made(t, copied), secrets: w.made(t, plain)}
}

// made creates an object like another tool.
func (w *world) made(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	gvr := schema.GroupVersionResource{Group: u.GroupVersionKind().Group, Version: u.GroupVersionKind().Version, Resource: strings.ToLower(u.GetKind()) + "s"}
	live, err := w.at(gvr, u.GetNamespace()).Create(t.Context(), u, metav1.CreateOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// unmoved fails if any object has changed.
func (w *world) unmoved(t *testing.T, objects map[schema.GroupVersionResource]*unstructured.Unstructured) {
	t.Helper()
	for gvr, was := range objects {
		is, err := w.at(gvr, was.GetNamespace()).Get(t.Context(), was.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(was.Object, is.Object); diff != "" {
			t.Fatalf("Foreign objects stay unchanged (-was +is):\n%s", diff)
		}
	}
}

func TestInventoryForOthers(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	c := w.cluster(t, cluster.Options{})
	applied(t, c, want(t, namespace(space), w.crd("Region", "Cluster"), w.instance("Region", "", "north"), configMap("", "here", "1"), configMap(space, "there", "1")))

	if diff := cmp.Diff([]string{
		"_north_" + w.group + "_Region",
		"_regions." + w.group + "_apiextensions.k8s.io_CustomResourceDefinition",
		"_" + space + "__Namespace",
		space + "_there__ConfigMap",
		"default_here__ConfigMap",
	}, theirSet(t, w), cmp.Transformer("sorted", func(s []string) []string { return slices.Sorted(slices.Values(s)) })); diff != "" {
		t.Errorf("cli-utils' own client reads our inventory, with the namespaces that objects are in.\nset (-want +got):\n%s", diff)
	}
}

// A sync that waited in vain for another one leaves alone what that one owns.
func TestOwned(t *testing.T) {
	w := newWorld(t)
	c := w.cluster(t, cluster.Options{})
	applied(t, c, want(t, configMap(w.sync.Namespace, "a", "1")))
	ids, err := c.Owned(t.Context(), w.sync)
	if err != nil || !slices.Equal(ids, []manifest.ID{{Kind: "ConfigMap", Namespace: w.sync.Namespace, Name: "a"}}) {
		t.Errorf("owned: %v %v", ids, err)
	}
	if ids, err := c.Owned(t.Context(), inventory.Sync{Namespace: w.sync.Namespace, Name: "never-applied"}); err != nil || len(ids) > 0 {
		t.Errorf("a sync without an inventory owns nothing: %v %v", ids, err)
	}
}

func TestSpelling(t *testing.T) {
	w := newWorld(t)
	c := w.cluster(t, cluster.Options{DefaultNamespace: w.sync.Namespace})
	region := w.instance("Region", w.sync.Namespace, "north") // cluster-scoped
	applied(t, c, want(t, namespace(w.sync.Namespace), w.crd("Region", "Cluster"), w.crd("Bucket", "Namespaced"),
		region, w.instance("Bucket", "", "logs"), configMap("", "settings", "1")))
	if p := planned(t, c, want(t, namespace(w.sync.Namespace), w.crd("Region", "Cluster"), w.crd("Bucket", "Namespaced"),
		region, w.instance("Bucket", "", "logs"), configMap("", "settings", "1"))); p.Writes() || p.Remembers() {
		t.Errorf("An object in its default namespace is found again, got %v", actions(p))
	}
	spelt := want(t, namespace(w.sync.Namespace), w.crd("Region", "Cluster"), w.crd("Bucket", "Namespaced"),
		w.instance("Region", "", "north"), w.instance("Bucket", w.sync.Namespace, "logs"), configMap(w.sync.Namespace, "settings", "1"))
	applied(t, c, spelt)
	if p := planned(t, c, spelt); p.Count(plan.Prune) > 0 || p.Writes() || p.Remembers() {
		t.Errorf("Writing the namespace out deletes nothing, got %v", actions(p))
	}
	_, err := c.Observe(t.Context(), want(t, configMap("", "settings", "1"), configMap(w.sync.Namespace, "settings", "2")))
	if err == nil || !strings.Contains(err.Error(), "is the same object as the one at all.yaml:1") {
		t.Errorf("Two documents of one object are an error, however they spell it, got %v", err)
	}
}

func TestRebuiltInventory(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	c := w.cluster(t, cluster.Options{})
	all := want(t, namespace(space), w.crd("Region", "Cluster"), w.instance("Region", "", "north"), configMap(space, "a", "1"), configMap(space, "b", "1"))
	applied(t, c, all)
	before, err := c.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.at(configMaps, w.sync.Namespace).Delete(t.Context(), "headgate-main", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	less := want(t, namespace(space), w.crd("Region", "Cluster"), configMap(space, "a", "1"))
	p := applied(t, c, less)
	if diff := cmp.Diff([]string{
		"hold (rebuilt) Region." + w.group + "/north",
		"hold (rebuilt) ConfigMap/" + space + "/b",
	}, actions(p), cmp.Transformer("sorted", func(s []string) []string { return slices.Sorted(slices.Values(s)) })); diff != "" {
		t.Errorf("A lost inventory is rebuilt from marks, and prunes nothing.\nsteps (-want +got):\n%s", diff)
	}
	after, err := c.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.SortedFunc(maps.Keys(before.Entries), manifest.ID.Compare), slices.SortedFunc(maps.Keys(after.Entries), manifest.ID.Compare)); diff != "" {
		t.Errorf("It holds what the lost one held.\nowned (-want +got):\n%s", diff)
	}
	if p := applied(t, c, less); p.Count(plan.Prune) != 0 || p.Count(plan.Hold) != 2 {
		t.Errorf("The pass after that prunes nothing either, got %v", actions(p))
	}
}

func TestOneWriter(t *testing.T) {
	w := newWorld(t)
	commit := want(t, namespace(w.sync.Namespace), configMap(w.sync.Namespace, "a", "1"))
	c := w.cluster(t, cluster.Options{LockTimeout: 100 * time.Millisecond})
	applied(t, c, commit)
	leases := configMaps
	leases.Group, leases.Resource = "coordination.k8s.io", "leases"
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	w.patch(t, w.at(leases, w.sync.Namespace), "headgate-main", `{"spec":{"holderIdentity":"other/1/x","leaseDurationSeconds":3600,"acquireTime":"`+now+`","renewTime":"`+now+`"}}`)

	if again := planned(t, c, commit); again.Writes() {
		t.Fatalf("want nothing to do, got %v", actions(again))
	} else if _, err := c.Apply(t.Context(), again); err != nil {
		t.Errorf("A pass with nothing to write takes no lease, got %v", err)
	}
	p := planned(t, c, want(t, namespace(w.sync.Namespace), configMap(w.sync.Namespace, "a", "2")))
	w.requests.Reset()
	_, err := c.Apply(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "held by other/1/x since ") {
		t.Errorf("Another process is applying: want an error that names it, got %v", err)
	}
	if n := w.requests.Writes(); n != 0 {
		t.Errorf("Nothing is written without the lease, got %v", w.requests.Log())
	}
	w.patch(t, w.at(leases, w.sync.Namespace), "headgate-main", `{"spec":{"leaseDurationSeconds":1}}`)
	patient := w.cluster(t, cluster.Options{})
	if _, err := patient.Apply(t.Context(), p); err != nil {
		t.Errorf("A holder that went silent is taken for dead, got %v", err)
	}
	w.requests.Reset()
	if _, err := patient.Apply(t.Context(), p); !errors.Is(err, reason.ErrMoved) {
		t.Errorf("The plan is older than the inventory: want ErrMoved, got %v", err)
	}
	if n := w.requests.Counts()["PATCH"]; n != 0 {
		t.Errorf("want no write by an old plan, got %d", n)
	}
}

func TestCancelledPassRemembers(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	objects := []*unstructured.Unstructured{namespace(w.sync.Namespace)}
	for i := range 20 {
		objects = append(objects, configMap(w.sync.Namespace, fmt.Sprintf("m%02d", i), "1"))
	}
	commit := want(t, objects...)
	c := w.cluster(t, cluster.Options{Concurrency: 1, Progress: func(e cluster.Event) {
		if e.Phase == "apply" && e.Done == 5 {
			cancel()
		}
	}})
	p := planned(t, c, commit)
	done, err := c.Apply(ctx, p)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("want the pass cancelled, got %v", err)
	}
	inv, err := c.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	marks := 0
	for _, e := range inv.Entries {
		if e.Mark != "" {
			marks++
		}
	}
	if marks != 5 || len(inv.Entries) != 21 {
		t.Errorf("Completed steps are recorded as done, the rest as intended: got %d of %d, %d outcomes", marks, len(inv.Entries), len(done))
	}
}

package cluster_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reconcilerOf returns a Reconciler that makes passes over a cluster and can destroy the sync.
func reconcilerOf(c *cluster.Cluster, w *world) reconcile.Reconciler {
	return reconcile.Reconciler{
		Observer: c, Applier: c, Cluster: c, Sync: w.sync,
		Options: render.Options{Owner: render.OwnerHeadgate}, Guarding: guard.Guarding{PruneInstances: true}, Timeout: 20 * time.Second, Grace: time.Second,
	}
}

// ended returns the steps of a destroy: "prune Kind/name", with the guard or the failure.
func ended(r report.Report) []string {
	var all []string
	for _, s := range r.Steps {
		line := string(s.Action) + " " + s.ID.String()
		switch {
		case s.Error != "":
			line = "failed " + line
		case s.NotReached:
			line = "not reached " + line
		case s.Guard != "":
			line += " (" + string(s.Guard) + ")"
		}
		all = append(all, line)
	}
	return all
}

// remembered returns the objects in which the cluster stores the state of a sync.
func (w *world) remembered(t *testing.T) []string {
	t.Helper()
	var left []string
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	for _, gvr := range []schema.GroupVersionResource{configMaps, secrets, leases} {
		l, err := w.at(gvr, w.sync.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range l.Items {
			if strings.Contains(o.GetName(), "headgate-") {
				left = append(left, gvr.Resource+"/"+o.GetName())
			}
		}
	}
	return left
}

// everyTier returns a commit with objects in many tiers, including a Secret.
func (w *world) everyTier(t *testing.T, space string) render.Desired {
	t.Helper()
	return want(t, namespace(space), w.crd("Bucket", "Namespaced"), configMap(space, "settings", "1"),
		thing("v1", "Secret", space, "token", map[string]any{"stringData": map[string]any{"token": "x"}}), w.instance("Bucket", space, "logs"))
}

//test:long,unraced
func TestDestroySurvivesEveryCrash(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-theirs" // deleting a namespace takes five seconds, so the sync does not own this one
	w.made(t, namespace(space))
	foreign := w.foreign(t, space)
	commit := w.everyTier(t, space)
	commit.Objects = slices.DeleteFunc(commit.Objects, func(o render.Object) bool { return o.ID.Kind == "Namespace" })
	finished := false
	for n := int64(1); !finished; n++ {
		if n > 40 {
			t.Fatal("the end of a small sync takes more than 40 writes")
		}
		applied(t, w.cluster(t, cluster.Options{}), commit)
		// Dying before and after a write differ only by that write.
		for _, sent := range []bool{false, true} {
			death := dying(n, sent)
			_, err := reconcilerOf(clusterOf(t, death.Config(w.config), w, cluster.Options{Concurrency: 1}), w).Destroy(t.Context(), plan.Destroying)
			finished = !death.Came()
			if finished && err != nil {
				t.Fatal(err)
			}
			w.expire(t)
			inv, err := w.cluster(t, cluster.Options{}).Inventory(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range w.marked(t, space) {
				if _, owned := inv.Entries[id]; !owned {
					t.Fatalf("After dying at write %d-%t %s may not be orphaned", n, sent, id)
				}
			}
			if finished {
				break
			}
		}
		r, err := reconcilerOf(w.cluster(t, cluster.Options{}), w).Destroy(t.Context(), plan.Destroying)
		if err != nil || r.Verdict.ExitCode != 0 {
			t.Fatalf("After dying at write %d one more destroy must be enough: %v, %v", n, ended(r), err)
		}
		if left := append(w.remembered(t), fmt.Sprint(w.marked(t, space))); !slices.Equal(left, []string{"[]"}) {
			t.Fatalf("After dying at write %d nothing may be left, got %v", n, left)
		}
		w.unmoved(t, foreign)
	}
}

// An object may need another one while it is deleted, such as a bucket whose finalizer needs the Secret. Destroy must delete the
// bucket first and wait until it is gone. Here a finalizer stays on the bucket for a while.
//
//test:long
func TestDestroyWaitsForEachTier(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	bucket := w.instance("Bucket", space, "logs")
	bucket.SetFinalizers([]string{"example.org/cloud"})
	c := w.cluster(t, cluster.Options{})
	applied(t, c, want(t, namespace(space), w.crd("Bucket", "Namespaced"), configMap(space, "settings", "1"), bucket))
	r := reconcilerOf(c, w)
	r.Timeout = time.Second
	result, err := r.Destroy(t.Context(), plan.Destroying)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"failed prune Bucket." + w.group + "/" + space + "/logs",
		"not reached prune ConfigMap/" + space + "/settings",
		"not reached prune Namespace/" + space,
		"not reached prune CustomResourceDefinition.apiextensions.k8s.io/buckets." + w.group,
	}, ended(result)); diff != "" {
		t.Errorf("An object that does not go away holds its dependencies.\nsteps (-want +got):\n%s", diff)
	}
	if why := result.Steps[0].Error; !strings.Contains(why, "not gone after 1s: deletion started at ") || !strings.HasSuffix(why, "waits for finalizer example.org/cloud; check the controller that owns it") {
		t.Errorf("It names what it waits for, got %q", why)
	}
	if result.Verdict.ExitCode != report.ExitFailed {
		t.Errorf("exit code %d", result.Verdict.ExitCode)
	}
	w.mustGet(t, configMaps, space, "settings")

	w.patch(t, w.at(w.resource("Bucket"), space), "logs", `{"metadata":{"finalizers":null}}`)
	if result, err = reconcilerOf(c, w).Destroy(t.Context(), plan.Destroying); err != nil || result.Verdict.ExitCode != 0 {
		t.Errorf("The next one goes on: %v, %v\n%+v", ended(result), err, result.Steps)
	}
	if left := w.remembered(t); left != nil {
		t.Errorf("and leaves nothing of the sync, got %v", left)
	}
	w.mustGet(t, namespaces, "", w.sync.Namespace)
}

func TestOrphan(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	commit := w.everyTier(t, space)
	c := w.cluster(t, cluster.Options{})
	applied(t, c, commit)
	before := w.mustGet(t, w.resource("Bucket"), space, "logs")
	result, err := reconcilerOf(c, w).Destroy(t.Context(), plan.Orphaning)
	if err != nil || result.Summary.Released != 5 || result.Verdict.ExitCode != 0 {
		t.Fatalf("got %v, %v", ended(result), err)
	}
	after := w.mustGet(t, w.resource("Bucket"), space, "logs")
	if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" || before.GetUID() != after.GetUID() {
		t.Errorf("The object stays as it is (-before +after):\n%s", diff)
	}
	others := slices.DeleteFunc(after.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == inventory.Released })
	if len(after.GetLabels())+len(after.GetAnnotations())+len(others) > 0 {
		t.Errorf("without a trace of us: %v", after.Object["metadata"])
	}
	if left := w.remembered(t); left != nil {
		t.Errorf("nothing is left of the sync, got %v", left)
	}
	w.mustGet(t, namespaces, "", w.sync.Namespace)

	// The next sync adopts the objects without a conflict.
	heir := *w
	heir.sync.Name = "heir"
	applied(t, heir.cluster(t, cluster.Options{}), commit)
}

// A sync that owns the namespace of its own inventory does not delete that namespace.
func TestDestroyKeepsItsHome(t *testing.T) {
	w := newWorld(t)
	c := w.cluster(t, cluster.Options{})
	applied(t, c, want(t, namespace(w.sync.Namespace), configMap(w.sync.Namespace, "settings", "1")))
	result, err := reconcilerOf(c, w).Destroy(t.Context(), plan.Destroying)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"prune ConfigMap/" + w.sync.Namespace + "/settings",
		"release Namespace/" + w.sync.Namespace + " (inventory)",
	}, ended(result)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if home := w.mustGet(t, namespaces, "", w.sync.Namespace); home.GetDeletionTimestamp() != nil {
		t.Error("The namespace stays")
	}
}

// A lost inventory is rebuilt, and destroy deletes none of its objects without approval.
func TestDestroyWithoutInventory(t *testing.T) {
	w := newWorld(t)
	c := w.cluster(t, cluster.Options{})
	applied(t, c, want(t, w.crd("Region", "Cluster"), w.instance("Region", "", "north"), configMap("default", w.sync.Namespace, "1")))
	w.loses(t)
	var digest string
	for _, which := range []string{"first", "next"} {
		result, err := reconcilerOf(c, w).Destroy(t.Context(), plan.Destroying)
		if err != nil || result.Verdict.ExitCode != report.ExitHeld || result.Summary.Held != 3 || result.Summary.Pruned != 0 {
			t.Fatalf("The %s destroy deletes nothing, got %v, %v", which, ended(result), err)
		}
		if digest != "" && result.Approval.Digest != digest {
			t.Errorf("The digest changed from %s to %s", digest, result.Approval.Digest)
		}
		digest = result.Approval.Digest
	}
	w.mustGet(t, crds, "", "regions."+w.group)
	// The definition is in use until its object is gone, so a person is asked about it only then.
	for _, left := range []int{1, 0} {
		approved := reconcilerOf(c, w)
		approved.Approvals = func() approval.Given { return approval.Given{inventory.OnCommand: approval.Typed(digest)} }
		result, err := approved.Destroy(t.Context(), plan.Destroying)
		if err != nil || result.Summary.Held != left || (result.Verdict.ExitCode == report.ExitSuccess) != (left == 0) {
			t.Fatalf("An approval lets go what it names, with %d objects left: %v, %v", left, ended(result), err)
		}
		if left > 0 {
			digest = result.Approval.Digest
		}
	}
}

// Constant updates of a status must not prevent a deletion.
func TestDestroyWhileSomebodyWrites(t *testing.T) {
	w := newWorld(t)
	c := w.cluster(t, cluster.Options{})
	applied(t, c, want(t, w.crd("Region", "Cluster"), w.instance("Region", "", "north")))
	deletes := 0
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if req.Method == http.MethodDelete && strings.HasSuffix(req.URL.Path, "/regions/north") {
			if deletes++; deletes == 1 {
				w.patch(t, w.at(w.resource("Region"), ""), "north", `{"status":{"seen":"just now"}}`, "status")
			}
		}
		return next.RoundTrip(req)
	})
	result, err := reconcilerOf(clusterOf(t, config, w, cluster.Options{}), w).Destroy(t.Context(), plan.Destroying)
	if err != nil || result.Summary.Pruned != 2 || result.Verdict.ExitCode != 0 {
		t.Errorf("got %v, %v", ended(result), err)
	}
	if _, err := w.at(w.resource("Region"), "").Get(t.Context(), "north", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("want it gone, got %v", err)
	}
}

// A dependant is deleted before its dependency, regardless of their kinds.
func TestDestroyHeedsDependsOn(t *testing.T) {
	w := newWorld(t)
	settings := configMap("default", w.sync.Namespace, "1")
	settings.SetAnnotations(map[string]string{"config.kubernetes.io/depends-on": w.group + "/Region/north"})
	c := w.cluster(t, cluster.Options{})
	first := want(t, w.crd("Region", "Cluster"), w.instance("Region", "", "north"))
	applied(t, c, first)
	applied(t, c, want(t, w.crd("Region", "Cluster"), w.instance("Region", "", "north"), settings))
	w.requests.Reset()
	result, err := reconcilerOf(c, w).Destroy(t.Context(), plan.Destroying)
	if err != nil || result.Summary.Pruned != 3 || result.Verdict.ExitCode != 0 {
		t.Fatalf("got %v, %v", ended(result), err)
	}
	var order []string
	for _, request := range w.requests.Log() {
		if path, deleted := strings.CutPrefix(request, "DELETE "); deleted && !strings.Contains(path, "headgate-") {
			order = append(order, path[strings.LastIndex(path, "/")+1:])
		}
	}
	if diff := cmp.Diff([]string{w.sync.Namespace, "north", "regions." + w.group}, order); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
}

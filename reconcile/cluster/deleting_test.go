package cluster_test

import (
	"context"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// pruning makes passes over commits with a ConfigMap that a finalizer keeps.
type pruning struct {
	*world
	limit time.Duration
}

// pass makes a whole pass over a commit, in a new process.
func (w pruning) pass(t *testing.T, revision string, objects ...*unstructured.Unstructured) report.Report {
	t.Helper()
	r := reconcilerOf(w.cluster(t, cluster.Options{}), w.world)
	r.Timeout, r.Grace, r.NoWait = w.limit, time.Nanosecond, true
	commit := want(t, append(objects, configMap(w.sync.Namespace, "stays", revision))...)
	commit.Revision = revision
	result, _, err := r.Carry(t.Context(), reconcile.Task{Render: func(context.Context) (render.Desired, error) { return commit, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// entry returns the inventory's entry of the ConfigMap.
func (w pruning) entry(t *testing.T) (inventory.Entry, bool) {
	t.Helper()
	inv, err := w.cluster(t, cluster.Options{}).Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for id, e := range inv.Entries {
		if id.Name == "goes" {
			return e, true
		}
	}
	return inventory.Entry{}, false
}

// release removes the finalizer, as its controller does.
func (w pruning) release(t *testing.T) {
	t.Helper()
	if _, err := w.at(configMaps, w.sync.Namespace).Patch(t.Context(), "goes", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// An object whose deletion a finalizer delays stays in the inventory until it is gone. Only the commit that removed it fails because
// of it, and only after the time limit.
func TestPruneThatWaitsForAFinalizer(t *testing.T) {
	w := pruning{newWorld(t), time.Hour}
	goes := configMap(w.sync.Namespace, "goes", "1")
	goes.SetFinalizers([]string{"example.org/slow"})
	w.pass(t, "one", goes)
	for _, tc := range []struct {
		reason, revision string
		limit            time.Duration
		code             int
	}{
		{"This pass requests the deletion.", "two", time.Hour, report.ExitSuccess},
		{"Another process finds the deletion.", "two", time.Hour, report.ExitSuccess},
		{"Another commit did not remove it.", "three", time.Nanosecond, report.ExitSuccess},
		{"The time is up for the commit that removed it.", "two", time.Nanosecond, report.ExitFailed},
	} {
		w.limit = tc.limit
		r := w.pass(t, tc.revision)
		if r.Summary.Pruned > 0 || r.Verdict.ExitCode != tc.code || tc.code == 0 && (r.Summary.Deleting != 1 || r.Verdict.Activation.State != report.Success) {
			t.Errorf("%s The report is %+v, %+v", tc.reason, r.Verdict, r.Summary)
		}
		if e, owned := w.entry(t); !owned || !e.Deleting() || e.RemovedBy != "two" {
			t.Errorf("%s The entry is %+v", tc.reason, e)
		}
	}

	w.limit = time.Hour
	r := w.pass(t, "four", goes)
	if r.Summary.Waiting != 1 || r.Verdict.Activation.State != report.Pending {
		t.Errorf("It is wanted again, and is not there: %+v, %v", r.Verdict, ended(r))
	}
	w.release(t)
	if r := w.pass(t, "four", goes); r.Summary.Created != 1 || r.Verdict.Activation.State != report.Success {
		t.Errorf("It is gone and is created again: %+v, %v", r.Verdict, ended(r))
	}
	if e, _ := w.entry(t); e.Deleting() || e.RemovedBy != "" {
		t.Errorf("The new object is not being deleted: %+v", e)
	}
}

// An object that another client creates after a prune is not ours.
func TestMadeAnewAfterAPrune(t *testing.T) {
	w := pruning{newWorld(t), time.Hour}
	goes := configMap(w.sync.Namespace, "goes", "1")
	goes.SetFinalizers([]string{"example.org/slow"})
	w.pass(t, "one", goes)
	w.pass(t, "two")
	w.release(t)
	copied := configMap(w.sync.Namespace, "goes", "2")
	w.sync.Own(copied) // the marks are copied, too
	w.made(t, copied)
	if r := w.pass(t, "two"); r.Verdict.ExitCode != 0 || r.Summary.Held+r.Summary.Pruned+r.Summary.Deleting > 0 {
		t.Errorf("%+v, %v", r.Verdict, ended(r))
	}
	if e, owned := w.entry(t); owned {
		t.Errorf("The inventory holds the object of another client: %+v", e)
	}
	w.mustGet(t, configMaps, w.sync.Namespace, "goes")
}

// A pass that prunes looks whether the objects are gone, and forgets those that are.
func TestPruneThatEndsInThePass(t *testing.T) {
	w := newWorld(t)
	commit := want(t, w.crd("Bucket", "Namespaced"), w.crd("Topic", "Namespaced"))
	applied(t, w.cluster(t, cluster.Options{}), commit)
	r := reconcilerOf(w.cluster(t, cluster.Options{}), w)
	r.Grace = time.Minute
	commit = want(t, w.crd("Topic", "Namespaced"))
	result, _, err := r.Carry(t.Context(), reconcile.Task{Render: func(context.Context) (render.Desired, error) { return commit, nil }})
	if err != nil || result.Summary.Pruned != 1 || result.Summary.Deleting != 0 {
		t.Errorf("A controller deletes the CRD after a moment: %v, %v", err, ended(result))
	}
	inv, err := w.cluster(t, cluster.Options{}).Inventory(t.Context())
	if _, owned := inv.Entries[plan.CRD("buckets."+w.group)]; err != nil || owned {
		t.Errorf("%v, %v", err, inv.Entries)
	}
}

// A CRD waits for its custom resources, which a finalizer may keep. Later commits do not suffer from that, and prune the CRD in the end.
func TestPruneThatWaitsForAnother(t *testing.T) {
	w := pruning{newWorld(t), time.Hour}
	bucket := w.instance("Bucket", w.sync.Namespace, "logs")
	bucket.SetFinalizers([]string{"example.org/slow"})
	w.pass(t, "one", w.crd("Bucket", "Namespaced"), w.crd("Topic", "Namespaced"), bucket)
	if r := w.pass(t, "two", w.crd("Topic", "Namespaced")); r.Summary.Deleting != 1 || r.Summary.Waiting != 1 || r.Verdict.ExitCode != 0 {
		t.Errorf("%+v %v", r.Verdict, ended(r))
	}
	w.limit = time.Nanosecond
	if r := w.pass(t, "three", w.crd("Topic", "Namespaced")); r.Summary.Deleting != 2 || r.Verdict.Activation.State != report.Success || r.Verdict.ExitCode != 0 {
		t.Errorf("%+v %v", r.Verdict, ended(r))
	}
	w.patch(t, w.at(w.resource("Bucket"), w.sync.Namespace), "logs", `{"metadata":{"finalizers":null}}`)
	if r := w.pass(t, "three", w.crd("Topic", "Namespaced")); r.Verdict.ExitCode != 0 || r.Summary.Pruned+r.Summary.Deleting != 1 || r.Summary.Waiting > 0 {
		t.Errorf("the CRD is deleted: %+v %v", r.Verdict, ended(r))
	}
}

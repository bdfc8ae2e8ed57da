package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// versioned returns a CRD with some versions. The last one is the storage version; a version with a "-" is not served.
func (w *world) versioned(versions ...string) *unstructured.Unstructured {
	u := w.crd("Bucket", "Cluster")
	spec := u.Object["spec"].(map[string]any)
	first := spec["versions"].([]any)[0].(map[string]any)
	var list []any
	for i, v := range versions {
		next := (&unstructured.Unstructured{Object: first}).DeepCopy().Object
		name, unserved := strings.CutPrefix(v, "-")
		next["name"], next["served"], next["storage"] = name, !unserved, i == len(versions)-1
		list = append(list, next)
	}
	spec["versions"] = list
	return u
}

// bucketOf returns the bucket a in a version and with a size.
func (w *world) bucketOf(version string, size int64) *unstructured.Unstructured {
	u := w.instance("Bucket", "", "a")
	u.SetAPIVersion(w.group + "/" + version)
	u.Object["spec"] = map[string]any{"size": size}
	return u
}

// A version that is removed from a CRD remains in the managed fields of its objects, and the API server refuses every apply of
// them. Headgate migrates the managed fields and then applies as usual.
func TestVanishedVersion(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		leaves []string // later versions of the CRD
		size   int64    // size in the later commit
	}{
		"Undeclared":         {reason: "The API server cannot convert to the removed version.", leaves: []string{"v1"}, size: 2},
		"UndeclaredAndClean": {reason: "An unchanged commit must not fail.", leaves: []string{"v1"}, size: 1},
		"Unserved":           {reason: "The API server forgets which manager owns which fields.", leaves: []string{"-v1beta1", "v1"}, size: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			both, left := w.versioned("v1beta1", "v1"), w.versioned(tc.leaves...)
			applied(t, w.cluster(t, cluster.Options{}), want(t, both, w.bucketOf("v1beta1", 1)))
			for _, version := range []string{"v1beta1", "v1"} {
				at := w.resource("Bucket")
				at.Version = version
				by := fmt.Sprintf(`{"spec":{"by-%s":"x"}}`, version)
				if _, err := w.live.Resource(at).Patch(t.Context(), "a", types.MergePatchType, []byte(by), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
					t.Fatal(err)
				}
			}
			body, err := json.Marshal(map[string]any{"spec": map[string]any{"versions": left.Object["spec"].(map[string]any)["versions"]}})
			if err != nil {
				t.Fatal(err)
			}
			w.patch(t, w.at(crds, ""), left.GetName(), string(body))
			c, commit := w.cluster(t, cluster.Options{}), want(t, left, w.bucketOf("v1", tc.size))
			var p plan.Plan
			for end := time.Now().Add(fixtures.Patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) { // discovery lags behind
				if p, err = tryPlan(t.Context(), c, commit); err == nil && plan.Migration(p).Writes() {
					break
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			first := plan.Migration(p)
			done, err := c.Apply(t.Context(), first)
			if err != nil || len(done) != 1 || done[0].Err != nil || done[0].NotReady.None() {
				t.Fatalf("%s\nmigration: %+v, %v; plan %v", tc.reason, done, err, actions(p))
			}
			if entry := inventoryEntry(t, c, first.Steps[0]); entry.Digest == first.Steps[0].Digest {
				t.Error("the inventory has what was only migrated as applied")
			}
			applied(t, c, commit)
			if again := planned(t, c, commit); len(actions(again)) > 0 {
				t.Errorf("%s\nafterwards: %v", tc.reason, actions(again))
			}
			u, err := w.at(w.resource("Bucket"), "").Get(t.Context(), "a", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var managers []string
			for _, e := range u.GetManagedFields() {
				managers = append(managers, fmt.Sprintf("%s %s %s", e.Manager, strings.TrimPrefix(e.APIVersion, w.group+"/"), e.FieldsV1))
			}
			wantManagers := []string{
				`headgate v1 {"f:metadata":{"f:annotations":{"f:config.k8s.io/owning-inventory":{}},"f:labels":{"f:headgate.dev/sync":{}}},"f:spec":{".":{},"f:size":{}}}`,
				`kubectl-edit v1 {"f:spec":{"f:by-v1":{},"f:by-v1beta1":{}}}`,
			}
			if diff := cmp.Diff(wantManagers, managers); diff != "" {
				t.Errorf("%s\nmanaged fields (-want +got):\n%s", tc.reason, diff)
			}
			if size, _, _ := unstructured.NestedInt64(u.Object, "spec", "size"); size != tc.size {
				t.Errorf("%s\nsize is %d", tc.reason, size)
			}
		})
	}
}

// A commit removes a version from a CRD and changes an object whose managed fields name that version: one pass does both.
func TestVersionLeavesWithAChange(t *testing.T) {
	w := newWorld(t)
	applied(t, w.cluster(t, cluster.Options{}), want(t, w.versioned("v1beta1", "v1"), w.bucketOf("v1beta1", 1)))
	c, commit := w.cluster(t, cluster.Options{}), want(t, w.versioned("v1"), w.bucketOf("v1", 2))
	r := reconcilerOf(c, w)
	task := reconcile.Task{Render: func(context.Context) (render.Desired, error) { return commit, nil }}
	asks := planned(t, c, commit).Approval
	r.Approvals = func() approval.Given {
		return approval.Given{inventory.OnCommand: approval.UpTo(asks.UpTo, asks.Digest)}
	}
	result, _, err := r.Carry(t.Context(), task)
	if err != nil || result.Verdict.ExitCode != report.ExitSuccess {
		t.Fatalf("exit code %d, %v: %+v", result.Verdict.ExitCode, err, result.Steps)
	}
	u, err := w.at(w.resource("Bucket"), "").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if size, _, _ := unstructured.NestedInt64(u.Object, "spec", "size"); size != 2 {
		t.Errorf("size is %d", size)
	}
}

func inventoryEntry(t *testing.T, c *cluster.Cluster, s plan.Step) inventory.Entry {
	t.Helper()
	inv, err := c.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return inv.Entries[s.ID]
}

// If another actor writes the object between the observation and the migration, Headgate leaves it alone.
func TestMigrationOfWhatChanged(t *testing.T) {
	w := newWorld(t)
	a := w.instance("Bucket", "", "a")
	applied(t, w.cluster(t, cluster.Options{}), want(t, w.versioned("v1beta1", "v1"), a))
	at := w.resource("Bucket")
	at.Version = "v1beta1"
	if _, err := w.live.Resource(at).Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"other":"x"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	w.patch(t, w.at(crds, ""), "buckets."+w.group, `{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`)
	a.Object["spec"] = map[string]any{"size": int64(2)}
	c, commit := w.cluster(t, cluster.Options{}), want(t, w.versioned("v1"), a)
	var p plan.Plan
	for end := time.Now().Add(fixtures.Patience); time.Now().Before(end) && !plan.Migration(p).Writes(); time.Sleep(100 * time.Millisecond) {
		p, _ = tryPlan(t.Context(), c, commit)
	}
	w.patch(t, w.at(w.resource("Bucket"), ""), "a", `{"spec":{"other":"y"}}`)
	done, err := c.Apply(t.Context(), plan.Migration(p))
	if err != nil || len(done) != 1 || done[0].Err == nil {
		t.Errorf("%+v, %v, want the error that it changed", done, err)
	}
}

package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/object"
)

var clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}

func role(name string) *unstructured.Unstructured {
	return thing("rbac.authorization.k8s.io/v1", "ClusterRole", "", name, map[string]any{"rules": []any{}})
}

// previous reads an inventory like Headgate did before inventories had a format. All of its lines come from commit 841294b, which
// knew no siblings.
func previous(m *unstructured.Unstructured) (map[manifest.ID]map[string]any, error) {
	var grants []struct {
		Digest string   `json:"digest"`
		Commit string   `json:"commit,omitempty"`
		Given  bool     `json:"given,omitempty"`
		Left   []string `json:"left,omitempty"`
	}
	entries := map[manifest.ID]map[string]any{}
	data, _, _ := unstructured.NestedStringMap(m.Object, "data")
	for key, value := range data {
		meta, err := object.ParseObjMetadata(key)
		if err != nil {
			return nil, fmt.Errorf("inventory key %q: %w", key, err)
		}
		var e map[string]any
		if value != "" {
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				return nil, fmt.Errorf("inventory entry %q: %w", key, err)
			}
		}
		entries[manifest.ID{Group: meta.GroupKind.Group, Kind: meta.GroupKind.Kind, Namespace: meta.Namespace, Name: meta.Name}] = e
	}
	if output := m.GetAnnotations()["headgate.dev/approvals"]; output != "" {
		if err := json.Unmarshal([]byte(output), &grants); err != nil {
			return nil, fmt.Errorf("the annotation headgate.dev/approvals cannot be read: %w", err)
		}
	}
	return entries, nil
}

func (w *world) inventory(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	return w.mustGet(t, configMaps, w.sync.Namespace, "headgate-main")
}

func recorded(t *testing.T, m *unstructured.Unstructured) map[string]any {
	t.Helper()
	var record map[string]any
	if err := json.Unmarshal([]byte(m.GetAnnotations()["headgate.dev/inventory"]), &record); err != nil {
		t.Fatal(err)
	}
	return record
}

// Some names cannot be a key in cli-utils' format, or would have the key of another object.
func TestNamesThatNoKeyHolds(t *testing.T) {
	w := newWorld(t)
	theirs := w.made(t, role(w.sync.Namespace+":reader")) // cli-utils parses our key of under as this object
	under, at := role(w.sync.Namespace+"__reader"), role(w.sync.Namespace+"-alice@example.org")
	long := configMap(w.sync.Namespace, strings.Repeat("x", 253), "1")
	small := []*unstructured.Unstructured{namespace(w.sync.Namespace), configMap(w.sync.Namespace, "a", "1")}
	all := append(slices.Clone(small), under, at, long)
	applied(t, w.cluster(t, cluster.Options{}), want(t, all...))

	inv, err := w.cluster(t, cluster.Options{}).Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range all {
		if e := inv.Entries[manifest.IDOf(u)]; e.UID == "" || e.Mark == "" {
			t.Errorf("%s is owned, and remembered as every other: %v", manifest.IDOf(u), e)
		}
	}
	if p := planned(t, w.cluster(t, cluster.Options{}), want(t, all...)); p.Writes() || p.Remembers() || len(p.Gone) > 0 {
		t.Errorf("The next pass has nothing to do, got %v, forgets %v", actions(p), p.Gone)
	}

	// cli-utils must only see the objects whose keys it can parse correctly. The first of the other keys would make it refuse the
	// whole inventory; with the second it would delete a foreign object.
	seen := theirSet(t, w)
	if want := []string{"_" + w.sync.Namespace + "__Namespace", w.sync.Namespace + "_a__ConfigMap"}; !slices.Equal(seen, want) {
		t.Errorf("cli-utils sees %v, want %v", seen, want)
	}
	if _, err := object.ParseObjMetadata("_a_b_rbac.authorization.k8s.io_ClusterRole"); err == nil {
		t.Error("cli-utils can parse that by now: it may see it")
	}
	if as, err := object.ParseObjMetadata(inventory.Key(manifest.IDOf(under))); err != nil || as.Name != theirs.GetName() {
		t.Errorf("cli-utils reads another name by now: %v, %v", as, err)
	}

	// Lost entries are restored from marks, and nothing is pruned because of the loss. An older version has not recorded their number.
	w.patch(t, w.at(configMaps, w.sync.Namespace), "headgate-main", `{"metadata":{"annotations":{"headgate.dev/inventory":"{\"format\":3}"}}}`)
	for _, name := range w.siblings(t) {
		if err := w.at(configMaps, w.sync.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	p := applied(t, w.cluster(t, cluster.Options{}), want(t, small...))
	if p.Count(plan.Prune) != 0 {
		t.Errorf("want no prune, got %v", actions(p))
	}
	if inv, err = w.cluster(t, cluster.Options{}).Inventory(t.Context()); err != nil || len(inv.Entries) != len(all) || inv.Rebuilt {
		t.Errorf("want %d entries again, got %d, rebuilt %t, %v", len(all), len(inv.Entries), inv.Rebuilt, err)
	}

	// Entries that were restored only from marks are pruned after a user's approval.
	p = applied(t, w.cluster(t, cluster.Options{}), want(t, append(small, at)...))
	if p.Count(plan.Hold) != 2 || p.Approval == nil {
		t.Fatalf("An object that leaves the commit is held, got %v", actions(p))
	}
	if p = approved(t, w.cluster(t, cluster.Options{}), want(t, append(small, at)...), p.Approval.Digest); p.Count(plan.Prune) != 2 {
		t.Errorf("An approved prune is done, got %v", actions(p))
	}
	w.unmoved(t, map[schema.GroupVersionResource]*unstructured.Unstructured{clusterRoles: theirs})

	// Without such names, there are no siblings.
	applied(t, w.cluster(t, cluster.Options{}), want(t, small...))
	if data, _, _ := unstructured.NestedStringMap(w.inventory(t).Object, "data"); len(data) != len(small) || len(w.siblings(t)) != 0 {
		t.Errorf("want %d entries, got %v; siblings %v", len(small), data, w.siblings(t))
	}
}

// An inventory of the previous release has no record. The test uses one that commit 841294b stored.
func TestInventoryOfThePreviousRelease(t *testing.T) {
	w := newWorld(t)
	commit := want(t, namespace(w.sync.Namespace), configMap(w.sync.Namespace, "a", "1"), configMap(w.sync.Namespace, "b", "1"))
	applied(t, w.cluster(t, cluster.Options{}), commit)
	annotations := w.inventory(t).GetAnnotations()
	delete(annotations, "headgate.dev/inventory")
	delete(annotations, "headgate.dev/approvals")
	if len(annotations) != 1 || annotations["headgate.dev/crd-owner"] != "Headgate" {
		t.Fatalf("Additions to the format have a place of their own, got %v", annotations)
	}
	w.patch(t, w.at(configMaps, w.sync.Namespace), "headgate-main", `{"metadata":{"annotations":{"headgate.dev/inventory":null,
		"headgate.dev/approvals":"[{\"digest\":\"3f786850e387550fdab836ed7e6dc881\",\"commit\":\"abc\"}]"}}}`)

	next := w.cluster(t, cluster.Options{})
	p := planned(t, next, commit)
	if p.Writes() {
		t.Errorf("Nothing has to be written because of the format, got %v", actions(p))
	}
	if entries, err := previous(w.inventory(t)); err != nil || len(entries) != 3 {
		t.Errorf("The test wants an inventory that the previous Headgate can read: %d entries, %v", len(entries), err)
	}
	p = applied(t, next, want(t, namespace(w.sync.Namespace), configMap(w.sync.Namespace, "a", "2")))
	if got := actions(p); len(got) != 2 {
		t.Errorf("want an update and a prune, got %v", got)
	}
	stored := w.inventory(t)
	if got := recorded(t, stored)["format"]; got != float64(inventory.Format) {
		t.Errorf("want format %d from now on, got %v", inventory.Format, got)
	}
	if entries, err := previous(stored); err == nil {
		t.Errorf("The previous Headgate would misread the inventory, and does not refuse it: %d entries", len(entries))
	}
}

// A newer Headgate raised the format. This version must write nothing, whichever verb runs, and name the version that is needed.
func TestNewerFormat(t *testing.T) {
	w := newWorld(t)
	commit := want(t, namespace(w.sync.Namespace), configMap(w.sync.Namespace, "a", "1"))
	other := want(t, namespace(w.sync.Namespace), configMap(w.sync.Namespace, "b", "1"))
	running := w.cluster(t, cluster.Options{})
	applied(t, running, commit)
	before := planned(t, running, other)

	w.patch(t, w.at(configMaps, w.sync.Namespace), "headgate-main", `{"data":{"what-is-this":"?"},"metadata":{"annotations":{
		"headgate.dev/inventory":"{\"format\":99,\"writer\":\"v9.8.7\",\"source\":7}","headgate.dev/inventory-values":"unknown"}}}`)
	was := w.inventory(t)
	for name, do := range map[string]func(*cluster.Cluster) error{
		"Plan":      func(c *cluster.Cluster) error { _, err := tryPlan(t.Context(), c, other); return err },
		"Record":    func(c *cluster.Cluster) error { return c.Record(t.Context(), inventory.Past{Activation: "failure"}) },
		"Inventory": func(c *cluster.Cluster) error { _, err := c.Inventory(t.Context()); return err },
		"Destroy": func(c *cluster.Cluster) error {
			_, err := reconcilerOf(c, w).Destroy(t.Context(), plan.Destroying)
			return err
		},
		"Orphan": func(c *cluster.Cluster) error {
			_, err := reconcilerOf(c, w).Destroy(t.Context(), plan.Orphaning)
			return err
		},
	} {
		for process, c := range map[string]*cluster.Cluster{"new": w.cluster(t, cluster.Options{}), "running": running} {
			w.requests.Reset()
			err := do(c)
			if err == nil || !strings.Contains(err.Error(), "v9.8.7") {
				t.Errorf("%s, %s process: want an error with the version that is needed, got %v", name, process, err)
			}
			for _, sent := range w.requests.Log() {
				late := name == "Record" && process == "running" && strings.HasPrefix(sent, "PUT") // the write fails with a conflict
				if !strings.HasPrefix(sent, "GET") && !strings.HasPrefix(sent, "LIST") && !late {
					t.Errorf("%s, %s process: sent %s", name, process, sent)
				}
			}
		}
	}
	// A pass that was planned earlier takes the lease and releases it again.
	if _, err := running.Apply(t.Context(), before); err == nil || errors.Is(err, reason.ErrMoved) {
		t.Errorf("want the pass stopped for good, got %v", err)
	}
	if is := w.inventory(t); is.GetResourceVersion() != was.GetResourceVersion() {
		t.Error("the inventory was written")
	}
	if _, err := w.at(configMaps, w.sync.Namespace).Get(t.Context(), "b", metav1.GetOptions{}); err == nil {
		t.Error("an object was written")
	}
}

// An addition keeps the format, and an older Headgate preserves it.
func TestAdditionsToTheFormat(t *testing.T) {
	w := newWorld(t)
	applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(w.sync.Namespace), configMap(w.sync.Namespace, "a", "1")))
	key := w.sync.Namespace + "_a__ConfigMap"
	data, _, _ := unstructured.NestedStringMap(w.inventory(t).Object, "data")
	entry, err := json.Marshal(strings.TrimSuffix(data[key], "}") + `,"later":[1]}`)
	if err != nil {
		t.Fatal(err)
	}
	w.patch(t, w.at(configMaps, w.sync.Namespace), "headgate-main", `{"data":{"`+key+`":`+string(entry)+`},"metadata":{
		"annotations":{"headgate.dev/inventory":"{\"format\":1,\"later\":{\"a\":1}}","headgate.dev/later":"kept",
			"headgate.dev/approvals":"[{\"digest\":\"00\",\"given\":true,\"by\":\"@bob\",\"at\":\"2026-01-02T03:04:05Z\",\"how\":[\"Comment\"],\"on\":[\"Comment\"],\"later\":[2]}]"}}}`)
	applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(w.sync.Namespace), configMap(w.sync.Namespace, "a", "2"), configMap(w.sync.Namespace, "b", "1")))
	m := w.inventory(t)
	data, _, _ = unstructured.NestedStringMap(m.Object, "data")
	if !strings.Contains(data[key], `"later":[1]`) || m.GetAnnotations()["headgate.dev/later"] != "kept" || recorded(t, m)["later"] == nil {
		t.Errorf("Fields unknown to this version stay: %s, %v", data[key], slices.Sorted(maps.Values(m.GetAnnotations())))
	}
	for _, field := range []string{`"later":[2]`, `"by":"@bob"`, `"at":"2026-01-02T03:04:05Z"`, `"how":["Comment"]`} {
		if approvals := m.GetAnnotations()["headgate.dev/approvals"]; !strings.Contains(approvals, field) {
			t.Errorf("The record of an approval loses %s: %s", field, approvals)
		}
	}
}

// A ConfigMap with the inventory's name that is not this sync's inventory must not be read as one. Otherwise the objects that it
// lists would be pruned.
func TestInventoryOfSomethingElse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		label  string
	}{
		"Commit":       {"A commit of another sync created it before the inventory existed.", inventory.SyncLabel},
		"OtherSync":    {"Headgate created it for an earlier sync with this name, or another tool did.", "cli-utils.sigs.k8s.io/inventory-id"},
		"NothingKnown": {reason: "An inventory without its label is still an inventory."},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.made(t, namespace(w.sync.Namespace))
			planted := configMap(w.sync.Namespace, "headgate-main", "1")
			planted.Object["data"] = map[string]any{w.sync.Namespace + "_victim__ConfigMap": `{"uid":""}`}
			if tc.label != "" {
				planted.SetLabels(map[string]string{tc.label: "other.sync"})
			}
			w.made(t, planted)
			w.requests.Reset()
			if _, err := tryPlan(t.Context(), w.cluster(t, cluster.Options{}), want(t, configMap(w.sync.Namespace, "a", "1"))); (err == nil) != (tc.label == "") || w.requests.Writes() > 0 {
				t.Errorf("%s\ngot %v, %v", tc.reason, err, w.requests.Log())
			}
		})
	}
}

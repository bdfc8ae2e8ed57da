package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// patch changes an object like another user with kubectl edit.
func (w *world) patch(t *testing.T, at dynamic.ResourceInterface, name, body string, subresources ...string) {
	t.Helper()
	if err := edit(t.Context(), at, name, body, subresources...); err != nil {
		t.Fatal(err)
	}
}

func edit(ctx context.Context, at dynamic.ResourceInterface, name, body string, subresources ...string) error {
	_, err := at.Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "somebody"}, subresources...)
	return err
}

func (w *world) at(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	return w.live.Resource(gvr).Namespace(namespace)
}

// named replaces the placeholders for group and namespace.
func (w *world) named(space string, lines []string) []string {
	var named []string
	for _, l := range lines {
		l = strings.ReplaceAll(l, "%g", w.group)
		named = append(named, strings.ReplaceAll(l, "%s", space))
	}
	return named
}

func TestConflictIsNamed(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	mine := configMap(space, "settings", "1")
	c := w.cluster(t, cluster.Options{TryCreates: true})
	applied(t, c, want(t, namespace(space), mine))

	theirs := configMap(space, "settings", "2")
	if _, err := w.at(configMaps, space).Apply(t.Context(), "settings", theirs, metav1.ApplyOptions{FieldManager: "kubectl", Force: true}); err != nil {
		t.Fatal(err)
	}
	p := planned(t, c, want(t, namespace(space), mine, configMap(space, "other", "1")))
	done, err := c.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	const reason = "A conflict is the outcome of its object, names manager and fields, and stops nothing else."
	var texts []string
	for _, o := range done {
		text := "ok"
		if o.Err != nil {
			if _, ok := errors.AsType[*api.ConflictError](o.Err); !ok {
				t.Errorf("%s\ngot %T %v", reason, o.Err, o.Err)
			}
			text = words.OfError(o.Err)
		}
		texts = append(texts, o.ID.Name+": "+text)
	}
	if diff := cmp.Diff([]string{"other: ok", "settings: conflict with kubectl over .data.key; remove the fields there or here, or set conflicts: Take"}, texts); diff != "" {
		t.Errorf("%s\noutcomes (-want +got):\n%s", reason, diff)
	}
	live, err := w.at(configMaps, space).Get(t.Context(), "settings", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if value, _, _ := unstructured.NestedString(live.Object, "data", "key"); value != "2" {
		t.Errorf("Nothing is forced: want the other's value, got %q", value)
	}

	p = planned(t, c, want(t, namespace(space), mine, configMap(space, "other", "1")))
	w.requests.Reset()
	if done, err = c.Apply(t.Context(), p); err != nil || len(done) != 1 || done[0].Err == nil || w.requests.Total() > 0 {
		t.Errorf("A conflict that stays costs nothing, got %v, %v, %v", done, err, w.requests.Log())
	}
}

func TestAdoption(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	for _, u := range []*unstructured.Unstructured{configMap(space, "free", "1"), configMap(space, "helms", "1")} {
		if u.GetName() == "helms" {
			u.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "app", "meta.helm.sh/release-namespace": "prod"})
		} else if _, err := w.at(namespaces, "").Create(t.Context(), namespace(space), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.at(configMaps, space).Create(t.Context(), u, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
			t.Fatal(err)
		}
	}
	c := w.cluster(t, cluster.Options{})
	commit := want(t, configMap(space, "free", "1"), configMap(space, "helms", "1"))
	p := planned(t, c, commit)
	if diff := cmp.Diff([]string{
		"update (commit) ConfigMap/" + space + "/free",
		"hold (not ours) ConfigMap/" + space + "/helms",
	}, actions(p)); diff != "" {
		t.Errorf("An object without an owner is adopted even if it is equal already; an object of Helm is held.\nsteps (-want +got):\n%s", diff)
	}
	if _, err := c.Apply(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"hold (not ours) ConfigMap/" + space + "/helms"}, actions(planned(t, c, commit))); diff != "" {
		t.Errorf("An adopted object is ours.\nsteps (-want +got):\n%s", diff)
	}
	if free := w.mustGet(t, configMaps, space, "free"); !inventory.Ours(free, w.sync) {
		t.Errorf("want our marks, got %v %v", free.GetLabels(), free.GetAnnotations())
	}
	if helms := w.mustGet(t, configMaps, space, "helms"); inventory.Ours(helms, w.sync) ||
		slices.ContainsFunc(helms.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == inventory.Manager }) {
		t.Errorf("want no trace of us, got %v", helms.GetManagedFields())
	}
}

func (w *world) mustGet(t *testing.T, gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	u, err := w.at(gvr, namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// A manipulated inventory hides an edit from every check of metadata. The full check finds the edit, and writes nothing
// if there is none.
func TestFullCheck(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	commit := want(t, namespace(space), configMap(space, "settings", "1"), configMap(space, "other", "1"))
	applied(t, w.cluster(t, cluster.Options{}), commit)

	w.patch(t, w.at(configMaps, space), "settings", `{"data":{"key":"2"}}`)
	edited := w.mustGet(t, configMaps, space, "settings")
	inventories := w.at(configMaps, w.sync.Namespace)
	inv, err := inventories.Get(t.Context(), "headgate-main", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(inv.Object, "data")
	entries, err := inventory.Entries(data)
	if err != nil {
		t.Fatal(err)
	}
	id := manifest.IDOf(edited)
	entry := entries[id]
	entry.Mark = inventory.Mark(edited)
	value, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(inv.Object, string(value), "data", inventory.Key(id)); err != nil {
		t.Fatal(err)
	}
	if _, err := inventories.Update(t.Context(), inv, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if p := planned(t, w.cluster(t, cluster.Options{}), commit); p.Writes() {
		t.Fatalf("The test is of no use: metadata tells it already: %v", actions(p))
	}

	c := w.cluster(t, cluster.Options{FullCheck: time.Nanosecond}) // every object in every pass
	planned(t, c, commit)                                          // the first pass schedules each check at random
	if diff := cmp.Diff([]string{"update (drift) ConfigMap/" + space + "/settings"}, actions(applied(t, c, commit))); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	w.requests.Reset()
	applied(t, c, commit)
	if counts := w.requests.Counts(); w.requests.Writes() > 0 || counts["DRY-RUN PATCH"] != 3 {
		t.Errorf("Everything was looked at, and nothing written: %v", counts)
	}
}

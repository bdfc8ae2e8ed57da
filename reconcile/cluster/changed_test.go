package cluster_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// Without a commit, status reports exactly those objects as changed that a plan changes on a real API server, for edits of every
// kind. TestChangedAgreesWithDiff tries many more.
//
//test:long,unraced
func TestStatusAgreesWithDiff(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	site := w.crd("Site", "Namespaced")
	integer, text := map[string]any{"type": "integer"}, map[string]any{"type": "string"}
	if err := unstructured.SetNestedField(site.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any), map[string]any{
		"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{
			"replicas": integer, "image": text, "args": map[string]any{"type": "array", "items": text},
			"ports": map[string]any{
				"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"name"},
				"items": map[string]any{"type": "object", "required": []any{"name"}, "properties": map[string]any{"name": text, "number": integer}},
			},
		}}},
	}, "schema", "openAPIV3Schema"); err != nil {
		t.Fatal(err)
	}
	front := thing(w.group+"/v1", "Site", space, "front", map[string]any{"spec": map[string]any{
		"replicas": int64(1), "image": "a", "args": []any{"a", "b"}, "ports": []any{map[string]any{"name": "http", "number": int64(80)}},
	}})
	logs, settings := w.instance("Bucket", space, "logs"), configMap(space, "settings", "1")
	commit := want(t, namespace(space), w.crd("Bucket", "Namespaced"), site, logs, settings, front)
	terms := ignoring("Site", "/spec/replicas")

	buckets, maps, sites, definitions := w.at(w.resource("Bucket"), space), w.at(configMaps, space), w.at(w.resource("Site"), space), w.at(crds, "")
	of := func(at dynamic.ResourceInterface, name, body string) func(context.Context) error {
		return func(ctx context.Context) error { return edit(ctx, at, name, body) }
	}
	applies := func(at dynamic.ResourceInterface, u *unstructured.Unstructured, manager string, force bool) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := at.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: manager, Force: force})
			return err
		}
	}
	cases := map[string]struct {
		changed bool
		do      func(ctx context.Context) error
	}{
		"AddedKey":        {false, of(maps, "settings", `{"data":{"other":"1"}}`)},
		"ChangedKey":      {true, of(maps, "settings", `{"data":{"key":"2"}}`)},
		"RemovedKey":      {true, of(maps, "settings", `{"data":{"key":null}}`)},
		"AddedLabel":      {false, of(maps, "settings", `{"metadata":{"labels":{"team":"red"}}}`)},
		"RemovedMark":     {true, of(maps, "settings", `{"metadata":{"labels":{"`+inventory.SyncLabel+`":null}}}`)},
		"AddedAnnotation": {false, of(buckets, "logs", `{"metadata":{"annotations":{"team":"red"}}}`)},
		"AddedOwner":      {true, of(maps, "settings", `{"metadata":{"labels":{"kapp.k14s.io/app":"1"}}}`)},
		"AddedField":      {false, of(buckets, "logs", `{"spec":{"color":"red"}}`)},
		"ChangedField":    {true, of(buckets, "logs", `{"spec":{"size":7}}`)},
		"PutBack": {true, func(ctx context.Context) error {
			return errors.Join(edit(ctx, buckets, "logs", `{"spec":{"size":7}}`), edit(ctx, buckets, "logs", `{"spec":{"size":1}}`))
		}},
		"ManagedFieldsGone": {true, of(buckets, "logs", `{"metadata":{"managedFields":[{}]}}`)},
		"ChangedCRD":        {true, of(definitions, w.crd("Bucket", "").GetName(), `{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)},
		"AddedShortName":    {false, of(definitions, w.crd("Bucket", "").GetName(), `{"spec":{"names":{"shortNames":["bk"]}}}`)},
		"IgnoredField":      {false, of(sites, "front", `{"spec":{"replicas":3}}`)},
		"IgnoredAndAnother": {true, of(sites, "front", `{"spec":{"replicas":4,"image":"b"}}`)},
		"AddedItem":         {false, of(sites, "front", `{"spec":{"ports":[{"name":"http","number":80},{"name":"dns","number":53}]}}`)},
		"ChangedItem":       {true, of(sites, "front", `{"spec":{"ports":[{"name":"http","number":81}]}}`)},
		"RemovedItem":       {true, of(sites, "front", `{"spec":{"ports":[]}}`)},
		"ChangedList":       {true, of(sites, "front", `{"spec":{"args":["a"]}}`)},
		"AppliedBesideUs":   {false, applies(maps, configMap(space, "settings", "1"), "another", false)},
		"AppliedOverUs":     {true, applies(maps, configMap(space, "settings", "3"), "another", true)},
		"AppliedInOurName": {true, func(ctx context.Context) error {
			before, err := maps.Get(ctx, "settings", metav1.GetOptions{})
			if err != nil {
				return err
			}
			for i := 2; ; i++ { // an API server records the time of an apply in full seconds
				if err := applies(maps, sentAs(before, strconv.Itoa(i)), inventory.Manager, true)(ctx); err != nil {
					return err
				}
				if now, err := maps.Get(ctx, "settings", metav1.GetOptions{}); err != nil || ownTime(now) != ownTime(before) {
					return err
				}
			}
		}},
		"DeletedAndMadeLike": {true, func(ctx context.Context) error {
			gone := buckets.Delete(ctx, "logs", metav1.DeleteOptions{})
			_, err := buckets.Create(ctx, logs, metav1.CreateOptions{FieldManager: "somebody"})
			return errors.Join(gone, err)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for at, name := range map[dynamic.ResourceInterface]string{buckets: "logs", maps: "settings", sites: "front"} {
				if err := at.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
			}
			until(t, func() bool { // a restored CRD: the API server uses the previous schema for a moment
				c := w.cluster(t, cluster.Options{Terms: terms})
				done, err := c.Apply(t.Context(), planned(t, c, commit))
				return err == nil && !slices.ContainsFunc(done, func(o plan.Outcome) bool { return o.Err != nil || !o.NotReady.None() })
			})
			if err := tc.do(t.Context()); err != nil {
				t.Fatal(err)
			}
			seen, err := w.cluster(t, cluster.Options{}).Observe(t.Context(), render.Desired{})
			if err != nil {
				t.Fatal(err)
			}
			seen = demand.AsRecorded(seen)
			var says, does []string
			for id := range seen.Inventory.Entries {
				if live := seen.Objects[id]; live == nil || demand.Changed(seen, id, live) {
					says = append(says, id.String())
				}
			}
			for _, s := range planned(t, w.cluster(t, cluster.Options{Terms: terms}), commit).Steps {
				if s.Action != plan.Keep {
					does = append(does, s.ID.String())
				}
			}
			slices.Sort(says)
			slices.Sort(does)
			if !slices.Equal(says, does) || (len(says) > 0) != tc.changed {
				t.Errorf("status says changed: %v, a plan changes: %v; want a change: %v", says, does, tc.changed)
			}
		})
	}
}

// sentAs returns the fields that Headgate applied to a ConfigMap, with another value.
func sentAs(live *unstructured.Unstructured, value string) *unstructured.Unstructured {
	u := configMap(live.GetNamespace(), live.GetName(), value)
	u.SetLabels(live.GetLabels())
	u.SetAnnotations(live.GetAnnotations())
	return u
}

// ownTime returns the time when Headgate's field manager last applied an object.
func ownTime(u *unstructured.Unstructured) string {
	for _, f := range u.GetManagedFields() {
		if f.Manager == inventory.Manager && f.Operation == metav1.ManagedFieldsOperationApply {
			return f.Time.String()
		}
	}
	return ""
}

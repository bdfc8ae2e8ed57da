package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// commits is a Source of commits by their IDs.
type commits map[string]files

func (c commits) Fetch(ctx context.Context, ref string) (render.Input, error) {
	of, known := c[ref]
	if !known {
		return render.Input{}, fmt.Errorf("no commit %s", ref)
	}
	in, err := of.Fetch(ctx, ref)
	in.Revision, in.Source = ref, render.SourceID{Repository: "example.org/team", Ref: "main", Commit: ref}
	return in, err
}

// rewrite replaces the managed fields of an object.
func rewrite(t *testing.T, at dynamic.ResourceInterface, name string, keep func(metav1.ManagedFieldsEntry) bool) {
	t.Helper()
	live, err := at.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kept := slices.DeleteFunc(live.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return !keep(f) })
	if len(kept) == 0 {
		kept = []metav1.ManagedFieldsEntry{{}}
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": kept}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := at.Patch(t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
}

// The managers of a field decide what happens to it when it leaves the commit. Each row is one of the rules in package ownership, or
// a way to lose managed fields.
func TestFieldsThatLeaveGit(t *testing.T) {
	config := func(space string, keys ...string) *unstructured.Unstructured {
		u := configMap(space, "one", "1")
		for _, key := range keys {
			u.Object["data"].(map[string]any)[key] = "1"
		}
		return u
	}
	secret := func(space string, keys ...string) *unstructured.Unstructured {
		u := thing("v1", "Secret", space, "one", map[string]any{"stringData": config(space, keys...).Object["data"]})
		return u
	}
	wiped := func(t *testing.T, _ *world, at dynamic.ResourceInterface) {
		t.Helper()
		if err := edit(t.Context(), at, "one", `{"data":{"other":"1"}}`); err != nil {
			t.Fatal(err)
		}
		rewrite(t, at, "one", func(metav1.ManagedFieldsEntry) bool { return false })
	}
	// reapplied applies the object in our name.
	reapplied := func(t *testing.T, w *world, at dynamic.ResourceInterface, u *unstructured.Unstructured) {
		t.Helper()
		w.sync.Own(u)
		applyAs(t, inventory.Manager, at, u)
	}
	cases := map[string]struct {
		reason  string
		make    func(space string, keys ...string) *unstructured.Unstructured // default: a ConfigMap
		meddle  func(t *testing.T, w *world, at dynamic.ResourceInterface)
		between bool   // a pass over the same commit follows
		lacks   bool   // the source does not have the first commit any more
		stays   bool   // the field stays
		line    string // of the report
		other   bool   // the object has a field of another writer, which always stays
	}{
		"Alone": {reason: "Only Headgate manages it.", line: "data.b: "},
		"Wiped": {
			reason: "The managed fields were wiped, and the last applied commit shows that it left Git.",
			meddle: wiped, other: true, line: "data.b: ",
		},
		"WipedAndChanged": {
			reason: "Another writer changed the value, as an autoscaler does, so it belongs to that writer.", other: true, stays: true,
			line: "gives up data.b; another writer changed it, so it stays",
			meddle: func(t *testing.T, w *world, at dynamic.ResourceInterface) {
				t.Helper()
				if err := edit(t.Context(), at, "one", `{"data":{"b":"2"}}`); err != nil {
					t.Fatal(err)
				}
				wiped(t, w, at)
			},
		},
		"WipedAndSeen": {reason: "A pass over the same commit has taken the fields back.", meddle: wiped, other: true, between: true, line: "data.b: "},
		"WipedAndUnknown": {
			reason: "Without the last applied commit, a field may belong to any writer, so it stays and is named.",
			meddle: wiped, other: true, lacks: true, stays: true, line: "so these fields without a known manager stay: data.b, data.other",
		},
		"WipedAndShared": {
			reason: "An older version of Headgate has applied the object again, and shares the fields with nobody.", other: true, line: "data.b: ",
			meddle: func(t *testing.T, w *world, at dynamic.ResourceInterface) {
				t.Helper()
				wiped(t, w, at)
				reapplied(t, w, at, config(w.sync.Namespace, "b"))
			},
		},
		"OursRemoved": {
			reason: "Only the entry of Headgate was removed, so the field has no manager at all.", other: true, line: "data.b: ",
			meddle: func(t *testing.T, _ *world, at dynamic.ResourceInterface) {
				t.Helper()
				if err := edit(t.Context(), at, "one", `{"data":{"other":"1"}}`); err != nil {
					t.Fatal(err)
				}
				rewrite(t, at, "one", func(f metav1.ManagedFieldsEntry) bool { return f.Manager != inventory.Manager })
			},
		},
		"Restored": {
			reason: "A restore from a backup wrote all fields.", line: "data.b: ",
			meddle: func(t *testing.T, w *world, _ dynamic.ResourceInterface) {
				t.Helper()
				w.restores(t, w.sync.Namespace, false, "one")
			},
		},
		"RestoredAndSeen": {
			reason: "A pass over the same commit has taken the fields back from the tool that restored them.", between: true, line: "data.b: ",
			meddle: func(t *testing.T, w *world, _ dynamic.ResourceInterface) {
				t.Helper()
				w.restores(t, w.sync.Namespace, false, "one")
			},
		},
		"Applier": {
			reason: "A tool that applied the object with updates is taken over.", line: "data.b: ",
			meddle: func(t *testing.T, w *world, _ dynamic.ResourceInterface) {
				t.Helper()
				kubectl(t, config(w.sync.Namespace, "b"))
			},
		},
		"ApplierOnTheServer": {
			reason: "A server-side apply of another tool is intentional.", stays: true, line: "gives up data.b; kubectl keeps it",
			meddle: func(t *testing.T, w *world, at dynamic.ResourceInterface) {
				t.Helper()
				applyAs(t, "kubectl", at, config(w.sync.Namespace, "b"))
			},
		},
		"Another": {
			reason: "Another manager keeps what it applied.", stays: true, line: "gives up data.b; cli keeps it",
			meddle: func(t *testing.T, w *world, at dynamic.ResourceInterface) {
				t.Helper()
				applyAs(t, "cli", at, config(w.sync.Namespace, "b"))
			},
		},
		"Taken": {
			reason: "Another manager took it before it left the commit, so nothing changes.", stays: true, line: "gives up data.b; cli keeps it",
			meddle: func(t *testing.T, w *world, at dynamic.ResourceInterface) {
				t.Helper()
				u := thing("v1", "ConfigMap", w.sync.Namespace, "one", map[string]any{"data": map[string]any{"b": "2"}})
				applyAs(t, "cli", at, u)
			},
		},
		"Edited": {
			reason: "A person edited it, and no pass has corrected that.", stays: true, line: "gives up data.b; somebody keeps it",
			meddle: func(t *testing.T, _ *world, at dynamic.ResourceInterface) {
				t.Helper()
				if err := edit(t.Context(), at, "one", `{"data":{"b":"2"}}`); err != nil {
					t.Fatal(err)
				}
			},
		},
		"OneRemoved": {
			reason: "A person removed the field from the entry of Headgate.", line: "data.b: ",
			meddle: func(t *testing.T, _ *world, at dynamic.ResourceInterface) {
				t.Helper()
				live, err := at.Get(t.Context(), "one", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				fields := live.GetManagedFields()
				for i, f := range fields {
					fields[i].FieldsV1 = metav1.NewFieldsV1(strings.ReplaceAll(f.FieldsV1.GetRawString(), `"f:b":{},`, ""))
				}
				body, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": fields}})
				if err != nil {
					t.Fatal(err)
				}
				if err := edit(t.Context(), at, "one", string(body)); err != nil {
					t.Fatal(err)
				}
			},
		},
		"StringData": {reason: "A key of stringData leaves the Secret.", make: secret, line: "data.b: *** (before)"},
		"StringDataBefore": {
			reason: "An older version of Headgate applied stringData.", make: secret, line: "data.b: *** (before)",
			meddle: func(t *testing.T, w *world, at dynamic.ResourceInterface) {
				t.Helper()
				reapplied(t, w, at, secret(w.sync.Namespace, "b"))
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace
			kind, at := tc.make, w.at(configMaps, space)
			if kind == nil {
				kind = config
			} else {
				at = w.at(secrets, space)
			}
			one, two := strings.Repeat("1", 40), strings.Repeat("2", 40)
			source := commits{one: commitOf(t, namespace(space), kind(space, "b")), two: commitOf(t, namespace(space), kind(space))}
			pass := func(ref string) report.Report {
				t.Helper()
				c := w.cluster(t, cluster.Options{Terms: facts.Terms{Adoption: facts.AdoptAll}})
				r := reconcilerOf(c, w)
				r.Source, r.Recorder = source, c
				result, err := r.Run(t.Context(), ref)
				if err != nil || result.Summary.Failed > 0 {
					t.Fatal(err, text(result))
				}
				for _, s := range result.Steps {
					if s.Action == plan.Update && s.Reason == "" && len(s.Changes) == 0 {
						t.Errorf("%s\nAn update without a line:\n%s", tc.reason, text(result))
					}
				}
				return result
			}
			pass(one)
			if tc.meddle != nil {
				tc.meddle(t, w, at)
			}
			if tc.between {
				pass(one)
			}
			if before, err := at.Get(t.Context(), "one", metav1.GetOptions{}); err != nil || dataOf(before)["b"] == nil {
				t.Fatalf("%v %v", before, err)
			}
			if tc.lacks {
				delete(source, one)
			}
			result := pass(two)
			if got := text(result); !strings.Contains(got, tc.line) || strings.Contains(got, `"MQ=="`) {
				t.Errorf("%s\nwant the line %q in\n%s", tc.reason, tc.line, got)
			}
			after, err := at.Get(t.Context(), "one", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			data := dataOf(after)
			if _, stays := data["b"]; stays != tc.stays || data["key"] == nil || tc.other != (data["other"] != nil) {
				t.Errorf("%s\nthe data has %v, managed by %v", tc.reason, slices.Sorted(maps.Keys(data)), after.GetManagedFields())
			}
			if again := pass(two); again.Summary.Updated > 0 {
				t.Errorf("%s\nThe next pass has nothing to do:\n%s", tc.reason, text(again))
			}
		})
	}
}

func dataOf(u *unstructured.Unstructured) map[string]any {
	data, _ := u.Object["data"].(map[string]any)
	return data
}

// Fields leave the cluster whatever their shape is: items of lists that are merged by key, sets, atomic lists, unknown fields, labels and
// finalizers.
func TestFieldsOfEveryShape(t *testing.T) {
	spec := func(w *world) *unstructured.Unstructured {
		crd := w.crd("App", "Namespaced")
		raw := `{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{
			"ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port","protocol"],"items":{"type":"object","required":["port"],"properties":{"port":{"type":"integer"},"name":{"type":"string"},"protocol":{"type":"string","default":"TCP"}}}},
			"set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
			"atomic":{"type":"array","x-kubernetes-list-type":"atomic","items":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","default":"x"}}}},
			"size":{"x-kubernetes-int-or-string":true},
			"kept":{"type":"string","default":"d"},"other":{"type":"string","default":"d"}}}}}`
		var schema map[string]any
		if err := json.Unmarshal([]byte(raw), &schema); err != nil {
			t.Fatal(err)
		}
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		versions[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": schema}
		crd.Object["spec"].(map[string]any)["versions"] = versions
		return crd
	}
	port := func(n int64, name string) any {
		p := map[string]any{"port": n}
		if name != "" {
			p["name"] = name
		}
		return p
	}
	app := func(w *world, all bool) *unstructured.Unstructured {
		u := w.instance("App", w.sync.Namespace, "one")
		if !all {
			u.Object["spec"] = map[string]any{"ports": []any{port(80, "")}, "set": []any{"a"}}
			u.SetLabels(map[string]string{"stays": "1"})
			return u
		}
		u.Object["spec"] = map[string]any{
			"ports": []any{port(80, "web"), port(443, "tls")}, "set": []any{"a", "b"}, "atomic": []any{map[string]any{"a": "1"}},
			"size": "1Gi", "extra": map[string]any{"deep.er/x": map[string]any{"a": int64(1)}}, "kept": "d", "other": "e",
		}
		u.SetLabels(map[string]string{"stays": "1", "example.org/gone": "1"})
		u.SetAnnotations(map[string]string{"example.org/gone": "1"})
		u.SetFinalizers([]string{"example.org/gone"})
		return u
	}
	// without is what is left of the object, and defaults of the API server.
	without := map[string]any{
		"spec":   map[string]any{"ports": []any{map[string]any{"port": int64(80), "protocol": "TCP"}}, "set": []any{"a"}, "kept": "d", "other": "d"},
		"labels": []string{"stays"},
	}
	cases := map[string]struct {
		reason string
		meddle func(t *testing.T, w *world, at dynamic.ResourceInterface)
		stays  bool
		lines  []string
	}{
		"Alone": {"Only Headgate manages them.", nil, false, []string{`spec.other: "e" → "d"`, "gives up spec.kept; the API server sets a default"}},
		"Wiped": {"The last applied commit had them.", func(t *testing.T, _ *world, at dynamic.ResourceInterface) {
			t.Helper()
			rewrite(t, at, "one", func(metav1.ManagedFieldsEntry) bool { return false })
		}, false, []string{`spec.other: "e" → `, `metadata.finalizers[0]: "example.org/gone" → `}},
		"Another": {"Another manager applies them.", func(t *testing.T, w *world, at dynamic.ResourceInterface) {
			t.Helper()
			applyAs(t, "cli", at, app(w, true))
		}, true, []string{
			"metadata.annotations.example.org/gone", "metadata.finalizers[", "spec.atomic", "spec.extra.deep.er/x.a", "spec.kept", "cli keeps it", // cli took spec.atomic, because a default changes an atomic list
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			at := w.at(w.resource("App"), w.sync.Namespace)
			one, two := strings.Repeat("1", 40), strings.Repeat("2", 40)
			home, crd := namespace(w.sync.Namespace), spec(w)
			source := commits{one: commitOf(t, home, crd, app(w, true)), two: commitOf(t, home, crd, app(w, false))}
			pass := func(ref string) report.Report {
				t.Helper()
				c := w.cluster(t, cluster.Options{})
				r := reconcilerOf(c, w)
				r.Source, r.Recorder = source, c
				result, err := r.Run(t.Context(), ref)
				if err != nil || result.Summary.Failed > 0 {
					t.Fatal(err, text(result))
				}
				return result
			}
			pass(one)
			if tc.meddle != nil {
				tc.meddle(t, w, at)
			}
			got := text(pass(two))
			for _, line := range tc.lines {
				if !strings.Contains(got, line) {
					t.Errorf("%s\nwant the line %q in\n%s", tc.reason, line, got)
				}
			}
			after, err := at.Get(t.Context(), "one", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			labels := slices.DeleteFunc(slices.Sorted(maps.Keys(after.GetLabels())), func(key string) bool { return key == inventory.SyncLabel })
			left := map[string]any{"spec": after.Object["spec"], "labels": labels}
			gone := cmp.Equal(without, left) && len(after.GetFinalizers()) == 0 && after.GetAnnotations()["example.org/gone"] == ""
			if tc.stays && len(after.GetFinalizers()) == 0 || !tc.stays && !gone {
				t.Errorf("%s\n(-want +got):\n%s\n%s", tc.reason, cmp.Diff(without, left), got)
			}
			if again := pass(two); again.Summary.Updated > 0 {
				t.Errorf("%s\nThe next pass has nothing to do:\n%s", tc.reason, text(again))
			}
			if err := edit(t.Context(), at, "one", `{"metadata":{"finalizers":null}}`); err != nil {
				t.Error(err)
			}
		})
	}
}

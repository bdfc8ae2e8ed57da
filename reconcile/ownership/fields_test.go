package ownership_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// The commit sets spec.a, and does not set spec.b any more. The managers of spec.b decide whether the next apply removes it.
func TestFields(t *testing.T) {
	const ab, a, b = `{"f:spec":{"f:a":{},"f:b":{}}}`, `{"f:spec":{"f:a":{}}}`, `{"f:spec":{"f:b":{}}}`
	ours := func(fields string) metav1.ManagedFieldsEntry { return given.Wrote(inventory.Manager, "Apply", fields) }
	all := ownership.Taking{Appliers: true, OnlyUpdates: true, Nobody: true, Restorers: true}
	restorer := `{"f:metadata":{"f:labels":{"f:` + inventory.SyncLabel + `":{}},"f:annotations":{"f:` + inventory.InventoryAnnotation + `":{}}},"f:spec":{"f:a":{},"f:b":{}}}`
	cases := map[string]struct {
		reason  string
		live    []metav1.ManagedFieldsEntry
		applied string // what the last applied commit set, if the managed fields do not show it
		how     ownership.Taking
		want    map[string]string // the managers of spec.b before the apply
		stays   []ownership.Held
	}{
		"Alone":        {"The apply removes it.", []metav1.ManagedFieldsEntry{ours(ab)}, "", all, map[string]string{inventory.Manager: "Apply"}, nil},
		"Another":      {"Another manager keeps it.", []metav1.ManagedFieldsEntry{ours(ab), given.Wrote("cli", "Apply", b)}, "", all, map[string]string{inventory.Manager: "Apply", "cli": "Apply"}, []ownership.Held{{Manager: "cli", Fields: []string{"spec.b"}}}},
		"Parent":       {"Another manager has the whole mapping.", []metav1.ManagedFieldsEntry{ours(ab), given.Wrote("cli", "Apply", `{"f:spec":{}}`)}, "", all, map[string]string{inventory.Manager: "Apply"}, []ownership.Held{{Manager: "cli", Fields: []string{"spec.b"}}}},
		"Nobody":       {"Our managed fields show that the commit set it.", []metav1.ManagedFieldsEntry{ours(ab), given.Wrote(ownership.Nobody, "Update", ab)}, "", all, map[string]string{inventory.Manager: "Apply"}, nil},
		"Lost":         {"The last applied commit set it.", []metav1.ManagedFieldsEntry{given.Wrote(ownership.Nobody, "Update", ab)}, ab, all, map[string]string{inventory.Manager: "Apply"}, nil},
		"NeverOurs":    {"The last applied commit did not set it.", []metav1.ManagedFieldsEntry{given.Wrote(ownership.Nobody, "Update", ab)}, a, all, map[string]string{ownership.Nobody: "Update"}, nil},
		"LostAndTaken": {"Another manager wrote it since.", []metav1.ManagedFieldsEntry{given.Wrote(ownership.Nobody, "Update", ab), given.Wrote("kubectl-edit", "Update", b)}, ab, all, map[string]string{ownership.Nobody: "Update", "kubectl-edit": "Update"}, []ownership.Held{{Manager: "kubectl-edit", Fields: []string{"spec.b"}}}},
		"NoManager":    {"Only our entry was removed.", []metav1.ManagedFieldsEntry{given.Wrote("other", "Update", `{"f:spec":{"f:c":{}}}`)}, ab, all, map[string]string{inventory.Manager: "Apply"}, nil},
		"Restorer":     {"A backup wrote it with our marks.", []metav1.ManagedFieldsEntry{given.Wrote("velero", "Update", restorer)}, ab, all, map[string]string{inventory.Manager: "Apply"}, nil},
		"Writer":       {"Only a restored object has restorers.", []metav1.ManagedFieldsEntry{given.Wrote("velero", "Update", restorer)}, ab, ownership.Taking{Nobody: true}, map[string]string{"velero": "Update"}, []ownership.Held{{Manager: "velero", Fields: []string{"spec.b"}}}},
		"Applier":      {"Headgate takes over a tool that updates.", []metav1.ManagedFieldsEntry{ours(ab), given.Wrote("helm", "Update", ab)}, "", all, map[string]string{inventory.Manager: "Apply"}, nil},
		"ApplierSince": {"A server-side apply is intentional.", []metav1.ManagedFieldsEntry{ours(ab), given.Wrote("kubectl", "Apply", ab)}, "", all, map[string]string{inventory.Manager: "Apply", "kubectl": "Apply"}, []ownership.Held{{Manager: "kubectl", Fields: []string{"spec.b"}}}},
		"Twice":        {"One manager has two entries.", []metav1.ManagedFieldsEntry{ours(ab), given.Wrote("cli", "Apply", b), given.Wrote("cli", "Update", `{"f:spec":{"f:c":{}}}`)}, "", all, map[string]string{inventory.Manager: "Apply", "cli": "Apply"}, []ownership.Held{{Manager: "cli", Fields: []string{"spec.b"}}}},
		"Status":       {"A subresource is no manager of the object.", []metav1.ManagedFieldsEntry{ours(ab), {Manager: ownership.Nobody, Operation: "Update", Subresource: "status", FieldsV1: metav1.NewFieldsV1(b)}}, "", all, map[string]string{inventory.Manager: "Apply", ownership.Nobody: "Update"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := func(entries []metav1.ManagedFieldsEntry) *unstructured.Unstructured {
				u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Thing", "spec": map[string]any{"a": "1", "b": "1"}}}
				u.SetManagedFields(entries)
				return u
			}
			live, after := object(tc.live), object(nil)
			kept := []metav1.ManagedFieldsEntry{given.Wrote(inventory.Manager, "Apply", a)}
			for _, f := range tc.live {
				if f.Manager != inventory.Manager {
					kept = append(kept, f)
				}
			}
			after.SetManagedFields(kept)
			after.SetAPIVersion(kept[0].APIVersion)
			applied := ownership.Applied(live)
			if tc.applied != "" {
				applied = ownership.Applied(object([]metav1.ManagedFieldsEntry{ours(tc.applied)}))
			}
			update := ownership.UpdateOf(live, after, tc.how).TakeOver(kept[0].APIVersion).Reclaim(applied)
			before := live
			if !update.Takeover.None() {
				before = object(update.Takeover.Entries)
			}
			got := map[string]string{}
			for _, f := range before.GetManagedFields() {
				if owns(t, f, "spec", "b") {
					got[f.Manager] = string(f.Operation)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nmanagers of spec.b (-want +got):\n%s", tc.reason, diff)
			}
			if tc.stays == nil { // the API server removes it
				unstructured.RemoveNestedField(update.After.Object, "spec", "b")
			}
			if diff := cmp.Diff(tc.stays, update.Stays(applied)); diff != "" {
				t.Errorf("%s\nStays(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// owns reports whether managed fields have a field.
func owns(t *testing.T, f metav1.ManagedFieldsEntry, path ...any) bool {
	t.Helper()
	set := fieldpath.NewSet()
	if err := set.FromJSON(f.FieldsV1.GetRawReader()); err != nil {
		t.Fatal(err)
	}
	return set.Has(fieldpath.MakePathOrDie(path...))
}

// An item of a list leaves with its defaults, because it is not valid without its key.
func TestItemsLeaveWhole(t *testing.T) {
	const item, fields = `k:{\"port\":443}`, `{"f:spec":{"f:ports":{"%s":{".":{},"f:port":{}%s}}}}`
	object := func(manager, operation, more string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(443), "protocol": "TCP"}}}}}
		u.SetManagedFields([]metav1.ManagedFieldsEntry{given.Wrote(manager, operation, fmt.Sprintf(fields, item, more))})
		return u
	}
	after := &unstructured.Unstructured{Object: map[string]any{}}
	after.SetManagedFields([]metav1.ManagedFieldsEntry{given.Wrote(inventory.Manager, "Apply", `{"f:spec":{"f:a":{}}}`)})
	applied := object(inventory.Manager, "Apply", "")
	live := object(ownership.Nobody, "Update", `,"f:protocol":{}`)
	how := ownership.Taking{Appliers: true, OnlyUpdates: true, Nobody: true}
	for reason, took := range map[string]ownership.Takeover{
		"the last applied commit had the item": ownership.UpdateOf(live, after, how).Reclaim(ownership.Applied(applied)).Takeover,
		"we applied the item": func() ownership.Takeover {
			both := object(inventory.Manager, "Apply", "")
			both.SetManagedFields(append(both.GetManagedFields(), given.Wrote("helm", "Update", fmt.Sprintf(fields, item, `,"f:protocol":{}`))))
			return ownership.UpdateOf(both, after, how).TakeOver("").Takeover
		}(),
	} {
		if len(took.Entries) != 1 || took.Entries[0].Manager != inventory.Manager || !strings.Contains(took.Entries[0].FieldsV1.GetRawString(), "f:protocol") {
			t.Errorf("%s: want all of it to be ours, got %v", reason, took.Entries)
		}
	}
}

// An update never takes a field from a manager that it may not take from, and never one that neither this commit nor the last applied
// one sets.
func TestTakesNoMore(t *testing.T) {
	how := ownership.Taking{Appliers: true, OnlyUpdates: true, Nobody: true}
	managers := map[string]metav1.ManagedFieldsOperationType{
		inventory.Manager: "Apply", ownership.Nobody: "Update", "helm": "Update", "kubectl": "Apply", "cli": "Apply", "kubectl-edit": "Update",
	}
	rapid.Check(t, func(t *rapid.T) {
		content := map[string]any{}
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			content[key] = map[string]any{"x": "1", "y": "1"}
		}
		set := func(label string) *fieldpath.Set {
			fields := fieldpath.NewSet()
			for _, key := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), rapid.ID).Draw(t, label) {
				inner := rapid.SampledFrom([]string{"x", "y"}).Draw(t, label+key)
				fields.Insert(fieldpath.MakePathOrDie("spec", key, inner))
			}
			return fields
		}
		object := func(entries ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
			u.SetManagedFields(entries)
			return u
		}
		entry := func(manager string, fields *fieldpath.Set) metav1.ManagedFieldsEntry {
			raw, err := fields.ToJSON()
			if err != nil {
				t.Fatal(err)
			}
			return given.Wrote(manager, string(managers[manager]), string(raw))
		}
		before, sent, applied := map[string]*fieldpath.Set{}, set("sent"), set("applied")
		var entries []metav1.ManagedFieldsEntry
		for manager := range managers {
			if before[manager] = set(manager); !before[manager].Empty() {
				entries = append(entries, entry(manager, before[manager]))
			}
		}
		slices.SortFunc(entries, func(a, b metav1.ManagedFieldsEntry) int { return strings.Compare(a.Manager, b.Manager) })
		live, after := object(entries...), object(entry(inventory.Manager, sent))
		took := ownership.UpdateOf(live, after, how).TakeOver("").Reclaim(applied).Takeover
		if took.None() {
			return
		}
		now := map[string]*fieldpath.Set{}
		for manager := range managers {
			now[manager] = fieldpath.NewSet()
		}
		for _, f := range took.Entries {
			if err := now[f.Manager].FromJSON(f.FieldsV1.GetRawReader()); err != nil {
				t.Fatal(err)
			}
		}
		known := sent.Union(before[inventory.Manager]).Union(applied)
		for manager := range managers {
			switch taken := before[manager].Difference(now[manager]); manager {
			case ownership.Nobody, "helm":
				if extra := taken.Difference(known); !extra.Empty() {
					t.Errorf("%s loses %s, which no commit set", manager, extra)
				}
			default:
				if !taken.Empty() {
					t.Errorf("%s loses %s", manager, taken)
				}
			}
		}
		gained := now[inventory.Manager].Difference(before[inventory.Manager])
		if extra := gained.Difference(known); !extra.Empty() {
			t.Errorf("Headgate gains %s, which no commit set", extra)
		}
		for _, manager := range []string{"kubectl", "cli", "kubectl-edit"} {
			if both := took.Goes; both != nil && !both.Intersection(before[manager]).Empty() {
				t.Errorf("%s goes, and %s has it", both.Intersection(before[manager]), manager)
			}
		}
	})
}

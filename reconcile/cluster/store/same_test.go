package store

import (
	"testing"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pass overwrites another process's changes to the ConfigMap only if its inventory is unchanged.
func TestSameInventory(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(*corev1.ConfigMap)
		same   bool
	}{
		"History": {"Every process records the results of its passes, so the history may differ.", func(m *corev1.ConfigMap) { m.Annotations[historyAnnotation] = "[]" }, true},
		"Label":   {"Another tool's label is not part of the inventory.", func(m *corev1.ConfigMap) { m.Labels["team"] = "a" }, true},
		"Entry":   {"Another pass added an entry.", func(m *corev1.ConfigMap) { m.Data["default_b__ConfigMap"] = "" }, false},
		"Value":   {"Another pass applied the object.", func(m *corev1.ConfigMap) { m.Data["default_a__ConfigMap"] = `{"uid":"v"}` }, false},
		"Record":  {"The record has another source or format.", func(m *corev1.ConfigMap) { m.Annotations[recordAnnotation] = `{"format":9}` }, false},
		"Owner":   {"The CRDs have another owner.", func(m *corev1.ConfigMap) { m.Annotations[ownerAnnotation] = "Crossplane" }, false},
		"Grant":   {"An approval was spent.", func(m *corev1.ConfigMap) { m.Annotations[grantsAnnotation] = `[{"digest":"d"}]` }, false},
		"Values":  {"The values are in other siblings.", func(m *corev1.ConfigMap) { m.Annotations[siblingsAnnotation] = "a" }, false},
		"Apart":   {"Further entries are stored apart.", func(m *corev1.ConfigMap) { m.Annotations[apartAnnotation] = "a" }, false},
		"Sync":    {"The inventory belongs to another sync.", func(m *corev1.ConfigMap) { m.Labels[inventoryLabel] = "other.sync" }, false},
		"Anew":    {"A user restored the inventory.", func(m *corev1.ConfigMap) { m.UID = "v" }, false},
		"Leaving": {"The inventory is being deleted.", func(m *corev1.ConfigMap) { m.DeletionTimestamp = &metav1.Time{} }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			was := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				UID: "u", Labels: map[string]string{inventoryLabel: "ns.main"},
				Annotations: map[string]string{recordAnnotation: `{"format":1}`, ownerAnnotation: "Headgate"},
			}, Data: map[string]string{"default_a__ConfigMap": `{"uid":"u"}`}}
			now := was.DeepCopy()
			tc.edit(now)
			if got := sameInventory(was, now); got != tc.same {
				t.Errorf("%s\nsameInventory = %t, want %t", tc.reason, got, tc.same)
			}
		})
	}
}

// If the value of an entry was lost, only the marks identify its object.
func TestRebuiltEntries(t *testing.T) {
	lost, kept := manifest.ID{Kind: "ConfigMap", Name: "lost"}, manifest.ID{Kind: "ConfigMap", Name: "kept"}
	got := rebuiltEntries(map[manifest.ID]inventory.Entry{lost: {}, kept: {UID: "u"}})
	if !got[lost].Rebuilt || got[kept].Rebuilt || got[kept].UID != "u" {
		t.Errorf("rebuiltEntries: %v", got)
	}
}

package draft_test

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// Every update that is sent shows what it is for, even if no value changes.
func TestExplained(t *testing.T) {
	object := func(version, fields string, items ...any) *unstructured.Unstructured {
		u := given.Thing("v1", "ConfigMap", "a", "items", items)
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: inventory.Manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}})
		return u
	}
	item := func(name string) any { return map[string]any{"name": name} }
	cases := map[string]struct {
		reason      string
		live, after *unstructured.Unstructured
		changes     int
		want        reason.Code
	}{
		"Gained":  {"The commit sets a field to the value that it has.", object("v1", `{}`), object("v1", `{"f:items":{}}`), 0, reason.FieldsGained},
		"Version": {"The commit uses another version.", object("v1", `{}`), object("v2", `{}`), 0, reason.VersionManaged},
		"Order":   {"A list is in another order.", object("v1", `{}`, item("a"), item("b")), object("v1", `{}`, item("b"), item("a")), 1, ""},
		"Null":    {"A field without a value is no field.", object("v1", `{}`), object("v1", `{}`, []any{}...), 0, reason.NoValueChanges},
		"Nothing": {"The objects are not known.", nil, nil, 0, reason.NoValueChanges},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := plan.Step{Action: plan.Update, Write: plan.Write{Live: tc.live, After: tc.after}}
			changes, why := s.Explained()
			if len(changes) != tc.changes || why.Code != tc.want {
				t.Errorf("%s\nExplained() = %v, %v", tc.reason, changes, why)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SampledFrom([]any{nil, "", int64(1), []any{}, []any{item("a"), item("b")}, []any{item("b"), item("a")}, map[string]any{}, map[string]any{"x": nil}})
		fields := rapid.SampledFrom([]string{`{}`, `{"f:items":{}}`, `{"f:items":{},"f:spec":{"f:a":{}}}`})
		live, after := object("v1", fields.Draw(t, "was")), object("v1", fields.Draw(t, "is"))
		live.Object["spec"], after.Object["spec"] = value.Draw(t, "from"), value.Draw(t, "to")
		s := plan.Step{Action: plan.Update, Write: plan.Write{Live: live, After: after}}
		if changes, why := s.Explained(); len(changes) == 0 && why.None() {
			t.Fatalf("an update without a line: %v → %v", live.Object, after.Object)
		}
	})
	for _, s := range []plan.Step{{Action: plan.Keep}, {Action: plan.Update, Waits: []reason.Reason{reason.NotInSource.With()}}} {
		if changes, why := s.Explained(); len(changes) > 0 || !why.None() {
			t.Errorf("only an update that is sent needs a reason: %v %v", s.Action, why)
		}
	}
}

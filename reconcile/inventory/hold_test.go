package inventory_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile/inventory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each hold keeps its time, also if thousands have different reasons: alerts count how long a hold waits for a person. And an inventory
// stays small.
func TestHoldsAreBounded(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC))
	var all inventory.Holds
	key := func(i int) string { return fmt.Sprintf("in use/Prune/ConfigMap settings-%d", i) }
	for i := range 2000 {
		step := inventory.Hold{Guard: "in use", Action: "Prune", Reason: fmt.Sprintf("%d live objects", i), Since: since, Commit: fmt.Sprint("commit-", i%2)}
		all = all.With(step, key(i), fmt.Sprintf("ConfigMap settings-%d", i))
	}
	bounded := all.Bounded()
	if len(bounded) != 102 {
		t.Errorf("%d holds, want the first 100, and one for the others of each commit", len(bounded))
	}
	held := 0
	for _, one := range bounded {
		held += one.Count
		if len(one.Objects) > 3 {
			t.Errorf("%s names %d objects", one.Reason, len(one.Objects))
		}
	}
	if held != len(all) {
		t.Errorf("%d steps are held, want %d", held, len(all))
	}
	for i := range all {
		if before, found := bounded.Of(key(i)); !found || !before.Since.Equal(&since) || before.Commit != fmt.Sprint("commit-", i%2) {
			t.Fatalf("%s is held since %s by %q", key(i), before.Since, before.Commit)
		}
	}
	data, err := json.Marshal(bounded)
	if most := 150 << 10; err != nil || len(data) > most {
		t.Errorf("%d bytes, more than %d: %v", len(data), most, err)
	}
	if again := bounded.Bounded(); len(again) != len(bounded) {
		t.Errorf("%d holds after they were stored, want %d", len(again), len(bounded))
	}
}

// Holds of one pass that differ in their times need a bound, too.
func TestTimesOfHoldsAreBounded(t *testing.T) {
	var all inventory.Holds
	for i := range 2000 {
		at := metav1.NewTime(time.Date(2026, 1, 31, 12, 0, i, 0, time.UTC))
		all = all.With(inventory.Hold{Guard: "in use", Reason: fmt.Sprint(i), Since: at}, fmt.Sprint(i), "")
	}
	if n := len(all.Bounded()); n != 200 {
		t.Errorf("%d holds, want 200", n)
	}
}

package record

import (
	"errors"
	"testing"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// The next pass checks only what the inventory does not call ready. So nothing may be called ready because a check failed.
func TestKept(t *testing.T) {
	var (
		ready   = inventory.Succeeded("u", "d", "m")
		waiting = state{reconcile: inventory.ReconcilePending}.of(ready)
		late    = isLate.of(ready)
		boom    = errors.New("boom")
	)
	for name, tc := range map[string]struct {
		before inventory.Entry
		done   plan.Outcome
		want   inventory.Entry
	}{
		"Ready":         {late, plan.Outcome{}, ready},
		"Late":          {waiting, plan.Outcome{NotReady: reason.AwaitsCrossplane.With("f")}, late},
		"NotKnown":      {late, plan.Outcome{Unknown: true}, late},
		"FailedLate":    {late, plan.Outcome{Err: boom}, late},
		"FailedWaiting": {waiting, plan.Outcome{Err: boom}, waiting},
		"FailedReady":   {ready, plan.Outcome{Err: boom}, ready},
	} {
		tc.done.Action = plan.Keep
		if got := settled(tc.done, tc.before, inventory.Inventory{}); got != tc.want {
			t.Errorf("%s: the entry says %s, want %s", name, got.Reconcile, tc.want.Reconcile)
		}
	}
}

package draft

import (
	"testing"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// A pass waits for a while after something changed, and only changes of the objects that it waits for extend that time.
func TestChangedSince(t *testing.T) {
	pending := plan.Effect{Kind: plan.Activate, On: obj("a"), State: plan.Pending, Reason: reason.Failed.With("why")}
	with := func(edit func(*plan.Effect)) []plan.Effect {
		e := pending
		edit(&e)
		return []plan.Effect{e}
	}
	installs := plan.Effect{Kind: plan.Install, Of: obj("p"), On: obj("b"), Change: &plan.Step{Action: plan.Update}}
	for name, tc := range map[string]struct {
		reason string
		now    []plan.Effect
		want   bool
	}{
		"Same":      {"The effects are unchanged.", []plan.Effect{pending}, false},
		"State":     {"The effect has happened.", with(func(e *plan.Effect) { e.State, e.Reason = plan.Holds, reason.Reason{} }), true},
		"Reason":    {"The reason of the effect has changed.", with(func(e *plan.Effect) { e.Reason = reason.Failed.With("another") }), true},
		"Object":    {"The effect is expected on another object.", with(func(e *plan.Effect) { e.On = obj("c") }), true},
		"More":      {"Another effect is expected.", []plan.Effect{pending, pending}, true},
		"None":      {"No effect is expected any more.", nil, true},
		"Installed": {"The effect of a package that this pass writes does not count.", []plan.Effect{installs, pending}, false},
	} {
		if got := (plan.Plan{Effects: tc.now}).ChangedSince(plan.Plan{Effects: []plan.Effect{pending}}); got != tc.want {
			t.Errorf("%s: %s\nchangedSince(...) = %t", name, tc.reason, got)
		}
	}
}

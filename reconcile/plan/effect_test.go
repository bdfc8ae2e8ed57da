package plan

import "testing"

// A pass waits for a while after something changed, and only changes of the objects that it waits for extend that time.
func TestChangedSince(t *testing.T) {
	pending := Effect{Kind: Activate, On: obj("a"), State: Pending, Reason: Failed.With("why")}
	with := func(edit func(*Effect)) []Effect {
		e := pending
		edit(&e)
		return []Effect{e}
	}
	installs := Effect{Kind: Install, Of: obj("p"), On: obj("b"), Change: &Step{Action: Update}}
	for name, tc := range map[string]struct {
		reason string
		now    []Effect
		want   bool
	}{
		"Same":      {"The effects are unchanged.", []Effect{pending}, false},
		"State":     {"The effect has happened.", with(func(e *Effect) { e.State, e.Reason = Holds, Reason{} }), true},
		"Reason":    {"The reason of the effect has changed.", with(func(e *Effect) { e.Reason = Failed.With("another") }), true},
		"Object":    {"The effect is expected on another object.", with(func(e *Effect) { e.On = obj("c") }), true},
		"More":      {"Another effect is expected.", []Effect{pending, pending}, true},
		"None":      {"No effect is expected any more.", nil, true},
		"Installed": {"The effect of a package that this pass writes does not count.", []Effect{installs, pending}, false},
	} {
		if got := (Plan{Effects: tc.now}).changedSince(Plan{Effects: []Effect{pending}}); got != tc.want {
			t.Errorf("%s: %s\nchangedSince(...) = %t", name, tc.reason, got)
		}
	}
}

package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render/manifest"
)

// A hold that is logged in every pass buries the next one. A hold that is never logged goes unnoticed.
func TestHoldIsLoggedOnce(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	var holds holdLog
	pass := func(err error, steps ...plan.Step) int {
		text.Reset()
		p := plan.Plan{Steps: steps}
		holds.log(log, reconcile.Event{Kind: reconcile.Passed, Report: report.New(p, nil, true), Err: err})
		return strings.Count(text.String(), "msg=held")
	}
	held := func(name string, guard plan.GuardName) plan.Step {
		return plan.Step{Action: plan.Hold, Would: plan.Prune, Judged: plan.Judged{Guard: guard, Severity: plan.Block, Reason: reason.Reason{}}, ID: manifest.ID{Kind: "ConfigMap", Name: name}}
	}
	if n := pass(nil, held("a", "in use"), held("b", "in use")); n != 1 || !strings.Contains(text.String(), `guard="in use" count=2`) {
		t.Errorf("two steps that are held for one reason are one line: %d, %s", n, &text)
	}
	if n := pass(nil, held("a", "in use"), held("b", "in use")); n != 0 {
		t.Errorf("what is held already is not logged again: %s", &text)
	}
	if n := pass(errors.New("the API server is away")); n != 0 {
		t.Errorf("a pass that stopped holds nothing: %s", &text)
	}
	if n := pass(nil, held("a", "in use"), held("b", "protected")); n != 1 || !strings.Contains(text.String(), "guard=protected") {
		t.Errorf("another guard is another hold: %s", &text)
	}
	if n := pass(nil); n != 0 {
		t.Errorf("nothing is held: %s", &text)
	}
	if n := pass(nil, held("a", "in use")); n != 1 {
		t.Errorf("a hold that comes back is logged again: %s", &text)
	}
}

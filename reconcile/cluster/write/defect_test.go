//test:package raced
package write

import (
	"errors"
	"testing"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

func TestStepPanics(t *testing.T) {
	id := manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: "a"}
	r := &execution{} // without a cluster
	o, live := r.safely(t.Context(), plan.Step{ID: id, Action: plan.Create}, nil)
	if !errors.As(o.Err, new(engine.DefectError)) || o.ID != id || o.Action != plan.Create || live != nil {
		t.Errorf("A panic is the error of one step, and does not end the process: %+v", o)
	}
}

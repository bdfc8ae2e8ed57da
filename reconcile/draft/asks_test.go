package draft_test

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

// A plan asks for the state of a dependency only if something waits for it, and what waits is not sent before the answer.
func TestDependenciesAreAsked(t *testing.T) {
	on := manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: "on"}
	u := given.ConfigMap("by")
	u.SetAnnotations(map[string]string{"config.kubernetes.io/depends-on": "/namespaces/default/ConfigMap/on"})
	by, dependency := given.Wanted(t, u), given.Wanted(t, given.ConfigMap("on"))
	asked := []question.Any{question.Ready{Of: on}}
	for name, tc := range map[string]struct {
		reason string
		seen   func() facts.Observed
		also   []render.Object
		answer any // nil if there is none
		asks   []question.Any
		waits  []reason.Reason
	}{
		"Open":      {"It waits until the answer is known.", nil, nil, nil, asked, []reason.Reason{reason.AwaitsNowhere.With(reason.Object.With(on), by.Origin)}},
		"Absent":    {"Nothing creates the dependency.", nil, nil, question.Readiness{}, nil, []reason.Reason{reason.AwaitsNowhere.With(reason.Object.With(on), by.Origin)}},
		"Ready":     {"It can be sent.", nil, nil, question.Readiness{Exists: true}, nil, nil},
		"NotReady":  {"The reason names the state.", nil, nil, question.Readiness{Exists: true, NotReady: reason.BeingDeleted.With()}, nil, []reason.Reason{reason.AwaitsUnready.With(reason.Object.With(on), reason.BeingDeleted.With())}},
		"Unknown":   {"What cannot be read is not ready.", nil, nil, given.Unknown(reason.CountForbidden.With("x")), nil, []reason.Reason{reason.AwaitsUnready.With(reason.Object.With(on), reason.CountForbidden.With("x"))}},
		"Comes":     {"The same plan creates the dependency, whatever its state.", nil, []render.Object{dependency}, nil, nil, []reason.Reason{reason.Object.With(on)}},
		"Unchanged": {"Nothing is sent, so nothing waits.", func() facts.Observed { return applied(t, by) }, nil, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			seen := given.Owning(t)
			if tc.seen != nil {
				seen = tc.seen()
			}
			if tc.answer != nil {
				seen.Answers = question.Answers{question.Ready{Of: on}: tc.answer}
			}
			p, steps := given.Steps(t, render.Desired{Objects: append(tc.also, by)}, seen)
			if diff := cmp.Diff([]any{tc.asks, tc.waits}, []any{p.Open(), steps["ConfigMap by"].Waits}); diff != "" {
				t.Errorf("%s\nquestions, and what it waits for (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// applied returns a cluster in which an object is as it was applied.
func applied(t *testing.T, o render.Object) facts.Observed {
	t.Helper()
	seen := given.Owning(t)
	u, err := o.Content()
	if err != nil {
		t.Fatal(err)
	}
	seen.Objects[o.ID] = given.Live(u, "u")
	seen.Inventory.Entries[o.ID] = plan.Applied(seen.Objects[o.ID], given.Sync.Digest(o))
	return seen
}

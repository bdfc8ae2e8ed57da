package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// What is pending is broken once its time is over, which begins again with every commit.
func TestWaits(t *testing.T) {
	pending := func(names ...string) (checks []plan.Check) {
		for _, name := range names {
			checks = append(checks, plan.Check{ID: manifest.ID{Name: name}, State: plan.Pending, Reason: "why"})
		}
		return checks
	}
	var w waits
	begun := time.Unix(0, 0)
	for _, look := range []struct {
		reason   string
		at       time.Duration
		revision string
		checks   []plan.Check
		late     []string
		soon     time.Duration
	}{
		{"At first nobody is late, and it may be done in a moment.", 0, "a", pending("x"), nil, 2 * time.Second},
		{"The longer it takes, the less often it is looked at.", 40 * time.Second, "a", pending("x"), nil, 10 * time.Second},
		{"Every one has its own time; what is new is looked at first.", 50 * time.Second, "a", pending("x", "y"), nil, 2 * time.Second},
		{"When the time is over is no look too late.", 59 * time.Second, "a", pending("x", "y"), nil, time.Second},
		{"Then it is late, and the other is not.", time.Minute, "a", pending("x", "y"), []string{"x"}, 2500 * time.Millisecond},
		{"It stays late.", 2 * time.Minute, "a", pending("x"), []string{"x"}, 0},
		{"A new commit gives it new time.", 3 * time.Minute, "b", pending("x"), nil, 2 * time.Second},
		{"What holds has no time to keep.", 4 * time.Minute, "b", nil, nil, 0},
		{"And begins anew.", 5 * time.Minute, "b", pending("x"), nil, 2 * time.Second},
		{"What is broken by itself is nobody's to wait for.", 6 * time.Minute, "b", []plan.Check{{ID: manifest.ID{Name: "z"}, State: plan.Broken}}, []string{"z"}, 0},
	} {
		p, soon := w.judge(plan.Plan{Want: render.Desired{Revision: look.revision}, Checks: look.checks}, time.Minute, begun.Add(look.at))
		var late []string
		for _, c := range p.Checks {
			if c.State == plan.Broken {
				late = append(late, c.ID.Name)
			}
		}
		if diff := cmp.Diff(look.late, late); diff != "" || soon != look.soon {
			t.Errorf("%s\nlate (-want +got):\n%s\nagain in %s, want %s", look.reason, diff, soon, look.soon)
		}
	}
}

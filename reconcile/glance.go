package reconcile

import (
	"cmp"
	"context"
	"time"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render/manifest"
)

// look makes a pass where somebody else applies: it waits until they have, or their time is
// over.
func (r Reconciler) look(ctx context.Context, pass Pass) (report.Report, error) {
	var w waits
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		said, soon, err := r.glance(ctx, pass, &w)
		if err != nil || soon == 0 || r.NoWait {
			return said, err
		}
		select {
		case <-ctx.Done():
			err := context.Cause(ctx)
			said.Stop(err)
			return said, err
		case <-time.After(min(pause, soon)):
		}
	}
}

// glance looks once. What others have not applied is pending for now, and a later look says
// that they are late. soon is how long until that look; 0 is that nothing is pending.
func (r Reconciler) glance(ctx context.Context, pass Pass, w *waits) (said report.Report, soon time.Duration, err error) {
	want, err := pass.Render(ctx)
	if err != nil {
		return report.Failed(r.Sync, want.Revision, err), 0, err
	}
	p, err := r.Plan(ctx, want, r.Observer)
	if err != nil {
		return report.Failed(r.Sync, want.Revision, err), 0, err
	}
	p, soon = w.judge(p, cmp.Or(r.Timeout, 5*time.Minute), time.Now())
	return report.New(p, nil, true), soon, nil
}

// waits are since when checks are pending. A new commit gives all of them new time.
type waits struct {
	revision string
	since    map[manifest.ID]time.Time
}

// soonest is how long after one look another comes while something is pending.
const soonest = 2 * time.Second

// judge is a plan in which is broken what has been pending for too long, and how long it
// takes until there may be more to say; 0 is that nothing is pending.
func (w *waits) judge(p plan.Plan, timeout time.Duration, now time.Time) (plan.Plan, time.Duration) {
	since, late := map[manifest.ID]time.Time{}, map[manifest.ID]bool{}
	var soon time.Duration
	for _, c := range p.Checks {
		if c.State != plan.Pending {
			continue
		}
		since[c.ID] = now
		if before, waited := w.since[c.ID]; waited && w.revision == p.Want.Revision {
			since[c.ID] = before
		}
		passed := now.Sub(since[c.ID])
		if late[c.ID] = passed >= timeout; !late[c.ID] { // the longer it took, the less it matters
			next := min(max(soonest, passed/4), timeout-passed)
			soon = min(cmp.Or(soon, next), next)
		}
	}
	w.revision, w.since = p.Want.Revision, since
	return p.Overdue(timeout.String(), late), soon
}

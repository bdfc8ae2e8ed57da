package reconcile

import (
	"context"
	"errors"
	"time"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/rounds"
	"headgate.dev/headgate/render"
)

// Destroy ends a sync: it deletes or releases the objects of the inventory, tier by tier in reverse, as far as guards allow. It
// deletes the inventory last. A destroy that was interrupted or held can be run again. Like a pass, it has a time limit, which
// grows with its objects and tiers. how is one of plan.Ending.
func (r Reconciler) Destroy(ctx context.Context, how plan.Stance) (report.Report, error) {
	began := time.Now()
	limited, limit := r.allow(ctx, runAgain)
	defer limit.end()
	defer notice(limit.waitsFor, r.Notice)()
	want, err := r.nothing(limited)
	if err != nil {
		return report.Failed(r.Sync, "", err), err
	}
	pass, err := r.carryOut(limited, limit, rounds.Pass{}, course{look: func(ctx context.Context, pass rounds.Pass) (plan.Plan, error) {
		asks := plan.Plan.Open
		if pass.Started() { // repeat only the counts that the next tier needs, because counts are expensive
			asks = draft.OpenForemost
		}
		return r.plan(ctx, want, ending{r.Observer, how, r.Heirs}, asks)
	}})
	if err == nil && len(pass.Last.Steps) > 0 {
		var left plan.Plan
		if left, err = r.plan(limited, want, ending{r.Observer, how, r.Heirs}, plan.Plan.Open); err == nil {
			pass.Last = left // otherwise objects that may still exist would be reported as deleted
		}
		err = limit.explain(err)
	}
	result := r.report(pass, "", err)
	if pass.Started() {
		r.record(ctx, began, result, "", string(how)) // if there still is an inventory
	}
	return result, err
}

// An ending observes a place to end its sync.
type ending struct {
	Observer
	how   plan.Stance
	heirs []facts.Peer
}

func (e ending) Observe(ctx context.Context, want render.Desired) (facts.Observed, error) {
	seen, err := e.Observer.Observe(ctx, want)
	seen.Stance, seen.Peers = e.how, e.heirs
	return seen, err
}

// Destruction reports what Destroy would do.
func (r Reconciler) Destruction(ctx context.Context, how plan.Stance) (report.Report, error) {
	want, err := r.nothing(ctx)
	if err != nil {
		return report.Report{}, err
	}
	p, err := r.plan(ctx, want, ending{r.Observer, how, r.Heirs}, plan.Plan.Open)
	if err != nil {
		return report.Report{}, err
	}
	return report.New(p, nil, false), nil
}

// nothing returns the desired state of a sync that ends: no objects.
func (r Reconciler) nothing(ctx context.Context) (render.Desired, error) {
	if r.Applier == nil {
		return render.Desired{}, errors.New("this sync only looks: it owns nothing that could be destroyed")
	}
	as, err := r.options(ctx)
	if as.Owner == render.OwnerAuto {
		as.Owner = render.OwnerHeadgate // the default if the inventory records no owner
	}
	return render.Desired{Owner: as.Owner}, err
}

// released marks the result of a release in the history.
const released = "Release"

// Release takes the marks of the sync from objects that it owns, and forgets them. Nothing is deleted. With dry, it only shows
// what it would release.
func (r Reconciler) Release(ctx context.Context, ids []string, dry bool) (report.Report, error) {
	return r.release(ctx, dry, func(seen facts.Observed) (plan.Plan, error) { return draft.ReleaseNamed(seen, ids) })
}

// ReleaseRebuilt takes the marks of the sync from the objects that are only in a rebuilt inventory, which no pass has applied
// since. It then forgets them. Nothing is deleted. With dry, it only shows what it would release.
func (r Reconciler) ReleaseRebuilt(ctx context.Context, dry bool) (report.Report, error) {
	return r.release(ctx, dry, draft.ReleaseRebuilt)
}

// release carries out the plan of a release.
func (r Reconciler) release(ctx context.Context, dry bool, which func(facts.Observed) (plan.Plan, error)) (report.Report, error) {
	began := time.Now()
	if r.Applier == nil {
		return report.Report{}, errors.New("this sync only looks: it owns nothing that could be released")
	}
	look := func(ctx context.Context, _ rounds.Pass) (plan.Plan, error) {
		seen, err := r.Observer.Observe(ctx, render.Desired{})
		if err != nil {
			return plan.Plan{}, err
		}
		return which(seen)
	}
	if dry {
		p, err := look(ctx, rounds.Pass{})
		if err != nil {
			return report.Failed(r.Sync, "", err), err
		}
		return report.New(p, nil, false), nil
	}
	limited, limit := r.allow(ctx, runAgain)
	defer limit.end()
	defer notice(limit.waitsFor, r.Notice)()
	pass, err := r.carryOut(limited, limit, rounds.Pass{}, course{look: look})
	result := r.report(pass, "", err)
	if pass.Started() {
		r.record(ctx, began, result, "", released)
	}
	return result, err
}

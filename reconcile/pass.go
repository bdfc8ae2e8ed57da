package reconcile

import (
	"cmp"
	"context"
	"errors"
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/rounds"
	"headgate.dev/headgate/reconcile/trace"
	"headgate.dev/headgate/render"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	attempts    = 3 // how often to plan the first round again if other writers are faster
	firstLook   = 250 * time.Millisecond
	mostLook    = 5 * time.Second
	afterWrites = 125 * time.Millisecond // delay after a round with writes, which may allow the next ones
)

// A Task is one commit to reconcile.
type Task struct {
	// Render renders the commit. It is called in every round, because packages may have brought definitions.
	Render func(context.Context) (render.Desired, error)
	Before func(plan.Plan) // receives the first plan before it is applied; may be nil
	Waits  rounds.Waits    // what the last pass over the same commit waited for, and since when
	Once   bool            // look once if the pass only observes, and do not wait
	Notice func(string)    // receives what the pass is waiting for; if nil, the Reconciler's Notice does
}

// Carry makes one pass over a commit. Afterwards, the cluster is as the commit wants, as far as guards and the API server allow. If
// another tool applies the commit, the pass only observes. The report is complete even if Carry returns an error. Objects that
// still wait are left to the next pass. A pass has a time limit, which grows with the number of its objects.
func (r Reconciler) Carry(ctx context.Context, of Task) (report.Report, rounds.Pass, error) {
	revision := ""
	ctx, limit := r.allow(ctx, nextPass)
	defer limit.end()
	tell := r.Notice
	if of.Notice != nil {
		tell = of.Notice
	}
	defer notice(limit.waitsFor, tell)()
	look := func(ctx context.Context, _ rounds.Pass) (plan.Plan, error) {
		want, err := of.Render(ctx)
		revision = cmp.Or(want.Revision, revision)
		if err != nil {
			r.broken(ctx, revision, err)
			return plan.Plan{}, err
		}
		p, err := r.Plan(ctx, want, r.Observer)
		r.broken(ctx, revision, err)
		if err == nil && !r.OnlyDeactivates {
			err = refuseNothing(want, p)
		}
		return p, err
	}
	if r.Suspended != "" {
		p, err := look(ctx, rounds.Pass{})
		return r.withheld(p, revision, limit.explain(err)), rounds.Pass{}, limit.explain(err)
	}
	pass, err := r.carryOut(ctx, limit, rounds.Pass{Waits: of.Waits}, course{look: look, before: of.Before, once: of.Once})
	return r.report(pass, revision, err), pass, err
}

// withheld reports what a suspended sync would do.
func (r Reconciler) withheld(p plan.Plan, revision string, err error) report.Report {
	if err != nil {
		return report.Failed(r.Sync, revision, err)
	}
	return report.New(p, nil, false).Suspend(r.Suspended)
}

// broken tells the other syncs of the process that a commit of this sync could not be planned.
func (r Reconciler) broken(ctx context.Context, revision string, err error) {
	if err != nil && ctx.Err() == nil {
		r.Peers.failed(r.Sync, revision, err)
	}
}

// refuseNothing returns an error if the commit declares nothing and the sync owns nothing. This means that the directory is wrong,
// and a successful pass would hide that. If the sync owns objects, the guard empty holds their prunes.
func refuseNothing(want render.Desired, p plan.Plan) error {
	if p.Owned > 0 {
		return nil
	}
	return want.Nothing()
}

// report returns the report of a pass.
func (r Reconciler) report(pass rounds.Pass, revision string, err error) report.Report {
	if err != nil && !pass.Started() {
		return report.Failed(r.Sync, revision, err)
	}
	result := report.New(pass.Plan(), pass.Outcomes(), true)
	if err != nil {
		result.Stop(err)
	}
	return result
}

// A course holds the differences between the kinds of passes: over a commit, of a destroy, of a release.
type course struct {
	look   func(context.Context, rounds.Pass) (plan.Plan, error) // makes the newest plan
	before func(plan.Plan)
	once   bool
}

// carryOut makes rounds until nothing is left to do or the pass exceeds its limit: observe, Compute, Next, Apply, After.
func (r Reconciler) carryOut(ctx context.Context, limit *allowance, pass rounds.Pass, how course) (_ rounds.Pass, err error) {
	defer func() { err = limit.explain(err) }()
	times := rounds.Times{
		Began: metav1.Now(),
		Limit: metav1.Duration{Duration: cmp.Or(r.Timeout, 5*time.Minute)},
		Grace: metav1.Duration{Duration: r.grace()},
		Hurry: r.NoWait || how.once,
	}
	moved := 0
	for wait := firstLook; ; wait = min(2*wait, mostLook) {
		now, err := how.look(ctx, pass)
		if err != nil {
			return pass, err
		}
		limit.observe(now, pass.Waits)
		times.Now = metav1.Now()
		round := rounds.Next(pass, now, times)
		if round.Why == rounds.Begins && how.before != nil {
			how.before(round.Send)
		}
		var done []plan.Outcome
		if round.Sends() {
			done, err = r.apply(ctx, round.Send)
		}
		if !pass.Begun() {
			times.Began = metav1.Now()
		}
		pass = pass.After(round, done, err)
		switch {
		case errors.Is(err, reason.ErrMoved) && round.Why == rounds.Migrates:
			continue
		case errors.Is(err, reason.ErrMoved) && !pass.Begun():
			if moved++; moved == attempts {
				return pass, err
			}
			continue
		case errors.Is(err, reason.ErrMoved): // look again
		case err != nil:
			return pass, err
		case round.Why == rounds.Migrates:
			continue
		case pass.IsOver(round):
			return pass.End(round), nil
		case round.Send.Writes():
			wait = afterWrites
		}
		wait = pass.Within(metav1.Duration{Duration: wait}).Duration
		if left := time.Until(times.Began.Add(times.Limit.Duration)); left > 0 {
			wait = min(wait, left)
		}
		if err := pause(ctx, wait); err != nil {
			return pass, err
		}
	}
}

// apply carries out the plan of a round.
func (r Reconciler) apply(ctx context.Context, p plan.Plan) ([]plan.Outcome, error) {
	ctx, span := trace.Begin(ctx, "apply")
	done, err := r.Applier.Apply(ctx, p)
	failed := 0
	for _, o := range done {
		if o.Err != nil {
			failed++
		}
	}
	span.Count("objects", len(done))
	span.Count("failed", failed)
	span.End(err)
	return done, err
}

// pause waits for d, without a worker. It returns an error if ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	defer engine.Pause(ctx)()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

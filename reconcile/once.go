package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/trace"
	"headgate.dev/headgate/render"
)

// guarded makes one pass. A panic is an error of this pass, because other syncs of the process have nothing to do with it. The next pass
// observes everything again.
func (r *running) guarded(ctx context.Context) (result report.Report, err error) {
	began := time.Now()
	defect := engine.Caught("pass", func() error {
		result, err = r.once(ctx)
		return nil
	})
	if defect != nil {
		result, err = report.Failed(r.Reconciler.Sync, r.current(), defect), defect
		_ = engine.Caught("report", func() error { // nothing is left that could tell of another panic
			r.conclude(ctx, began, result, err)
			return nil
		})
	}
	return result, err
}

// once makes one pass and publishes its result. If another process applies another commit meanwhile, it reads the ref again and goes on
// with the commit that the ref names then.
func (r *running) once(ctx context.Context) (report.Report, error) {
	began := time.Now()
	waits := func(what string) {
		r.emit(Event{Kind: Waiting, Revision: r.current(), Took: time.Since(began), For: what})
	}
	var age time.Duration
	pushed := r.next.Why == Answer || r.next.Why == Needed // who asks for a pass right after a push means the new commit
	if r.patient && !pushed && r.meanwhile == "" {
		age = recent
	}
	for try := 1; ; try++ {
		in, err := r.newestCommit(engine.Within(ctx, age), waits)
		if err != nil {
			return r.withoutNewest(ctx, began, waits, err)
		}
		r.last = in
		if r.meanwhile != "" {
			r.known = new(r.meanwhile)
		}
		r.see(ctx, in.Revision)
		result, err := r.carry(ctx, waits)
		if r.meanwhile == "" || try == attempts {
			r.conclude(ctx, began, result, err)
			return result, err
		}
		r.emit(Event{Kind: Meanwhile, Revision: r.meanwhile})
		if result.Changed() {
			r.Reconciler.record(ctx, began, result, in.Source.Commit, "")
		}
		age = 0
	}
}

// newestCommit fetches the newest commit for a pass, and tells of the state of the repository.
func (r *running) newestCommit(ctx context.Context, waits func(string)) (render.Input, error) {
	defer notice(func() string { return "the commit" }, waits)()
	in, err := r.fetch(ctx)
	if ctx.Err() == nil {
		r.Reconciler.Peers.fetched(r.Reconciler.Sync, err)
		if refused(unread(err)) == "" {
			r.reached(err)
		}
	}
	return in, err
}

// withoutNewest makes a pass while the repository cannot be reached, or while its newest commit must not be applied: err is why. The pass
// corrects drift from the commit that was fetched last, or from the last applied one if another process applied that.
func (r *running) withoutNewest(ctx context.Context, began time.Time, waits func(string), err error) (report.Report, error) {
	err = unread(err)
	r.see(ctx, refused(err))
	usable := r.last.Files != nil
	if refused(err) != "" && !usable {
		usable, err = r.recall(ctx, err)
	}
	result := report.Failed(r.Reconciler.Sync, r.current(), err)
	if usable && ctx.Err() == nil {
		var stopped error
		result, stopped = r.carry(ctx, waits)
		if r.meanwhile != "" {
			if usable, err = r.recall(ctx, err); usable {
				result, stopped = r.carry(ctx, waits)
			}
		}
		result.Revision = cmp.Or(refused(err), result.Revision) // the status belongs to the refused commit
		err = errors.Join(err, stopped)
		result.Stop(err)
	}
	r.conclude(ctx, began, result, err)
	return result, err
}

// recall fetches the commit that was applied last, according to the inventory. This lets a process correct drift even if it starts
// while the newest commit must not be applied: a person with push rights must not be able to stop that with a restart. The Source
// verifies this commit like any other. recall reports whether there is such a commit, and returns the error of the pass, which also
// explains why drift is not corrected.
func (r *running) recall(ctx context.Context, why error) (usable bool, _ error) {
	if r.Reconciler.Applied == nil {
		return false, why
	}
	commit, err := r.Reconciler.Applied(ctx)
	switch {
	case err != nil:
		return false, fmt.Errorf("%w; no drift is corrected until then: %w", why, err)
	case commit == "": // nothing was applied
		return false, why
	}
	in, err := r.Reconciler.fetch(ctx, commit)
	if err != nil {
		return false, fmt.Errorf("%w; no drift is corrected until then, because commit %.12s, which was applied last, cannot be used: %w", why, commit, err)
	}
	r.last = in
	r.emit(Event{Kind: Recalled, Revision: in.Revision})
	return true, why
}

// carry makes a pass over the commit that was fetched last. If the loop only observes, the pass looks once at how far other tools
// are.
func (r *running) carry(ctx context.Context, waits func(string)) (report.Report, error) {
	r.meanwhile = ""
	if err := r.ready(ctx); err != nil {
		return report.Failed(r.Reconciler.Sync, r.current(), err), err
	}
	with := r.Reconciler
	with.Fights, with.AppliedBefore = r.fights.at(time.Now()), r.known
	var how render.Options
	task := Task{
		Render: func(ctx context.Context) (_ render.Desired, err error) {
			in := r.last
			r.last.Documents = nil // a later render reads them again, so that the loop keeps no documents between passes
			if how, err = r.Reconciler.options(ctx); err != nil {
				return render.Desired{Revision: in.Revision}, err
			}
			return renderAs(ctx, in, how)
		},
		Before: func(p plan.Plan) {
			if r.known = new(p.Applied); p.Remembers() {
				r.known = new(r.last.Source.Commit)
			}
			if r.unsaid && p.Writes() {
				r.pending(ctx)
			}
		},
		Waits: r.waits, Notice: waits,
		Once: with.Applier == nil && r.patient,
	}
	result, pass, err := with.Carry(ctx, task)
	if result.Changed() {
		r.known = new(r.last.Source.Commit)
	}
	if by, is := errors.AsType[*reason.AppliedMeanwhileError](err); is {
		r.meanwhile = by.Commit
	}
	r.waits, r.soon = pass.Waits, 0
	if with.Applier == nil && r.patient && err == nil {
		r.soon = pass.PollAfter().Duration
	}
	r.fights.record(time.Now(), result)
	r.settled = settledBy(result, err, r.last, how)
	result = result.After(r.so, r.fights.at(time.Now()))
	r.so = result.Summary
	return result, err
}

// fetch fetches the newest commit.
func (r *running) fetch(ctx context.Context) (render.Input, error) {
	return r.Reconciler.fetch(ctx, r.Ref)
}

// ready waits until the API server answers.
func (r *running) ready(ctx context.Context) error {
	if r.Ready == nil {
		return nil
	}
	r.idles(true)
	defer r.idles(false)
	return r.Ready(ctx)
}

// idles records whether the pass has nothing to finish.
func (r *running) idles(is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.under != nil {
		r.under.idle = is
	}
}

// see publishes that a new commit is pending, and the final status of the previous one. For the first commit, it waits until there
// is something to write, because a restarted process must not replace the final status of the commit.
func (r *running) see(ctx context.Context, revision string) {
	before := r.current()
	if revision == "" || revision == before {
		return
	}
	r.supersede(ctx, revision)
	r.unsaid, r.untold, r.so = true, nil, report.Summary{}
	r.emit(Event{Kind: NewCommit, Revision: revision})
	if before != "" {
		r.pending(ctx)
	}
}

// supersede makes a commit the current one. Commits that are still pending get a final status.
func (r *running) supersede(ctx context.Context, revision string) {
	for _, open := range slices.Sorted(maps.Keys(r.open)) {
		if open != revision {
			delete(r.open, open)
			r.publish(ctx, report.Superseded(r.Reconciler.Sync, open, revision))
			r.emit(Event{Kind: Overtaken, Revision: open, By: revision})
		}
	}
	r.mu.Lock()
	r.seen = revision
	r.mu.Unlock()
}

func (r *running) pending(ctx context.Context) {
	r.unsaid, r.open[r.current()] = false, true
	r.publish(ctx, report.Seen(r.Reconciler.Sync, r.current()))
}

// conclude publishes the result of a pass. It publishes neither interrupted passes nor errors that may be gone in the next pass.
func (r *running) conclude(ctx context.Context, began time.Time, result report.Report, err error) {
	passes := err != nil && !ofCommit(err)
	soon := ctx.Err() != nil || r.patient && r.next.Failures == 0
	isSaid := !passes || !soon
	if isSaid {
		r.unsaid = false
		delete(r.open, result.Revision)
		if result.Verdict.Activation.State == report.Pending {
			r.open[result.Revision] = true
		}
		r.tell(ctx, result)
	}
	// After publishing: a user waits for the status, and no later commit may succeed with a hold that was never reported.
	if isSaid || result.Changed() {
		r.Reconciler.record(ctx, began, result, r.last.Source.Commit, "")
	}
}

// tell publishes the result of a pass, unless the commit has no status and the pass found what it found without one.
func (r *running) tell(ctx context.Context, result report.Report) {
	if r.untold != nil && *r.untold == result.Verdict {
		return
	}
	r.untold = nil
	r.publish(ctx, result)
}

func (r *running) publish(ctx context.Context, result report.Report) {
	if r.Publisher == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	defer engine.PauseAfter(ctx, late)()
	ctx, span := trace.Begin(ctx, "post")
	err := engine.Caught("report", func() error { return r.Publisher.Publish(ctx, result) })
	span.End(err)
	if err != nil {
		r.emit(Event{Kind: PublishFailed, Revision: result.Revision, Err: err})
	}
}

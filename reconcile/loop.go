package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/rounds"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// A Publisher publishes the report of a pass.
type Publisher interface {
	Publish(ctx context.Context, r report.Report) error
}

// A PendingLister is a Publisher that lists the commits of a sync whose last status was pending, including those of earlier
// processes.
type PendingLister interface {
	Pending(namespace, name string) []string
}

// A Watcher reports the owned objects that differ from our last write, until ctx is done. It reports all of them together, and
// again after every change: by identity, each with a value that changes with the object. It calls trouble for objects that it
// cannot watch.
type Watcher interface {
	Watch(ctx context.Context, tell func(moved map[manifest.ID]string), trouble func(error))
}

// A Loop makes passes over one target: at intervals, for each new commit, and when another writer changes what the sync owns. It
// makes one pass at a time.
type Loop struct {
	Reconciler Reconciler
	Ref        string
	Publisher  Publisher // nil publishes no reports
	Watcher    Watcher   // if nil, the next pass finds drift
	Suspended  bool      // makes no passes
	// Pushed receives when there may be a new commit. The loop then fetches from the Source immediately. It may be nil.
	Pushed <-chan struct{}
	// Tip returns the newest commit of a ref, also if it is in no way fit to be applied. It lets syncs of one repository share its polls. If it
	// is nil, each poll fetches. Changed receives when another poll has seen a change of the repository. It may be nil.
	Tip     func(ctx context.Context, ref string) (string, error)
	Changed <-chan struct{}
	// Approved receives when a person may have approved something that is held. The loop then makes a pass. It may be nil.
	Approved <-chan struct{}

	Interval time.Duration // between passes, plus or minus a tenth; default 1 minute
	Poll     time.Duration // between polls for a new commit, if shorter than Interval
	Grace    time.Duration // how long the current pass may continue after the loop is stopped; default 10 seconds

	// Slots bound how many loops of the process work at the same time: a pass and a look for a commit need one, and give it back while
	// they wait. A nil Slots bounds nothing.
	Slots *engine.Slots
	// Ready waits until the API server answers, or returns why it does not. A pass begins after that. May be nil.
	Ready func(context.Context) error

	OnEvent func(Event) // receives what the loop does, one event at a time; may be nil
}

// An Event is something that a Loop or a PreviewLoop did.
type Event struct {
	Kind     EventKind
	Because  Because         // of a pass
	Revision string          // the commit; "" if not known
	By       string          // of Superseded: the newer revision
	Pull     int             // number of a pull request
	Report   report.Report   // of Passed and Untouched
	Preview  report.Combined // of Previewed
	Took     time.Duration   // of Passed, Stopped and Previewed: the duration; of Waiting: the time so far
	For      string          // of Waiting: what the pass is waiting for
	Next     time.Duration   // of Passed: the time until the next pass, unless something triggers it earlier
	Err      error
}

// An EventKind is the kind of an event. Its value is the text for logs.
type EventKind string

// The kinds of events.
const (
	Began         EventKind = "pass begins"
	NewCommit     EventKind = "new commit"
	Waiting       EventKind = "pass waits" // for something that takes a long time
	Overtaken     EventKind = "commit superseded"
	Recalled      EventKind = "correcting drift from the last applied commit" // because the newest commit must not be applied
	Passed        EventKind = "pass"                                          // a pass ended, with or without an error
	Untouched     EventKind = "commit changes nothing"                        // of the sync: it has the result of the last pass, and needs none
	Stopped       EventKind = "pass interrupted"                              // by the end of the loop, or by something newer
	PublishFailed EventKind = "cannot publish"
	WatchFailed   EventKind = "cannot watch"            // the next pass finds drift
	WebhookFailed EventKind = "cannot receive webhooks" // the next poll finds pushes
	IsSuspended   EventKind = "suspended"
	Unheard       EventKind = "no comment approves" // the forge does not support approvals by comment as the Sync requires

	Previewed   EventKind = "preview"                  // a preview of a pull request ended, with or without an error
	Forgotten   EventKind = "pull request is not open" // any more
	PullsFailed EventKind = "cannot preview all pull requests"
)

// A Because is the reason for a pass.
type Because = engine.Trigger

// The reasons for a pass.
const (
	Start  = engine.Start
	Time   = engine.Time
	Commit = engine.Commit
	Moved  = engine.Moved
	Again  = engine.Again
	Answer = engine.Answer
	Needed = engine.Needed
)

const (
	firstPause = 5 * time.Second // after an error
	mostPause  = 5 * time.Minute
	recent     = time.Second      // how long ago another sync may have asked for the newest commit
	late       = time.Second      // how long a pass keeps its slot while the repository or the forge does not answer
	lastWords  = 10 * time.Second // the timeout for publishing, even if the pass was interrupted
)

// errYield interrupts a pass that takes longer than the interval in favour of a newer commit or change.
var errYield = errors.New("the pass made way for something newer")

// Run makes passes until ctx is done. The current pass then has Grace to finish. After that, it sends nothing more and records what
// it has done.
func (l Loop) Run(ctx context.Context) {
	r := l.running()
	r.patient = true
	if r.Suspended {
		r.emit(Event{Kind: IsSuspended})
		<-ctx.Done()
		return
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	looks := make(chan look)
	beside.Go(func() { r.look(ctx, looks) })
	if r.Watcher != nil {
		beside.Go(func() {
			r.Watcher.Watch(ctx, r.setMoved, func(err error) { r.emit(Event{Kind: WatchFailed, Err: err}) })
		})
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-r.wake:
			r.schedule(r.due(engine.Event{Kind: engine.Drift, Drifted: r.fresh()}))
			continue
		case <-r.Approved:
			r.schedule(r.due(engine.Event{Kind: engine.Approved}))
		case newest := <-looks:
			due := r.due(engine.Event{Kind: engine.Newest, Fresh: newest.revision != r.current(), Pushed: newest.pushed, Needed: newest.needed})
			if !due.Run || !newest.needed && r.follow(ctx, newest.commit) {
				continue
			}
			r.schedule(due)
		case <-r.timer.C:
			due := r.due(engine.Event{Kind: engine.Timer, Drifted: r.fresh()})
			if r.schedule(due); !due.Run {
				continue
			}
		}
		r.pass(ctx, looks)
	}
}

// Once makes one pass and returns its report.
func (l Loop) Once(ctx context.Context) (report.Report, error) {
	r := l.running()
	if r.Suspended {
		r.emit(Event{Kind: IsSuspended})
		return report.Report{}, nil
	}
	began := time.Now()
	r.emit(Event{Kind: Began, Because: Start})
	result, err := r.once(ctx)
	r.emit(Event{Kind: Passed, Because: Start, Revision: result.Revision, Report: result, Took: time.Since(began), Err: err})
	return result, err
}

// running is a running Loop.
type running struct {
	Loop

	patient bool // publish an error only if it happens again in the next pass

	// When to make the next pass, and why.
	timer *time.Timer
	next  engine.State

	// State that a pass leaves to the next one.
	last    render.Input    // the commit that was fetched last
	unsaid  bool            // no status was published for the commit yet
	open    map[string]bool // commits whose last status is pending
	fights  fights          // the writers that undo what passes write
	so      report.Summary  // the summary of the passes over this commit so far
	waits   rounds.Waits    // when each wait of this commit began
	soon    time.Duration   // delay until the next pass if the last one asked for a short one
	settled settled         // the result of the last pass, if another one over the same would find the same

	wake chan struct{} // the watcher reported something

	mu      sync.Mutex
	queued  bool                   // the current pass waits for a slot
	began   time.Time              // when the current pass began; zero if there is none
	seen    string                 // the commit of the last pass
	moved   map[manifest.ID]string // what the watcher last reported
	handled map[manifest.ID]string // the part of moved that a pass has checked
	telling sync.Mutex
}

func (l Loop) running() *running {
	l.Interval = cmp.Or(l.Interval, time.Minute)
	l.Grace = cmp.Or(l.Grace, 10*time.Second)
	r := &running{Loop: l, wake: make(chan struct{}, 1), timer: time.NewTimer(0), open: map[string]bool{}, fights: fights{}}
	if knows, ok := l.Publisher.(PendingLister); ok {
		for _, revision := range knows.Pending(l.Reconciler.Sync.Namespace, l.Reconciler.Sync.Name) {
			r.open[revision] = true
		}
	}
	r.schedule(r.due(engine.Event{Kind: engine.Begins}))
	return r
}

// due decides what an event means for the next pass.
func (r *running) due(e engine.Event) engine.Schedule {
	varied := 0.2*rand.Float64() - 0.1 //nolint:gosec // it needs no secrecy
	return engine.Due(r.next, e, time.Now(), engine.Times{Interval: r.Interval, Jitter: varied})
}

// schedule takes up a decision.
func (r *running) schedule(d engine.Schedule) {
	r.next = d.State
	if !d.Run {
		r.timer.Reset(time.Until(d.At))
	}
}

// setMoved records the changed objects that the watcher reported, and wakes the loop.
func (r *running) setMoved(moved map[manifest.ID]string) {
	r.mu.Lock()
	r.moved = maps.Clone(moved)
	maps.DeleteFunc(r.handled, func(id manifest.ID, mark string) bool { now, still := moved[id]; return !still || now != mark })
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// fresh reports whether objects changed since a pass checked them.
func (r *running) fresh() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, mark := range r.moved {
		if looked, ok := r.handled[id]; !ok || looked != mark {
			return true
		}
	}
	return false
}

func (r *running) current() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// late reports whether the current pass takes longer than the interval.
func (r *running) late() bool { return r.passing() >= r.Interval }

// passing returns for how long the current pass works; zero if there is none.
func (r *running) passing() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.began.IsZero() {
		return 0
	}
	return time.Since(r.began)
}

// queue records whether the current pass waits for a slot.
func (r *running) queue(waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queued = waits
}

func (r *running) isQueued() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queued
}

// A look is the result of looking for a newer commit.
type look struct {
	revision string
	commit   render.Input // the newest commit; without files if it was refused
	pushed   bool         // a push was announced, or another sync asked for a pass
	needed   bool         // another sync asked for a pass
}

// lookAgain holds the delays before looking again after a push that is not visible yet. Some forges send the event before all of
// their servers know the push.
var lookAgain = []time.Duration{time.Second, 4 * time.Second}

// look sends the newest revision to tell: after a push, at every poll if Poll is shorter than Interval, and while a pass takes
// longer than the interval.
func (r *running) look(ctx context.Context, tell chan<- look) {
	often := r.Poll > 0 && r.Poll < r.Interval
	every := r.Interval
	if often {
		every = r.Poll
	}
	var again []time.Duration // delays before the remaining looks after a push
	woken := r.Reconciler.Peers.woken(r.Reconciler.Sync)
	for {
		pushed, needed := len(again) > 0, false
		wait := jitter(every)
		if pushed {
			wait, again = again[0], again[1:]
		}
		select {
		case <-ctx.Done():
			return
		case <-r.Pushed:
			pushed, again = true, lookAgain
		case <-woken:
			pushed, needed = true, true
		case <-r.Changed:
		case <-time.After(wait):
		}
		isQuiet := !pushed && !often && !r.late()
		if isQuiet || !pushed && r.isAtTip(ctx, every) {
			continue
		}
		in, err := r.newest(ctx, pushed)
		if err != nil {
			in = render.Input{Revision: refused(unread(err))}
		}
		if in.Revision == "" {
			continue // the next pass reports the error
		}
		if in.Revision != r.current() {
			again = nil
		}
		select {
		case <-ctx.Done():
			return
		case tell <- look{in.Revision, in, pushed, needed}:
		}
	}
}

// newest fetches the newest commit for a look. Hundreds of loops look at the same time when there is one.
func (r *running) newest(ctx context.Context, pushed bool) (render.Input, error) {
	ctx, free, err := r.Slots.Take(ctx, engine.Asked)
	if err != nil {
		return render.Input{}, err
	}
	defer free()
	if !pushed {
		ctx = engine.Within(ctx, recent)
	}
	return r.fetch(ctx)
}

// isAtTip reports whether the last pass was over the newest commit, as it was at most an interval of polls ago: whoever asks first after
// that asks for all syncs, and wakes those that the answer is new to.
func (r *running) isAtTip(ctx context.Context, every time.Duration) bool {
	if r.Tip == nil {
		return false
	}
	tip, err := r.Tip(engine.Within(ctx, every*9/10), r.Ref)
	return err == nil && tip == r.current()
}

// pass makes a pass and schedules the next one.
func (r *running) pass(ctx context.Context, looks <-chan look) {
	type result struct {
		report report.Report
		err    error
	}
	because, began := r.next.Why, time.Now()
	r.begin(began)
	r.emit(Event{Kind: Began, Because: because})
	passing, interrupt := context.WithCancelCause(context.WithoutCancel(ctx))
	defer interrupt(nil)
	done := make(chan result, 1)
	go func() {
		outcome, err := r.guarded(passing)
		done <- result{outcome, err}
	}()

	ending, late := ctx.Done(), time.After(r.Interval)
	var over <-chan time.Time
	var yieldTo Because
	pushed := "" // a revision that a push announced during the pass
	needed := false
	for {
		var newer Because
		select {
		case got := <-done:
			r.begin(time.Time{})
			event := Event{Kind: Passed, Because: because, Revision: got.report.Revision, Report: got.report, Took: time.Since(began), Err: got.err}
			if passing.Err() != nil && got.err != nil {
				event.Kind = Stopped
				r.schedule(r.due(engine.Event{Kind: engine.Stopped, Why: cmp.Or(yieldTo, because)}))
			} else {
				event.Next = r.passed(because, got.err, pushed != "" && pushed != r.current(), needed)
			}
			r.emit(event)
			return
		case <-ending:
			ending, over = nil, time.After(r.Grace)
			if r.isQueued() { // it has nothing to finish
				interrupt(context.Cause(ctx))
			}
		case <-over:
			interrupt(context.Cause(ctx))
		case newest := <-looks:
			needed = needed || newest.needed
			if newest.revision != r.current() {
				newer = Commit
				if newest.pushed {
					pushed = newest.revision
				}
			}
		case <-late:
			if left := r.Interval - r.passing(); left > 0 { // it had to wait for a slot
				late = time.After(left)
				continue
			}
			newer = Moved
			if pushed != "" && pushed != r.current() {
				newer = Commit
			}
		case <-r.wake:
			newer = Moved
		}
		// A pass that takes longer than the interval may be waiting for something that never happens, so it gives way.
		if is := newer == Commit || newer == Moved && r.fresh(); is && r.late() {
			yieldTo = newer
			interrupt(errYield)
		}
	}
}

// begin records that a pass begins, which will check everything that has changed so far. With the zero time, it records that the
// pass ended.
func (r *running) begin(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began = at
	if !at.IsZero() {
		r.handled = maps.Clone(r.moved)
	}
}

// passed schedules the pass after one that ended. It returns the time until then, unless drift triggers it earlier.
func (r *running) passed(because Because, err error, pushed, needed bool) time.Duration {
	r.schedule(r.due(engine.Event{
		Kind: engine.Passed, Why: because, Failed: err != nil && !ofCommit(err), Soon: r.soon, Drifted: r.fresh(), Fresh: pushed, Needed: needed && err == nil,
	}))
	if r.next.Why == Commit || r.next.Why == Needed {
		return 0
	}
	return time.Until(r.next.Regular)
}

// jitter changes a delay by up to a tenth, so that many loops do not act at the same time.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64())) //nolint:gosec // it needs no secrecy
}

// ofCommit reports whether an error is caused by the commit, so that only a new commit can end it.
func ofCommit(err error) bool {
	var wrong catalogue.Errors
	var away unfetched
	return refused(err) != "" || errors.As(err, &wrong) && !errors.As(err, &away)
}

// An unfetched error is the error of a commit that cannot be fetched at the moment.
type unfetched struct{ error }

func (e unfetched) Unwrap() error { return e.error }

// A refusal is the error of a Source about a commit without the required signatures.
type refusal struct {
	error

	revision string
}

func (e refusal) Unwrap() error { return e.error }

// Code returns the code of the error.
func (refusal) Code() reason.Code { return reason.Unverified }

// unread wraps an error of a Source, as a refusal or as an unfetched error.
func unread(err error) error {
	if of, is := errors.AsType[interface {
		error
		Unverified() string
	}](err); is {
		return refusal{err, of.Unverified()}
	}
	return unfetched{err}
}

// refused returns the commit that an error refuses; "" if it is not a refusal.
func refused(err error) string {
	of, _ := errors.AsType[refusal](err)
	return of.revision
}

// guarded makes one pass. A panic is an error of this pass, because other syncs of the process have nothing to do with it. The next pass
// observes everything again.
func (r *running) guarded(ctx context.Context) (result report.Report, err error) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			err = panicked{"pass", p, debug.Stack()}
			result = report.Failed(r.Reconciler.Sync, r.current(), err)
			r.conclude(ctx, began, result, err)
		}
	}()
	return r.once(ctx)
}

// once makes one pass and publishes its result. If the repository cannot be reached, or its newest commit must not be applied, the
// pass uses the commit that was fetched last, so that it still corrects drift.
func (r *running) once(ctx context.Context) (report.Report, error) {
	began := time.Now()
	ctx, free, err := r.turn(ctx)
	if err != nil {
		return report.Failed(r.Reconciler.Sync, r.current(), err), err
	}
	defer free()
	r.begin(time.Now()) // the time until here does not make the pass late
	waits := func(what string) {
		r.emit(Event{Kind: Waiting, Revision: r.current(), Took: time.Since(began), For: what})
	}
	stop := notice(func() string { return "the commit" }, waits)
	fetching := ctx
	if r.patient && r.next.Why != Answer { // a person who asks for a pass right after a push means the new commit
		fetching = engine.Within(ctx, recent)
	}
	in, err := r.fetch(fetching)
	stop()
	if ctx.Err() == nil {
		r.Reconciler.Peers.fetched(r.Reconciler.Sync, err)
	}
	if err == nil {
		r.last = in
		r.see(ctx, in.Revision)
		result, err := r.carry(ctx, waits)
		r.conclude(ctx, began, result, err)
		return result, err
	}
	err = unread(err)
	r.see(ctx, refused(err))
	if refused(err) != "" && r.last.Files == nil {
		err = r.recall(ctx, err)
	}
	result := report.Failed(r.Reconciler.Sync, r.current(), err)
	if r.last.Files != nil && ctx.Err() == nil {
		var stopped error
		result, stopped = r.carry(ctx, waits)
		result.Revision = cmp.Or(refused(err), result.Revision) // the status belongs to the refused commit
		err = errors.Join(err, stopped)
		result.Stop(err)
	}
	r.conclude(ctx, began, result, err)
	return result, err
}

// recall fetches the commit that was applied last, according to the inventory. This lets a process correct drift even if it starts
// while the newest commit must not be applied: a person with push rights must not be able to stop that with a restart. The Source
// verifies this commit like any other. recall returns the error of the pass, which also explains why drift is not corrected.
func (r *running) recall(ctx context.Context, why error) error {
	if r.Reconciler.Applied == nil {
		return why
	}
	commit, err := r.Reconciler.Applied(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%w; no drift is corrected until then: %w", why, err)
	case commit == "": // nothing was applied
		return why
	}
	in, err := r.Reconciler.Source.Fetch(ctx, commit)
	if err != nil {
		return fmt.Errorf("%w; no drift is corrected until then, because commit %.12s, which was applied last, cannot be used: %w", why, commit, err)
	}
	r.last = in
	r.emit(Event{Kind: Recalled, Revision: in.Revision})
	return why
}

// carry makes a pass over the commit that was fetched last. If the loop only observes, the pass looks once at how far other tools
// are.
func (r *running) carry(ctx context.Context, waits func(string)) (report.Report, error) {
	if err := r.ready(ctx); err != nil {
		return report.Failed(r.Reconciler.Sync, r.current(), err), err
	}
	with := r.Reconciler
	with.Fights = r.fights.at(time.Now())
	var how render.Options
	task := Task{
		Render: func(ctx context.Context) (_ render.Desired, err error) {
			in := r.last
			r.last.Documents = nil // a later render reads them again, so that the loop keeps no documents between passes
			if how, err = r.Reconciler.options(ctx); err != nil {
				return render.Desired{Revision: in.Revision}, err
			}
			return renderAs(in, how)
		},
		Before: func(p plan.Plan) {
			if r.unsaid && p.Writes() {
				r.pending(ctx)
			}
		},
		Waits: r.waits, Notice: waits,
		Once: with.Applier == nil && r.patient,
	}
	result, pass, err := with.Carry(ctx, task)
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

// fetch fetches the newest commit. A repository that does not answer holds no slot.
func (r *running) fetch(ctx context.Context) (render.Input, error) {
	defer engine.PauseAfter(ctx, late)()
	return r.Reconciler.Source.Fetch(ctx, r.Ref)
}

// turn waits for a slot.
func (r *running) turn(ctx context.Context) (_ context.Context, free func(), err error) {
	r.queue(true)
	defer r.queue(false)
	return r.Slots.Take(ctx, r.next.Why.Priority())
}

// ready waits until the API server answers.
func (r *running) ready(ctx context.Context) error {
	if r.Ready == nil {
		return nil
	}
	r.queue(true) // it has nothing to finish
	defer r.queue(false)
	return r.Ready(ctx)
}

// see publishes that a new commit is pending, and the final status of the previous one. For the first commit, it waits until there
// is something to write, because a restarted process must not replace the final status of the commit.
func (r *running) see(ctx context.Context, revision string) {
	before := r.current()
	if revision == "" || revision == before {
		return
	}
	r.supersede(ctx, revision)
	r.unsaid, r.so = true, report.Summary{}
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
		r.publish(ctx, result)
	}
	// After publishing: a user waits for the status, and no later commit may succeed with a hold that was never reported.
	if isSaid || result.Changed() {
		r.Reconciler.record(ctx, began, result, r.last.Source.Commit, "")
	}
}

func (r *running) publish(ctx context.Context, result report.Report) {
	if r.Publisher == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	defer engine.PauseAfter(ctx, late)()
	if err := r.Publisher.Publish(ctx, result); err != nil {
		r.emit(Event{Kind: PublishFailed, Revision: result.Revision, Err: err})
	}
}

func (r *running) emit(e Event) {
	if r.OnEvent == nil {
		return
	}
	r.telling.Lock()
	defer r.telling.Unlock()
	r.OnEvent(e)
}

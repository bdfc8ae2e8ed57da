package reconcile

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/rounds"
	"headgate.dev/headgate/reconcile/trace"
	"headgate.dev/headgate/render"
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
// again after every change: by identity, each with a value that changes with the object. It calls trouble for what it cannot watch, and
// without an error once it watches that again. Watch returns at once, and wait returns once nothing of it goes on.
type Watcher interface {
	Watch(ctx context.Context, tell func(moved map[manifest.ID]string), trouble func(what string, err error)) (wait func())
}

// A Loop makes passes over one target: at intervals, for each new commit, and when another writer changes what the sync owns. It
// makes one pass at a time.
type Loop struct {
	Reconciler Reconciler
	Ref        string
	Publisher  Publisher     // nil publishes no reports
	Watcher    Watcher       // if nil, the next pass finds drift
	Untold     bool          // publishes nothing for a commit that changes nothing of the sync
	Tracer     *trace.Tracer // makes a trace of each pass; nil makes none
	// Pushed is sent when there may be a new commit. The loop then looks for it at once. It may be nil.
	Pushed *engine.Signal
	// Tip returns the newest commit of a ref, also if it is in no way fit to be applied. If it is nil, each look for a commit fetches.
	Tip func(ctx context.Context, ref string) (string, error)
	// Remote is a comparable value for what Tip asks and for the credentials: Remotes look for commits once for all loops with the same one. A
	// loop without a Remote or Remotes looks alone.
	Remote  any
	Remotes *Remotes
	// Approved is sent when a person may have approved something that is held. The loop then makes a pass. It may be nil.
	Approved *engine.Signal

	Interval time.Duration // between passes, plus or minus a tenth; default 1 minute
	Poll     time.Duration // between polls for a new commit, if shorter than Interval
	Grace    time.Duration // how long the current pass may continue after the loop is stopped; default 10 seconds

	// Queue runs the passes of all loops of the process, and the looks for commits, some at a time. If it is nil, the loop has its own.
	Queue *engine.Queue
	// Ready waits until the API server answers, or returns why it does not. A pass begins after that. May be nil.
	Ready func(context.Context) error

	OnEvent func(Event) // receives what the loop does, one event at a time; may be nil
}

const (
	firstPause = 5 * time.Second // after an error
	mostPause  = 5 * time.Minute
	recent     = time.Second      // how long ago another sync may have asked for the newest commit
	late       = time.Second      // how long a pass keeps its worker while the repository or the forge does not answer
	lastWords  = 10 * time.Second // the timeout for publishing, even if the pass was interrupted
)

// errYield interrupts a pass that takes longer than the interval in favour of a newer commit or change.
var errYield = errors.New("the pass made way for something newer")

// Run makes passes until ctx is done. The current pass then has Grace to finish. After that, it sends nothing more and records what
// it has done.
func (l Loop) Run(ctx context.Context) { l.Start(ctx)() }

// Start makes passes like Run, but returns at once. At rest, a loop has no goroutine. wait returns when it has ended.
func (l Loop) Start(ctx context.Context) (wait func()) {
	if l.Reconciler.Suspended != "" {
		l.emit(Event{Kind: IsSuspended, For: l.Reconciler.Suspended})
	}
	if l.Queue == nil {
		l.Queue = engine.NewQueue(2) // a pass, and a look beside it
	}
	if l.Remotes == nil {
		l.Remotes = new(Remotes)
	}
	r := l.running()
	r.ctx, r.patient = ctx, true
	watched := func() {}
	if r.Watcher != nil {
		watched = r.Watcher.Watch(ctx, r.setMoved, func(what string, err error) {
			kind := WatchFailed
			if err == nil {
				kind = Watched
			}
			r.emit(Event{Kind: kind, For: what, Err: err})
		})
	}
	r.passes = r.Queue.Join(ctx, engine.Start.Priority(), r.work)
	remote, leave := r.Remotes.join(ctx, r)
	r.mu.Lock()
	r.remote = remote
	r.mu.Unlock()
	r.listen(remote)
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(ended)
		r.deafen()
		r.endPass(context.Cause(ctx))
		leave()
		r.passes.Leave()
		watched()
	})
	return func() { <-ended }
}

// Once makes one pass and returns its report.
func (l Loop) Once(ctx context.Context) (report.Report, error) {
	r := l.running()
	began := time.Now()
	r.emit(Event{Kind: Began, Because: Start})
	ctx, span := r.traced(ctx, Start)
	result, err := r.once(ctx)
	event := Event{Kind: Passed, Because: Start, Revision: result.Revision, Report: result, Took: time.Since(began), Err: err}
	endTrace(span, event)
	r.emit(event)
	return result, err
}

// running is a running Loop.
type running struct {
	Loop

	ctx     context.Context //nolint:containedctx // of the loop, for the looks of its remote
	patient bool            // publish an error only if it happens again in the next pass
	passes  *engine.Task
	next    engine.State // when to make the next pass, and why
	asked   sync.Mutex   // held while the remote asks on behalf of this loop

	// State that a pass leaves to the next one.
	last      render.Input    // the commit that was fetched last
	known     *string         // the last applied commit that the loop knew when it fetched that one; nil before the first pass
	meanwhile string          // the commit that another process has applied since; "" if none has
	unsaid    bool            // no status was published for the commit yet
	untold    *report.Verdict // of a commit without a status, because it changes nothing; nil for all others
	open      map[string]bool // commits whose last status is pending
	fights    fights          // the writers that undo what passes write
	so        report.Summary  // the summary of the passes over this commit so far
	waits     rounds.Waits    // when each wait of this commit began
	soon      time.Duration   // delay until the next pass if the last one asked for a short one
	settled   settled         // the result of the last pass, if another one over the same would find the same

	mu      sync.Mutex
	remote  *remote                // nil before it is known
	heard   heard                  // since the last pass, or the last decision that none is due
	under   *underWay              // the current pass; nil if there is none
	ending  bool                   // the loop ends, so no pass begins
	seen    string                 // the commit of the last pass
	away    bool                   // the repository could not be read
	moved   map[manifest.ID]string // what the watcher last reported
	handled map[manifest.ID]string // the part of moved that a pass has checked
	telling sync.Mutex
}

// heard is what may begin a pass.
type heard struct {
	drift    bool
	approved bool
	newest   found
	needed   bool // another sync asked for a pass
}

// An underWay is a pass that is made now.
type underWay struct {
	began     time.Time
	interrupt context.CancelCauseFunc
	late      *time.Timer // when it takes longer than the interval
	over      *time.Timer // when its Grace ends; nil before the end of the loop
	idle      bool        // it has nothing to finish
	yieldTo   Because     // what it makes way for
}

func (l Loop) running() *running {
	l.Interval = cmp.Or(l.Interval, time.Minute)
	l.Grace = cmp.Or(l.Grace, 10*time.Second)
	r := &running{Loop: l, open: map[string]bool{}, fights: fights{}}
	if knows, ok := l.Publisher.(PendingLister); ok {
		for _, revision := range knows.Pending(l.Reconciler.Sync.Namespace, l.Reconciler.Sync.Name) {
			r.open[revision] = true
		}
	}
	r.next = r.due(engine.Event{Kind: engine.Begins}).State
	return r
}

// due decides what an event means for the next pass.
func (r *running) due(e engine.Event) engine.Schedule {
	varied := 0.2*rand.Float64() - 0.1 //nolint:gosec // it needs no secrecy
	return engine.Due(r.next, e, time.Now(), engine.Times{Interval: r.Interval, Jitter: varied})
}

// listen makes signals wake the loop.
func (r *running) listen(at *remote) {
	r.Approved.Listen(func() { r.hear(func(h *heard) { h.approved = true }, engine.Answer) })
	r.Reconciler.Peers.woken(r.Reconciler.Sync).Listen(func() { r.hear(func(h *heard) { h.needed = true }, Needed) })
	r.Pushed.Listen(at.push)
}

// deafen is the opposite of listen.
func (r *running) deafen() {
	for _, s := range []*engine.Signal{r.Approved, r.Pushed, r.Reconciler.Peers.woken(r.Reconciler.Sync)} {
		s.Listen(nil)
	}
}

// hear takes up what may begin a pass, and wakes the loop. A pass that takes longer than the interval makes way for it.
func (r *running) hear(what func(*heard), why Because) {
	r.mu.Lock()
	what(&r.heard)
	passing := r.under != nil
	r.mu.Unlock()
	r.makeWay()
	if !passing || why == engine.Answer { // what else it hears is decided when it ends
		r.passes.Wake(why.Priority())
	}
}

// setMoved records the changed objects that the watcher reported.
func (r *running) setMoved(moved map[manifest.ID]string) {
	r.mu.Lock()
	r.moved = maps.Clone(moved)
	maps.DeleteFunc(r.handled, func(id manifest.ID, mark string) bool { now, still := moved[id]; return !still || now != mark })
	r.mu.Unlock()
	r.hear(func(h *heard) { h.drift = true }, Moved)
}

// fresh reports whether objects changed since a pass checked them.
func (r *running) fresh() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.drifted()
}

// drifted is fresh for a caller that holds the lock.
func (r *running) drifted() bool {
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
func (r *running) late() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.under != nil && time.Since(r.under.began) >= r.Interval
}

// work is a run of the task of passes: it makes a pass if one is due.
func (r *running) work(ctx context.Context) engine.Next {
	if r.isDue(ctx) {
		r.pass(ctx)
	}
	return engine.Next{At: r.next.At, Priority: r.next.Why.Priority()}
}

// isDue decides about everything that was heard whether a pass begins now.
func (r *running) isDue(ctx context.Context) bool {
	h := r.takeHeard()
	if h.approved {
		r.next = r.due(engine.Event{Kind: engine.Approved}).State
		return true
	}
	fresh := h.newest.revision != "" && h.newest.revision != r.current()
	newest := r.due(engine.Event{Kind: engine.Newest, Fresh: fresh, Pushed: h.newest.pushed || h.needed, Needed: h.needed})
	if newest.Run && (h.needed || !r.follows(ctx)) {
		r.next = newest.State
		return true
	}
	if h.drift {
		r.next = r.due(engine.Event{Kind: engine.Drift, Drifted: r.fresh()}).State
	}
	if time.Now().Before(r.next.At) {
		return false
	}
	due := r.due(engine.Event{Kind: engine.Timer, Drifted: r.fresh()})
	r.next = due.State
	return due.Run
}

// takeHeard returns what was heard, and forgets it.
func (r *running) takeHeard() heard {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.heard
	r.heard = heard{}
	return h
}

// pass makes a pass and decides when the next one begins.
func (r *running) pass(ctx context.Context) {
	because, began := r.next.Why, time.Now()
	passing, interrupt := context.WithCancelCause(context.WithoutCancel(ctx))
	defer interrupt(nil)
	if !r.begin(interrupt) {
		return
	}
	r.emit(Event{Kind: Began, Because: because})
	tracing, span := r.traced(passing, because)
	result, err := r.guarded(tracing)
	h, yieldTo := r.ended()
	event := Event{Kind: Passed, Because: because, Revision: result.Revision, Report: result, Took: time.Since(began), Err: err}
	if passing.Err() != nil && err != nil {
		event.Kind = Stopped
		r.next = r.due(engine.Event{Kind: engine.Stopped, Why: cmp.Or(yieldTo, because)}).State
	} else {
		event.Next = r.passed(because, result, err, h)
	}
	endTrace(span, event)
	r.emit(event)
}

// traced begins the trace of a pass.
func (r *running) traced(ctx context.Context, because Because) (context.Context, *trace.Span) {
	return r.Tracer.Pass(ctx, r.Reconciler.Sync.Namespace, r.Reconciler.Sync.Name, string(because))
}

// endTrace ends the trace of a pass. A pass that was interrupted did not fail.
func endTrace(span *trace.Span, e Event) {
	did := e.Report.Summary
	span.Text("result", string(e.Kind))
	span.Text("revision", e.Revision)
	span.Count("created", did.Created)
	span.Count("updated", did.Updated)
	span.Count("pruned", did.Pruned)
	span.Count("held", did.Held)
	span.Count("failed", did.Failed)
	span.Count("drifted", did.Drifted)
	switch {
	case e.Kind == Stopped:
		span.End(nil)
	case e.Err == nil && did.Failed > 0:
		span.Fail(reason.Failed)
		span.End(nil)
	default:
		span.End(e.Err)
	}
}

// begin records that a pass begins, which will check everything that has changed so far. It returns false if the loop ends.
func (r *running) begin(interrupt context.CancelCauseFunc) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending {
		return false
	}
	r.handled = maps.Clone(r.moved)
	r.under = &underWay{began: time.Now(), interrupt: interrupt, late: time.AfterFunc(r.Interval, r.isLate)}
	return true
}

// ended records that the pass ended. It returns what was heard meanwhile, and what the pass made way for. An approval is left for the
// next pass.
func (r *running) ended() (h heard, yieldTo Because) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.under.late.Stop()
	if r.under.over != nil {
		r.under.over.Stop()
	}
	yieldTo = r.under.yieldTo
	r.under = nil
	h = r.heard
	r.heard = heard{approved: h.approved}
	return h, yieldTo
}

// isLate makes way for something newer, and looks for it at every interval from now on.
func (r *running) isLate() {
	r.makeWay()
	r.mu.Lock()
	remote := r.remote
	if r.under != nil {
		r.under.late.Reset(r.Interval)
	}
	r.mu.Unlock()
	if remote != nil {
		remote.poll()
	}
}

// makeWay interrupts a pass that takes longer than the interval if there is something newer, because it may be waiting for something that
// never happens.
func (r *running) makeWay() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.under == nil || r.under.yieldTo != "" || time.Since(r.under.began) < r.Interval {
		return
	}
	switch newest := r.heard.newest; {
	case newest.revision != "" && newest.revision != r.seen:
		r.under.yieldTo = Commit
	case r.drifted():
		r.under.yieldTo = Moved
	default:
		return
	}
	r.under.interrupt(errYield)
}

// endPass gives the current pass, if there is one, its Grace.
func (r *running) endPass(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending = true
	switch {
	case r.under == nil:
	case r.under.idle:
		r.under.interrupt(why)
	default:
		interrupt := r.under.interrupt
		r.under.over = time.AfterFunc(r.Grace, func() { interrupt(why) })
	}
}

// passed decides when the pass after one that ended begins. It returns the time until then, unless drift triggers it earlier.
func (r *running) passed(because Because, result report.Report, err error, h heard) time.Duration {
	pushed := h.newest.pushed && h.newest.revision != r.current()
	r.next = r.due(engine.Event{
		Kind: engine.Passed, Why: because, Failed: err != nil && !ofCommit(err), Refused: result.Summary.Failed+result.Summary.NotReady > 0, Soon: r.soon,
		Drifted: r.fresh(), Fresh: pushed, Needed: h.needed && err == nil,
	}).State
	if r.next.Why == Commit || r.next.Why == Needed {
		return 0
	}
	return time.Until(r.next.Regular)
}

// jitter changes a delay by up to a tenth, so that many loops do not act at the same time.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64())) //nolint:gosec // it needs no secrecy
}

func (r *running) emit(e Event) {
	r.telling.Lock()
	defer r.telling.Unlock()
	r.Loop.emit(e)
}

func (l Loop) emit(e Event) {
	if l.OnEvent != nil {
		l.OnEvent(e)
	}
}

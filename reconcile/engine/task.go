package engine

import (
	"context"
	"sync"
	"time"
)

// A Task is something that a Queue runs again and again, one run at a time: the passes of a sync, or the looks of a remote. At rest
// it has no goroutine. A run has one, and a worker attends to it, except while it waits for something outside of the process:
//
//	Wake, or the time ─► a worker attends ─► the run works ─Pause─► the worker leaves, the run waits ─resume─► a worker attends ─► …
//
// So a run may be plain code with waits in it, and still is many rounds to the workers.
type Task struct {
	of    *Queue
	items items
	ctx   context.Context //nolint:containedctx // of the runs, not that of a worker: the end of the process gives them time

	mu    sync.Mutex
	do    func(context.Context) Next // nil once it has left
	run   *run                       // nil at rest
	ended chan struct{}              // closed when the last run ends after Leave; nil before Leave
}

// Next is when a task runs again, unless something wakes it before.
type Next struct {
	At       time.Time
	Priority Priority
}

// A run is one run of a task. The lock of its task guards it.
type run struct {
	of     *Task
	worker chan struct{} // closed to let the worker leave; nil if there is none
	back   chan struct{} // closed when a worker is back; nil if nobody waits for that
	pauses int
	ended  bool
	woken  bool     // something woke the task meanwhile
	urgent Priority // the most urgent of that
}

type runKey struct{}

// Join adds a task to the queue, and runs it at once with a priority. A run may change what a later one does: when it ends, it says when
// that is due.
func (q *Queue) Join(ctx context.Context, first Priority, do func(context.Context) Next) *Task {
	t := &Task{of: q, items: q.enter(), ctx: ctx, do: do} //nolint:contextcheck // the workers are for others, too
	t.add(0, first)
	return t
}

// Wake runs the task as soon as a worker is free, or again once its run has ended.
func (t *Task) Wake(priority Priority) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run != nil { // the queue forgets it if a worker comes while the run waits
		t.run.woken, t.run.urgent = true, max(t.run.urgent, priority)
		return
	}
	t.add(0, priority)
}

// Leave removes the task, once, and returns when its run has ended.
func (t *Task) Leave() {
	t.mu.Lock()
	t.do = nil
	t.ended = make(chan struct{})
	if t.run == nil {
		close(t.ended)
	}
	t.mu.Unlock()
	<-t.ended
	t.of.leave()
}

// attend is the work of a worker: it starts a run, or is there for the one that goes on. It returns when the run ends or waits.
func (t *Task) attend() {
	t.mu.Lock()
	if t.run == nil && t.do != nil {
		t.run = &run{of: t}
		go t.run.begin(t.do)
	}
	r := t.run
	if r == nil || r.pauses > 0 { // it has left, or was woken while its run waits
		t.mu.Unlock()
		return
	}
	leaves := make(chan struct{})
	r.worker = leaves
	if r.back != nil {
		close(r.back)
		r.back = nil
	}
	t.mu.Unlock()
	<-leaves
}

func (r *run) begin(do func(context.Context) Next) {
	next := do(context.WithValue(r.of.ctx, runKey{}, r))
	t := r.of
	t.mu.Lock()
	defer t.mu.Unlock()
	t.run, r.ended = nil, true
	r.dismiss()
	if t.ended != nil {
		close(t.ended)
		return
	}
	if r.woken {
		next = Next{time.Now(), max(next.Priority, r.urgent)}
	}
	t.add(time.Until(next.At), next.Priority)
}

// dismiss lets the worker leave. The caller holds the lock.
func (r *run) dismiss() {
	if r.worker != nil {
		close(r.worker)
		r.worker = nil
	}
}

func (r *run) pause() {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.pauses++
	r.dismiss()
}

// resume ends a pause. The last one makes a worker come back, which the returned channel shows; nil if there is nothing to wait for.
func (r *run) resume() (back <-chan struct{}) {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if r.pauses--; r.pauses > 0 || r.ended {
		return nil
	}
	if r.back == nil {
		r.back = make(chan struct{})
	}
	r.of.add(0, resumed)
	return r.back
}

// wait waits for a worker. If ctx ends, the run goes on without one, to record what it has done.
func wait(ctx context.Context, back <-chan struct{}) {
	if back == nil {
		return
	}
	select {
	case <-back:
	case <-ctx.Done():
	}
}

// Pause lets the worker of a run leave while the run waits for something outside of the process. resume waits until a worker is back. A
// context that is not of a run has no worker, and nothing happens. Pauses may overlap.
func Pause(ctx context.Context) (resume func()) { return after(ctx, 0, wait) }

// PauseAfter is Pause, but the worker stays for a time, because most waits are short.
func PauseAfter(ctx context.Context, within time.Duration) (resume func()) {
	return after(ctx, within, wait)
}

// Late is PauseAfter for a wait that may hold a lock which other runs wait for: the run goes on at once, even if no worker is free.
func Late(ctx context.Context, within time.Duration) (done func()) {
	return after(ctx, within, func(context.Context, <-chan struct{}) {})
}

// after pauses a run after a time, unless the returned function was called before.
func after(ctx context.Context, within time.Duration, wait func(context.Context, <-chan struct{})) (resume func()) {
	r, _ := ctx.Value(runKey{}).(*run)
	if r == nil {
		return func() {}
	}
	stop := func() bool { return false }
	paused := make(chan struct{})
	pause := func() {
		r.pause()
		close(paused)
	}
	if within > 0 {
		stop = time.AfterFunc(within, pause).Stop
	} else {
		pause()
	}
	return sync.OnceFunc(func() {
		if !stop() {
			<-paused
			wait(ctx, r.resume())
		}
	})
}

// Without returns a context that is not of a run, for what goes on beside it.
func Without(ctx context.Context) context.Context { return context.WithValue(ctx, runKey{}, nil) }

// A Signal wakes who listens to it. The zero value is ready to use, and a nil *Signal wakes nobody.
type Signal struct {
	mu   sync.Mutex
	sent bool // nobody has heard it yet
	hear func()
}

// Send calls the listener, or the next one if there is none.
func (s *Signal) Send() {
	s.mu.Lock()
	hear := s.hear
	s.sent = hear == nil
	s.mu.Unlock()
	if hear != nil {
		hear()
	}
}

// Listen makes a function the listener, or nobody for nil. It may be called by several goroutines at the same time.
func (s *Signal) Listen(hear func()) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.hear = hear
	sent := s.sent && hear != nil
	s.sent = s.sent && hear == nil
	s.mu.Unlock()
	if sent {
		hear()
	}
}

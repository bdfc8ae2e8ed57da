package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A board is a queue with tasks that note when they work.
type board struct {
	*Queue

	t     *testing.T
	mu    sync.Mutex
	order []string
	now   int // tasks that work
	most  int
}

func newBoard(t *testing.T, workers int) *board {
	t.Helper()
	return &board{Queue: NewQueue(workers), t: t}
}

// never is when a task runs again that is never due.
func never() Next { return Next{At: time.Now().Add(1000 * time.Hour)} }

// takes adds a task that works for a second, once.
func (b *board) takes(name string, priority Priority) *Task {
	b.t.Helper()
	return b.task(priority, func(context.Context) { b.works(name) })
}

// task adds a task that does something once.
func (b *board) task(priority Priority, do func(context.Context)) *Task {
	b.t.Helper()
	var once sync.Once // a worker may come after the run that it was asked for
	task := b.Join(b.t.Context(), priority, func(ctx context.Context) Next {
		once.Do(func() { do(ctx) })
		return never()
	})
	synctest.Wait()
	return task
}

func (b *board) works(name string) {
	b.mu.Lock()
	b.order = append(b.order, name)
	b.now++
	b.most = max(b.most, b.now)
	b.mu.Unlock()
	time.Sleep(time.Second)
	b.mu.Lock()
	b.now--
	b.mu.Unlock()
}

// noted returns who worked, in this order.
func (b *board) noted() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.order)
}

func (b *board) expect(reason string, want ...string) {
	b.t.Helper()
	synctest.Wait()
	if got := b.noted(); !slices.Equal(got, want) {
		b.t.Errorf("%s\n got %q\nwant %q", reason, got, want)
	}
}

func leave(all ...*Task) {
	for _, one := range all {
		one.Leave()
	}
}

func TestTheMostUrgentComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t, 1)
		defer leave(b.takes("first", Regular), b.takes("interval", Regular), b.takes("another interval", Regular), b.takes("drift", Prompt), b.takes("commit", Asked))
		time.Sleep(time.Minute)
		b.expect("Commits come before drift, drift before intervals, and equals in their order.", "first", "commit", "drift", "interval", "another interval")
	})
}

// Passes that wait for a cluster must not keep others from working.
func TestAWorkerLeavesWhileARunWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t, 1)
		first, second := make(chan struct{}), make(chan struct{})
		waiting := b.task(Regular, func(ctx context.Context) {
			resume, again := Pause(ctx), Pause(ctx) // as when two parts of a pass wait
			<-first
			resume()
			<-second
			again()
			b.works("resumed")
		})
		meanwhile := b.takes("meanwhile", Regular)
		waiting.Wake(Asked) // is for the next run
		close(first)
		b.expect("A waiting run has no worker, and somebody else gets it.", "meanwhile")
		commit := b.takes("commit", Asked)
		close(second)
		time.Sleep(time.Minute)
		b.expect("A run that goes on comes first.", "meanwhile", "resumed", "commit")
		leave(waiting, meanwhile, commit)
	})
}

// An approval that is given while a pass waits for a cluster must not wait for the interval after that pass.
func TestAWakeDuringAPauseIsForTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t, 1)
		ready := make(chan struct{})
		waits := sync.OnceFunc(func() { <-ready })
		task := b.Join(t.Context(), Regular, func(ctx context.Context) Next {
			resume := Pause(ctx)
			waits()
			resume()
			b.works("run")
			return never()
		})
		synctest.Wait()
		task.Wake(Asked)
		synctest.Wait()
		close(ready)
		time.Sleep(time.Minute)
		b.expect("The task runs again for what woke it.", "run", "run")
		leave(task)
	})
}

// A pass that was interrupted while it waited has to record what it has done. It must not wait for a worker, and a worker that comes later
// stays with it.
func TestNothingHoldsUpWhatWasInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t, 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		interrupted := b.task(Asked, func(run context.Context) {
			run, stop := context.WithCancel(run)
			context.AfterFunc(ctx, stop)
			resume := Pause(run)
			<-run.Done()
			resume()
			b.works("records")
			b.works("records more")
		})
		one := b.takes("one", Regular)
		cancel(errors.New("the process ends"))
		two := b.takes("two", Regular)
		b.expect("It works beside the other one.", "one", "records")
		time.Sleep(time.Minute)
		b.expect("One worker exists, and it is with the first run before it is with another one.", "one", "records", "records more", "two")
		leave(interrupted, one, two)
	})
}

// A request without an answer is no work, and its pass must not wait for a worker: it may hold a lock that others wait for.
func TestALateAnswerNeedsNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t, 1)
		answered := make(chan struct{})
		var after func()
		waiting := b.task(Asked, func(ctx context.Context) {
			Late(ctx, time.Second)() // in time
			Late(Without(ctx), 0)()
			late := Late(ctx, time.Second)
			<-answered
			late()
			late()
			after = Late(ctx, time.Second)
			b.works("answered")
		})
		other := b.takes("meanwhile", Regular)
		b.expect("The worker left too early.")
		time.Sleep(time.Second)
		b.expect("Nobody got the worker of the run.", "meanwhile")
		close(answered)
		b.expect("The run goes on beside the other one.", "meanwhile", "answered")
		time.Sleep(time.Minute)
		after() // does nothing after the run
		last := b.takes("last", Regular)
		b.expect("The worker is there for others.", "meanwhile", "answered", "last")
		leave(waiting, other, last)
	})
}

// Five hundred syncs may wait for one slow clone. When it is there, they work in turn, and not all at once.
func TestLateFetchesGoOnInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t, 2)
		cloned := make(chan struct{})
		var all []*Task
		for i := range 50 {
			all = append(all, b.task(Asked, func(ctx context.Context) {
				resume := PauseAfter(ctx, time.Second)
				<-cloned
				resume()
				b.works(fmt.Sprint(i))
			}))
		}
		time.Sleep(time.Minute)
		close(cloned)
		time.Sleep(time.Minute)
		if got := b.noted(); len(got) != 50 || b.most != 2 {
			t.Errorf("%d runs ended, and %d worked at a time, want 50 and 2", len(got), b.most)
		}
		leave(all...)
	})
}

// A task runs when it is due, and earlier if something wakes it: the last run says when the next one is due, whatever an earlier one said.
func TestTasksRunWhenTheyAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var at []time.Duration
		every := time.Minute
		task := NewQueue(1).Join(t.Context(), Regular, func(context.Context) Next {
			at = append(at, time.Since(begun))
			return Next{At: time.Now().Add(every)}
		})
		time.Sleep(30 * time.Second)
		synctest.Wait()
		every = time.Hour
		task.Wake(Asked)
		time.Sleep(90 * time.Minute)
		synctest.Wait()
		task.Leave()
		if want := []time.Duration{0, 30 * time.Second, time.Hour + 30*time.Second}; !slices.Equal(at, want) {
			t.Errorf("it ran at %v, want %v", at, want)
		}
	})
}

// A task that leaves runs no more. The end of its last run is waited for, and the queue can be used again.
func TestTasksLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t, 1)
		one, waits := b.takes("one", Regular), b.takes("waits", Regular)
		waits.Leave()
		one.Wake(Asked)
		one.Leave()
		b.expect("The run has ended.", "one")
		if b.now != 0 {
			t.Error("the run goes on")
		}
		next := b.takes("next", Regular)
		time.Sleep(time.Minute)
		next.Leave()
		b.expect("The workers are back.", "one", "next")
	})
}

func TestNoRun(t *testing.T) {
	Pause(t.Context())()
	PauseAfter(t.Context(), 0)()
	Late(t.Context(), 0)()
}

func TestSignals(t *testing.T) {
	var s, none *Signal
	none.Listen(func() {})
	s = new(Signal)
	heard := 0
	s.Send()
	s.Send()
	s.Listen(func() { heard++ })
	if heard != 1 {
		t.Errorf("what was sent before is heard once, not %d times", heard)
	}
	s.Send()
	s.Listen(nil)
	s.Send()
	s.Listen(nil)
	if heard != 2 {
		t.Errorf("heard %d times, want 2", heard)
	}
	s.Listen(func() { heard++ })
	if heard != 3 {
		t.Error("what was sent while nobody listened is lost")
	}
}

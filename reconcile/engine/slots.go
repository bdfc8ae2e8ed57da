// Package engine decides when the passes of a sync begin, bounds how many syncs of a process work at the same time, and says how old
// an answer may be that they share. It knows nothing of plans and clusters; package reconcile makes the passes.
//
//	event ─Due─► when, why ─Slots.Take─► the pass works ─Pause─► it waits, and others work
package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// A Priority orders the passes that wait for a slot. A point is worth a second of waiting, so that no pass waits forever.
type Priority int

// The priorities of passes. A pass that goes on after a wait may hold a lease, and comes first.
const (
	Regular Priority = 0   // after an interval
	Prompt  Priority = 50  // another writer or another sync caused it
	Asked   Priority = 100 // a person did: with a commit, or by starting the process
	resumed Priority = 1000
)

// Slots bound how many passes of a process work at the same time. A nil *Slots bounds nothing.
type Slots struct {
	mu      sync.Mutex
	free    int
	waiting []*waiter // the next one first
}

type waiter struct {
	turn  time.Time     // the earliest comes first
	ready chan struct{} // closed when it has a slot
}

// NewSlots returns n free slots.
func NewSlots(n int) *Slots { return &Slots{free: n} }

// A Slot is the right of one pass to work. Only one goroutine may use it at a time.
type slot struct {
	of *Slots

	mu     sync.Mutex
	pauses int
	ended  bool
}

type slotKey struct{}

// Take waits for a slot. The returned context has the slot; free gives it back. The error is the cause of the end of ctx.
func (s *Slots) Take(ctx context.Context, priority Priority) (_ context.Context, free func(), err error) {
	if s == nil {
		return ctx, func() {}, nil
	}
	if err := s.wait(ctx, priority); err != nil {
		return ctx, nil, err
	}
	one := &slot{of: s}
	return context.WithValue(ctx, slotKey{}, one), one.end, nil
}

// Pause gives back the slot of a pass while the pass waits for something outside of the process, until resume is called, which waits
// for a slot again. Without a slot, it does nothing. Pauses may overlap. If ctx ends, the pass goes on without waiting, to record what
// it has done.
func Pause(ctx context.Context) (resume func()) {
	one, _ := ctx.Value(slotKey{}).(*slot)
	if one == nil {
		return func() {}
	}
	one.pause()
	return sync.OnceFunc(func() {
		one.resume(func() { one.of.again(ctx) })
	})
}

// PauseAfter is Pause, but keeps the slot for a time, because most waits are short.
func PauseAfter(ctx context.Context, within time.Duration) (resume func()) {
	return after(ctx, within, func(s *Slots) { s.again(ctx) })
}

// Late is PauseAfter for a wait that may hold a lock which passes with a slot wait for: the pass goes on at once, even if no slot is free.
func Late(ctx context.Context, within time.Duration) (done func()) {
	return after(ctx, within, (*Slots).force)
}

// after pauses a pass after a time, unless the returned function was called. That goes on with a slot that take takes.
func after(ctx context.Context, within time.Duration, take func(*Slots)) (resume func()) {
	one, _ := ctx.Value(slotKey{}).(*slot)
	if one == nil {
		return func() {}
	}
	paused := make(chan struct{})
	timer := time.AfterFunc(within, func() {
		defer close(paused)
		one.pause()
	})
	return sync.OnceFunc(func() {
		if !timer.Stop() {
			<-paused
			one.resume(func() { take(one.of) })
		}
	})
}

// Without returns a context without the slot of a pass, for what goes on beside the pass.
func Without(ctx context.Context) context.Context { return context.WithValue(ctx, slotKey{}, nil) }

func (s *slot) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pauses++; s.pauses == 1 && !s.ended {
		s.of.giveBack()
	}
}

// resume ends a pause. The last one takes a slot.
func (s *slot) resume(take func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pauses--; s.pauses == 0 && !s.ended {
		take()
	}
}

// end gives the slot back for good, once. What goes on after the pass neither takes it nor gives it back.
func (s *slot) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended && s.pauses == 0 {
		s.of.giveBack()
	}
	s.ended = true
}

// wait waits for a free slot and takes it.
func (s *Slots) wait(ctx context.Context, priority Priority) error {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return nil
	}
	w := &waiter{turn: time.Now().Add(-time.Duration(priority) * time.Second), ready: make(chan struct{})}
	at, _ := slices.BinarySearchFunc(s.waiting, w, func(a, b *waiter) int {
		return cmp.Or(a.turn.Compare(b.turn), -1) // after those with the same turn
	})
	s.waiting = slices.Insert(s.waiting, at, w)
	s.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	} else { // it got a slot in the meantime
		s.release()
	}
	return context.Cause(ctx)
}

// again takes a slot for a pass that goes on, even if none is free when ctx ends.
func (s *Slots) again(ctx context.Context) {
	if s.wait(ctx, resumed) != nil {
		s.force()
	}
}

// force takes a slot that may not be free.
func (s *Slots) force() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free--
}

func (s *Slots) giveBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
}

// release frees a slot or passes it on. The caller holds the lock.
func (s *Slots) release() {
	if s.free < 0 || len(s.waiting) == 0 {
		s.free++
		return
	}
	close(s.waiting[0].ready)
	s.waiting = s.waiting[1:]
}

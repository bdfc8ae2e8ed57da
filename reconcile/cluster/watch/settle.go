package watch

import (
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/engine"
)

// A settling calls a function once calls of soon have settled: after none for quiet, or after most. It makes one call at a time. At rest, it
// has no goroutine.
type settling struct {
	do          func()
	trouble     func(error) // is told of a call that panicked
	quiet, most time.Duration

	mu    sync.Mutex
	timer *time.Timer   // nil at rest
	since time.Time     // the first call of soon that it waits for
	calls bool          // do is called now
	again bool          // and again after that
	ended chan struct{} // closed when no call follows; nil before end
}

// soon makes a call follow.
func (s *settling) soon() { s.within(s.quiet) }

// within makes a call follow that begins after a time, unless more happens.
func (s *settling) within(quiet time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended != nil:
	case s.timer == nil:
		s.since = time.Now()
		s.timer = time.AfterFunc(quiet, s.call)
	default:
		s.timer.Reset(max(0, min(quiet, s.most-time.Since(s.since))))
	}
}

func (s *settling) call() {
	if !s.begin() {
		return
	}
	if err := engine.Caught("watch", func() error { s.do(); return nil }); err != nil {
		s.trouble(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = false
	switch {
	case s.ended != nil:
		close(s.ended)
	case s.again && s.timer == nil:
		s.timer = time.AfterFunc(0, s.call)
	}
	s.again = false
}

// begin reports whether a call begins now.
func (s *settling) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = nil
	if s.again = s.calls; s.calls || s.ended != nil {
		return false
	}
	s.calls = true
	return true
}

// end makes no more calls follow, and returns when there is none. It is called once.
func (s *settling) end() {
	s.mu.Lock()
	s.ended = make(chan struct{})
	if s.timer != nil {
		s.timer.Stop()
	}
	if !s.calls {
		close(s.ended)
	}
	s.mu.Unlock()
	<-s.ended
}

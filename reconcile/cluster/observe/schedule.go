package observe

import (
	"math/rand/v2"
	"time"

	"headgate.dev/headgate/render/manifest"
)

// A schedule spreads checks of objects over an interval: each object is checked once per interval, and about the same number in
// every pass. Each object starts at a random time, so that a process that restarts often does not check the same objects each time.
type schedule struct {
	every time.Duration // 0 means never
	next  map[manifest.ID]time.Time
	last  time.Time // when due was last called
}

// due returns the objects to check now: those whose time comes before the next pass, if passes keep their pace. In a
// busy pass, it returns only those whose time has come. Call done after the check.
func (s *schedule) due(now time.Time, objects []manifest.ID, busy bool) (due map[manifest.ID]bool, done func()) {
	if s.every <= 0 {
		return nil, func() {}
	}
	next := make(map[manifest.ID]time.Time, len(objects)) // without objects that do not exist any more
	due = map[manifest.ID]bool{}
	until := now
	if !s.last.IsZero() && !busy {
		until = now.Add(now.Sub(s.last))
	}
	for _, id := range objects {
		at, known := s.next[id]
		if !known {
			at = now.Add(rand.N(s.every)) //nolint:gosec // it needs no secrecy
		}
		next[id] = at
		due[id] = !at.After(until)
	}
	s.next = next
	if !busy {
		s.last = now
	}
	return due, func() {
		for id, looked := range due {
			if looked {
				next[id] = now.Add(s.every)
			}
		}
	}
}

package cluster

import (
	"math/rand/v2"
	"time"

	"headgate.dev/headgate/render/manifest"
)

// A schedule spreads looks at objects over an interval: each is looked at once within it,
// and about as many in every pass. Where each begins is left to chance, so that a process
// that is started again and again does not look at the same ones each time.
type schedule struct {
	every time.Duration // 0 is never
	next  map[manifest.ID]time.Time
	last  time.Time // when it was last asked
}

// due are those of the objects that are to be looked at now: all whose time comes before
// the next pass, if that comes as soon as this one did. Where the pass has something else to
// do, which somebody waits for, they are those whose time has come. With done they were.
func (s *schedule) due(now time.Time, objects []manifest.ID, busy bool) (due map[manifest.ID]bool, done func()) {
	if s.every <= 0 {
		return nil, func() {}
	}
	next := make(map[manifest.ID]time.Time, len(objects)) // without what there is no more
	due = map[manifest.ID]bool{}
	until := now
	if !s.last.IsZero() && !busy {
		until = now.Add(now.Sub(s.last))
	}
	for _, id := range objects {
		at, known := s.next[id]
		if !known {
			at = now.Add(rand.N(s.every)) //nolint:gosec // nobody gains by guessing it
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

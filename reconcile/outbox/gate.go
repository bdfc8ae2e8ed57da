package outbox

import (
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/intern"
)

// A Gate is a back-off that reports share: nothing is posted until it is over. The zero value is open.
type Gate struct {
	mu       sync.Mutex
	failures int // consecutive failed attempts
	until    time.Time
}

// Gates are the back-offs of the tokens of a process, by a comparable value for each. The zero value is ready to use.
type Gates struct{ all intern.Map[any, Gate] }

// Of returns the back-off of a token.
func (g *Gates) Of(token any) *Gate { return g.all.Get(token, func() *Gate { return &Gate{} }) }

// fails closes the gate for a pause, which is at least the time that the forge asks for, and reports whether it was open.
func (g *Gate) fails(now time.Time, asked time.Duration) (first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures++
	g.until = now.Add(pause(g.failures, asked))
	return g.failures == 1
}

// opens ends the back-off after an answer, unless another attempt has closed the gate meanwhile.
func (g *Gate) opens(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !now.Before(g.until) {
		g.failures, g.until = 0, time.Time{}
	}
}

// left returns the time until the gate opens.
func (g *Gate) left(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, g.until.Sub(now))
}

// The pauses between attempts.
const (
	firstPause = 5 * time.Second
	maxPause   = 10 * time.Minute
	maxAsked   = 2 * time.Hour // the longest pause that the Outbox accepts from a forge
)

// pause returns the pause after a number of failures, but at least the time that the forge requests.
func pause(failures int, asked time.Duration) time.Duration {
	doubled := maxPause
	if failures <= 7 { // 5 s · 2⁷ exceeds maxPause
		doubled = min(firstPause<<(failures-1), maxPause)
	}
	return max(doubled, min(asked, maxAsked))
}

package reconcile

import (
	"context"
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/render"
)

// A look is the result of looking for a newer commit.
type look struct {
	revision string
	commit   render.Input // the newest commit; without files if it was refused
	pushed   bool         // a push was announced, or another sync asked for a pass
}

// lookAgain holds the delays before looking again after a push that is not visible yet. Some forges send the event before all of
// their servers know the push.
var lookAgain = []time.Duration{time.Second, 4 * time.Second}

// polls reports whether the loop looks for commits between passes.
func (r *running) polls() bool { return r.Poll > 0 && r.Poll < r.Interval }

func (r *running) pollEvery() time.Duration {
	if r.polls() {
		return r.Poll
	}
	return r.Interval
}

// look is a run of the task of looks. It looks for the newest commit after a push, at every poll if Poll is shorter than Interval, and while
// a pass takes longer than the interval.
func (r *running) look(ctx context.Context) engine.Next {
	r.mu.Lock()
	c := r.called
	r.called = called{}
	r.mu.Unlock()
	if c == (called{}) && time.Now().Before(r.lookAt) || ctx.Err() != nil {
		return engine.Next{At: r.lookAt}
	}
	pushed := c.pushed || c.needed || r.followUp
	if c.pushed {
		r.again = lookAgain
	}
	_ = caught("look", func() error { // the next pass reports what is wrong with the commit
		if isQuiet := !pushed && !r.polls() && !r.late(); !isQuiet && (pushed || !r.isAtTip(ctx)) {
			r.find(ctx, pushed, c.needed)
		}
		return nil
	})
	wait := jitter(r.pollEvery())
	if r.followUp = len(r.again) > 0; r.followUp {
		wait, r.again = r.again[0], r.again[1:]
	}
	r.lookAt = time.Now().Add(wait)
	return engine.Next{At: r.lookAt}
}

// find fetches the newest commit, and tells the passes. If it cannot, the next pass reports the error.
func (r *running) find(ctx context.Context, pushed, needed bool) {
	fetching := ctx
	if !pushed {
		fetching = engine.Within(ctx, recent)
	}
	in, err := r.fetch(fetching)
	if err != nil {
		in = render.Input{Revision: refused(unread(err))}
	}
	if in.Revision == "" || ctx.Err() != nil {
		return
	}
	if in.Revision != r.current() {
		r.again = nil
	}
	why := Commit
	if needed {
		why = Needed
	}
	r.hear(func(h *heard) {
		h.newest, h.needed = &look{in.Revision, in, pushed}, h.needed || needed
		if pushed && in.Revision != r.seen {
			h.pushed = in.Revision
		}
	}, why)
}

// isAtTip reports whether the last pass was over the newest commit, as it was at most an interval of polls ago: whoever asks first after
// that asks for all syncs, and wakes those that the answer is new to.
func (r *running) isAtTip(ctx context.Context) bool {
	if r.Tip == nil {
		return false
	}
	defer engine.PauseAfter(ctx, late)()
	tip, err := r.Tip(engine.Within(ctx, r.pollEvery()*9/10), r.Ref)
	return err == nil && tip == r.current()
}

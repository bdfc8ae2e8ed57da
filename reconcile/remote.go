package reconcile

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/engine"
)

// Remotes look for newer commits for the loops of a process: once for all loops of one Remote. The zero value is ready to use.
type Remotes struct {
	mu  sync.Mutex
	all map[any]*remote
}

// A remote is a repository with the credentials that read it. It asks for the newest commit of each ref that its loops follow, as often as
// the shortest Poll of them says, and after each push. It wakes the loops whose last pass was over another commit.
type remote struct {
	task *engine.Task
	end  context.CancelFunc // of its requests

	mu     sync.Mutex
	loops  []*running
	at     time.Time   // of the next poll
	pushes []time.Time // when to look because of the last push
}

// A found is the newest commit of a ref.
type found struct {
	revision string // "" if nobody looked
	pushed   bool   // a push was announced
}

// lookAgain holds the delays before looking again after a push that is not visible yet. Some forges send the event before all of
// their servers know the push.
var lookAgain = []time.Duration{time.Second, 4 * time.Second}

// noPoll is the time between polls of a remote whose loops have no Poll.
const noPoll = 7 * 24 * time.Hour

// join adds a loop to its remote, until leave.
func (s *Remotes) join(ctx context.Context, l *running) (of *remote, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := cmp.Or(l.Remote, any(l))
	r := s.all[key]
	if r == nil {
		if s.all == nil {
			s.all = map[any]*remote{}
		}
		r = &remote{at: time.Now().Add(noPoll)}
		ctx, r.end = context.WithCancel(context.WithoutCancel(ctx)) // others may stay longer than this loop
		r.task = l.Queue.Join(ctx, engine.Prompt, r.run)
		s.all[key] = r
	}
	r.change(func() { r.loops = append(r.loops, l) })
	return r, func() {
		s.mu.Lock()
		r.change(func() { r.loops = slices.DeleteFunc(r.loops, func(other *running) bool { return other == l }) })
		isLast := len(r.loops) == 0 // only join and leave change it
		if isLast {
			delete(s.all, key)
		}
		s.mu.Unlock()
		if isLast {
			r.end()
			r.task.Leave()
		}
		l.asked.Lock() // waits until nothing of the loop is used
		defer l.asked.Unlock()
	}
}

// change changes the remote, and plans its next poll accordingly.
func (r *remote) change(how func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	how()
	if at := time.Now().Add(jitter(r.every())); at.Before(r.at) {
		r.at = at
	}
	r.task.Wake(engine.Prompt)
}

// every returns the time between polls.
func (r *remote) every() time.Duration {
	every := noPoll
	for _, l := range r.loops {
		if l.polls() {
			every = min(every, l.Poll)
		}
	}
	return every
}

// push makes the remote look because of a push.
func (r *remote) push() {
	at := time.Now()
	r.mu.Lock()
	r.pushes = []time.Time{at}
	for _, delay := range lookAgain {
		at = at.Add(delay)
		r.pushes = append(r.pushes, at)
	}
	r.mu.Unlock()
	r.task.Wake(engine.Asked)
}

// poll makes the remote look now.
func (r *remote) poll() { r.change(func() { r.at = time.Now() }) }

// run is a run of the task of a remote.
func (r *remote) run(ctx context.Context) engine.Next {
	loops, pushed, age := r.due()
	r.look(ctx, loops, pushed, age)
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.at
	if len(r.pushes) > 0 && r.pushes[0].Before(next) {
		next = r.pushes[0]
	}
	return engine.Next{At: next, Priority: engine.Prompt}
}

// due returns the loops to look for now, whether that is because of a push, and how old an answer may be.
func (r *remote) due() (loops []*running, pushed bool, age time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	pushed = len(r.pushes) > 0 && !now.Before(r.pushes[0])
	if !pushed && now.Before(r.at) {
		return nil, false, 0
	}
	r.pushes = slices.DeleteFunc(r.pushes, func(at time.Time) bool { return !at.After(now) })
	every := r.every()
	r.at = now.Add(jitter(every))
	for _, l := range r.loops {
		if pushed || l.polls() || l.late() {
			loops = append(loops, l)
		}
	}
	if !pushed && every < noPoll {
		age = every * 9 / 10
	}
	return loops, pushed, age
}

// look asks for the newest commit of each ref once, and tells the loops, also if it cannot be known.
func (r *remote) look(ctx context.Context, loops []*running, pushed bool, age time.Duration) {
	began := time.Now()
	answers := map[string]tipAnswer{}
	for _, l := range loops {
		answer, asked := answers[l.Ref]
		if !asked {
			answer = l.ask(engine.Within(ctx, age+time.Since(began)))
			answers[l.Ref] = answer
		}
		switch {
		case answer.err != nil:
			l.reached(answer.err)
		case answer.tip != "":
			l.reached(nil)
			l.told(found{answer.tip, pushed})
		}
	}
}

// A tipAnswer is the newest commit of a ref, or why it is not known. It is empty if the loop that asked has ended.
type tipAnswer struct {
	tip string
	err error
}

// ask returns the newest commit of the ref. A panic is for the next pass to report.
func (r *running) ask(ctx context.Context) (answer tipAnswer) {
	defer engine.PauseAfter(ctx, late)()
	r.asked.Lock()
	defer r.asked.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)() //nolint:contextcheck // the loop may end before the remote
	_ = engine.Caught("look", func() error {
		if tip, err := r.newest(ctx); r.ctx.Err() == nil {
			answer = tipAnswer{tip, err}
		}
		return nil
	})
	return answer
}

// reached tells of the state of the repository if that has changed: err is why it cannot be read. A loop without a Remote has a Source that
// tells of its own state.
func (r *running) reached(err error) {
	r.mu.Lock()
	changed := r.away != (err != nil)
	r.away = err != nil
	r.mu.Unlock()
	if changed && r.Remote != nil {
		r.emit(Event{Kind: SourceState, Err: err})
	}
}

// newest returns the newest commit of the ref, even if no pass may apply it.
func (r *running) newest(ctx context.Context) (string, error) {
	if r.Tip != nil {
		return r.Tip(ctx, r.Ref)
	}
	in, err := r.Reconciler.Source.Fetch(ctx, r.Ref)
	if commit := refused(unread(err)); commit != "" {
		return commit, nil
	}
	return in.Revision, err
}

// told takes up what a look found.
func (r *running) told(what found) {
	if what.revision == r.current() {
		return
	}
	r.hear(func(h *heard) { h.newest = found{what.revision, what.pushed || h.newest.pushed} }, Commit)
}

// polls reports whether the loop looks for commits between passes.
func (r *running) polls() bool { return r.Poll > 0 && r.Poll < r.Interval }

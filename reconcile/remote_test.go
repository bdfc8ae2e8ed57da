package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/render"
)

// A host is a repository with branches, that counts how often it is asked.
type host struct {
	mu      sync.Mutex
	tips    map[string]string
	asked   int
	fetched int
	ages    []time.Duration
	silent  bool
	away    error
	hear    func(Event) // may be nil
}

func (h *host) tip(ctx context.Context, ref string) (string, error) {
	h.mu.Lock()
	h.asked++
	h.ages = append(h.ages, engine.Age(ctx))
	tip, silent, away := h.tips[ref], h.silent, h.away
	h.mu.Unlock()
	if silent {
		<-ctx.Done()
	}
	return tip, cmp.Or(away, ctx.Err())
}

func (h *host) push(ref string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tips[ref] = "b"
}

// counts returns how often the host was asked, and how often fetched from, since the last call.
func (h *host) counts() (asked, fetched int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked, fetched = h.asked, h.fetched
	h.asked, h.fetched, h.ages = 0, 0, nil
	return asked, fetched
}

// A branchWorld is a world whose commits are those of a host.
type branchWorld struct {
	*world
	of *host
}

func (b branchWorld) Fetch(ctx context.Context, ref string) (render.Input, error) {
	b.of.mu.Lock()
	b.of.fetched++
	tip := b.of.tips[ref]
	b.of.mu.Unlock()
	b.set(func() { b.revision = tip })
	return b.world.Fetch(ctx, ref)
}

// beside runs loops of one remote, which follow a ref each. It returns who made passes since the last call.
func (h *host) beside(t *testing.T, queue *engine.Queue, remotes *Remotes, each func(i int, l *Loop), refs ...string) (passed func() map[string]int) {
	t.Helper()
	var mu sync.Mutex
	made := map[string]int{}
	for i, ref := range refs {
		w := newWorld()
		l := w.loop()
		l.Ref, l.Queue, l.Remotes, l.Remote, l.Tip = ref, queue, remotes, "host", h.tip
		l.Interval, l.Poll, l.Reconciler.Source = time.Hour, 10*time.Second, branchWorld{w, h}
		each(i, &l)
		l.OnEvent = func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == Passed {
				made[ref]++
			}
			if h.hear != nil {
				h.hear(e)
			}
		}
		w.run(t, l)
	}
	return func() map[string]int {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		was := made
		made = map[string]int{}
		return was
	}
}

func many(n int, ref string) []string { return strings.Fields(strings.Repeat(ref+" ", n)) }

// Five hundred syncs of one repository cost one question at each poll. A poll that finds nothing new costs nothing of a sync: no signature
// is checked, no tree is read, and no package is looked for. A new commit wakes those that follow its branch.
func TestPollsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{tips: map[string]string{"main": "a", "dev": "a"}}
		pushed := new(engine.Signal)
		passed := h.beside(t, engine.NewQueue(2), new(Remotes), func(i int, l *Loop) {
			if i == 0 {
				l.Pushed = pushed
			}
			if l.Ref == "dev" {
				l.Poll = 0
			}
		}, append(many(500, "main"), many(3, "dev")...)...)
		passed()
		h.counts()
		time.Sleep(5 * time.Minute)
		h.mu.Lock()
		ages := h.ages
		h.mu.Unlock()
		if asked, fetched := h.counts(); asked < 27 || asked > 34 || fetched != 0 {
			t.Errorf("in five minutes, 500 loops asked %d times for the newest commit and fetched %d times, want about 30 and 0", asked, fetched)
		}
		for _, age := range ages {
			if age < 5*time.Second || age >= 10*time.Second {
				t.Errorf("an answer of %s is recent enough, want almost an interval of polls, so that remotes with the same credentials share one", age)
			}
		}
		h.push("dev")
		h.push("main")
		time.Sleep(12 * time.Second)
		if got := passed(); got["main"] != 500 || got["dev"] != 0 {
			t.Errorf("a commit on two branches, of which nobody polls one: %v made passes, want all of the other one", got)
		}
		h.counts()
		pushed.Send()
		if got := passed(); got["main"] != 0 || got["dev"] != 3 {
			t.Errorf("after a push, everybody learns the newest commit, and only those pass that have not seen it: %v", got)
		}
		if asked, _ := h.counts(); asked != 2 {
			t.Errorf("a push makes the remote ask %d times, want once for each branch", asked)
		}
	})
}

// A look that fails is told at once, to each sync of the remote and not again while the repository stays away. So is the end of that, without
// a pass.
func TestAFailedLookIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{tips: map[string]string{"main": "a"}}
		var mu sync.Mutex
		var told []string
		h.hear = func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == SourceState {
				told = append(told, fmt.Sprint(e.Err))
			}
		}
		passed := h.beside(t, engine.NewQueue(2), new(Remotes), func(int, *Loop) {}, many(3, "main")...)
		passed()
		for _, away := range []error{errors.New("no route to host"), nil} {
			h.mu.Lock()
			h.away = away
			h.mu.Unlock()
			time.Sleep(time.Minute)
		}
		if got := passed(); len(got) > 0 {
			t.Errorf("%v passes", got)
		}
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"no route to host", "no route to host", "no route to host", "<nil>", "<nil>", "<nil>"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// A remote that never answers holds neither a worker nor a sync of another one, and those whose sync ends leave at once.
func TestASilentRemoteHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, remotes := engine.NewQueue(1), new(Remotes)
		dead, alive := &host{tips: map[string]string{"main": "a"}, silent: true}, &host{tips: map[string]string{"main": "a"}}
		_ = dead.beside(t, queue, remotes, func(_ int, l *Loop) { l.Remote = "dead" }, many(20, "main")...)
		passed := alive.beside(t, queue, remotes, func(int, *Loop) {}, many(20, "main")...)
		time.Sleep(time.Minute)
		passed()
		alive.push("main")
		time.Sleep(12 * time.Second)
		if got := passed(); got["main"] != 20 {
			t.Errorf("%v passes of 20 loops whose remote answers", got)
		}
		if asked, _ := dead.counts(); asked != 1 {
			t.Errorf("the silent remote is asked %d times at once", asked)
		}
	})
}

// A sync that ends takes its question with it, and the others of its remote ask their own.
func TestAnAskedLoopEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, remotes := engine.NewQueue(1), new(Remotes)
		h := &host{tips: map[string]string{"main": "a"}, silent: true}
		ctx, end := context.WithCancel(t.Context())
		w := newWorld()
		l := w.loop()
		l.Queue, l.Remotes, l.Remote, l.Tip, l.Poll, l.Interval = queue, remotes, "host", h.tip, time.Second, time.Hour
		wait := l.Start(ctx)
		passed := h.beside(t, queue, remotes, func(int, *Loop) {}, "main")
		time.Sleep(time.Minute)
		h.mu.Lock()
		h.silent = false
		h.mu.Unlock()
		begun := time.Now()
		end()
		wait()
		if took := time.Since(begun); took > 0 {
			t.Errorf("it ended after %s", took)
		}
		passed()
		h.push("main")
		time.Sleep(12 * time.Second)
		if got := passed(); got["main"] != 1 {
			t.Errorf("the other one makes %v passes over the new commit", got)
		}
	})
}

package reconcile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
)

// neighbours returns loops that fail, or get no answer, each in its own way.
func neighbours() map[string]Loop {
	all := map[string]Loop{}
	made := func(name string, how func(*world, *Loop)) {
		w := newWorld()
		l := w.loop()
		how(w, &l)
		all[name] = l
	}
	for i := range 4 {
		made(fmt.Sprint("a bomb ", i), func(w *world, l *Loop) {
			l.Reconciler.Source = bomb{w}
		})
		made(fmt.Sprint("a dead Git host ", i), func(w *world, l *Loop) { l.Reconciler.Source, l.Poll = silent{w}, time.Second })
		made(fmt.Sprint("a Git host that dies after an unsigned commit ", i), func(w *world, l *Loop) {
			w.revision, w.fetching = "b", unsigned("b")
			l.Reconciler.Applied = func(context.Context) (string, error) { return "a", nil }
			l.Reconciler.Source = forgetful{w}
		})
		made(fmt.Sprint("a rejected token ", i), func(w *world, _ *Loop) { w.publish = errBoom })
		made(fmt.Sprint("a silent forge ", i), func(_ *world, l *Loop) { l.Publisher = deaf{} })
		made(fmt.Sprint("approvals on a silent forge ", i), func(_ *world, l *Loop) {
			l.Reconciler.OnForge = func(ctx context.Context, _ string) (approval.Given, error) {
				select {
				case <-ctx.Done():
				case <-time.After(5 * time.Minute):
				}
				return nil, errBoom
			}
			l.Reconciler.Observer = &pruner{answers: question.Any.Nothing}
		})
		made(fmt.Sprint("a kubeconfig to nowhere ", i), func(w *world, _ *Loop) {
			w.observe = func(ctx context.Context) error {
				defer engine.Late(ctx, time.Second)()
				time.Sleep(75 * time.Second)
				return errBoom
			}
		})
	}
	return all
}

// A bomb keeps a worker for as long as its limits allow, and is refused.
type bomb struct{ *world }

func (bomb) Fetch(context.Context, string) (render.Input, error) {
	time.Sleep(500 * time.Millisecond)
	return render.Input{}, errBoom
}

// A forgetful Source never answers about the commit that was applied last.
type forgetful struct{ *world }

func (f forgetful) Fetch(ctx context.Context, ref string) (render.Input, error) {
	if ref == "a" {
		return silent(f).Fetch(ctx, ref)
	}
	return f.world.Fetch(ctx, ref)
}

// One sync in four is broken. With one worker or two, the passes of all others go on as if they were alone.
func TestBrokenNeighboursDelayNobody(t *testing.T) {
	passes := func(t *testing.T, workers int, beside map[string]Loop) (made int) {
		t.Helper()
		queue := engine.NewQueue(workers)
		for _, l := range beside {
			l.Queue = queue
			t.Cleanup(runs(t, l))
		}
		var mu sync.Mutex
		for range 100 {
			w := newWorld()
			l := w.loop()
			l.Queue, l.Poll = queue, 10*time.Second
			w.apply = func(context.Context) error {
				time.Sleep(50 * time.Millisecond)
				return nil
			}
			l.OnEvent = func(e Event) {
				mu.Lock()
				defer mu.Unlock()
				if e.Kind == Passed && e.Err == nil {
					made++
				}
			}
			w.run(t, l)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return made
	}
	for _, workers := range []int{1, 2} {
		var alone int
		synctest.Test(t, func(t *testing.T) { alone = passes(t, workers, nil) })
		synctest.Test(t, func(t *testing.T) {
			if beside := passes(t, workers, neighbours()); beside < alone*95/100 {
				t.Errorf("with %d workers, the others make %d passes beside broken syncs, and %d without them", workers, beside, alone)
			}
		})
	}
}

// runs runs a loop until stop is called.
func runs(t *testing.T, l Loop) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	wait := l.Start(ctx)
	return func() {
		cancel()
		wait()
	}
}

// A brittle is a repository, a forge and a cluster whose clients panic on what they read.
type brittle struct {
	*world

	fetches, publishes, reads func()
}

func (b *brittle) Fetch(ctx context.Context, ref string) (render.Input, error) {
	b.breaks(func() func() { return b.fetches })
	in, err := b.world.Fetch(ctx, ref)
	b.mu.Lock()
	defer b.mu.Unlock()
	in.Files, in.Path = brittleFiles{hashes{fstest.MapFS{"a/a.yaml": {Data: []byte(b.files)}}}, b}, "a"
	return in, err
}

func (b *brittle) Publish(ctx context.Context, r report.Report) error {
	b.breaks(func() func() { return b.publishes })
	return b.world.Publish(ctx, r)
}

// breaks calls a function of the world, if it is set.
func (b *brittle) breaks(of func() func()) {
	b.mu.Lock()
	breaks := of()
	b.mu.Unlock()
	if breaks != nil {
		breaks()
	}
}

type brittleFiles struct {
	hashes

	of *brittle
}

func (f brittleFiles) Hash(name string) (string, error) {
	f.of.breaks(func() func() { return f.of.reads })
	return f.hashes.Hash(name)
}

// What panics outside of a pass must not end the process either: the code that polls reads the same hostile commits.
func TestPanicBesidePasses(t *testing.T) {
	boom := func() { panic("boom") }
	for name, tc := range map[string]struct {
		reason string
		loop   func(*brittle, *Loop)
		breaks func(*brittle)
	}{
		"Poll": {
			reason: "A poll fetches and verifies a commit.",
			breaks: func(b *brittle) { b.fetches = boom },
		},
		"Tip": {
			reason: "A poll asks for the newest commit.",
			loop: func(b *brittle, l *Loop) {
				l.Tip = func(context.Context, string) (string, error) {
					b.breaks(func() func() { return b.fetches })
					b.mu.Lock()
					defer b.mu.Unlock()
					return b.revision, nil
				}
			},
			breaks: func(b *brittle) { b.fetches = boom },
		},
		"Untouched": {
			reason: "A commit is compared with the one before it.",
			loop: func(b *brittle, l *Loop) {
				b.files = inactiveDefinition // a pass leaves it as it is
				l.Reconciler.Source = Recorded{Source: b}
			},
			breaks: func(b *brittle) { b.reads = boom },
		},
		"Publish": {
			reason: "A client of a forge panics when the pass reports, and again when the panic is reported.",
			breaks: func(b *brittle) { b.publishes = boom },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				queue := engine.NewQueue(1)
				one, other := &brittle{world: newWorld()}, newWorld()
				first, second := one.loop(), other.loop()
				first.Reconciler.Source, first.Publisher = one, one
				for _, l := range []*Loop{&first, &second} {
					l.Queue, l.Poll, l.Interval = queue, 10*time.Second, time.Hour
				}
				if tc.loop != nil {
					tc.loop(one, &first)
				}
				one.run(t, first)
				other.run(t, second)
				one.noted()
				other.noted()
				one.set(func() { tc.breaks(one); one.revision = "b" })
				other.set(func() { other.revision = "b" })
				time.Sleep(time.Minute)
				if got := other.noted(); len(got) == 0 || !strings.HasSuffix(got[len(got)-1], "b: "+done) {
					t.Errorf("%s\nThe other sync goes on: %q", tc.reason, got)
				}
				one.set(func() { one.fetches, one.publishes, one.reads = nil, nil, nil; one.revision = "c" })
				time.Sleep(5 * time.Minute)
				if got := one.noted(); len(got) == 0 || !strings.Contains(got[len(got)-1], "c: success") {
					t.Errorf("%s\nThe sync goes on after that: %q", tc.reason, got)
				}
			})
		})
	}
}

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
)

// Fifty passes that wait for five minutes must not delay the commits of others, whatever they wait for.
func TestWaitingPassesDelayNobody(t *testing.T) {
	p95 := func(t *testing.T, waiting int) (took time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			queue := engine.NewQueue(10)
			for i := range waiting {
				w := newWorld()
				l := w.loop()
				l.Queue = queue
				switch i % 5 {
				case 0:
					w.apply = func(ctx context.Context) error { return pause(ctx, 5*time.Minute) } // objects that are not ready
				case 1:
					w.observe = func(ctx context.Context) error { // an API server that does not answer
						defer engine.Late(ctx, time.Second)()
						time.Sleep(5 * time.Minute)
						return nil
					}
				case 2:
					l.Ready = func(ctx context.Context) error { return pause(ctx, 5*time.Minute) } // one that is known to be away
				case 3:
					l.Publisher = deaf{} // a forge
				case 4:
					l.Reconciler.Source = silent{w} // a repository
				}
				w.run(t, l)
			}
			var others []*world
			var mu sync.Mutex
			var pushed time.Time
			var all []time.Duration
			for range 100 {
				w := newWorld()
				l := w.loop()
				l.Queue, l.Poll = queue, time.Second
				w.apply = func(context.Context) error {
					time.Sleep(time.Second)
					return nil
				}
				l.OnEvent = func(e Event) {
					if e.Kind == Passed && e.Revision == "b" && e.Because == Commit {
						mu.Lock()
						defer mu.Unlock()
						all = append(all, time.Since(pushed))
					}
				}
				w.run(t, l)
				others = append(others, w)
			}
			time.Sleep(90 * time.Second) // also for intervals
			pushed = time.Now()
			for _, w := range others {
				w.set(func() { w.revision = "b" })
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			slices.Sort(all)
			if len(all) != len(others) {
				t.Fatalf("%d of %d syncs applied the commit", len(all), len(others))
			}
			took = all[95]
		})
		return took
	}
	alone, beside := p95(t, 0), p95(t, 50)
	if beside > alone*12/10 {
		t.Errorf("the commit is applied after %s beside passes that wait, and after %s without them", beside, alone)
	}
}

type deaf struct{}

func (deaf) Publish(ctx context.Context, _ report.Report) error {
	<-ctx.Done()
	return ctx.Err()
}

type silent struct{ *world }

func (silent) Fetch(ctx context.Context, _ string) (render.Input, error) {
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Minute):
	}
	return render.Input{}, errBoom
}

// A panic in one pass is the error of that pass. Otherwise, one commit could end the process of five hundred syncs.
func TestPanicIsAnErrorOfThePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := engine.NewQueue(1)
		one, other := newWorld(), newWorld()
		first, second := one.loop(), other.loop()
		first.Queue, second.Queue = queue, queue
		one.apply = func(context.Context) error { panic("boom\nand a stack trace") }
		one.run(t, first)
		other.run(t, second)
		time.Sleep(time.Second)
		const defect = "the pass ended in a defect of Headgate: boom"
		if got := one.received(Passed); len(got) != 1 || got[0].Err == nil || got[0].Err.Error() != defect {
			t.Fatalf("%+v, want one pass with the error %q", got, defect)
		}
		expect(t, "The other sync has the worker after that.", other.noted(), "0s a: pending: seen; the pass has not ended", "0s apply a", "0s a: "+done)
		time.Sleep(10 * time.Second)
		got := one.noted()
		if len(got) == 0 || !strings.Contains(got[len(got)-1], "defect of Headgate: boom") {
			t.Errorf("the second time, the commit gets the error: %q", got)
		}
		one.set(func() { one.apply = nil })
		time.Sleep(20 * time.Second)
		if got := one.noted(); len(got) == 0 || !strings.HasSuffix(got[len(got)-1], done) {
			t.Errorf("the next pass goes on: %q", got)
		}
	})
}

// A push every second for a minute: passes are made for the newest commit, and not for each.
func TestPushesInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l := w.loop()
		l.Poll = time.Second
		w.apply = func(context.Context) error {
			time.Sleep(5 * time.Second)
			return nil
		}
		w.run(t, l)
		for i := range 60 {
			w.set(func() { w.revision = fmt.Sprint("commit", i) })
			time.Sleep(time.Second)
		}
		time.Sleep(20 * time.Second)
		var applied []string
		for _, line := range w.noted() {
			if _, commit, is := strings.Cut(line, "apply "); is {
				applied = append(applied, commit)
			}
		}
		if n := len(applied); n < 8 || n > 16 || applied[n-1] != "commit59" {
			t.Errorf("60 pushes while a pass takes 5 s, and these commits were applied: %q", applied)
		}
	})
}

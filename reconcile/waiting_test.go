package reconcile

import (
	"context"
	"slices"
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
			slots := engine.NewSlots(10)
			for i := range waiting {
				w := newWorld()
				l := w.loop()
				l.Slots = slots
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
				l.Slots, l.Poll = slots, time.Second
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

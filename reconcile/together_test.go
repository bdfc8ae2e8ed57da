package reconcile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/render"
)

// A person who pushes and then asks for a pass, or approves, gets a pass over the new commit: no answer of another sync is recent enough.
func TestAskedPassFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l := w.loop()
		l.Interval = time.Hour
		asked := new(engine.Signal)
		l.Approved = asked
		var ages []time.Duration
		l.Reconciler.Source = agingSource{w, &ages}
		w.run(t, l)
		w.noted()
		asked.Send()
		time.Sleep(time.Minute)
		w.set(func() {
			if len(ages) != 2 || ages[0] == 0 || ages[1] != 0 {
				t.Errorf("the first pass, and then one that a person asks for, accept answers of these ages: %v", ages)
			}
		})
	})
}

type agingSource struct {
	*world
	ages *[]time.Duration
}

func (a agingSource) Fetch(ctx context.Context, ref string) (render.Input, error) {
	a.set(func() { *a.ages = append(*a.ages, engine.Age(ctx)) })
	return a.world.Fetch(ctx, ref)
}

// Of two loops with one worker, one works. A pass that waits for the worker ends with the process at once, and is not late.
func TestLoopsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := newWorld(), newWorld()
		queue := engine.NewQueue(1)
		first, second := one.loop(), other.loop()
		first.Queue, second.Queue = queue, queue
		release := make(chan struct{})
		one.apply = func(context.Context) error {
			<-release
			return nil
		}
		one.run(t, first)
		expect(t, "The first one has the worker.", one.noted(), "0s a: pending: seen; the pass has not ended", "0s apply a")
		stop := other.run(t, second)
		time.Sleep(5 * time.Minute)
		expect(t, "The second one waits for it, also for longer than the interval.", other.noted())
		begun := time.Now()
		stop()
		if took := time.Since(begun); took > 0 {
			t.Errorf("A pass that has not begun has nothing to finish, and ended after %s", took)
		}
		other.run(t, second)
		close(release)
		expect(t, "Then the second one works.", other.noted(), "5m0s a: pending: seen; the pass has not ended", "5m0s apply a", "5m0s a: "+done)
	})
}

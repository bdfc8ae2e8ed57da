package reconcile

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/render"
)

type waitsFor string

func (w waitsFor) WaitsFor() string { return string(w) }

// A pass that waits for what never comes must end, and a person must be able to see meanwhile and afterwards for what.
func TestPassLimit(t *testing.T) {
	const lost = "the answer to PATCH /api/v1/namespaces/b/configmaps/a"
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.apply = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		l := w.loop()
		l.Reconciler.Waiter = waitsFor(lost)
		w.run(t, l)
		time.Sleep(noticeEvery + time.Second)
		waits := w.heard(Waiting)
		if len(waits) != 1 || waits[0].For != lost || waits[0].Revision != "a" || waits[0].Took != noticeEvery {
			t.Errorf("want an event that names what the pass waits for, got %v", waits)
		}
		time.Sleep(l.Reconciler.limit(1) - noticeEvery - 2*time.Second)
		if passed := w.heard(Passed); len(passed) > 0 {
			t.Errorf("it has its limit, got %v", passed)
		}
		w.set(func() { w.apply = nil })
		time.Sleep(2 * time.Second)
		passed := w.heard(Passed)
		if len(passed) != 1 || passed[0].Err == nil || !strings.Contains(passed[0].Err.Error(), "waited for "+lost) || passed[0].Next == 0 {
			t.Fatalf("want one pass with an error that names it, and a next one, got %v", passed)
		}
		time.Sleep(passed[0].Next + time.Second)
		if passed := w.heard(Passed); len(passed) != 1 || passed[0].Err != nil {
			t.Errorf("the next pass goes on, got %v", passed)
		}
	})
}

// Two thousand CRDs take minutes and are no trouble. A hung pass of few objects must not take an hour.
func TestLimitGrows(t *testing.T) {
	var r Reconciler
	if got := r.limit(1); got > time.Hour {
		t.Errorf("one object: %s", got)
	}
	if less, more := r.limit(0), r.limit(2043); more-less < 10*82*time.Second {
		t.Errorf("2,043 objects add %s, want ten times what they take", more-less)
	}
	r.Timeout = time.Hour
	if got := r.limit(0); got < 2*time.Hour {
		t.Errorf("objects may take an hour until they are ready, and a pass %s", got)
	}
}

// A fetch that hangs is seen, too.
func TestNoticeOfFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l := w.loop()
		l.Reconciler.Source = hanging{}
		w.run(t, l)
		time.Sleep(noticeEvery + time.Second)
		if waits := w.heard(Waiting); len(waits) != 1 || waits[0].For != "the commit" {
			t.Errorf("want an event, got %v", waits)
		}
	})
}

type hanging struct{}

func (hanging) Fetch(ctx context.Context, _ string) (render.Input, error) {
	<-ctx.Done()
	return render.Input{}, ctx.Err()
}

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/rounds"
	"headgate.dev/headgate/render/manifest"
)

// A Waiter reports what the current pass is waiting for; "" if that is not known.
type Waiter interface {
	WaitsFor() string
}

const (
	leastLimit  = 10 * time.Minute
	perObject   = time.Second // 2,043 CRDs need 82 s to become established
	limitPhases = 4           // number of phases that may each wait for the whole Timeout
	noticeEvery = 30 * time.Second
	mostNamed   = 3 // objects
)

// limit returns the time limit of a pass with this number of objects that may wait this often for the whole Timeout.
func (r Reconciler) limit(objects, waits int) time.Duration {
	return cmp.Or(r.Least, leastLimit) + time.Duration(max(waits, limitPhases))*cmp.Or(r.Timeout, 5*time.Minute) + time.Duration(objects)*perObject
}

// overdue is the error of a pass that exceeded its limit.
type overdue struct {
	limit time.Duration
	what  string
	next  string // what the user or the loop does next
}

func (e overdue) Error() string {
	return fmt.Sprintf("the pass took longer than %s and waited for %s; check that, %s", e.limit, cmp.Or(e.what, "something unknown"), e.next)
}

// What follows after a pass that exceeded its limit, as the end of its error.
const (
	nextPass = "the next pass tries again"
	runAgain = "then run the command again to continue"
)

// An allowance is the time limit of a running pass. The limit grows with the objects that the pass finds.
type allowance struct {
	reconciler Reconciler
	ctx        context.Context //nolint:containedctx // the context of the pass
	next       string          // the end of the error
	cancel     context.CancelCauseFunc
	began      time.Time
	timer      *time.Timer

	mu      sync.Mutex
	ends    bool // the pass deletes the pending objects
	objects int
	waits   int // how often the pass may wait for the whole Timeout
	pending []manifest.ID
	syncs   []string                      // other syncs that have to render the commit
	home    func(manifest.ID) manifest.ID // adds the namespaces of pending; nil if there are none
}

// allow starts the time limit of a pass. The returned context ends when the pass exceeds it. next is the end of the error: what to
// do then.
func (r Reconciler) allow(ctx context.Context, next string) (context.Context, *allowance) {
	a := &allowance{reconciler: r, next: next, began: time.Now()}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	a.timer = time.AfterFunc(r.limit(0, 0), a.expire)
	return a.ctx, a
}

func (a *allowance) end() {
	a.timer.Stop()
	a.cancel(nil)
}

func (a *allowance) expire() {
	a.mu.Lock()
	limit := a.reconciler.limit(a.objects, a.waits)
	a.mu.Unlock()
	a.cancel(overdue{limit, a.waitsFor(), a.next})
}

// observe records how many objects the pass has, and what it waits for in this round.
func (a *allowance) observe(p plan.Plan, waits rounds.Waits) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending, a.home, a.syncs = waits.For(), p.Homes(), awaitedBy(p)
	if p.Stance.In(plan.Ending) {
		a.ends, a.pending = true, nil
		for _, s := range p.Steps { // each tier must be gone before the next one begins
			if s.Tier() == p.Steps[0].Tier() {
				a.pending = append(a.pending, s.ID)
			}
		}
		a.waits = max(a.waits, tiers(p))
	}
	if len(p.Steps) > a.objects {
		a.objects = len(p.Steps)
		a.timer.Reset(time.Until(a.began.Add(a.reconciler.limit(a.objects, a.waits))))
	}
}

// awaitedBy returns the syncs that the prunes of a plan wait for.
func awaitedBy(p plan.Plan) []string {
	var all []string
	for _, s := range p.Steps {
		for _, w := range s.Waits {
			if w.Code == reason.AwaitsSync || w.Code == reason.AwaitsBrokenSync {
				all = append(all, fmt.Sprint(w.Values[0]))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// tiers returns the number of tiers in a plan.
func tiers(p plan.Plan) int {
	found := map[int]bool{}
	for _, s := range p.Steps {
		found[s.Tier()] = true
	}
	return len(found)
}

// waitsFor returns what the pass is waiting for; "" if that is not known.
func (a *allowance) waitsFor() string {
	if a.reconciler.Waiter != nil {
		if what := a.reconciler.Waiter.WaitsFor(); what != "" {
			return what
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case len(a.syncs) > 0:
		return "other Syncs to render the commit: " + strings.Join(a.syncs, ", ")
	case len(a.pending) == 0:
		return ""
	}
	var names []string
	for _, id := range a.pending[:min(len(a.pending), mostNamed)] {
		names = append(names, a.home(id).Brief())
	}
	if more := len(a.pending) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if a.ends {
		return "objects that are not gone: " + strings.Join(names, ", ")
	}
	return "objects that are not ready: " + strings.Join(names, ", ")
}

// explain returns the error of the pass. If its time limit ended it, the error is about the limit.
func (a *allowance) explain(err error) error {
	var why overdue
	if err != nil && errors.As(context.Cause(a.ctx), &why) {
		return why
	}
	return err
}

// notice calls tell every noticeEvery with what the pass is waiting for, until the returned function is called.
func notice(what func() string, tell func(string)) (stop func()) {
	if tell == nil {
		return func() {}
	}
	var mu sync.Mutex // held while it tells
	var timer *time.Timer
	stopped := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(noticeEvery, func() { // no goroutine, because hundreds of passes may wait
		mu.Lock()
		defer mu.Unlock()
		if stopped {
			return
		}
		if now := what(); now != "" {
			tell(now)
		}
		timer.Reset(noticeEvery)
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

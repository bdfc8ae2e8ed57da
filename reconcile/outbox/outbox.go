// Package outbox is a Publisher around a Publisher. A report that cannot be published now waits on disk and is
// published later. Only the newest report of a commit counts, and only the parts that statuses need are kept. The
// outbox also remembers which commits it last reported as pending, because they still need a final status. ADR 14
// explains why it wraps reports and not statuses.
package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/report"
)

// A Publisher publishes the report of a pass. Its error is temporary if it has a method RetryAfter() time.Duration or
// comes from a context. An error with a method TokenRefused() bool that returns true may be temporary, because tokens
// are rotated. Any other error is final.
type Publisher interface {
	Publish(ctx context.Context, r report.Report) error
}

// An Outbox keeps reports that Next could not publish. Set its fields before the first call. Its methods are safe for
// concurrent use. Only one process may use a directory.
type Outbox struct {
	Next Publisher
	// Dir is a directory for waiting reports only. If it is empty, they are kept in memory.
	Dir string
	// OnError receives an error for a report that starts to wait, for one that the forge refused in the background,
	// and for one that is lost, once each. It may be nil, and must not call the Outbox.
	OnError func(error)
	// Now is time.Now if nil.
	Now func() time.Time
	// Most is the maximum number of commits with a waiting report, 512 if zero. Beyond it, the Outbox drops the oldest.
	Most int
	// Patience is the maximum time that Publish waits for Next, five seconds if zero.
	Patience time.Duration
	// Limit is the maximum duration of one attempt of Flush, thirty seconds if zero.
	Limit time.Duration
	// Token is the back-off of the token that Next posts with. All Outboxes of a token share it; nil is one of this Outbox.
	Token *Gate

	opened  sync.Once
	sending chan struct{} // capacity 1: one attempt at a time, so that an older report never overtakes a newer one
	wake    engine.Signal // a report may be due
	rename  func(from, to string) error
	mu      sync.Mutex
	waiting map[key]waiting
	unkept  map[key]bool // waiting reports that the disk had no room for
	seq     uint64
	dropped int
	refused map[key]string // the last error of a refused report
	access  Gate           // closed while Next refuses what is posted here
}

// A key identifies a report. Only the newest report with a key is published.
type key struct{ namespace, name, revision string }

func (k key) String() string { return fmt.Sprintf("%s/%s at %.12s", k.namespace, k.name, k.revision) }

// Publish stores the report, then tries to publish it and all others that are due, within Patience. It returns an error if Next
// refuses a report, once for each refusal, or if a report cannot be stored. A waiting report is not an error.
func (o *Outbox) Publish(ctx context.Context, r report.Report) error {
	o.open()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.Patience, maxPatience))
	defer cancel()
	if r.Revision == "" { // without a commit, no later report could replace it
		return o.Next.Publish(ctx, r)
	}
	k, lost := o.keep(r)
	defer o.wake.Send()
	if !o.acquire(ctx) {
		return lost
	}
	defer o.release()
	err := o.attempt(ctx, k)
	// Without Start, only the next call of Publish posts the rest.
	o.flush(ctx, cmp.Or(o.Patience, maxPatience))
	return errors.Join(lost, err)
}

// Flush publishes due reports until none is left, or the forge fails. It returns how long to wait before the next call,
// and false if nothing waits.
func (o *Outbox) Flush(ctx context.Context) (time.Duration, bool) {
	o.open()
	if !o.acquire(ctx) {
		return 0, false
	}
	defer o.release()
	o.flush(ctx, cmp.Or(o.Limit, 30*time.Second))
	return o.next()
}

// flush publishes due reports, each within a limit. The caller has called acquire.
func (o *Outbox) flush(ctx context.Context, limit time.Duration) {
	o.keepRest()
	for ctx.Err() == nil {
		k, ok := o.due()
		if !ok {
			return
		}
		within, cancel := context.WithTimeout(ctx, limit)
		if err := o.attempt(within, k); err != nil {
			o.tell(err)
		}
		cancel()
	}
}

// Start flushes whenever a report is due, until ctx ends. Reports that still wait stay on disk. wait returns when the last flush has ended.
func (o *Outbox) Start(ctx context.Context, by *engine.Queue) (wait func()) {
	task := by.Join(ctx, engine.Regular, func(ctx context.Context) engine.Next {
		defer engine.PauseAfter(ctx, late)()
		wait, some := o.Flush(ctx)
		if !some {
			wait = never
		}
		return engine.Next{At: time.Now().Add(wait)}
	})
	o.wake.Listen(func() { task.Wake(engine.Regular) })
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(ended)
		o.wake.Listen(nil)
		task.Leave()
	})
	return func() { <-ended }
}

const (
	late  = time.Second        // how long a flush keeps its worker while the forge does not answer
	never = 24 * time.Hour * 7 // unless a report comes before
)

// Waiting returns the number of commits with a waiting report.
func (o *Outbox) Waiting() int {
	o.open()
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, w := range o.waiting {
		if !w.Said {
			n++
		}
	}
	return n
}

// Pending returns the commits of a sync whose last published status is pending, even if an earlier process published it.
func (o *Outbox) Pending(namespace, name string) []string {
	o.open()
	o.mu.Lock()
	defer o.mu.Unlock()
	var revisions []string
	for k, w := range o.waiting {
		if k.namespace == namespace && k.name == name && w.pending() {
			revisions = append(revisions, k.revision)
		}
	}
	slices.Sort(revisions)
	return revisions
}

// Dropped returns how many reports were dropped because too many waited.
func (o *Outbox) Dropped() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped
}

// keep stores a report, and replaces an older one for the same commit.
func (o *Outbox) keep(r report.Report) (key, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := reduce(r)
	k := w.key()
	if old, ok := o.waiting[k]; ok { // a new report does not make a failing forge recover
		w.Attempts, w.NotBefore = old.Attempts, old.NotBefore
	}
	o.seq++
	w.Seq = o.seq
	o.waiting[k] = w
	err := o.write(w)
	for len(o.waiting) > cmp.Or(o.Most, 512) {
		err = errors.Join(err, o.drop())
	}
	return k, err
}

// keepRest stores the reports that could not be stored, because the disk may have room again.
func (o *Outbox) keepRest() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k := range o.unkept {
		if o.write(o.waiting[k]) != nil {
			return // it was told before
		}
	}
}

// drop drops the oldest report.
func (o *Outbox) drop() error {
	var oldest waiting
	for _, w := range o.waiting {
		if oldest.Seq == 0 || w.Seq < oldest.Seq {
			oldest = w
		}
	}
	o.remove(oldest.key())
	if oldest.Said {
		return nil
	}
	o.dropped++
	return fmt.Errorf("outbox: too many wait: the status of %s is dropped", oldest.key())
}

// attempt publishes the waiting report of a key, if the forge may receive a request now. Its error is final. The
// caller has called acquire.
func (o *Outbox) attempt(ctx context.Context, k key) error {
	w, ok := o.ready(k)
	if !ok {
		return nil
	}
	err := o.publish(ctx, w.report())
	after, passes := passing(err)
	refused := isRefused(err)
	o.mu.Lock()
	defer o.mu.Unlock()
	current, ok := o.waiting[k]
	unchanged := ok && current.Seq == w.Seq // false if a newer report came while this one was published
	switch {
	case err == nil:
		o.answered()
		delete(o.refused, k)
		switch {
		case unchanged && w.pending():
			current.Said, current.Attempts, current.NotBefore = true, 0, 0
			o.waiting[k] = current
			if err := o.write(current); err != nil {
				o.tell(err)
			}
		case unchanged:
			o.remove(k)
		}
		return nil
	case !passes && !refused:
		o.answered()
		if unchanged {
			o.remove(k)
		}
		return o.refusal(k, err)
	case errors.Is(ctx.Err(), context.Canceled): // Headgate is stopping, so the error shows nothing about the forge
		return nil
	}
	gate := o.Token
	if refused { // perhaps only for this repository
		gate = &o.access
	}
	first := gate.fails(o.now(), after)
	if ok { // false if it was dropped in the meantime
		current.Attempts++
		current.NotBefore = o.now().Add(pause(current.Attempts, after)).UnixMilli()
		o.waiting[k] = current
		if err := o.write(current); err != nil {
			o.tell(err)
		}
		if first && current.Attempts == 1 && !refused {
			o.tell(fmt.Errorf("outbox: the status of %s waits: %w", k, err))
		}
	}
	if refused { // the report waits, but a person should fix the token now
		return o.refusal(k, err)
	}
	return nil
}

// publish publishes a report. A panic of a client on what a forge answered is the error of this report, because other syncs of the process
// have nothing to do with it.
func (o *Outbox) publish(ctx context.Context, r report.Report) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("publishing ended in a defect of Headgate: %v", p)
		}
	}()
	return o.Next.Publish(ctx, r)
}

// closed returns the time until the forge may be asked again.
func (o *Outbox) closed(now time.Time) time.Duration {
	return max(o.Token.left(now), o.access.left(now))
}

// answered records that the forge gave an answer that no later attempt changes.
func (o *Outbox) answered() {
	o.Token.opens(o.now())
	o.access.opens(o.now())
}

// isRefused reports whether an error is about a refused token.
func isRefused(err error) bool {
	refusal, ok := errors.AsType[interface {
		error
		TokenRefused() bool
	}](err)
	return ok && refusal.TokenRefused()
}

// refusal returns the error for a refused report, or nil if it was returned before.
func (o *Outbox) refusal(k key, err error) error {
	if o.refused[k] == err.Error() {
		return nil
	}
	if len(o.refused) >= cmp.Or(o.Most, 512) {
		clear(o.refused)
	}
	o.refused[k] = err.Error()
	return err
}

// ready returns the waiting report of a key, unless the report or the forge has a pause.
func (o *Outbox) ready(k key) (waiting, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w, ok := o.waiting[k]
	now := o.now()
	return w, ok && !w.Said && o.closed(now) == 0 && w.NotBefore <= now.UnixMilli()
}

// due returns the report to publish next: the one with the fewest attempts, so that a report that keeps failing does
// not hold up the others. Among these, it is the oldest.
func (o *Outbox) due() (key, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	if o.closed(now) > 0 {
		return key{}, false
	}
	var first waiting
	for _, w := range o.waiting {
		if !w.Said && w.NotBefore <= now.UnixMilli() && (first.Seq == 0 || cmp.Or(cmp.Compare(w.Attempts, first.Attempts), cmp.Compare(w.Seq, first.Seq)) < 0) {
			first = w
		}
	}
	return first.key(), first.Seq != 0
}

// next returns the time until the next report is due, and false if none waits.
func (o *Outbox) next() (time.Duration, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := int64(math.MaxInt64)
	for _, w := range o.waiting {
		if !w.Said {
			first = min(first, w.NotBefore)
		}
	}
	if first == math.MaxInt64 {
		return 0, false
	}
	now := o.now()
	return max(0, time.UnixMilli(first).Sub(now), o.closed(now)), true
}

// maxPatience is the default of Patience.
const maxPatience = 5 * time.Second

// passing reports whether an error is temporary, and returns the wait that the forge requests.
func passing(err error) (time.Duration, bool) {
	if later, ok := errors.AsType[interface {
		error
		RetryAfter() time.Duration
	}](err); ok {
		return later.RetryAfter(), true
	}
	return 0, errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (o *Outbox) open() {
	o.opened.Do(func() {
		o.Token = cmp.Or(o.Token, &Gate{})
		o.sending = make(chan struct{}, 1)
		o.refused, o.unkept = map[key]string{}, map[key]bool{}
		if o.rename == nil {
			o.rename = os.Rename
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.waiting = o.read()
		for k, w := range o.waiting {
			o.seq = max(o.seq, w.Seq)
			// If the clock was set back, the pause must not last for a year.
			w.NotBefore = min(w.NotBefore, o.now().Add(maxAsked).UnixMilli())
			o.waiting[k] = w
		}
	})
}

func (o *Outbox) acquire(ctx context.Context) bool {
	select {
	case o.sending <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (o *Outbox) release() { <-o.sending }

func (o *Outbox) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

func (o *Outbox) tell(err error) {
	if o.OnError != nil {
		o.OnError(err)
	}
}

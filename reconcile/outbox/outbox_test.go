//test:package raced
package outbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/report"
)

// reported returns a report with one description for a commit.
func reported(revision, what string) report.Report {
	r := report.Report{Revision: revision, Verdict: report.Verdict{
		Activation: report.Status{State: report.Success, Description: what},
		Drift:      report.Status{State: report.Success, Description: "no drift"},
	}}
	r.Sync.Namespace, r.Sync.Name = "headgate-system", "platform"
	return r
}

// forge is a publisher that can be made to fail.
type forge struct {
	mu        sync.Mutex
	fails     func(revision string) error // nil is success
	tried     int
	published []string // "revision: what"
}

func (f *forge) Publish(ctx context.Context, r report.Report) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tried++
	if f.fails != nil {
		if err := f.fails(r.Revision); err != nil {
			return err
		}
	}
	f.published = append(f.published, r.Revision+": "+r.Verdict.Activation.Description)
	return ctx.Err()
}

func (f *forge) is(fails func(string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = fails
}

// A client that panics on what a forge answered must not end the process of other syncs. The report is final, like one that is refused.
func TestPanicIsAnErrorOfTheReport(t *testing.T) {
	f, o := &forge{}, &Outbox{}
	o.Next = f
	f.is(func(string) error { panic("boom") })
	if err := o.Publish(t.Context(), reported("a", "done")); err == nil || !strings.Contains(err.Error(), "defect of Headgate: boom") {
		t.Errorf("Publish = %v, want the defect", err)
	}
	f.is(nil)
	publish(t, o, reported("b", "done"))
	if got := strings.Join(f.published, ", "); got != "b: done" || o.Waiting() != 0 {
		t.Errorf("published %q, and %d wait; want the next report only", got, o.Waiting())
	}
}

// later is a temporary error that only its methods identify.
type later struct{ after time.Duration }

func (later) Error() string               { return "come back later" }
func (l later) RetryAfter() time.Duration { return l.after }

var (
	errBoom = errors.New("boom")
	away    = func(string) error { return fmt.Errorf("commit x: %w", later{}) }
)

// clock is a clock that the test moves.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time          { return c.now }
func (c *clock) move(d time.Duration)    { c.now = c.now.Add(d) }
func (c *clock) after(o *Outbox) *Outbox { o.Now = c.Now; return o }

func newClock() *clock { return &clock{time.Unix(1764000000, 0)} }

func publish(t *testing.T, o *Outbox, r report.Report) {
	t.Helper()
	if err := o.Publish(t.Context(), r); err != nil {
		t.Fatalf("Publish(...): %v", err)
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestSaidAtOnce(t *testing.T) {
	f, dir := &forge{}, t.TempDir()
	o := &Outbox{Next: f, Dir: dir}
	publish(t, o, reported("a", "1 active"))
	if diff := cmp.Diff([]string{"a: 1 active"}, f.published); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
	if left := files(t, dir); len(left) > 0 || o.Waiting() > 0 {
		t.Errorf("%d wait, and %q is left on disk", o.Waiting(), left)
	}
}

// refused is an error about a token that only its methods identify.
type refused struct{}

func (refused) Error() string      { return "the token is not accepted (401)" }
func (refused) TokenRefused() bool { return true }

// While a token is rotated, or a forge shuts down, the forge refuses a valid report. The commit must not stay pending forever.
func TestRefusedToken(t *testing.T) {
	f, dir, now := &forge{}, t.TempDir(), newClock()
	f.is(func(string) error { return fmt.Errorf("commit x: %w", refused{}) })
	o := now.after(&Outbox{Next: f, Dir: dir})
	if err := o.Publish(t.Context(), reported("a", "superseded")); err == nil {
		t.Error("a person has to know of a refused token")
	}
	for range 20 { // three hours
		now.move(10 * time.Minute)
		if _, waits := o.Flush(t.Context()); !waits {
			t.Fatal("it was given up")
		}
	}
	if err := o.Publish(t.Context(), reported("a", "superseded")); err != nil {
		t.Errorf("a refusal is reported once, got %v", err)
	}
	o = now.after(&Outbox{Next: f, Dir: dir}) // the token is rotated and the process restarts
	f.is(nil)
	now.move(10 * time.Minute)
	if _, waits := o.Flush(t.Context()); waits || o.Waiting() > 0 {
		t.Error("it still waits")
	}
	if diff := cmp.Diff([]string{"a: superseded"}, f.published); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}

func seen(revision string) report.Report {
	r := reported(revision, "seen")
	r.Verdict.Activation.State, r.Verdict.Drift.State = report.Pending, report.Pending
	return r
}

// If the last status of a commit is pending, a process that starts after a crash must know that, because nothing else would ever
// replace the status.
func TestPending(t *testing.T) {
	f, dir, c := &forge{}, t.TempDir(), newClock()
	start := func() *Outbox { return c.after(&Outbox{Next: f, Dir: dir}) }
	is := func(o *Outbox, reason string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, o.Pending("headgate-system", "platform")); diff != "" {
			t.Errorf("%s\nPending(...) (-want +got):\n%s", reason, diff)
		}
	}
	o := start()
	publish(t, o, seen("a"))
	is(o, "It was said.", "a")
	f.is(away)
	publish(t, o, seen("b"))
	other := seen("c")
	other.Sync.Name = "another"
	publish(t, o, other)

	o = start()
	is(o, "After a restart too, also for waiting reports; another sync's are its own.", "a", "b")
	if n := o.Waiting(); n != 2 {
		t.Errorf("%d wait, want b and c: a was said", n)
	}
	f.is(nil)
	c.move(time.Hour)
	if _, some := o.Flush(t.Context()); some {
		t.Error("something still waits")
	}
	if diff := cmp.Diff([]string{"a: seen", "c: seen", "b: seen"}, f.published); diff != "" {
		t.Errorf("each is said once (-want +got):\n%s", diff)
	}
	is(o, "Said at last, they are pending.", "a", "b")
	publish(t, o, reported("a", "superseded"))
	publish(t, o, reported("b", "1 active"))
	is(o, "They had their last word.")
	if left := files(t, dir); len(left) != 1 {
		t.Errorf("on disk there is %q, want one file, of c", left)
	}
}

// No report is lost if a forge is unavailable for a while and the process restarts in the meantime.
func TestOutage(t *testing.T) {
	for name, restart := range map[string]bool{"SameProcess": false, "Restarted": true} {
		t.Run(name, func(t *testing.T) {
			f, dir, c := &forge{fails: away}, filepath.Join(t.TempDir(), "made", "when needed"), newClock()
			var told []error
			o := c.after(&Outbox{Next: f, Dir: dir, OnError: func(err error) { told = append(told, err) }})
			publish(t, o, reported("a", "pending"))
			publish(t, o, reported("b", "pending"))
			publish(t, o, reported("a", "superseded"))
			publish(t, o, reported("b", "1 active"))
			if f.tried != 1 || len(told) != 1 {
				t.Errorf("%d attempts and told %v; want one each: the forge is known to be away", f.tried, told)
			}
			for _, name := range files(t, dir) {
				if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v (%v), want 0600", name, info.Mode(), err)
				}
			}
			if restart {
				o = c.after(&Outbox{Next: f, Dir: dir})
			}
			f.is(nil)
			if n := o.Waiting(); n != 2 {
				t.Fatalf("%d wait, want 2", n)
			}
			c.move(time.Hour)
			if wait, some := o.Flush(t.Context()); some {
				t.Errorf("something waits, for %s", wait)
			}
			if diff := cmp.Diff([]string{"b: 1 active", "a: superseded"}, f.published); diff != "" {
				t.Errorf("said (-want +got):\n%s", diff)
			}
			if left := files(t, dir); len(left) > 0 {
				t.Errorf("%q is left on disk", left)
			}
		})
	}
}

// The forge is away for a day, in which a commit arrives every ten minutes and a pass ends every minute. The forge is asked seldom, one report
// waits for each commit, and all of them are published when it is back.
func TestAwayForADay(t *testing.T) {
	const commits, passes = 24 * 6, 10
	f, c := &forge{fails: away}, newClock()
	o := c.after(&Outbox{Next: f, Dir: t.TempDir()})
	for commit := range commits {
		for pass := range passes {
			publish(t, o, reported(fmt.Sprint(commit), fmt.Sprintf("pass %d", pass)))
			c.move(time.Minute)
			o.Flush(t.Context())
		}
	}
	if o.Waiting() != commits || o.Dropped() != 0 {
		t.Errorf("%d wait and %d were dropped, want %d and none", o.Waiting(), o.Dropped(), commits)
	}
	if most := 24*6 + 10; f.tried > most { // a pause of at most ten minutes, and shorter ones in the beginning
		t.Errorf("%d attempts, want at most %d", f.tried, most)
	}
	f.is(nil)
	for range commits {
		c.move(time.Hour)
		if _, some := o.Flush(t.Context()); !some {
			break
		}
	}
	slices.Sort(f.published)
	var want []string
	for commit := range commits {
		want = append(want, fmt.Sprintf("%d: pass %d", commit, passes-1))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, f.published); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// Without Run, the next pass publishes what the previous one could not.
func TestNextPassSaysTheRest(t *testing.T) {
	f, dir, c := &forge{fails: away}, t.TempDir(), newClock()
	publish(t, c.after(&Outbox{Next: f, Dir: dir}), reported("a", "1 active"))
	f.is(nil)
	c.move(time.Hour)
	publish(t, c.after(&Outbox{Next: f, Dir: dir}), reported("b", "2 active"))
	if diff := cmp.Diff([]string{"b: 2 active", "a: 1 active"}, f.published); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}

func TestPauses(t *testing.T) {
	cases := map[string]struct {
		reason string
		fails  error
		want   []time.Duration
	}{
		"BackOff": {
			reason: "A forge that recovers must not receive all waiting reports every second.",
			fails:  later{},
			want:   []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 320 * time.Second, 10 * time.Minute, 10 * time.Minute},
		},
		"Asked": {
			reason: "A rate limit states when it ends.",
			fails:  later{time.Hour},
			want:   []time.Duration{time.Hour, time.Hour},
		},
		"AskedTooMuch": {
			reason: "A wrong Retry-After of a proxy must not stop all statuses.",
			fails:  later{365 * 24 * time.Hour},
			want:   []time.Duration{2 * time.Hour, 2 * time.Hour},
		},
		"Timeout": {
			reason: "A timeout says nothing about the status.",
			fails:  context.DeadlineExceeded,
			want:   []time.Duration{5 * time.Second, 10 * time.Second},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			f := &forge{fails: func(string) error { return tc.fails }}
			o := c.after(&Outbox{Next: f})
			publish(t, o, reported("a", "1 active"))
			var got []time.Duration
			for range tc.want {
				tried := f.tried
				wait, _ := o.Flush(t.Context())
				if f.tried != tried {
					t.Fatalf("%s\nFlush(...) tries before it is due", tc.reason)
				}
				got = append(got, wait)
				c.move(wait - time.Millisecond)
				if o.Flush(t.Context()); f.tried != tried {
					t.Fatalf("%s\nFlush(...) tries a millisecond too early", tc.reason)
				}
				c.move(time.Millisecond)
				if o.Flush(t.Context()); f.tried != tried+1 {
					t.Fatalf("%s\nFlush(...) does not try when it is due", tc.reason)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\npauses (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// After a restart, a report waits for the rest of its pause, but never longer than a forge may request.
func TestPauseOutlivesRestart(t *testing.T) {
	f, dir, c := &forge{fails: func(string) error { return later{time.Hour} }}, t.TempDir(), newClock()
	publish(t, c.after(&Outbox{Next: f, Dir: dir}), reported("a", "1 active"))
	if wait, some := c.after(&Outbox{Next: f, Dir: dir}).Flush(t.Context()); !some || wait != time.Hour {
		t.Errorf("after a restart it waits for %s (%t), want an hour", wait, some)
	}
	c.move(-365 * 24 * time.Hour)
	if wait, some := c.after(&Outbox{Next: f, Dir: dir}).Flush(t.Context()); !some || wait != 2*time.Hour {
		t.Errorf("after the clock was put back it waits for %s (%t), want two hours", wait, some)
	}
}

func TestRefusal(t *testing.T) {
	f := &forge{fails: func(string) error { return errBoom }}
	o := &Outbox{Next: f, Dir: t.TempDir()}
	if err := o.Publish(t.Context(), reported("a", "1 active")); !errors.Is(err, errBoom) {
		t.Errorf("Publish(...) = %v, want %v", err, errBoom)
	}
	if o.Waiting() > 0 {
		t.Error("what was refused for good waits")
	}
	publish(t, o, reported("a", "1 active")) // another pass with the same result, which is already published
	if f.tried != 2 {
		t.Errorf("%d attempts, want 2: a token may have been replaced", f.tried)
	}
	f.is(nil)
	publish(t, o, reported("a", "1 active"))
	f.is(func(string) error { return errBoom })
	if err := o.Publish(t.Context(), reported("a", "1 active")); !errors.Is(err, errBoom) {
		t.Errorf("Publish(...) = %v, want %v: it had been said in between", err, errBoom)
	}
}

// If one report causes both a refusal and a temporary error, it is retried.
func TestJoinedErrors(t *testing.T) {
	f := &forge{fails: func(string) error { return errors.Join(errBoom, later{}) }}
	o := &Outbox{Next: f}
	publish(t, o, reported("a", "1 active"))
	if o.Waiting() != 1 {
		t.Error("it does not wait")
	}
}

// A commit for which the forge always fails must not block other commits.
func TestPoison(t *testing.T) {
	c := newClock()
	f := &forge{fails: away}
	o := c.after(&Outbox{Next: f})
	for _, revision := range []string{"poison", "b", "c", "d"} {
		publish(t, o, reported(revision, "1 active"))
	}
	f.is(func(revision string) error {
		if revision == "poison" {
			return later{}
		}
		return nil
	})
	for range 4 {
		wait, _ := o.Flush(t.Context())
		c.move(wait)
	}
	if diff := cmp.Diff([]string{"b: 1 active", "c: 1 active", "d: 1 active"}, f.published); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
	if o.Waiting() != 1 {
		t.Errorf("%d wait, want the poison", o.Waiting())
	}
}

func TestBound(t *testing.T) {
	f, dir := &forge{fails: away}, t.TempDir()
	o := newClock().after(&Outbox{Next: f, Dir: dir, Most: 3})
	var lost int
	for i := range 5 {
		if err := o.Publish(t.Context(), reported(fmt.Sprint(i), "1 active")); err != nil {
			lost++
		}
	}
	publish(t, o, reported("2", "2 active")) // this commit becomes the newest
	if err := o.Publish(t.Context(), reported("5", "1 active")); err != nil {
		lost++
	}
	if o.Waiting() != 3 || o.Dropped() != 3 || lost != 3 || len(files(t, dir)) != 3 {
		t.Errorf("%d wait, %d were dropped, %d were told, %d are on disk; want 3 of each", o.Waiting(), o.Dropped(), lost, len(files(t, dir)))
	}
	var left []string
	for k := range (&Outbox{Dir: dir}).read() {
		left = append(left, k.revision)
	}
	if !cmp.Equal(3, len(left)) || strings.Contains(strings.Join(left, ""), "3") {
		t.Errorf("%q wait; want 2, 4 and 5", left)
	}
}

// A report that arrives while an older one is being posted is neither lost nor overtaken.
func TestNewsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		slow := publisher(func(_ context.Context, r report.Report) error {
			time.Sleep(2 * time.Second)
			lines = append(lines, r.Verdict.Activation.Description)
			return nil
		})
		o := &Outbox{Next: slow, Dir: t.TempDir()}
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				if err := o.Publish(t.Context(), reported("a", fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if diff := cmp.Diff([]string{"0", "2"}, lines); diff != "" {
			t.Errorf("said (-want +got):\n%s", diff)
		}
		if o.Waiting() > 0 {
			t.Error("something waits")
		}
	})
}

// A pass continues although the forge hangs, and its report is published later.
func TestPublishDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		var away atomic.Bool
		away.Store(true)
		o := &Outbox{Dir: t.TempDir(), Next: publisher(func(ctx context.Context, r report.Report) error {
			if away.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			lines = append(lines, r.Revision)
			return nil
		})}
		ctx, stop := context.WithCancel(t.Context())
		wait := o.Start(ctx, engine.NewQueue(1))
		began := time.Now()
		for i := range 20 {
			publish(t, o, reported(fmt.Sprint(i), "1 active"))
		}
		if took := time.Since(began); took > 20*5*time.Second {
			t.Errorf("20 passes waited for %s", took)
		}
		away.Store(false)
		time.Sleep(time.Hour)
		stop()
		wait()
		if len(lines) != 20 || o.Waiting() != 0 {
			t.Errorf("%d were said and %d wait, want 20 and none", len(lines), o.Waiting())
		}
	})
}

// A cancelled context does not mean that the forge is unavailable.
func TestStop(t *testing.T) {
	f := &forge{}
	dir := t.TempDir()
	o := &Outbox{Next: f, Dir: dir}
	ctx, cancel := context.WithCancel(t.Context())
	f.is(func(string) error { cancel(); return ctx.Err() })
	if err := o.Publish(ctx, reported("a", "1 active")); err != nil {
		t.Fatal(err)
	}
	if len(files(t, dir)) != 1 {
		t.Error("it is not on disk for the next process")
	}
	f.is(nil)
	publish(t, o, reported("b", "1 active"))
	if len(f.published) != 2 {
		t.Errorf("said %q, want both at once", f.published)
	}
}

// A report without a commit, because the repository cannot be fetched, replaces no other report.
func TestNoCommit(t *testing.T) {
	f := &forge{fails: away}
	o := &Outbox{Next: f}
	if err := o.Publish(t.Context(), reported("", "cannot fetch")); err == nil || o.Waiting() != 0 {
		t.Errorf("Publish(...) = %v, %d wait", err, o.Waiting())
	}
}

// Reports are published even if the disk is full.
func TestDiskTrouble(t *testing.T) {
	f, dir := &forge{}, filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := &Outbox{Next: f, Dir: dir}
	if err := o.Publish(t.Context(), reported("a", "1 active")); err == nil {
		t.Error("Publish(...) has no error")
	}
	if len(f.published) != 1 {
		t.Errorf("said %q, want it said all the same", f.published)
	}
}

// Statuses that a full disk had no room for are stored once it has, so that they outlive the process.
func TestDiskHasRoomAgain(t *testing.T) {
	f, dir := &forge{fails: away}, filepath.Join(t.TempDir(), "outbox")
	full := errors.New("no space left on device")
	o := &Outbox{Next: f, Dir: dir, rename: func(string, string) error { return full }}
	for _, revision := range []string{"a", "b", "c"} {
		if err := o.Publish(t.Context(), reported(revision, "1 active")); !errors.Is(err, full) {
			t.Errorf("Publish(%s) = %v", revision, err)
		}
	}
	if got := files(t, dir); len(got) > 0 {
		t.Errorf("%v are left", got)
	}
	o.rename = os.Rename
	o.Flush(t.Context())
	if next := (&Outbox{Next: f, Dir: dir}); next.Waiting() != 3 {
		t.Errorf("the next process has %d of 3 statuses", next.Waiting())
	}
}

type publisher func(context.Context, report.Report) error

func (p publisher) Publish(ctx context.Context, r report.Report) error { return p(ctx, r) }

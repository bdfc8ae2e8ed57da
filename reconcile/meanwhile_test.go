package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// A shared world is one in which other processes apply commits, too. Its ref is read from a list that may be a second old.
type sharedWorld struct {
	*world

	listed   string           // the commit of the ref in that list
	recorded string           // the last applied commit
	fetched  map[string]error // commits that can be fetched by their IDs, or why not
	log      []string         // what the loop asks and applies
	looks    func()           // another process acts before a pass reads the inventory; called with the lock
	applies  func() error     // another process acts once before a pass writes; called with the lock
}

func (w *sharedWorld) Fetch(ctx context.Context, ref string) (render.Input, error) {
	in, err := w.world.Fetch(ctx, "")
	w.mu.Lock()
	defer w.mu.Unlock()
	commit := w.revision
	switch problem, isCommit := w.fetched[ref]; {
	case isCommit:
		w.log = append(w.log, "fetch "+ref)
		commit, err = ref, problem
	case engine.Age(ctx) > 0:
		commit = w.listed
	default:
		w.log, w.listed = append(w.log, "read the ref"), commit
	}
	in.Revision, in.Source = commit, render.SourceID{Repository: "r", Commit: commit}
	return in, err
}

func (w *sharedWorld) Observe(ctx context.Context, want render.Desired) (facts.Observed, error) {
	seen, err := w.world.Observe(ctx, want)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looks != nil {
		w.looks()
	}
	seen.Inventory.Record.Source.Repository, seen.Inventory.Record.Source.Commit = "r", w.recorded
	return seen, err
}

func (w *sharedWorld) Apply(_ context.Context, p plan.Plan) ([]plan.Outcome, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if applies := w.applies; applies != nil {
		w.applies = nil
		return nil, applies()
	}
	w.log, w.recorded = append(w.log, "apply "+p.Want.Revision), p.Want.Source.Commit
	var done []plan.Outcome
	for _, s := range p.Steps {
		done = append(done, plan.Outcome{ID: s.ID, Action: s.Action})
	}
	return done, nil
}

// happened returns the log since the last call.
func (w *sharedWorld) happened() []string {
	synctest.Wait()
	var log []string
	w.set(func() { log, w.log = w.log, nil })
	return log
}

// following returns a loop that has applied commit a.
func (w *sharedWorld) following(t *testing.T) {
	t.Helper()
	l := w.loop()
	l.Interval, l.Watcher = time.Hour, w
	l.Reconciler.Source, l.Reconciler.Observer, l.Reconciler.Applier = w, w, w
	l.Reconciler.Applied = func(context.Context) (string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.recorded, nil
	}
	w.run(t, l)
	if got := w.happened(); len(got) == 0 || got[len(got)-1] != "apply a" {
		t.Fatalf("the first commit is applied: %q", got)
	}
	w.received(Passed)
}

func newSharedWorld() *sharedWorld {
	return &sharedWorld{world: newWorld(), listed: "a"}
}

// A person approves a prune at a newer commit, by hand, before the process has seen that commit. The process finds that an object is gone.
// It once created the object again from the older commit.
func TestAppliedByAnother(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		recorded string // the commit that another process applies
		ref      string // the commit of the ref
		fetching error
		fetched  map[string]error
		want     []string
		code     reason.Code
		error    string // part of the error of the pass
	}{
		"Newer": {
			reason: "The ref names the commit that the other process applied.", recorded: "b", ref: "b",
			want: []string{"read the ref", "apply b"},
		},
		"Newest": {
			reason: "The ref has moved on since the other process read it.", recorded: "b", ref: "c",
			want: []string{"read the ref", "apply c"},
		},
		"NotOfTheRef": {
			reason: "A person applied a commit that the ref does not name, such as one that is not pushed. The loop applies that of the ref.", recorded: "x", ref: "a",
			want: []string{"read the ref", "apply a"},
		},
		"Away": {
			reason: "Without the ref and the applied commit, the loop cannot know what is drift, and corrects none.", recorded: "b", ref: "b", fetching: errBoom, fetched: map[string]error{"b": errBoom},
			want: []string{"fetch b"}, code: reason.AppliedMeanwhile, error: "no drift is corrected until then, because commit b, which was applied last, cannot be used",
		},
		"AwayWithCommit": {
			reason: "The clone has the applied commit, so drift is corrected from that one.", recorded: "b", ref: "b", fetching: errBoom, fetched: map[string]error{"b": nil},
			want: []string{"fetch b", "apply b"}, error: "boom",
		},
		"Refused": {
			reason: "The newest commit is not signed. Drift is corrected from the one that another process applied before.", recorded: "b", ref: "c", fetching: unsigned("c"), fetched: map[string]error{"b": nil},
			want: []string{"fetch b", "apply b"}, code: reason.Unverified, error: "c is not verified",
		},
		"RefusedToo": {
			reason: "The commit that another process applied is not signed, either.", recorded: "b", ref: "c", fetching: unsigned("c"), fetched: map[string]error{"b": unsigned("b")},
			want: []string{"fetch b"}, code: reason.Unverified, error: "b is not verified",
		},
		"Same": {
			reason: "No other process applied a commit, so this is drift as always.", recorded: "a", ref: "b",
			want: []string{"apply a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSharedWorld()
				w.following(t)
				w.set(func() { w.recorded, w.revision, w.fetching, w.fetched = tc.recorded, tc.ref, tc.fetching, tc.fetched })
				w.tell(map[manifest.ID]string{{Kind: "ConfigMap", Namespace: "b", Name: "a"}: "1"})
				time.Sleep(time.Second)
				got := w.happened()
				if tc.fetching != nil { // the ref is asked for by each pass
					got = withoutReads(got)
				}
				expect(t, tc.reason, got, tc.want...)
				passes := w.received(Passed)
				if len(passes) != 1 || passes[0].Report.ErrorCode != tc.code || !strings.Contains(fmt.Sprint(passes[0].Err), tc.error) || (passes[0].Err == nil) != (tc.error == "") {
					t.Errorf("%s\nwant one pass with code %q and error %q, got %+v", tc.reason, tc.code, tc.error, passes)
				}
				w.tell(map[manifest.ID]string{{Kind: "ConfigMap", Namespace: "b", Name: "a"}: "2"})
				time.Sleep(10 * time.Second)
				if got := w.happened(); tc.fetching == nil && len(got) != 1 {
					t.Errorf("The next drift is corrected without another question: %q", got)
				}
			})
		})
	}
}

// withoutReads returns what happened besides reads of the ref.
func withoutReads(all []string) (rest []string) {
	for _, s := range all {
		if s != "read the ref" {
			rest = append(rest, s)
		}
	}
	return rest
}

// Another process applies a newer commit while a pass is made, between its look and its writes.
func TestAppliedDuringPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSharedWorld()
		w.following(t)
		w.set(func() {
			w.applies = func() error {
				w.recorded, w.revision = "b", "b"
				return reason.ErrMoved
			}
		})
		w.tell(map[manifest.ID]string{{Kind: "ConfigMap", Namespace: "b", Name: "a"}: "1"})
		time.Sleep(time.Second)
		expect(t, "The pass goes on with the newer commit, and writes nothing of the older one.", w.happened(), "read the ref", "apply b")
		if passes := w.received(Passed); len(passes) != 1 || passes[0].Err != nil || passes[0].Revision != "b" {
			t.Errorf("It is one pass, without an error: %+v", passes)
		}
	})
}

// At rest, no pass asks twice: 500 syncs share the lists of refs. A new commit of the sync itself needs no further question, either.
func TestNoFurtherQuestionAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSharedWorld()
		w.following(t)
		time.Sleep(24 * time.Hour)
		if got := strings.Join(w.happened(), " "); strings.Contains(got, "read") || !strings.Contains(got, "apply a") {
			t.Errorf("Passes at rest share the lists of refs: %s", got)
		}
		for _, commit := range []string{"b", "c", "a", "d"} {
			w.set(func() { w.revision, w.listed = commit, commit })
			time.Sleep(67 * time.Minute)
			if got := strings.Join(w.happened(), " "); strings.Contains(got, "read") || !strings.Contains(got, "apply "+commit) {
				t.Errorf("Commit %s follows what this process applied itself: %s", commit, got)
			}
		}
	})
}

// Two processes that follow different commits do not make each other ask for ever, and neither waits for the other without an error.
func TestDisagreeingProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSharedWorld()
		w.following(t)
		n := 0
		w.set(func() {
			w.looks = func() { // before each look, another process applies yet another commit
				n++
				w.recorded = fmt.Sprintf("other-%d", n)
			}
		})
		w.tell(map[manifest.ID]string{{Kind: "ConfigMap", Namespace: "b", Name: "a"}: "1"})
		time.Sleep(time.Second)
		if got := w.happened(); len(got) != attempts-1 {
			t.Errorf("A pass reads the ref again at most %d times: %q", attempts-1, got)
		}
		passes := w.received(Passed)
		var meanwhile *reason.AppliedMeanwhileError
		if len(passes) != 1 || !errors.As(passes[0].Err, &meanwhile) || passes[0].Report.ErrorCode != reason.AppliedMeanwhile || passes[0].Report.Verdict.ExitCode != report.ExitFailed {
			t.Fatalf("Then it fails, with a code: %+v", passes)
		}
		if passes[0].Next < time.Second {
			t.Errorf("The next pass begins after a pause, not after %s", passes[0].Next)
		}
		w.set(func() { w.looks = nil })
		time.Sleep(time.Minute)
		expect(t, "After the other process ended, the commit of the ref is applied.", w.happened(), "read the ref", "apply a")
	})
}

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/memo"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errBoom = errors.New("boom")

// A world is a repository, a cluster and a forge, with a log of what happened to them.
type world struct {
	mu         sync.Mutex
	begun      time.Time
	log        []string // such as "12s pass", with the time since the world began
	revision   string
	files      string // of the commit
	fetching   error
	applied    string // the commit in the inventory
	refetching error  // of that one
	reads      int    // number of reads of a commit's files
	wanted     render.Desired
	observe    func(ctx context.Context) error
	apply      func(ctx context.Context) error
	refuses    error         // of each object that is sent
	unready    reason.Reason // of each object that is sent
	owner      render.Owner
	upstream   facts.Upstream // the state that Crossplane has created
	publish    error
	events     []Event
	tell       func(map[manifest.ID]string)
}

func newWorld() *world {
	return &world{
		begun: time.Now(), revision: "a",
		files: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n",
	}
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf("%s ", time.Since(w.begun).Round(time.Second))+fmt.Sprintf(format, args...))
}

// noted returns the log since the previous call.
func (w *world) noted() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	log := w.log
	w.log = nil
	return log
}

// received returns the events of one kind since the last call.
func (w *world) received(kind EventKind) []Event {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.DeleteFunc(w.events, func(e Event) bool { return e.Kind != kind })
	w.events = nil
	return all
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

type opened struct {
	fs.FS
	world *world
}

func (o opened) Hash(name string) (string, error) {
	raw, err := fs.ReadFile(o.FS, name)
	return string(raw), err
}

func (o opened) Open(name string) (fs.File, error) {
	file, err := o.FS.Open(name)
	if err == nil && strings.HasSuffix(name, ".yaml") {
		o.world.set(func() { o.world.reads++ })
	}
	return file, err
}

func (w *world) Fetch(_ context.Context, ref string) (render.Input, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	files := fstest.MapFS{"a.yaml": {Data: []byte(w.files)}}
	if ref == w.applied && ref != "" {
		return render.Input{Revision: ref, Files: opened{files, w}}, w.refetching
	}
	return render.Input{Revision: w.revision, Files: opened{files, w}}, w.fetching
}

func (w *world) Observe(ctx context.Context, want render.Desired) (facts.Observed, error) {
	w.mu.Lock()
	w.wanted = want
	observe := w.observe
	w.mu.Unlock()
	if observe != nil {
		if err := observe(ctx); err != nil {
			return facts.Observed{}, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return demand.Ask(facts.Observed{Upstream: w.upstream, Ground: facts.Ground{Kinds: map[schema.GroupKind]plan.Kind{
		{Kind: "ConfigMap"}: {}, {Group: "apiextensions.crossplane.io", Kind: "ManagedResourceActivationPolicy"}: {},
	}}}, want)
}

func (w *world) Answer(context.Context, []question.Any) (question.Answers, error) {
	return nil, nil
}

func (w *world) Apply(ctx context.Context, p plan.Plan) ([]plan.Outcome, error) {
	w.note("apply %s", p.Want.Revision)
	if w.apply != nil {
		if err := w.apply(ctx); err != nil {
			return nil, err
		}
	}
	var done []plan.Outcome
	for _, s := range p.Steps {
		done = append(done, plan.Outcome{ID: s.ID, Action: s.Action, Err: w.refuses, NotReady: w.unready})
	}
	return done, nil
}

func (w *world) Publish(_ context.Context, r report.Report) error {
	w.note("%s: %s: %s", r.Revision, r.Verdict.Activation.State, r.Verdict.Activation.Description)
	return w.publish
}

func (w *world) Watch(ctx context.Context, tell func(map[manifest.ID]string), _ func(string, error)) (wait func()) {
	w.set(func() { w.tell = tell })
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(ended)
		w.note("the watch ends")
	})
	return func() { <-ended }
}

func (w *world) Owner(context.Context) (render.Owner, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.owner, nil
}

func (w *world) Definitions(context.Context) ([]*catalogue.Definition, error) { return nil, nil }

func (w *world) Policies(context.Context) (map[string]crossplane.LivePolicy, error) { return nil, nil }

func (w *world) loop() Loop {
	return Loop{
		Reconciler: Reconciler{
			Source: w, Observer: w, Applier: w, Sync: inventory.Sync{Namespace: "ns", Name: "prod"},
			Options: render.Options{Memo: new(memo.Memory)},
		},
		Publisher: w,
		OnEvent:   func(e Event) { w.set(func() { w.events = append(w.events, e) }) },
	}
}

// run runs a loop until the test ends or stop is called. stop returns once the loop has ended.
func (w *world) run(t *testing.T, l Loop) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}

func expect(t *testing.T, reason string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n(-want +got):\n%s", reason, diff)
	}
}

const done = "success: 1 object"

func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.run(t, w.loop())
		expect(t, "The first pass begins at once, and the status is pending before anything is written.",
			w.noted(), "0s a: pending: seen; the pass has not ended", "0s apply a", "0s a: "+done)
		reads := w.reads
		time.Sleep(53 * time.Second)
		expect(t, "The next pass begins after at least nine tenths of the interval.", w.noted())
		time.Sleep(14 * time.Second)
		if n := len(w.noted()); n != 2 {
			t.Errorf("After another tenth there is a pass, and no more than one: %d notes, want 2", n)
		}
		time.Sleep(time.Hour)
		if n := len(w.noted()) / 2; n < 54 || n > 67 {
			t.Errorf("An hour has %d passes", n)
		}
		if w.reads != reads {
			t.Errorf("The files of an unchanged commit are not read again, but they were %d times", w.reads-reads)
		}
	})
}

func TestUnchangedCommitIsRenderedForThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l := w.loop()
		l.Reconciler.Cluster, l.Reconciler.Options.Owner = w, render.OwnerAuto
		w.run(t, l)
		for _, owner := range []render.Owner{render.OwnerHeadgate, render.OwnerCrossplane} {
			w.set(func() { w.owner = owner })
			time.Sleep(67 * time.Second)
			synctest.Wait()
			if w.wanted.Owner != owner {
				t.Errorf("Who makes the CRDs is what the place says now: want %s, got %s", owner, w.wanted.Owner)
			}
		}
	})
}

func TestCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.run(t, w.loop())
		w.noted()
		w.set(func() { w.revision = "b" })
		time.Sleep(66 * time.Second)
		got := w.noted()
		for i, line := range got { // jitter varies the seconds
			_, got[i], _ = strings.Cut(line, " ")
		}
		expect(t, "The status of a new commit is pending as soon as the commit is found.",
			got, "b: pending: seen; the pass has not ended", "apply b", "b: "+done)

		w.set(func() { w.revision, w.files = "c", "apiVersion: v1\nkind: [\n" })
		time.Sleep(66 * time.Second)
		got = w.noted()
		if len(got) != 2 || !strings.Contains(got[1], "c: error: a.yaml:2: ") {
			t.Errorf("One that cannot be rendered gets an error with its place: %q", got)
		}
	})
}

// unsigned is the error of a Source for a commit without a signature.
type unsigned string

func (e unsigned) Error() string      { return string(e) + " is not verified" }
func (e unsigned) Unverified() string { return string(e) }

// A commit without a signature by a listed key must not be applied, and its status must show that immediately. A user who can push
// must not be able to stop the correction of drift with such a commit.
func TestUnverifiedCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l := w.loop()
		l.Interval, l.Poll = time.Hour, 10*time.Second
		w.run(t, l)
		w.noted()
		w.received(Passed)
		w.set(func() { w.revision, w.fetching = "b", fmt.Errorf("fetch: %w", unsigned("b")) })
		time.Sleep(12 * time.Second)
		got := w.noted()
		for i, line := range got { // jitter varies the seconds
			_, got[i], _ = strings.Cut(line, " ")
		}
		expect(t, "The refused commit gets the status, and the commit before it is applied.",
			got, "b: pending: seen; the pass has not ended", "apply a", "b: error: fetch: b is not verified")
		if passes := w.received(Passed); len(passes) != 1 || passes[0].Report.Revision != "b" || passes[0].Report.ErrorCode != reason.Unverified || passes[0].Report.Verdict.ExitCode != report.ExitFailed {
			t.Errorf("the report names the commit, with a code: %+v", passes)
		}
		time.Sleep(5 * time.Minute)
		expect(t, "The commit stays refused, and further attempts change nothing.", w.noted())
		w.set(func() { w.revision, w.fetching = "c", nil })
		time.Sleep(12 * time.Second)
		if got := w.noted(); len(got) != 3 || !strings.Contains(got[1], "apply c") {
			t.Errorf("The next commit is applied when it is found: %q", got)
		}
		w.set(func() { w.revision, w.fetching = "d", unsigned("d") })
		time.Sleep(12 * time.Second)
		w.noted()
		w.set(func() { w.revision, w.fetching = "c", nil })
		time.Sleep(12 * time.Second)
		if got := w.noted(); len(got) == 0 || !strings.Contains(got[len(got)-1], "c: success") {
			t.Errorf("Taking the push back ends it: %q", got)
		}
	})
}

// A starting process finds an unverified commit. It corrects drift from the last applied commit if that one is verified, and
// otherwise reports that nothing is corrected. So neither a restart nor a push stops the correction silently.
func TestUnverifiedAtStart(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		applied    string
		asking     error
		refetching error
		want       []string
		recalled   bool
	}{
		"Applied":    {"The commit that was applied last is verified again before it corrects drift.", "a", nil, nil, []string{"0s b: pending: seen; the pass has not ended", "0s apply a", "0s b: error: b is not verified"}, true},
		"Nothing":    {"Without an applied commit, there is no drift to correct.", "", nil, nil, []string{"0s b: error: b is not verified"}, false},
		"Unverified": {"The last applied commit is unsigned, or its key has expired.", "a", nil, unsigned("a"), []string{"0s b: error: b is not verified; no drift is corrected until then, because commit a, which was applied last, cannot be used: a is not verified"}, false},
		"Unread":     {"The inventory cannot be read.", "a", errBoom, nil, []string{"0s b: error: b is not verified; no drift is corrected until then: boom"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.revision, w.fetching, w.applied, w.refetching = "b", unsigned("b"), tc.applied, tc.refetching
				l := w.loop()
				l.Reconciler.Applied = func(context.Context) (string, error) { return tc.applied, tc.asking }
				l.Interval, l.Poll = time.Hour, 10*time.Second
				w.run(t, l)
				expect(t, tc.reason, w.noted(), tc.want...)
				if got := len(w.received(Recalled)) == 1; got != tc.recalled {
					t.Errorf("%s\nthe log tells of it: %t", tc.reason, got)
				}
				w.set(func() { w.revision, w.fetching = "c", nil })
				time.Sleep(12 * time.Second)
				if got := w.noted(); len(got) == 0 || !strings.Contains(strings.Join(got, " "), "apply c") {
					t.Errorf("The next verified commit is applied: %q", got)
				}
			})
		})
	}
	w := newWorld()
	w.fetching = unsigned("b")
	result, err := w.loop().Reconciler.Run(t.Context(), "main")
	if err == nil || result.Revision != "b" || result.ErrorCode != reason.Unverified || len(w.log) > 0 {
		t.Errorf("Run = %+v, %v; %q", result, err, w.log)
	}
}

// inactiveDefinition is a commit in which nothing is applied.
const inactiveDefinition = `apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceDefinition
metadata: {name: as.example.org}
spec:
  group: example.org
  names: {kind: A, plural: as}
  scope: Namespaced
  state: Inactive
  versions: []
`

func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.files = inactiveDefinition // and no object
		w.run(t, w.loop())
		expect(t, "A process that starts again and has nothing to do keeps the final status.",
			w.noted(), "0s apply a", "0s a: success: 0 active, 1 inactive")
	})
}

// A directory that declares nothing is reported, because status success would hide a wrong path.
func TestNothingDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.files = "# nothing\n"
		w.run(t, w.loop())
		passes := w.received(Passed)
		if len(passes) == 0 || passes[0].Err == nil || !strings.Contains(passes[0].Err.Error(), "check the path") {
			t.Errorf("the result of the first pass is %v, want an error with the advice to check the path", passes)
		}
		w.set(func() { w.files, w.revision = inactiveDefinition, "b" })
		time.Sleep(10 * time.Minute)
		if lines := w.noted(); len(lines) == 0 || !strings.Contains(lines[len(lines)-1], "b: success") {
			t.Errorf("after a commit that declares something: %q, want success", lines)
		}
	})
}

func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l := w.loop()
		l.Interval, l.Poll = time.Hour, 10*time.Second
		w.run(t, l)
		w.noted()
		time.Sleep(5 * time.Minute)
		expect(t, "A search for a new commit is not a pass.", w.noted())
		w.set(func() { w.revision = "b" })
		time.Sleep(12 * time.Second)
		if got := w.noted(); len(got) != 3 {
			t.Errorf("A new commit is applied when it is found: %q", got)
		}
	})
}

// A webhook of a forge only wakes the loop, which does not trust its content.
func TestPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const seen = "pending: seen; the pass has not ended"
		w := newWorld()
		pushed := new(engine.Signal)
		l := w.loop()
		l.Interval, l.Pushed = time.Hour, pushed
		w.run(t, l)
		w.noted()
		push := func(revision string) {
			w.set(func() { w.revision = revision })
			pushed.Send()
		}
		push("b")
		expect(t, "A push starts a pass at once.", w.noted(), "0s b: "+seen, "0s apply b", "0s b: "+done)
		push("b")
		time.Sleep(10 * time.Second)
		expect(t, "Without a new commit, an event starts no pass.", w.noted())

		push("b")
		time.Sleep(500 * time.Millisecond)
		w.set(func() { w.revision = "c" })
		time.Sleep(1500 * time.Millisecond)
		expect(t, "The loop fetches again if a push is not visible yet.", w.noted(), "11s c: "+seen, "11s apply c", "11s c: "+done)

		w.set(func() {
			w.apply = func(context.Context) error {
				time.Sleep(10 * time.Second)
				return nil
			}
		})
		push("d")
		time.Sleep(time.Second)
		push("e")
		time.Sleep(29 * time.Second)
		expect(t, "A push during a pass starts the next pass directly after it.", w.noted(),
			"12s d: "+seen, "12s apply d", "22s d: "+done, "22s e: "+seen, "22s apply e", "32s e: "+done)

		w.set(func() {
			w.apply = nil
			w.observe = func(context.Context) error { return errBoom }
		})
		push("f")
		time.Sleep(2 * time.Minute) // by now, the pauses are longer than a minute
		w.set(func() { w.observe = nil })
		w.noted()
		push("g")
		if got := w.noted(); !slices.ContainsFunc(got, func(n string) bool { return strings.HasSuffix(n, " apply g") }) {
			t.Errorf("A push may be what helps: it waits for no pause after an error: %q", got)
		}
	})
}

// A pass that still waits after the patience of a pass makes way for a push.
func TestPushDuringALatePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		pushed := new(engine.Signal)
		l := w.loop()
		l.Pushed = pushed
		w.run(t, l)
		w.noted()
		w.set(func() {
			w.apply = func(ctx context.Context) error {
				blocked := false
				w.set(func() { blocked = w.revision == "b" })
				if !blocked {
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}
		})
		for _, revision := range []string{"b", "c"} {
			w.set(func() { w.revision = revision })
			pushed.Send()
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		if got := w.noted(); got[len(got)-1] != "1m0s c: "+done {
			t.Errorf("The push is applied when the interval is over: %q", got)
		}
	})
}

func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		fails := func(context.Context) error { return errBoom }
		w.observe = fails
		w.run(t, w.loop())
		expect(t, "A temporary error is not reported.", w.noted())
		time.Sleep(5500 * time.Millisecond)
		if got := w.noted(); len(got) != 1 || !strings.HasSuffix(got[0], " a: error: boom") {
			t.Errorf("One that stays is: %q", got)
		}

		time.Sleep(time.Hour)
		passes := w.received(Passed)
		for i, want := range []time.Duration{5, 10, 20, 40, 80, 160, 300, 300} {
			if got := passes[i].Next.Seconds() / float64(want); got < 0.9 || got > 1.1 {
				t.Errorf("The pause after error %d is %s, want about %ds", i+1, passes[i].Next, want)
			}
		}

		w.set(func() { w.observe = nil })
		time.Sleep(6 * time.Minute)
		passes = w.received(Passed)
		if next := passes[len(passes)-1].Next; next > 67*time.Second {
			t.Errorf("After a success it is the interval again, not %s", next)
		}
		w.set(func() { w.observe = fails })
		time.Sleep(67 * time.Second)
		if passes = w.received(Passed); len(passes) == 0 || passes[0].Err == nil || passes[0].Next > 6*time.Second {
			t.Errorf("And the next error begins anew: %v", passes)
		}
	})
}

// An object that the API server refuses, or that is not ready in time, is no failure of the pass, but an hour is too long until the next try.
func TestRefusedObjects(t *testing.T) {
	for name, edit := range map[string]func(*world){
		"Refused":  func(w *world) { w.refuses = errBoom },
		"NotReady": func(w *world) { w.unready = reason.Failed.With("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				edit(w)
				l := w.loop()
				l.Interval = time.Hour
				w.run(t, l)
				time.Sleep(4 * time.Hour)
				passes := w.received(Passed)
				for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60} {
					if got := passes[i].Next.Minutes() / float64(want); passes[i].Err != nil || got < 0.9 || got > 1.1 {
						t.Errorf("The pause after pass %d is %s, want about %d minutes; error %v", i+1, passes[i].Next, want, passes[i].Err)
					}
				}
				w.set(func() { w.refuses, w.unready = nil, reason.Reason{} })
				time.Sleep(67 * time.Minute)
				passes = w.received(Passed)
				if last := passes[len(passes)-1]; last.Report.Summary.Failed+last.Report.Summary.NotReady > 0 || last.Next < 50*time.Minute {
					t.Errorf("Once it is accepted, the next pass begins after the interval: %s, %+v", last.Next, last.Report.Summary)
				}
			})
		})
	}
}

func TestFetchError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.run(t, w.loop())
		w.noted()
		w.received(Passed)
		w.set(func() { w.fetching = errBoom })
		for len(w.received(Passed)) == 0 {
			time.Sleep(time.Second)
		}
		if got := w.noted(); len(got) != 1 || !strings.HasSuffix(got[0], " apply a") {
			t.Errorf("A repository that is away for a moment is no news, and no reason to leave the cluster alone: %q", got)
		}
		time.Sleep(6 * time.Second)
		if got := w.noted(); len(got) != 2 || !strings.HasSuffix(got[0], " apply a") || !strings.HasSuffix(got[1], " a: error: boom") {
			t.Errorf("If it stays away, the status is on the last known commit: %q", got)
		}
		w.set(func() { w.files = "a: [" }) // the pass must not read this, because it uses the fetched commit
		w.set(func() { w.observe = func(context.Context) error { return errors.New("bang") } })
		time.Sleep(12 * time.Second)
		if got := w.noted(); len(got) != 1 || !strings.HasSuffix(got[0], " a: error: boom") {
			t.Errorf("The repository's problem comes first: %q", got)
		}
		passes := w.received(Passed)
		if err := passes[len(passes)-1].Err; !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "bang") {
			t.Errorf("Both are told: %v", err)
		}
	})
}

var (
	bucket = plan.CRD("buckets.example.org")
	queue  = plan.CRD("queues.example.org")
)

func TestDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l := w.loop()
		l.Watcher = w
		w.run(t, l)
		w.noted()
		passes := func() int { return len(w.noted()) / 2 }

		time.Sleep(20 * time.Second)
		w.tell(map[manifest.ID]string{bucket: "1"})
		if n := passes(); n != 1 {
			t.Errorf("A change makes a pass at once: %d", n)
		}
		w.tell(map[manifest.ID]string{bucket: "1"})
		time.Sleep(10 * time.Second)
		if n := passes(); n != 0 {
			t.Errorf("An unchanged state makes no other pass: %d", n)
		}
		w.tell(map[manifest.ID]string{})
		w.tell(map[manifest.ID]string{bucket: "1"})
		if n := passes(); n != 1 {
			t.Errorf("A correct object that is wrong again makes another pass: %d", n)
		}
		time.Sleep(time.Minute)
		passes()
		w.tell(map[manifest.ID]string{bucket: "1", queue: "1"})
		if n := passes(); n != 1 {
			t.Errorf("Another object makes another: %d", n)
		}
	})
}

func TestDriftWhileAPassRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l := w.loop()
		l.Watcher = w
		w.run(t, l)
		w.noted()
		steps := map[string]struct {
			reason string
			after  map[manifest.ID]string // reported after the pass
			want   int                    // passes
		}{
			"Own":    {"The notification about the loop's own write starts no second pass.", map[manifest.ID]string{}, 1},
			"Others": {"Changes by other writers during a pass start another pass.", map[manifest.ID]string{queue: "1"}, 2},
		}
		for name, tc := range steps {
			w.set(func() {
				w.apply = func(context.Context) error {
					time.Sleep(time.Second)
					w.tell(map[manifest.ID]string{bucket: name, queue: "1"})
					return nil
				}
			})
			w.tell(map[manifest.ID]string{bucket: "moved by " + name})
			time.Sleep(1100 * time.Millisecond)
			w.set(func() { w.apply = nil })
			w.tell(tc.after)
			time.Sleep(5 * time.Second)
			if n := len(w.noted()) / 2; n != tc.want {
				t.Errorf("%s\n%d passes, want %d", tc.reason, n, tc.want)
			}
			w.tell(map[manifest.ID]string{})
		}
	})
}

func TestFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l := w.loop()
		l.Watcher = w
		w.run(t, l)
		w.noted()
		for i := range 600 { // a user changes the object twice a second for five minutes
			w.tell(map[manifest.ID]string{bucket: fmt.Sprint(i)})
			time.Sleep(500 * time.Millisecond)
		}
		if n := len(w.noted()) / 2; n < 8 || n > 40 {
			t.Errorf("A writer that changes objects as often as we do slows us down, but does not stop us: %d passes", n)
		}
	})
}

func TestBackOffBeatsDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l := w.loop()
		l.Watcher = w
		w.run(t, l)
		w.received(Began)
		w.set(func() { w.observe = func(context.Context) error { return errBoom } })
		for i := range 40 {
			w.tell(map[manifest.ID]string{bucket: fmt.Sprint(i)})
			time.Sleep(time.Second)
		}
		if n := len(w.received(Began)); n > 5 {
			t.Errorf("Drift does not make an API server that fails come back: %d passes", n)
		}
	})
}

// A pass waits only once per commit for objects that Crossplane does not create. Later passes only check, and keep reporting them.
func TestLateChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.files = "apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: team}\nspec: {activate: [a.b]}\n"
		l := w.loop()
		l.Reconciler.Options.Owner = render.OwnerCrossplane
		w.run(t, l)
		// passes returns the slowest and the last pass after a time.
		passes := func(after time.Duration) (slowest, last Event) {
			t.Helper()
			time.Sleep(after)
			all := w.received(Passed)
			if len(all) == 0 {
				t.Fatalf("There is no pass within %s", after)
			}
			return slices.MaxFunc(all, func(a, b Event) int { return int(a.Took - b.Took) }), all[len(all)-1]
		}
		const late = "1 broken: team; 1 object"
		if e, _ := passes(5*time.Minute + time.Second); e.Took < 5*time.Minute || e.Report.Verdict.Activation.Description != late {
			t.Errorf("The first pass waits for as long as it may: %s, %v", e.Took, e.Report.Verdict.Activation)
		}
		if e, _ := passes(5 * time.Minute); e.Took > time.Second || e.Report.Verdict.Activation.Description != late {
			t.Errorf("Later ones say the same at once: %s, %v", e.Took, e.Report.Verdict.Activation)
		}
		w.set(func() { w.upstream.Policies = map[string]crossplane.LivePolicy{"team": {Healthy: "True"}} })
		if _, e := passes(2 * time.Minute); e.Report.Verdict.Activation.State != report.Success {
			t.Errorf("It holds now: %v", e.Report.Verdict.Activation)
		}
		w.set(func() { w.upstream.Policies = nil })
		if e, _ := passes(7 * time.Minute); e.Took < 5*time.Minute {
			t.Errorf("An effect that is pending again after a hold has its time: %s", e.Took)
		}
		w.set(func() { w.revision = "b" })
		if e, _ := passes(7 * time.Minute); e.Revision != "b" || e.Took < 5*time.Minute {
			t.Errorf("And so has every commit: %s of %s", e.Took, e.Revision)
		}
	})
}

func TestShutdown(t *testing.T) {
	cases := map[string]struct {
		reason string
		apply  func(ctx context.Context) error
		want   []string
	}{
		"Idle": {
			reason: "Without a running pass, the shutdown waits for nothing.",
			want:   []string{"5s the watch ends"},
		},
		"Finishes": {
			reason: "A pass that ends in time finishes and is reported.",
			apply: func(ctx context.Context) error {
				time.Sleep(9 * time.Second)
				return ctx.Err()
			},
			want: []string{"5s the watch ends", "9s a: " + done},
		},
		"Interrupted": {
			reason: "A longer pass is interrupted, stores its results and reports nothing, so the commit stays pending.",
			apply: func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(2 * time.Second) // it settles
				return context.Cause(ctx)
			},
			want: []string{"5s the watch ends"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.apply = tc.apply
				l := w.loop()
				l.Watcher = w
				stop := w.run(t, l)
				time.Sleep(5 * time.Second)
				w.noted()
				stop()
				expect(t, tc.reason, w.noted(), tc.want...)
				if took := time.Since(w.begun); took > 17*time.Second+time.Millisecond {
					t.Errorf("%s\nit took %s", tc.reason, took)
				}
			})
		})
	}
}

func TestSuperseded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.apply = func(ctx context.Context) error { // it waits for something that never happens
			<-ctx.Done()
			return context.Cause(ctx)
		}
		w.run(t, w.loop())
		time.Sleep(50 * time.Second)
		w.set(func() { w.revision = "b" })
		expect(t, "A pass is not interrupted during the first interval.", w.noted(), "0s a: pending: seen; the pass has not ended", "0s apply a")
		w.set(func() { w.apply = func(context.Context) error { return nil } })
		time.Sleep(90 * time.Second)
		got := w.noted()
		for i, line := range got {
			_, got[i], _ = strings.Cut(line, " ")
		}
		expect(t, "After the first interval, a pass ends for a new commit, and its own commit gets a final status.", got[:min(len(got), 4)],
			"a: error: superseded by b before it was applied", "b: pending: seen; the pass has not ended", "apply b", "b: "+done)
		if stopped := w.received(Stopped); len(stopped) != 1 || !errors.Is(stopped[0].Err, errYield) {
			t.Errorf("stopped %v", stopped)
		}
	})
}

// remembering is a publisher with the statuses of an earlier process.
type remembering struct {
	*world
	pending []string
}

func (r remembering) Pending(namespace, name string) []string {
	if namespace != "ns" || name != "prod" {
		return nil
	}
	return r.pending
}

func TestSupersededWhileNobodyRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l := w.loop()
		l.Publisher = remembering{w, []string{"a", "older"}}
		w.run(t, l)
		expect(t, "The pending commit of an earlier process and the current commit get final statuses.", w.noted(),
			"0s older: error: superseded by a before it was applied", "0s a: pending: seen; the pass has not ended", "0s apply a", "0s a: "+done)
	})
}

func TestSettledCommitIsNotSuperseded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.run(t, w.loop())
		time.Sleep(time.Second)
		w.set(func() { w.revision = "b" })
		time.Sleep(67 * time.Second)
		for _, line := range w.noted() {
			if strings.Contains(line, "superseded") {
				t.Errorf("A final verdict stays: %s", line)
			}
		}
	})
}

// A neverApplied fails the test if a pass applies something.
type neverApplied struct{ *testing.T }

func (a neverApplied) Apply(context.Context, plan.Plan) ([]plan.Outcome, error) {
	a.Error("a suspended sync applied a plan")
	return nil, nil
}

func TestSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l := w.loop()
		l.Reconciler.Suspended = "suspended by alice"
		l.Reconciler.Applier = neverApplied{t}
		stop := w.run(t, l)
		time.Sleep(time.Hour)
		stop()
		if w.events[0].Kind != IsSuspended || w.events[0].For != "suspended by alice" {
			t.Errorf("It does not begin with why it writes nothing: %+v", w.events[0])
		}
		passes := w.received(Passed)
		if len(passes) < 50 {
			t.Errorf("A suspended sync makes passes: %d in an hour", len(passes))
		}
		for _, e := range passes {
			if e.Report.Applied || e.Report.Suspended != "suspended by alice" {
				t.Fatalf("It reports what it would do, and that it is suspended: %+v", e.Report.Verdict)
			}
		}
		r, err := l.Once(t.Context())
		if err != nil || r.Suspended == "" {
			t.Errorf("So does a single pass: %+v, %v", r.Verdict, err)
		}
	})
}

func TestOnce(t *testing.T) {
	w := newWorld()
	r, err := w.loop().Once(t.Context())
	if err != nil || r.Verdict.ExitCode != 0 {
		t.Fatalf("Once(...) = %v, %v", r.Verdict, err)
	}
	w.log = nil
	w.observe = func(context.Context) error { return errBoom }
	r, err = w.loop().Once(t.Context())
	if !errors.Is(err, errBoom) || r.Verdict.ExitCode != report.ExitFailed {
		t.Errorf("Once(...) = %v, %v", r.Verdict, err)
	}
	if len(w.log) != 1 {
		t.Errorf("There is no second time, so the first error is said: %q", w.log)
	}
}

func TestUnsaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.publish = errBoom
		w.run(t, w.loop())
		if unsaid := w.received(PublishFailed); len(unsaid) != 2 || !errors.Is(unsaid[0].Err, errBoom) {
			t.Errorf("A failure to publish is reported: %v", unsaid)
		}
	})
}

// A holding is a world whose cluster holds what was applied to it.
type holding struct {
	*world
	holds facts.Observed
}

func (r *holding) Observe(_ context.Context, want render.Desired) (facts.Observed, error) {
	seen := r.holds
	seen.Stance = plan.Comparing
	r.holds = facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{}}}, Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}}}
	for _, o := range want.Objects {
		live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: o.ID.Name, UID: "u", Generation: 1}}
		r.holds.Objects[o.ID] = live
		r.holds.Inventory.Entries[o.ID] = inventory.Entry{UID: "u", Digest: inventory.Sync{}.Digest(o), Mark: inventory.Mark(live)}
	}
	return demand.Ask(seen, want)
}

func TestWhatACommitActivatedStaysSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.files = `apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceDefinition
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  scope: Namespaced
  state: Active
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
		l := w.loop()
		l.Reconciler.Observer = &holding{world: w}
		w.run(t, l)
		first := w.noted()
		expect(t, "The pass that activates definitions reports them.", first[2:], "0s a: success: 1 active (+1), 0 inactive")
		time.Sleep(67 * time.Second)
		second := w.noted()
		if _, output, _ := strings.Cut(second[len(second)-1], " "); output != "a: success: 1 active (+1), 0 inactive" {
			t.Errorf("The pass after it says the same of the same commit, or its status would flap: %q", second)
		}
		w.set(func() { w.revision = "b" })
		time.Sleep(67 * time.Second)
		third := w.noted()
		if _, output, _ := strings.Cut(third[len(third)-1], " "); output != "b: success: 1 active, 0 inactive" {
			t.Errorf("The next commit activates nothing: %q", third)
		}
	})
}

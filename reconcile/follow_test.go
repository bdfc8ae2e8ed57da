package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/memo"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"
)

// A pullForge is a repository with pull requests and the forge that lists them. It logs what happens there.
type pullForge struct {
	mu      sync.Mutex
	log     []string          // such as "7 head success: …"
	commits map[string]string // content of the only file, by commit
	resolve map[string]string // refs
	tip     string            // of main
	open    []Request
	away    error            // of Open
	unsaid  error            // of every publication
	lost    map[string]error // errors of Fetch, by commit
	woken   chan struct{}
	events  []Event

	registry func(packages.Request) error // why a package cannot be read; nil if there is no registry
}

const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {key: %s}\n"

func newPullForge(open ...Request) *pullForge {
	y := &pullForge{
		tip: "t1", open: open, resolve: map[string]string{}, lost: map[string]error{}, woken: make(chan struct{}, 1),
		commits: map[string]string{"t1": fmt.Sprintf(settings, "base")},
	}
	for _, q := range open {
		y.commits[q.Head] = fmt.Sprintf(settings, q.Head)
	}
	return y
}

func (y *pullForge) note(format string, args ...any) {
	y.log = append(y.log, fmt.Sprintf(format, args...))
}

func (y *pullForge) Fetch(_ context.Context, ref string) (render.Input, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if err := y.lost[ref]; err != nil {
		return render.Input{}, err
	}
	if ref == "panics" {
		manifest.Each(2, func(int) { panic("a nil map") })
	}
	in := render.Input{Revision: ref, Files: hashed{fstest.MapFS{"a.yaml": {Data: []byte(y.commits[ref])}}}, Packages: []packages.Image{}}
	if y.registry == nil {
		return in, nil
	}
	docs, err := render.Read(in, render.Options{})
	for _, r := range docs.Missing() {
		in.Packages = append(in.Packages, packages.Image{Request: r, Version: r.Version, Err: y.registry(r)})
	}
	return in, err
}

// unreachable is the error of a registry that may respond later.
type unreachable struct{}

func (unreachable) Error() string { return "503 Service Unavailable" }
func (unreachable) Outage() bool  { return true }

func (y *pullForge) Tip(_ context.Context, ref string) (string, string, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	switch ref {
	case "v1":
		return "", "", nil
	case "staging":
		return "staging", "s1", nil
	}
	return "main", y.tip, nil
}

func (y *pullForge) Resolve(_ context.Context, ref string) (string, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if to := y.resolve[ref]; to != "" {
		return to, nil
	}
	if _, ok := y.commits[ref]; ok {
		return ref, nil
	}
	return "", errBoom
}

func (y *pullForge) MergeBase(_ context.Context, _, head string) (string, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return "t1", y.lost[head]
}

func (y *pullForge) Forget(_ context.Context, commit string) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.note("forget %s", commit)
	return nil
}

func (y *pullForge) Open(context.Context) ([]Request, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return slices.Clone(y.open), y.away
}

func (y *pullForge) Publisher(of Request, targets []string) PreviewPublisher {
	return pullPublisher{y, of, targets}
}

// A pullPublisher publishes for one pull request.
type pullPublisher struct {
	*pullForge
	of      Request
	targets []string
}

func (w pullPublisher) Pending(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unsaid == nil {
		w.note("%d pending", w.of.Number)
	}
	return w.unsaid
}

func (w pullPublisher) Waiting(_ context.Context, why string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("%d %s", w.of.Number, why)
	return w.unsaid
}

// panickingHead is a head whose report causes a panic.
const panickingHead = "panicking"

func (w pullPublisher) Publish(_ context.Context, all report.Combined) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of.Head == panickingHead {
		panic("a nil comment")
	}
	status := all.Status()
	w.note("%d %s %s: %s", w.of.Number, w.of.Head, status.State, status.Description)
	for _, r := range all.Reports {
		if r.Preview != nil && r.Preview.Moved != "" {
			w.note("%d %s", w.of.Number, r.Preview.Moved)
		}
	}
	return w.unsaid
}

// happens waits, and returns the log since the previous call.
func (y *pullForge) happens(after time.Duration) []string {
	time.Sleep(after)
	synctest.Wait()
	y.mu.Lock()
	defer y.mu.Unlock()
	log := y.log
	y.log = nil
	return log
}

func (y *pullForge) set(change func()) {
	y.mu.Lock()
	defer y.mu.Unlock()
	change()
}

// run runs a PreviewLoop until the test ends.
func (y *pullForge) run(t *testing.T, change func(*PreviewLoop)) {
	t.Helper()
	f := PreviewLoop{
		Syncs:    []PreviewedSync{{Reconciler: Reconciler{Source: y, Sync: inventory.Sync{Namespace: "ns", Name: "prod"}, Options: render.Options{Memo: new(memo.Memory)}}, Origin: y, Ref: "main"}},
		Requests: y, Interval: time.Minute, Woken: y.woken,
		OnEvent: func(e Event) { y.set(func() { y.events = append(y.events, e) }) },
	}
	if change != nil {
		change(&f)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// A laterError passes.
type laterError time.Duration

func (e laterError) Error() string             { return "later" }
func (e laterError) RetryAfter() time.Duration { return time.Duration(e) }

const changes = "success: Look: changes data.key (base → h7) of ConfigMap b/a; 1 object"

var seven = Request{Number: 7, Head: "h7", Target: "main"}

func TestFollowerEveryHeadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven, Request{Number: 6, Head: "h6", Target: "release"})
		y.run(t, nil)
		expect(t, "A pull request into the followed branch is previewed; others are not.", y.happens(time.Second), "7 pending", "7 h7 "+changes)
		expect(t, "A head that was previewed is not previewed again.", y.happens(time.Hour))
		y.set(func() {
			y.open[0].Head, y.commits["h8"] = "h8", y.commits["t1"]
			y.woken <- struct{}{}
		})
		expect(t, "A new head is previewed at the next event, and the results for the old one are removed.", y.happens(time.Second),
			"forget h7", "7 pending", "7 h8 success: Safe: nothing of this sync changes")
		y.set(func() { y.open = nil })
		expect(t, "The results for a closed pull request are removed.", y.happens(70*time.Second), "forget h8")
	})
}

func TestFollowerNoBranch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven)
		y.run(t, func(f *PreviewLoop) { f.Syncs[0].Ref = "v1" })
		expect(t, "A sync that follows a tag gets no previews.", y.happens(time.Hour))
	})
}

func TestFollowerTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven)
		y.open = nil
		y.run(t, func(f *PreviewLoop) { f.Interval = time.Hour })
		y.happens(time.Minute)
		y.set(func() { y.woken <- struct{}{} })
		time.Sleep(500 * time.Millisecond)
		y.set(func() { y.open = []Request{seven} })
		expect(t, "Some forges send the event before their API returns the new head.", y.happens(time.Second), "7 pending", "7 h7 "+changes)
	})
}

func TestFollowerBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven)
		y.commits["h7"] = "apiVersion: v1\nkind: [\n"
		y.run(t, nil)
		log := y.happens(time.Hour)
		if len(log) != 2 || !strings.HasPrefix(log[1], "7 h7 error: Blocked: a.yaml:") {
			t.Errorf("A head that cannot be rendered gets one error with the place: %q", log)
		}
	})
}

func TestFollowerPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(Request{Number: 8, Head: "panics", Target: "main"}, seven)
		y.run(t, nil)
		expect(t, "A head that causes a panic is one error, and the others are previewed.", y.happens(time.Hour),
			"8 pending", "8 panics error: Blocked: the preview ended in a defect of Headgate: a nil map", "7 pending", "7 h7 "+changes)
	})
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(Request{Number: 8, Head: panickingHead, Target: "main"}, seven)
		y.run(t, nil)
		expect(t, "A head whose findings cannot be reported does not affect the others.", y.happens(time.Hour), "8 pending", "7 pending", "7 h7 "+changes)
		previewed := slices.DeleteFunc(y.events, func(e Event) bool { return e.Kind != Previewed || e.Pull != 8 })
		if len(previewed) != 1 || !strings.Contains(previewed[0].Err.Error(), "a defect of Headgate: a nil comment") {
			t.Errorf("and the operator learns of that once: %v", previewed)
		}
	})
}

func TestFollowerUnfetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven)
		y.lost["h7"] = errBoom
		y.run(t, nil)
		for _, s := range y.happens(2 * time.Minute) {
			if s != "7 pending" {
				t.Errorf("It may be had in a moment: %s", s)
			}
		}
		log := slices.DeleteFunc(y.happens(time.Hour), func(s string) bool { return s == "7 pending" })
		expect(t, "A head that cannot be fetched is tried for some minutes, and then reported once.", log, "7 h7 error: Blocked: boom")
		if len(y.events) != 2 || y.events[0].Err == nil {
			t.Errorf("and so it is told: %v", y.events)
		}
	})
}

func TestFollowerUnreadPackage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven)
		y.commits["h7"] = "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: sea}\nspec: {package: registry.example.org/sea:v1}\n"
		y.run(t, func(f *PreviewLoop) { f.Syncs[0].Reconciler.Options.Owner = render.OwnerCrossplane })
		const unread = "7 h7 error: Blocked: cannot read 1 package, deletes ConfigMap b/a, adds 1 warning: package registry.example.org/sea:v1 cannot be read: it was not looked up"
		counts := map[string]int{}
		for _, s := range y.happens(time.Hour) {
			counts[s]++
		}
		if counts[unread] != mostTries || len(counts) != 2 {
			t.Errorf("It says so at once, and looks for some minutes whether the registry is back: %v", counts)
		}
	})
}

const sea = "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: sea}\nspec: {package: registry.example.org/sea:v1}\n"

func TestFollowerRegistryOutage(t *testing.T) {
	const (
		waits = "7 waiting for a registry: package registry.example.org/sea:v1 cannot be read: 503 Service Unavailable"
		fails = "7 h7 error: Blocked: cannot read 1 package, deletes ConfigMap b/a, adds 1 warning: package registry.example.org/sea:v1 cannot be read: "
		gone  = fails + "404 Not Found"
	)
	cases := map[string]struct {
		reason string
		outage int // number of failing attempts to reach the registry
		want   []string
	}{
		"Short": {
			reason: "A status that fails because of an outage of seconds blocks a merge for nothing.",
			outage: 2,
			want:   []string{"7 pending", waits, "7 pending", waits, "7 pending", gone, "7 pending", gone, "7 pending", gone, "7 pending", gone},
		},
		"Long": {
			reason: "After some minutes the user must learn of the outage, and the preview follows when the registry responds.",
			outage: mostTries + 2,
			want: slices.Concat(slices.Repeat([]string{"7 pending", waits}, mostTries-1),
				slices.Repeat([]string{"7 pending", fails + "503 Service Unavailable"}, 3), []string{"7 pending", gone}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newPullForge(seven)
				y.commits["h7"] = sea
				y.down(tc.outage)
				y.run(t, func(f *PreviewLoop) { f.Syncs[0].Reconciler.Options.Owner = render.OwnerCrossplane })
				expect(t, tc.reason, y.happens(3*time.Hour), tc.want...)
			})
		})
	}
}

// down makes the registry unreachable for a number of requests, after which it responds with 404 to every package. It returns a
// counter of the requests.
func (y *pullForge) down(requests int) *int {
	tries := 0
	y.registry = func(packages.Request) error {
		if tries++; tries <= requests {
			return unreachable{}
		}
		return errors.New("404 Not Found")
	}
	return &tries
}

// If Headgate makes the CRDs, a commit with an unknown package is an error, in the base as well as the head.
func TestFollowerRegistryOutageOfHeadgate(t *testing.T) {
	const (
		unread = "a.yaml:4: package registry.example.org/sea:v1 cannot be read: "
		ours   = "; this sync would have to create the CRDs of its definitions"
	)
	for name, tc := range map[string]struct{ base, head, want string }{
		"Head": {settings, sea, "7 h7 error: Blocked: " + unread + "404 Not Found" + ours},
		"Base": {sea, settings, "7 h7 success: Look: repairs the target branch, which cannot be rendered; 0 objects"},
		"Both": {sea, sea + "# more\n", "7 h7 error: Blocked: " + unread + "404 Not Found" + ours},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newPullForge(seven)
				y.commits["t1"], y.commits["h7"] = strings.ReplaceAll(tc.base, "%s", "a"), strings.ReplaceAll(tc.head, "%s", "b")
				down := true
				y.registry = func(packages.Request) error {
					if down {
						return unreachable{}
					}
					return errors.New("404 Not Found")
				}
				y.run(t, nil)
				expect(t, "The registry may answer in a moment, so the status stays pending.", y.happens(4*time.Second), "7 pending", "7 waiting for a registry: "+unread+"503 Service Unavailable"+ours)
				y.set(func() { down = false })
				expect(t, "A final answer by the registry is reported.", y.happens(time.Hour), "7 pending", tc.want)
			})
		})
	}
}

// A single run in a pipeline also waits, and then reports the outage.
func TestMergingWaitsForRegistry(t *testing.T) {
	waits := []time.Duration{5 * time.Second, 15 * time.Second}
	cases := map[string]struct {
		reason string
		outage int
		tries  int
		took   time.Duration
		unread string
	}{
		"Short":  {reason: "The registry responds at the third attempt.", outage: 2, tries: 3, took: 20 * time.Second, unread: "404 Not Found"},
		"Long":   {reason: "The registry stays down.", outage: 99, tries: 3, took: 20 * time.Second, unread: "503 Service Unavailable"},
		"Answer": {reason: "A response is final and needs no retry.", outage: 0, tries: 1, unread: "404 Not Found"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newPullForge(seven)
				y.commits["h7"] = sea
				tries := y.down(tc.outage)
				r := Reconciler{Source: y, Sync: inventory.Sync{Namespace: "ns", Name: "prod"}, Options: render.Options{Owner: render.OwnerCrossplane}}
				began := time.Now()
				got, err := r.Merging(t.Context(), Merge{History: y, Into: "t1", Head: "h7", Publisher: y.Publisher(seven, nil), Waits: waits})
				if err != nil || *tries != tc.tries || time.Since(began) != tc.took {
					t.Errorf("%s: %d tries in %s, error %v", tc.reason, *tries, time.Since(began), err)
				}
				unread := got.Unread()
				if len(unread) != 1 || !strings.Contains(unread[0].Unknown, tc.unread) {
					t.Errorf("%s: %+v", tc.reason, unread)
				}
			})
		})
	}
	t.Run("Cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			y := newPullForge(seven)
			y.commits["h7"] = sea
			y.registry = func(packages.Request) error { return unreachable{} }
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			r := Reconciler{Source: y, Sync: inventory.Sync{Namespace: "ns", Name: "prod"}, Options: render.Options{Owner: render.OwnerCrossplane}}
			if _, err := r.Merging(ctx, Merge{History: y, Into: "t1", Head: "h7", Waits: waits}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a user who interrupts it does not wait: %v", err)
			}
		})
	})
}

func TestFollowerOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven)
		y.unsaid = laterError(2 * time.Minute)
		y.run(t, nil)
		expect(t, "The loop waits as long as the forge demands.", y.happens(time.Minute))
		y.set(func() { y.unsaid = nil; y.woken <- struct{}{} })
		expect(t, "Once the forge answers again, the pending status is posted.", y.happens(3*time.Minute), "7 pending", "7 h7 "+changes)
		y.set(func() {
			y.away, y.open = laterError(10*time.Minute), []Request{{Number: 9, Head: "h7", Target: "main"}}
		})
		expect(t, "While the forge cannot list pull requests, no results are removed.", y.happens(5*time.Minute))
		y.set(func() { y.away = nil; y.woken <- struct{}{} })
		expect(t, "A webhook does not shorten the wait that the forge demanded.", y.happens(time.Minute))
		if log := y.happens(10 * time.Minute); len(log) != 3 || log[2] != "9 h7 "+changes {
			t.Errorf("Then it goes on: %q", log)
		}
	})
}

func TestFollowerRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven)
		y.unsaid = errors.New("the token may not")
		y.run(t, nil)
		expect(t, "A final refusal by the forge is reported once.", y.happens(time.Hour), "7 h7 "+changes)
	})
}

// tokenError refuses a token, which someone may replace.
type tokenError struct{}

func (tokenError) Error() string      { return "403 Forbidden" }
func (tokenError) TokenRefused() bool { return true }

// Nobody pushes again because a token was revoked. When it is replaced, each head gets its preview, and was read once.
func TestFollowerTokenIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven)
		y.run(t, nil)
		y.happens(time.Second)
		y.set(func() {
			y.unsaid, y.open = tokenError{}, []Request{{Number: 9, Head: "h7", Target: "main"}}
		})
		y.happens(24 * time.Hour)
		y.set(func() { y.unsaid = nil })
		expect(t, "The preview is published when the token is replaced.", y.happens(10*time.Minute), "9 pending", "9 h7 "+changes)
		expect(t, "Then it stays.", y.happens(time.Hour))
	})
}

func TestFollowerFork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fork := Request{Number: 8, Head: "h8", Target: "main", Fork: true}
		y := newPullForge(fork, seven)
		y.run(t, nil)
		expect(t, "The head of a fork is not fetched, and the reason is reported.", y.happens(time.Hour),
			"7 pending", "7 h7 "+changes, "8 h8 error: Blocked: not previewed: the head is in a fork; to preview forks, set forkPreviews in the Sync")
	})
}

func TestFollowerForkAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(Request{Number: 8, Head: "h8", Target: "main", Fork: true}, seven)
		public := newPullForge()
		public.commits["h8"] = "apiVersion: v1\nkind: [\n"
		y.run(t, func(f *PreviewLoop) {
			forks := f.Syncs[0].Reconciler
			forks.Source = public
			f.Syncs[0].Forks = &forks
		})
		log := y.happens(time.Hour)
		if len(log) != 4 || log[1] != "7 h7 "+changes || !strings.HasPrefix(log[3], "8 h8 error: Blocked: a.yaml:") {
			t.Errorf("It is read by what has no credentials, and its base, too: %q", log)
		}
	})
}

func TestFollowerMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open []Request
		for n := 1200; n > 0; n-- {
			open = append(open, Request{Number: n, Head: fmt.Sprint("h", n), Target: "main", Fork: n > 20})
		}
		y := newPullForge(open...)
		y.run(t, nil)
		var lines []string
		for _, s := range y.happens(time.Hour) {
			if !strings.HasSuffix(s, "pending") {
				lines = append(lines, s)
			}
		}
		if len(lines) != mostRequests || !strings.HasPrefix(lines[0], "20 h20 ") || !strings.HasPrefix(lines[20], "1200 h1200 ") || !strings.HasPrefix(lines[999], "221 h221 ") {
			t.Errorf("Those of people who may push come first, then the newest of the others: %d, %q", len(lines), lines)
		}
		told := slices.DeleteFunc(y.events, func(e Event) bool { return e.Kind != PullsFailed })
		if len(told) != 1 || told[0].Err.Error() != "1200 pull requests are open: the newest 1000 are previewed, those of forks last" {
			t.Errorf("That there are more is told, once: %v", told)
		}
	})
}

func TestFollowerTargetMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven)
		y.run(t, nil)
		y.happens(time.Second)
		y.set(func() { y.tip, y.commits["t2"] = "t2", fmt.Sprintf(settings, "other") })
		expect(t, "A change of the target that affects no active definition needs no new preview.", y.happens(2*time.Minute))
		y.set(func() {
			y.tip, y.commits["t3"] = "t3", "apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: a}\nspec: {activate: [a.b.c]}\n"
		})
		expect(t, "A change of the target that affects an active definition needs a new preview.", y.happens(2*time.Minute), "7 pending", "7 h7 "+changes,
			"7 the target changed policies since this branch left it (t3): merge the target in to see both together")
	})
}

func TestFollowerMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merge := seven
		merge.Merge = "refs/pull/7/merge"
		y := newPullForge(merge)
		y.commits["m7"] = y.commits["t1"]
		y.resolve["refs/pull/7/merge"], y.resolve["m7^2"] = "m7", "h6"
		y.run(t, nil)
		expect(t, "A merge commit of an older head is not used.", y.happens(time.Second), "7 pending", "7 h7 "+changes)
		y.set(func() {
			y.open[0].Head, y.commits["h8"] = "h8", y.commits["h7"]
			y.resolve["m7^2"] = "h8"
		})
		expect(t, "The merge commit of the forge is previewed, and the status is posted for the head.", y.happens(70*time.Second),
			"forget h7", "7 pending", "7 h8 success: Safe: nothing of this sync changes")
	})
}

// A commentingForge counts the requests for comments.
type commentingForge struct {
	*pullForge

	questions int
	heard     bool
}

func (h *commentingForge) Publisher(of Request, targets []string) PreviewPublisher {
	return commentingPublisher{pullPublisher{h.pullForge, of, targets}, h}
}

type commentingPublisher struct {
	pullPublisher

	by *commentingForge
}

func (w commentingPublisher) Heard(context.Context, bool) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.by.questions++
	return w.by.heard, nil
}

// The timestamps of forges have no fractions, and a user may comment in the second in which the pull request was opened.
func TestFollowerCommentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := seven
		at.Updated = time.Now()
		h := &commentingForge{pullForge: newPullForge(at)}
		h.run(t, func(f *PreviewLoop) { f.Requests = h })
		expect(t, "The head is previewed.", h.happens(time.Second), "7 pending", "7 h7 "+changes)
		h.set(func() { h.heard = true })
		expect(t, "The comment is answered although the pull request has the same update time.", h.happens(70*time.Second), "7 pending", "7 h7 "+changes)
	})
}

// Some forges do not reveal that a user commented. Headgate asks them for comments, but rarely, because their rate limits are low.
func TestFollowerSilentForge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &commentingForge{pullForge: newPullForge(seven)}
		h.run(t, func(f *PreviewLoop) { f.Requests = h })
		expect(t, "The head is previewed.", h.happens(time.Second), "7 pending", "7 h7 "+changes)
		expect(t, "Without a command, the head is not previewed again.", h.happens(time.Hour))
		h.set(func() {
			if h.questions < 3 || h.questions > 12 {
				t.Errorf("asked %d times in an hour", h.questions)
			}
			h.heard = true
		})
		if got := h.happens(15 * time.Minute); len(got) == 0 || got[0] != "7 pending" {
			t.Errorf("a command is answered: %q", got)
		}
	})
}

// second returns a further sync that reads its own files from the same commits.
func (y *pullForge) second(name string, commits map[string]string) PreviewedSync {
	other := newPullForge()
	other.commits = commits
	return PreviewedSync{Reconciler: Reconciler{Source: other, Sync: inventory.Sync{Namespace: "ns", Name: name}, Options: render.Options{Memo: new(memo.Memory)}}, Origin: y, Ref: "main"}
}

func TestFollowerTogether(t *testing.T) {
	const same = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: b}\n"
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven)
		looks := 0
		y.run(t, func(f *PreviewLoop) {
			f.Syncs = append(f.Syncs, y.second("idle", map[string]string{"t1": same, "h7": same, "h8": same}))
			f.Requests = countingLooks{y, &looks}
		})
		expect(t, "All syncs share one status.", y.happens(time.Second), "7 pending", "7 h7 success: Look: changes data.key (base → h7) of ConfigMap b/a in prod; 1 of 2 syncs changes")
		y.set(func() { y.open[0].Head, y.commits["h8"] = "h8", y.commits["t1"] })
		expect(t, "The status is posted even if nothing of any sync changes.", y.happens(70*time.Second), "forget h7", "7 pending", "7 h8 success: Safe: nothing of any sync changes")
		if looks > 3 {
			t.Errorf("the forge lists its pull requests once for all syncs, and was asked %d times in 70 seconds", looks)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven)
		y.run(t, func(f *PreviewLoop) {
			other := y.second("broken", map[string]string{"t1": same, "h7": "apiVersion: v1\nkind: [\n"})
			other.Reconciler.Sync.Name = "broken"
			f.Syncs = append(f.Syncs, other)
		})
		log := y.happens(time.Hour)
		if len(log) != 2 || !strings.HasPrefix(log[1], "7 h7 error: Blocked: cannot preview broken: a.yaml:") || !strings.HasSuffix(log[1], "; 2 of 2 syncs change") {
			t.Errorf("One that cannot be rendered hides no other: %q", log)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven, Request{Number: 8, Head: "h8", Target: "main", Fork: true})
		y.run(t, func(f *PreviewLoop) {
			f.Syncs = append(f.Syncs, PreviewedSync{ID: "stalled", Reconciler: Reconciler{Sync: inventory.Sync{Name: "stalled"}}, Origin: y, Ref: f.Syncs[0].Ref, Away: "no such account"})
		})
		expect(t, "One that does not run is named, and blocks nothing.", y.happens(time.Second),
			"7 pending", "7 h7 success: Look: cannot preview stalled: the Sync does not run: no such account; 1 of 2 syncs changes",
			"8 pending", "8 h8 error: Blocked: cannot preview prod: not previewed: the head is in a fork; to preview forks, set forkPreviews in the Sync; 1 of 2 syncs changes")
		y.set(func() { y.tip, y.commits["t2"] = "t2", fmt.Sprintf(settings, "another base") })
		expect(t, "If the target moves, nothing is read for it.", y.happens(70*time.Second))
	})
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven)
		y.run(t, func(f *PreviewLoop) {
			f.Syncs = append(f.Syncs, y.second("broken", map[string]string{"t1": "apiVersion: v1\nkind: [\n", "h7": "apiVersion: v1\nkind: [\n"}))
		})
		expect(t, "An error that the target has, too, does not block the pull request.", y.happens(time.Hour), "7 pending", "7 h7 success: Look: changes data.key (base → h7) of ConfigMap b/a in prod; 1 of 2 syncs changes")
	})
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven)
		made := 0
		y.run(t, func(f *PreviewLoop) {
			first := f.Syncs[0]
			f.Syncs = nil
			for i := range 5 {
				one := first
				one.Reconciler.Sync.Name = fmt.Sprint("sync", i)
				one.Elsewhere = func(context.Context, bool, string, string) (report.Report, error) {
					made++
					return report.Report{}, StoppedError{"over the memory limit of 1 GiB"}
				}
				f.Syncs = append(f.Syncs, one)
			}
		})
		expect(t, "A head that stops one preview is not previewed for other syncs.", y.happens(time.Hour),
			"7 pending", "7 h7 error: Blocked: the preview was stopped: over the memory limit of 1 GiB")
		if made != 1 {
			t.Errorf("%d previews were made", made)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven)
		counted := map[string]int{}
		y.run(t, func(f *PreviewLoop) {
			first := f.Syncs[0]
			f.Syncs = nil
			for _, name := range []string{"good", "away"} {
				one := first
				one.Reconciler.Sync.Name = name
				one.Elsewhere = func(context.Context, bool, string, string) (report.Report, error) {
					if counted[name]++; name == "away" && counted[name] < 3 {
						return report.Report{}, unfetched{errBoom}
					}
					return report.Repaired(one.Reconciler.Sync, render.Desired{}, "", errBoom, nil, nil), nil
				}
				f.Syncs = append(f.Syncs, one)
			}
		})
		log := slices.DeleteFunc(y.happens(time.Hour), func(s string) bool { return s == "7 pending" })
		if len(log) != 1 || counted["good"] != 1 || counted["away"] != 3 {
			t.Errorf("Only what could not be had is tried again, and nothing is published before: %q, %v", log, counted)
		}
	})
}

// countingLooks counts the requests for the list of pull requests.
type countingLooks struct {
	*pullForge
	n *int
}

func (c countingLooks) Open(ctx context.Context) ([]Request, error) {
	*c.n++
	return c.pullForge.Open(ctx)
}

// Syncs of one repository may follow several branches.
func TestFollowerBranches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(seven)
		y.run(t, func(f *PreviewLoop) {
			other := y.second("tagged", nil)
			other.Ref = "v1"
			f.Syncs = append([]PreviewedSync{other}, f.Syncs...)
		})
		expect(t, "Only syncs that follow the target branch are previewed.", y.happens(time.Second), "7 pending", "7 h7 "+changes)
	})
}

// A loop that takes the place of another one previews only what changed, and all that other syncs follow now.
func TestMemoryOfPreviews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(openedBy(1, "ann-1s"))
		e := &elsewhere{pullForge: y, authors: map[string]int{}}
		var memory PreviewMemory
		turns := 0
		during := func(ids ...string) []string {
			t.Helper()
			f := PreviewLoop{Requests: y, Interval: time.Minute, Memory: &memory, Turn: func(ctx context.Context) (func(), error) {
				turns++
				return func() {}, ctx.Err()
			}}
			for _, id := range ids {
				f.Syncs = append(f.Syncs, PreviewedSync{ID: id, Reconciler: Reconciler{Source: y, Sync: inventory.Sync{Name: id}}, Origin: y, Elsewhere: e.preview})
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				f.Run(ctx)
			}()
			log := published(y.happens(30 * time.Second))
			stop()
			<-ended
			return log
		}
		for _, tc := range []struct {
			reason string
			syncs  []string
			want   []string
		}{
			{"A loop begins.", []string{"a"}, []string{"1 ann-1s"}},
			{"Nothing changed.", []string{"a"}, nil},
			{"A sync joins.", []string{"a", "b"}, []string{"1 ann-1s"}},
			{"A sync leaves.", []string{"b"}, []string{"1 ann-1s"}},
			{"Nothing changed again.", []string{"b"}, nil},
		} {
			if diff := cmp.Diff(tc.want, during(tc.syncs...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		}
		if turns != 3 {
			t.Errorf("%d previews had a turn", turns)
		}
	})
}

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"
)

// A Request is an open pull request.
type Request struct {
	Number int
	Head   string // the newest commit of its branch
	Target string // the branch to merge into
	Fork   bool   // its branch is in another repository than Target
	Merge  string // the ref of a merge commit for it, if the forge makes one; otherwise ""
	Queued bool   // Head is the commit of a merge queue for it
	Author string // the ID of the user who opened it; "" if that is not known

	Updated time.Time // when it was last changed or commented on; zero if that is not known
}

// same reports whether two requests have the same preview. Only Updated may differ.
func (q Request) same(as Request) bool {
	q.Updated = as.Updated
	return q == as
}

// Requests gives access to the pull requests of a repository. Open lists them, the newest first. An error of either method is
// transient if it has a method RetryAfter() time.Duration, like the errors of an outbox.
type Requests interface {
	Open(ctx context.Context) ([]Request, error)
	// Publisher returns the publisher of a pull request. targets are those of the status of its head.
	Publisher(of Request, targets []string) PreviewPublisher
}

// An Origin is the repository of pull requests.
type Origin interface {
	History
	// Tip returns the branch that a ref names, "" if it names none, and the newest commit of the ref.
	Tip(ctx context.Context, ref string) (branch, commit string, err error)
	// Forget allows the repository to drop a commit.
	Forget(ctx context.Context, commit string) error
}

// A PreviewLoop previews the pull requests of a repository for every sync that follows their target. It previews every new head
// once, and again if the target changed in a way that affects which definitions are active. All syncs share one comment and one
// status. Published previews stay on the forge, so publishing the same ones after a restart changes nothing. It makes two previews at
// a time if they have processes of their own, otherwise one, in parallel to the passes of Loops.
type PreviewLoop struct {
	Syncs    []PreviewedSync // at least one
	Requests Requests
	Interval time.Duration   // between looks
	Woken    <-chan struct{} // receives when a pull request may have changed; may be nil
	Most     int             // maximum number of pull requests to preview; default 1,000
	OnEvent  func(Event)     // receives what the loop does; may be nil
	Memory   *PreviewMemory  // what an earlier loop with the same Requests knew; may be nil
	// Turn waits until a preview in a process of its own may begin, and returns a function that ends its turn. It is nil if only the loop
	// limits how many there are.
	Turn func(ctx context.Context) (end func(), err error)
}

// A PreviewMemory is what a PreviewLoop knows of the pull requests, for the next loop with the same Requests. The Syncs may be others: a
// pull request is previewed again if other syncs follow its target. The zero value knows nothing.
type PreviewMemory struct {
	turns   turns
	known   map[pullKey]*previewedPull
	decided map[string]headStatus // the posted statuses of heads
	authors map[authored]bool     // answers about authors
}

// A PreviewedSync is a sync whose pull requests are previewed.
type PreviewedSync struct {
	ID         any // must be comparable; another one after every change of the sync, if the loop has a Memory
	Reconciler Reconciler
	Forks      *Reconciler // previews pull requests from forks; nil refuses them
	Origin     Origin      // must be comparable; equal for all syncs of one repository, which is then asked only once
	// Elsewhere previews the merge of two fetched commits in another process. If it is nil, this process does that.
	Elsewhere func(ctx context.Context, fork bool, into, head string) (report.Report, error)
	Ref       string // pull requests into this branch are previewed
	Away      string // why the sync does not run, and so does not preview; "" if it runs. ID, Reconciler.Sync, Origin and Ref are set
}

// refuses reports whether the sync does not preview a pull request, because it comes from a fork.
func (s PreviewedSync) refuses(q Request) bool { return q.Fork && s.Forks == nil && s.Away == "" }

// A followedSync is a sync that follows the target of a pull request.
type followedSync struct {
	PreviewedSync

	tip string // the newest commit of the target
}

const (
	mostRequests = 1000             // as many as a listing of a forge has
	mostTries    = 6                // tries of a head that cannot be fetched before the preview reports it: about five minutes
	aCall        = 30 * time.Second // the timeout of a request to the forge
	looksBetween = 10               // looks between requests for comments, if the forge does not show new ones
)

// errFork is why pull requests from forks get no preview. Their status is not a success, so a branch rule that requires the status
// also requires a preview.
var errFork = errors.New("not previewed: the head is in a fork; to preview forks, set forkPreviews in the Sync")

// Run previews until ctx is done.
func (f PreviewLoop) Run(ctx context.Context) {
	f.Interval, f.Most = cmp.Or(f.Interval, time.Minute), cmp.Or(f.Most, mostRequests)
	l := &previewing{PreviewLoop: f, PreviewMemory: cmp.Or(f.Memory, &PreviewMemory{}), running: map[pullKey]Request{}, ended: make(chan struct{}, 1)}
	if l.known == nil {
		l.known, l.decided, l.authors = map[pullKey]*previewedPull{}, map[string]headStatus{}, map[authored]bool{}
	}
	defer l.previews.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for ctx.Err() == nil {
		wait := l.look(ctx)
		woken := l.Woken
		switch {
		case l.failures > 0: // a webhook does not end the back-off
			woken = nil
		case l.news:
			l.soon = nil
		case len(l.soon) > 0:
			wait, l.soon = min(wait, l.soon[0]), l.soon[1:]
		}
		l.wait(ctx, time.After(wait), woken)
	}
}

// wait waits for a time, a webhook or the end of a preview. It reports whether a preview ended.
func (l *previewing) wait(ctx context.Context, until <-chan time.Time, woken <-chan struct{}) (ended bool) {
	woke := false
	l.unlocked(func() {
		select {
		case <-ctx.Done():
		case <-woken:
			woke = true
		case <-l.ended:
			ended = true
		case <-until:
		}
	})
	if woke {
		l.soon = lookAgain
	}
	return ended
}

// previewing is a running PreviewLoop.
type previewing struct {
	PreviewLoop
	*PreviewMemory // guarded by mu

	ended    chan struct{} // receives when a preview ended and another one waits
	previews sync.WaitGroup

	// mu guards everything below. Looks and previews hold it, except while they wait and while a head is fetched and read.
	mu      sync.Mutex
	running map[pullKey]Request // the pull requests that are being previewed
	waits   bool                // a preview waits for its turn
	soon    []time.Duration     // delays before the remaining looks after a webhook

	current  []Request    // the open pull requests that are previewed
	heads    []sharedHead // their heads
	failures int          // number of looks that failed in a row
	trouble  string       // the error of the last failed look
	crowded  bool         // more than Most pull requests are open, which was reported
	news     bool         // the last look found something to do
	moves    map[move]bool
	tips     map[branchOf]branch
}

// A branchOf is the ref that a sync follows, in a repository.
type branchOf struct {
	origin Origin
	ref    string
}

// A branch is a branch and its newest commit.
type branch struct{ name, tip string }

// A move is the change of a sync's branch since the commit that it was previewed with.
type move struct {
	sync inventory.Sync
	from string
}

// A previewedPull is the loop's record of a pull request.
type previewedPull struct {
	Request

	by       []any  // the IDs of the syncs that it is previewed for
	tip      string // the newest commit of its target at the preview
	done     bool
	verdict  report.Status // of the last preview
	asks     bool          // waits for an approval, or has one
	approved bool          // has an approval that can be withdrawn on the forge
	settle   bool          // the forge's timestamp may cover a later change, too, so look again
	looks    int           // number of looks since the preview, if the forge does not show when a pull request changed
	failures int           // number of failed tries in a row
	after    time.Time     // do not try again before this time

	explained bool // the status explains that it waits for the budget of its author

	made   map[inventory.Sync]report.Report // during retries: previews that need not be made again
	madeAt string                           // the newest commit of the target when they were made
}

// look previews the open pull requests that are new or changed. It returns how long to wait until the next look.
func (l *previewing) look(ctx context.Context) time.Duration {
	l.news, l.moves = false, map[move]bool{}
	open, err := l.open(ctx)
	if ctx.Err() != nil {
		return 0
	}
	if err != nil {
		l.failures++
		if l.trouble != err.Error() {
			l.trouble = err.Error()
			l.emit(Event{Kind: PullsFailed, Err: err})
		}
		asked, _ := patience(err)
		return max(asked, jitter(engine.BackOff(l.failures, firstPause, mostPause)))
	}
	l.failures, l.trouble = 0, ""
	l.forget(ctx, open)
	wait := jitter(l.Interval)
	l.current = l.chosen(open)
	l.heads = l.shareHeads(ctx)
	l.keepOpen()
	l.retarget(ctx)
	if l.serve(ctx) {
		wait = 0
	}
	for _, q := range l.current {
		if k := l.known[q.key()]; k != nil && !k.done && !l.runs(q.key()) {
			wait = min(wait, max(0, time.Until(k.after)))
		}
	}
	if ctx.Err() == nil {
		l.decide(ctx)
	}
	return wait
}

// open returns the open pull requests into a branch that a sync follows.
func (l *previewing) open(ctx context.Context) ([]Request, error) {
	asking, cancel := context.WithTimeout(ctx, 4*aCall)
	defer cancel()
	open, err := l.Requests.Open(asking)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	tips := map[branchOf]branch{}
	for _, s := range l.Syncs {
		of := branchOf{s.Origin, s.Ref}
		if _, known := tips[of]; known {
			continue
		}
		var b branch
		if b.name, b.tip, err = s.Origin.Tip(ctx, s.Ref); err != nil {
			return nil, err
		}
		tips[of] = b
	}
	l.tips = tips
	return slices.DeleteFunc(open, func(q Request) bool { return len(l.following(q)) == 0 }), nil
}

// following returns the syncs that follow the target of a pull request.
func (l *previewing) following(q Request) []followedSync {
	var all []followedSync
	for _, s := range l.Syncs {
		if b := l.tips[branchOf{s.Origin, s.Ref}]; b.name != "" && b.name == q.Target {
			all = append(all, followedSync{s, b.tip})
		}
	}
	return all
}

// chosen returns the pull requests to preview, newest first. Those of forks come last, because strangers may open any
// number.
func (l *previewing) chosen(open []Request) []Request {
	slices.SortStableFunc(open, func(a, b Request) int { return cmp.Compare(ofFork(a), ofFork(b)) })
	if crowded := len(open) > l.Most; crowded != l.crowded {
		l.crowded = crowded
		if crowded {
			l.emit(Event{Kind: PullsFailed, Err: fmt.Errorf("%d pull requests are open: the newest %d are previewed, those of forks last", len(open), l.Most)})
		}
	}
	return open[:min(len(open), l.Most)]
}

func ofFork(q Request) int {
	if q.Fork {
		return 1
	}
	return 0
}

// forget forgets the pull requests that are not open any more.
func (l *previewing) forget(ctx context.Context, open []Request) {
	for key, k := range l.known {
		if l.runs(key) {
			continue // it reads the commit
		}
		if !slices.ContainsFunc(open, func(q Request) bool { return q.key() == key }) {
			delete(l.known, key)
			l.drop(ctx, k)
			l.emit(Event{Kind: Forgotten, Pull: key.number, Revision: k.Head})
		}
	}
}

// drop forgets the commit of a pull request. Failures are ignored, because a commit that is kept takes little space.
func (l *previewing) drop(ctx context.Context, k *previewedPull) {
	ctx, cancel := context.WithTimeout(ctx, aCall)
	defer cancel()
	var forgot []Origin
	for _, s := range l.Syncs {
		if !slices.Contains(forgot, s.Origin) {
			forgot = append(forgot, s.Origin)
			_ = s.Origin.Forget(ctx, k.Head)
		}
	}
}

// due returns the record of a pull request that must be previewed; nil if the last preview of it still holds.
func (l *previewing) due(ctx context.Context, q Request) *previewedPull {
	syncs := l.following(q)
	k := l.known[q.key()]
	by := idsOf(syncs)
	switch {
	case k == nil, !slices.Equal(k.by, by):
		k = &previewedPull{Request: q, by: by, settle: true}
	case !k.same(q):
		if k.Head != q.Head {
			l.drop(ctx, k)
		}
		k = &previewedPull{Request: q, by: by, settle: true}
	case !k.done && time.Now().Before(k.after):
		return nil
	case k.done && l.heard(ctx, k, q):
	case k.done && k.tip == syncs[0].tip:
		return nil
	case k.done && !l.moved(ctx, k, syncs):
		k.tip = syncs[0].tip
		return nil
	}
	return k
}

// idsOf returns the IDs of syncs.
func idsOf(syncs []followedSync) []any {
	all := make([]any, len(syncs))
	for i, s := range syncs {
		all[i] = s.ID
	}
	return all
}

// previewNow previews a pull request for syncs. share is what this look knows of its head.
func (l *previewing) previewNow(ctx context.Context, q Request, k *previewedPull, syncs []followedSync, share share) {
	began := time.Now()
	combined, err := l.preview(ctx, k, syncs, hurried{l.Requests.Publisher(q, share.targets), share})
	if ctx.Err() != nil {
		return
	}
	of := func(holds func(report.Report) bool) bool { return slices.ContainsFunc(combined.Reports, holds) }
	again := slices.ContainsFunc(syncs, func(s followedSync) bool { return l.again(k, s.PreviewedSync, err) })
	unread := err == nil && of(func(r report.Report) bool { return len(r.Unread()) > 0 }) && k.mayTry() // the registry may be back soon
	out := of(func(r report.Report) bool { return r.Outage != "" })
	k.tip, k.done = syncs[0].tip, !unread && !again && !out
	k.verdict = combined.Status()
	k.asks = combined.Approval() != nil
	k.approved = of(func(r report.Report) bool { return slices.ContainsFunc(r.Approvals, report.Approved.OnForge) })
	if k.done {
		k.failures, k.made = 0, nil
		if !share.open {
			l.decided[q.Head] = share.status(k.verdict)
		}
	} else {
		asked, _ := patience(err)
		k.failures++
		k.after = time.Now().Add(max(asked, jitter(engine.BackOff(k.failures, firstPause, mostPause))))
	}
	if k.done || k.failures == 1 {
		l.emit(Event{Kind: Previewed, Pull: q.Number, Revision: q.Head, Preview: combined, Took: time.Since(began), Err: err})
	}
}

// mayTry reports whether a preview that failed is tried again soon.
func (k *previewedPull) mayTry() bool { return k.failures < mostTries-1 }

// A listener is a PreviewPublisher that can report whether there were relevant comments since the preview was published.
type listener interface {
	Heard(ctx context.Context, asks bool) (bool, error)
}

// heard reports whether people wrote comments that change what a pull request's preview shows.
func (l *previewing) heard(ctx context.Context, k *previewedPull, q Request) bool {
	fresh := !q.Updated.Equal(k.Updated)
	if q.Updated.IsZero() { // without the forge's timestamp, ask at every look while an approval is likely, otherwise rarely
		k.looks++
		fresh, k.settle = k.looks%looksBetween == 0, k.asks && !k.approved
	}
	if !fresh && !k.settle {
		return false
	}
	k.settle, k.Updated = fresh, q.Updated // the forge's timestamps are in seconds, so look once more
	by, ok := l.Requests.Publisher(k.Request, nil).(listener)
	switch {
	case !ok:
		return false
	case fresh && k.approved:
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, aCall)
	defer cancel()
	heard, err := by.Heard(ctx, k.asks)
	return heard || err != nil // the preview reports the error
}

// moved reports whether the target changed in a way that changes the preview.
func (l *previewing) moved(ctx context.Context, k *previewedPull, syncs []followedSync) bool {
	for _, s := range syncs {
		if s.Away != "" || s.refuses(k.Request) {
			continue
		}
		of := move{s.Reconciler.Sync, k.tip}
		moved, known := l.moves[of]
		if !known {
			var err error
			moved, err = s.Reconciler.Moved(ctx, k.tip, s.tip)
			moved = moved || err != nil // the preview reports the error
			l.moves[of] = moved
		}
		if moved {
			return true
		}
	}
	return false
}

// preview makes the previews of a pull request and publishes them.
func (l *previewing) preview(ctx context.Context, k *previewedPull, syncs []followedSync, by hurried) (report.Combined, error) {
	all := make([]onePreview, 0, len(syncs))
	refused, isolated := 0, false
	for _, s := range syncs {
		isolated = isolated || s.Elsewhere != nil
		if s.refuses(k.Request) {
			refused++
		}
		all = append(all, onePreview{s.PreviewedSync, k.Target, nil, func(ctx context.Context) (report.Report, error) { return l.one(ctx, k, s) }})
	}
	if refused == len(syncs) {
		combined := report.Combine([]report.Report{report.Failed(syncs[0].Reconciler.Sync, "", errFork).On(nil)})
		if err := by.Publish(ctx, combined); err != nil {
			return combined, unpublished{err}
		}
		return combined, nil
	}
	if isolated {
		combined, stopped, err := l.stopped(ctx, by, syncs[0].Reconciler.Sync)
		if stopped || err != nil {
			return combined, err
		}
	}
	return merging(ctx, by, func(s PreviewedSync, err error) bool { return ctx.Err() != nil || l.again(k, s, err) }, all)
}

// one makes the preview of a pull request for one sync.
func (l *previewing) one(ctx context.Context, k *previewedPull, s followedSync) (report.Report, error) {
	with := s.Reconciler
	switch {
	case s.Away != "":
		return report.Away(with.Sync, s.Away), nil
	case s.refuses(k.Request):
		return report.Failed(with.Sync, "", errFork), nil
	case k.Fork:
		with = *s.Forks
	}
	if r, ok := k.made[with.Sync]; ok && k.madeAt == s.tip {
		return r, nil
	}
	m := Merge{History: s.Origin, Into: s.tip}
	if s.Elsewhere != nil {
		m.Elsewhere = func(ctx context.Context, into, head string) (report.Report, error) {
			return s.Elsewhere(ctx, k.Fork, into, head)
		}
	}
	var r report.Report
	var err error
	l.unlocked(func() {
		m.Head = head(ctx, s.Origin, k.Request)
		r, err = waiting(with.merged(ctx, m))
	})
	if err == nil && len(r.Unread()) == 0 {
		if k.made == nil || k.madeAt != m.Into {
			k.made, k.madeAt = map[inventory.Sync]report.Report{}, m.Into
		}
		k.made[with.Sync] = r
	}
	return r, err
}

// A standing is a PreviewPublisher that can read the status that it published last, even in an earlier process.
type standing interface {
	Standing(ctx context.Context) (report.Status, error)
}

// stopped reports whether previewing this head has stopped its process before. That verdict is on the forge, and stays until the
// head changes.
func (l *previewing) stopped(ctx context.Context, by PreviewPublisher, s inventory.Sync) (report.Combined, bool, error) {
	result := report.Failed(s, "", errors.New("stopped"))
	known, ok := by.(standing)
	if !ok {
		return report.Combine([]report.Report{result}), false, nil
	}
	status, err := known.Standing(ctx)
	if err != nil {
		return report.Combine([]report.Report{result}), false, unpublished{err}
	}
	result.Verdict.Activation = status
	return report.Combine([]report.Report{result}), status.WasStopped(), nil
}

// head returns the commit to preview: the forge's merge commit if it merges the newest commit of the pull request, otherwise that
// newest commit.
func head(ctx context.Context, of Origin, q Request) string {
	if q.Merge == "" {
		return q.Head
	}
	merge, err := of.Resolve(ctx, q.Merge)
	if err != nil {
		return q.Head
	}
	if merged, err := of.Resolve(ctx, merge+"^2"); err != nil || merged != q.Head {
		return q.Head
	}
	return merge
}

// again reports whether to retry a preview although nothing changed: the forge asks to wait, or a server cannot be reached. Errors
// of the commit itself are permanent.
func (l *previewing) again(k *previewedPull, s PreviewedSync, err error) bool {
	silent, unsaid := errors.AsType[unpublished](err)
	if unsaid {
		if _, passes := patience(silent); passes {
			return true
		}
		if refusal, ok := errors.AsType[interface {
			error
			TokenRefused() bool
		}](silent.error); ok && refusal.TokenRefused() { // until the token is replaced, however long that takes
			return true
		}
	}
	switch {
	case !k.mayTry(), errors.As(err, new(StoppedError)), permanent(err):
		return false
	case errors.As(err, new(unfetched)), errors.As(err, new(outage)):
		return true
	case err == nil, unsaid, ofCommit(err), errors.As(err, new(engine.DefectError)):
		return false
	}
	return s.Reconciler.Cluster != nil // it may answer soon
}

// permanent reports whether a retry cannot help, for example because a pack exceeds a size limit.
func permanent(err error) bool {
	stays, ok := errors.AsType[interface {
		error
		Permanent() bool
	}](err)
	return ok && stays.Permanent()
}

func (l *previewing) emit(e Event) {
	if l.OnEvent != nil {
		l.OnEvent(e)
	}
}

// patience returns how long a forge asks to wait, and whether its error is transient.
func patience(err error) (time.Duration, bool) {
	if later, ok := errors.AsType[interface {
		error
		RetryAfter() time.Duration
	}](err); ok {
		return later.RetryAfter(), true
	}
	return 0, errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// A hurried publisher is a PreviewPublisher with a timeout for each request. Its status is that of the head.
type hurried struct {
	PreviewPublisher

	share share
}

func (h hurried) Pending(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, aCall)
	defer cancel()
	return h.PreviewPublisher.Pending(ctx)
}

func (h hurried) Waiting(ctx context.Context, why string) error {
	by, ok := h.PreviewPublisher.(waiter)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, aCall)
	defer cancel()
	return by.Waiting(ctx, why)
}

func (h hurried) Standing(ctx context.Context) (report.Status, error) {
	known, ok := h.PreviewPublisher.(standing)
	if !ok {
		return report.Status{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, aCall)
	defer cancel()
	return known.Standing(ctx)
}

func (h hurried) Approvals(ctx context.Context, all report.Combined) (map[inventory.Sync][]report.Approved, error) {
	by, ok := h.PreviewPublisher.(Approver)
	if !ok {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*aCall)
	defer cancel()
	return by.Approvals(ctx, all)
}

func (h hurried) Publish(ctx context.Context, all report.Combined) error {
	ctx, cancel := context.WithTimeout(ctx, 2*aCall)
	defer cancel()
	return h.PreviewPublisher.Publish(ctx, h.share.in(all))
}

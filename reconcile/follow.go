package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"headgate.dev/headgate/reconcile/report"
)

// A Request is a pull request that is open.
type Request struct {
	Number int
	Head   string // the newest commit of its branch
	Target string // the branch to merge into
	Fork   bool   // its branch is in another repository
	Merge  string // the ref of a commit that merges it, where the forge makes one

	Updated time.Time // when it changed, or was commented on, last; zero if that is not known
}

// same reports whether a request is for the same preview, whatever people said since.
func (q Request) same(as Request) bool {
	q.Updated = as.Updated
	return q == as
}

// Requests are the pull requests of a repository. Open lists them newest first; the errors of both
// pass if they have a method RetryAfter() time.Duration, as those of an outbox do.
type Requests interface {
	Open(ctx context.Context) ([]Request, error)
	Publisher(of Request) PreviewPublisher
}

// An Origin is the repository that pull requests are of.
type Origin interface {
	History
	// Tip is the branch that a ref names, "" where it names none, and the newest commit there.
	Tip(ctx context.Context, ref string) (branch, commit string, err error)
	// Forget ends that a commit is kept.
	Forget(ctx context.Context, commit string) error
}

// A PreviewLoop previews the pull requests into one branch: every new head once, and again if the branch went on in a
// way that decides which definitions are active. The forge keeps published previews, so publishing the same ones after
// a restart changes nothing. It makes one preview at a time, beside the passes of a Loop.
type PreviewLoop struct {
	Reconciler Reconciler
	Forks      *Reconciler // of pull requests from forks; nil: those are refused
	Origin     Origin
	Requests   Requests
	// Elsewhere previews the merge of two commits that are fetched, in another process; nil: this process does.
	Elsewhere func(ctx context.Context, fork bool, into, head string) (report.Report, error)
	Ref       string          // pull requests into this branch are previewed
	Interval  time.Duration   // between looks
	Woken     <-chan struct{} // receives when a pull request may have changed; may be nil
	Most      int             // pull requests that are previewed; default 100
	OnEvent   func(Event)     // receives what the loop does; may be nil
}

const (
	mostRequests = 100
	mostTries    = 6                // of a head that cannot be fetched, before the preview reports it: about five minutes
	aCall        = 30 * time.Second // the timeout of a request to the forge
	looksBetween = 10               // between questions for comments, if nothing shows that there are any
)

// errFork is why a pull request gets no preview. Its status is no success: a branch rule that requires it
// before a merge requires a preview.
var errFork = errors.New("not previewed: the head is in a fork; to preview forks, set forkPreviews in the Sync")

// Run previews until ctx is done.
func (f PreviewLoop) Run(ctx context.Context) {
	f.Interval, f.Most = cmp.Or(f.Interval, time.Minute), cmp.Or(f.Most, mostRequests)
	l := &previewing{PreviewLoop: f, known: map[int]*previewedPull{}}
	var again []time.Duration // waits until the next looks after a webhook
	for ctx.Err() == nil {
		wait := l.look(ctx)
		woken := l.Woken
		switch {
		case l.failures > 0: // no webhook ends the back-off
			woken = nil
		case l.news:
			again = nil
		case len(again) > 0:
			wait, again = min(wait, again[0]), again[1:]
		}
		select {
		case <-ctx.Done():
		case <-woken:
			again = lookAgain
		case <-time.After(wait):
		}
	}
}

// previewing is a PreviewLoop that runs.
type previewing struct {
	PreviewLoop

	known    map[int]*previewedPull
	failures int    // looks that failed, in a row
	trouble  string // the last such error
	crowded  bool   // there are more than Most, which was reported
	news     bool   // the last look found something to do
	moves    map[string]bool
}

// previewedPull is what the loop remembers of a pull request.
type previewedPull struct {
	Request

	tip      string // what its target was when it was previewed
	done     bool
	asks     bool      // it waits for an approval, or has one
	approved bool      // it has one that a person may take back on the forge
	settle   bool      // the time of the last change may have had more than one
	looks    int       // since the preview, if the forge does not say when a pull request changed
	failures int       // tries, in a row
	after    time.Time // before it there is none
}

// look looks what is open and previews what is new. It returns how long to wait.
func (l *previewing) look(ctx context.Context) time.Duration {
	l.news, l.moves = false, map[string]bool{}
	open, tip, err := l.open(ctx)
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
		return max(asked, jitter(backOff(l.failures, firstPause, mostPause)))
	}
	l.failures, l.trouble = 0, ""
	l.forget(ctx, open)
	wait := jitter(l.Interval)
	// Preview all of them before looking for new ones, so that frequent pushes do not delay others.
	for _, q := range l.chosen(open) {
		if ctx.Err() != nil {
			break
		}
		l.previewIfNew(ctx, q, tip)
		if k := l.known[q.Number]; !k.done {
			wait = min(wait, max(0, time.Until(k.after)))
		}
	}
	return wait
}

// open are the pull requests into what is followed, and the newest commit of that.
func (l *previewing) open(ctx context.Context) ([]Request, string, error) {
	asking, cancel := context.WithTimeout(ctx, 4*aCall)
	defer cancel()
	open, err := l.Requests.Open(asking)
	if err != nil || len(open) == 0 {
		return nil, "", err
	}
	branch, tip, err := l.Origin.Tip(ctx, l.Ref)
	return slices.DeleteFunc(open, func(q Request) bool { return branch == "" || q.Target != branch }), tip, err
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

// forget forgets what is not open any more.
func (l *previewing) forget(ctx context.Context, open []Request) {
	for number, k := range l.known {
		if !slices.ContainsFunc(open, func(q Request) bool { return q.Number == number }) {
			delete(l.known, number)
			l.drop(ctx, k)
			l.emit(Event{Kind: Forgotten, Pull: number, Revision: k.Head})
		}
	}
}

// drop forgets the commit of a pull request. A failure costs a few bytes.
func (l *previewing) drop(ctx context.Context, k *previewedPull) {
	ctx, cancel := context.WithTimeout(ctx, aCall)
	defer cancel()
	_ = l.Origin.Forget(ctx, k.Head)
}

// previewIfNew previews a pull request unless the last preview of it still holds.
func (l *previewing) previewIfNew(ctx context.Context, q Request, tip string) {
	k := l.known[q.Number]
	switch {
	case k == nil:
		k = &previewedPull{Request: q}
	case !k.same(q):
		if k.Head != q.Head {
			l.drop(ctx, k)
		}
		k = &previewedPull{Request: q}
	case !k.done && time.Now().Before(k.after):
		return
	case k.done && l.heard(ctx, k, q):
	case k.done && k.tip == tip:
		return
	case k.done && !l.moved(ctx, k, tip):
		k.tip = tip
		return
	}
	l.news = true
	l.known[q.Number] = k
	began := time.Now()
	said, err := l.preview(ctx, k, tip)
	if ctx.Err() != nil {
		return
	}
	unread := err == nil && len(said.Unread()) > 0 && k.failures < mostTries-1 // the registry may be back soon
	k.tip, k.done = tip, !unread && !l.again(k, err)
	k.asks = said.Approval != nil
	k.approved = slices.ContainsFunc(said.Approvals, report.Approved.OnForge)
	if k.done {
		k.failures = 0
	} else {
		asked, _ := patience(err)
		k.failures++
		k.after = time.Now().Add(max(asked, jitter(backOff(k.failures, firstPause, mostPause))))
	}
	if k.done || k.failures == 1 {
		l.emit(Event{Kind: Previewed, Pull: q.Number, Revision: q.Head, Report: said, Took: time.Since(began), Err: err})
	}
}

// A listener is a PreviewPublisher that knows whether people said something since the preview was published.
type listener interface {
	Heard(ctx context.Context, asks bool) (bool, error)
}

// heard reports whether people said something about a pull request that its preview answers or counts.
func (l *previewing) heard(ctx context.Context, k *previewedPull, q Request) bool {
	fresh := !q.Updated.Equal(k.Updated)
	if q.Updated.IsZero() { // the forge does not say: ask at every look while a person may be about to approve, and else rarely
		k.looks++
		fresh, k.settle = k.looks%looksBetween == 0, k.asks && !k.approved
	}
	if !fresh && !k.settle {
		return false
	}
	k.settle, k.Updated = fresh, q.Updated // forges count seconds, so look once more
	by, ok := l.Requests.Publisher(k.Request).(listener)
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

// moved reports whether the target went on in a way that a preview has to say.
func (l *previewing) moved(ctx context.Context, k *previewedPull, tip string) bool {
	if k.Fork && l.Forks == nil {
		return false
	}
	moved, known := l.moves[k.tip]
	if !known {
		var err error
		moved, err = l.Reconciler.Moved(ctx, k.tip, tip)
		moved = moved || err != nil // then the preview reports the error
		l.moves[k.tip] = moved
	}
	return moved
}

// preview makes a preview and publishes it.
func (l *previewing) preview(ctx context.Context, k *previewedPull, tip string) (report.Report, error) {
	with, publisher := l.Reconciler, hurried{l.Requests.Publisher(k.Request)}
	if k.Fork && l.Forks == nil {
		said := report.Failed(with.Sync, "", errFork).On(nil)
		if err := publisher.Publish(ctx, said); err != nil {
			return said, unpublished{err}
		}
		return said, nil
	}
	if k.Fork {
		with = *l.Forks
	}
	var elsewhere func(ctx context.Context, into, head string) (report.Report, error)
	if l.Elsewhere != nil {
		said, stopped, err := l.stopped(ctx, publisher)
		if stopped || err != nil {
			return said, err
		}
		elsewhere = func(ctx context.Context, into, head string) (report.Report, error) {
			return l.Elsewhere(ctx, k.Fork, into, head)
		}
	}
	return with.Merging(ctx, Merge{
		History: l.Origin, Into: tip, Head: l.head(ctx, k.Request), Publisher: publisher, Elsewhere: elsewhere,
		Again: func(err error) bool { return ctx.Err() != nil || l.again(k, err) },
	})
}

// A standing is a PreviewPublisher that knows what it has published, also of an earlier process.
type standing interface {
	Standing(ctx context.Context, of report.Report) (report.Status, error)
}

// stopped reports whether the preview of a head stopped its process. Then that verdict stands on the forge, and stays
// until the head changes.
func (l *previewing) stopped(ctx context.Context, by PreviewPublisher) (report.Report, bool, error) {
	said := report.Failed(l.Reconciler.Sync, "", errors.New("stopped"))
	known, ok := by.(standing)
	if !ok {
		return said, false, nil
	}
	status, err := known.Standing(ctx, said)
	if err != nil {
		return said, false, unpublished{err}
	}
	said.Verdict.Activation = status
	return said, status.WasStopped(), nil
}

// head is the commit that merges a pull request, where the forge has made one of its newest
// commit; else that commit.
func (l *previewing) head(ctx context.Context, q Request) string {
	if q.Merge == "" {
		return q.Head
	}
	merge, err := l.Origin.Resolve(ctx, q.Merge)
	if err != nil {
		return q.Head
	}
	if merged, err := l.Origin.Resolve(ctx, merge+"^2"); err != nil || merged != q.Head {
		return q.Head
	}
	return merge
}

// again reports whether to retry a preview without any change: the forge asks for patience, or a server cannot be
// reached. Errors of the commit itself are permanent.
func (l *previewing) again(k *previewedPull, err error) bool {
	var silent unpublished
	if errors.As(err, &silent) {
		if _, passes := patience(silent); passes {
			return true
		}
		if refusal, ok := errors.AsType[interface {
			error
			TokenRefused() bool
		}](silent.error); ok && refusal.TokenRefused() { // the token may be about to be rotated
			return k.failures < mostTries-1
		}
	}
	var away unfetched
	var defect panicked
	if errors.As(err, new(StoppedError)) || permanent(err) {
		return false
	}
	live := l.Reconciler.Cluster != nil && err != nil && !ofCommit(err) && !errors.As(err, &defect) && !errors.As(err, &silent)
	return (errors.As(err, &away) || live) && k.failures < mostTries-1
}

// permanent reports whether an error stays, as that of a pack that is larger than a limit.
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

// patience is how long a forge asks to wait, and whether what it answers passes.
func patience(err error) (time.Duration, bool) {
	if later, ok := errors.AsType[interface {
		error
		RetryAfter() time.Duration
	}](err); ok {
		return later.RetryAfter(), true
	}
	return 0, errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// hurried is a PreviewPublisher with a timeout for each request.
type hurried struct{ PreviewPublisher }

func (h hurried) Pending(ctx context.Context, of report.Report) error {
	ctx, cancel := context.WithTimeout(ctx, aCall)
	defer cancel()
	return h.PreviewPublisher.Pending(ctx, of)
}

func (h hurried) Standing(ctx context.Context, of report.Report) (report.Status, error) {
	known, ok := h.PreviewPublisher.(standing)
	if !ok {
		return report.Status{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, aCall)
	defer cancel()
	return known.Standing(ctx, of)
}

func (h hurried) Approvals(ctx context.Context, r report.Report) ([]report.Approved, error) {
	by, ok := h.PreviewPublisher.(Approver)
	if !ok {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*aCall)
	defer cancel()
	return by.Approvals(ctx, r)
}

func (h hurried) Publish(ctx context.Context, r report.Report) error {
	ctx, cancel := context.WithTimeout(ctx, 2*aCall)
	defer cancel()
	return h.PreviewPublisher.Publish(ctx, r)
}

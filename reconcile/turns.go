package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// A turns decides whose pull request is previewed next, so that one author does not hold up the others. An author has one preview at a
// time. The author who was served most recently comes last. And an author may use only so much time.
type turns struct{ authors map[string]turn }

// A turn is what an author was given.
type turn struct {
	began time.Time     // the last preview
	spent time.Duration // time for previews, at the time since
	since time.Time
}

const (
	// budgetOfAuthor is the time that previews of one author may take. A second is given back every budgetPace seconds.
	budgetOfAuthor = 20 * time.Minute
	budgetPace     = 3
)

// author returns who opened a pull request. If the forge does not report that, every pull request has its own author.
func (q Request) author() string { return cmp.Or(q.Author, "#"+strconv.Itoa(q.Number)) }

// next returns the index of the request to preview next, or -1 if all have to wait. Those of forks come last. waiting is in the order in
// which one author's requests are served; running holds those that are being previewed. Pull requests with one head are previewed one
// after the other, because they share a status.
func (t *turns) next(waiting, running []Request, now time.Time) int {
	best := -1
	for i, q := range waiting {
		beside := func(other Request) bool { return other.author() == q.author() || other.Head == q.Head }
		if slices.ContainsFunc(running, beside) || t.wait(q, now) > 0 {
			continue
		}
		if best < 0 || t.before(q, waiting[best]) {
			best = i
		}
	}
	return best
}

// before reports whether a is previewed before b, if that does not depend on which of them is newer.
func (t *turns) before(a, b Request) bool {
	if a.Fork != b.Fork {
		return b.Fork
	}
	return t.authors[a.author()].began.Before(t.authors[b.author()].began)
}

// wait returns how long the author of a request has to wait until the budget allows another preview.
func (t *turns) wait(q Request, now time.Time) time.Duration {
	over := t.authors[q.author()].owed(now) - budgetOfAuthor
	if over < 0 {
		return 0
	}
	return max(time.Second, over*budgetPace)
}

// owed returns the time that was spent and not given back yet.
func (t turn) owed(now time.Time) time.Duration {
	return max(0, t.spent-now.Sub(t.since)/budgetPace)
}

func (t *turns) began(q Request, now time.Time) {
	if t.authors == nil {
		t.authors = map[string]turn{}
	}
	of := t.authors[q.author()]
	of.began = now
	t.authors[q.author()] = of
}

// ended counts the time of a preview.
func (t *turns) ended(q Request, took time.Duration, now time.Time) {
	of := t.authors[q.author()]
	of.spent, of.since = of.owed(now)+took, now
	t.authors[q.author()] = of
	for author, one := range t.authors { // they count as authors who were never served
		if now.Sub(one.began) > time.Hour && one.owed(now) == 0 {
			delete(t.authors, author)
		}
	}
}

// serve previews the pull requests that need it, in turn. It returns when each of them is previewed or being previewed, or after an
// interval or a webhook, so that a slow preview does not delay the discovery of others. It reports whether some of them wait.
func (l *previewing) serve(ctx context.Context) bool {
	var waiting []Request
	records := map[pullKey]*previewedPull{}
	for _, q := range l.current {
		if l.runs(q.key()) || ctx.Err() != nil {
			continue
		}
		if k := l.due(ctx, q); k != nil {
			waiting, records[q.key()] = append(waiting, q), k
		}
	}
	end := time.After(l.Interval)
	for l.waits = len(waiting) > 0; l.waits && ctx.Err() == nil; l.waits = len(waiting) > 0 {
		i := -1
		if len(l.running) < l.places() {
			i = l.turns.next(waiting, slices.Collect(maps.Values(l.running)), time.Now())
		}
		switch {
		case i >= 0:
			l.begin(ctx, waiting[i], records[waiting[i].key()])
			waiting = slices.Delete(waiting, i, i+1)
		default:
			l.explain(ctx, waiting, records)
			if !l.wait(ctx, end, l.Woken) {
				return true
			}
		}
	}
	return false
}

// explain publishes once why pull requests wait for the budget of their author.
func (l *previewing) explain(ctx context.Context, waiting []Request, records map[pullKey]*previewedPull) {
	for _, q := range waiting {
		k := records[q.key()]
		left := l.turns.wait(q, time.Now())
		if left == 0 || k.explained {
			continue
		}
		k.explained = true
		l.known[q.key()] = k
		text := fmt.Sprintf("waiting for about %s: the previews of this author took %s", left.Round(time.Minute), budgetOfAuthor)
		share := l.shareOf(q)
		_ = hurried{l.Requests.Publisher(q, share.targets), share}.Waiting(ctx, text) // the final status follows
	}
}

// runs reports whether a pull request is being previewed.
func (l *previewing) runs(key pullKey) bool {
	_, runs := l.running[key]
	return runs
}

// places returns how many previews run at a time: two in processes of their own, otherwise one.
func (l *previewing) places() int {
	if slices.ContainsFunc(l.Syncs, func(s PreviewedSync) bool { return s.Elsewhere == nil && s.Away == "" }) {
		return 1
	}
	return 2
}

// begin makes a preview. Previews in processes of their own go on in the background.
func (l *previewing) begin(ctx context.Context, q Request, k *previewedPull) {
	l.news = true
	l.known[q.key()] = k
	l.turns.began(q, time.Now())
	l.running[q.key()] = q
	syncs, share := l.following(q), l.shareOf(q) // a later look may not find it any more
	preview := func() {
		began := time.Now()
		l.previewNow(ctx, q, k, syncs, share)
		l.turns.ended(q, time.Since(began), time.Now())
		delete(l.running, q.key())
	}
	if l.places() == 1 {
		preview()
		return
	}
	l.previews.Go(func() {
		end := l.turn(ctx)
		defer end()
		l.mu.Lock()
		defer l.mu.Unlock()
		preview()
		if l.waits || !k.done {
			notify(l.ended)
		}
	})
}

// turn waits for the turn of a preview, and returns what ends it. If ctx ends meanwhile, the preview ends at once, too.
func (l *previewing) turn(ctx context.Context) (end func()) {
	if l.Turn == nil {
		return func() {}
	}
	end, err := l.Turn(ctx)
	if err != nil {
		return func() {}
	}
	return end
}

// unlocked calls a function without the lock.
func (l *previewing) unlocked(do func()) {
	l.mu.Unlock()
	defer l.mu.Lock()
	do()
}

// notify wakes the receiver. If the receiver is busy, it will look anyway.
func notify(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

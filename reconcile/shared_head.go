package reconcile

import (
	"context"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/report"
)

// Several pull requests can have one head, and a forge keeps one status for a commit and a context. So a status is that of a head
// and of the targets of the pull requests that decide about it. See ADR 64.

// A counter is a Requests that knows the authors of pull requests.
type counter interface {
	// Counts reports whether the author of a pull request wrote its head, or may write to the repository.
	Counts(ctx context.Context, of Request) (bool, error)
}

// A decider is a PreviewPublisher that can post a status without a preview.
type decider interface {
	Decide(ctx context.Context, status report.Status) error
}

// A pullKey identifies a pull request. The head of a merge queue has the number of its pull request.
type pullKey struct {
	number int
	queued bool
}

func (q Request) key() pullKey { return pullKey{q.Number, q.Queued} }

// An authored is a question about the author of a pull request.
type authored struct {
	pullKey

	head string
}

// A headStatus is the status of a head, for the targets of the pull requests that decide about it.
type headStatus struct {
	targets string
	status  report.Status
}

// A sharedHead is a head with the open pull requests that decide about its status. A look derives it once.
type sharedHead struct {
	commit   string
	deciding []Request
	targets  []string
}

// Deciding returns those of several pull requests with one head that decide about its status. Everybody can open a pull request with
// the head of another one, and must not turn its status red. So only the pull requests count whose authors wrote the head or may
// write. If none counts, all do.
func Deciding(all []Request, counts func(Request) bool) []Request {
	if len(all) < 2 {
		return all
	}
	counting := slices.DeleteFunc(slices.Clone(all), func(q Request) bool { return !counts(q) })
	if len(counting) == 0 {
		return all
	}
	return counting
}

// Sharing returns a publisher whose status is that of a head that other pull requests have, too. counts reports whether the verdict
// on the pull request itself counts.
func Sharing(by PreviewPublisher, of Request, counts bool, others []report.PullVerdict) PreviewPublisher {
	return hurried{by, share{of: of, counts: counts, others: others}}
}

// shareHeads returns the heads of the open pull requests, and who decides about their statuses.
func (l *previewing) shareHeads(ctx context.Context) []sharedHead {
	var heads []sharedHead
	sharing := map[string][]Request{}
	for _, q := range l.current {
		if sharing[q.Head] == nil {
			heads = append(heads, sharedHead{commit: q.Head})
		}
		sharing[q.Head] = append(sharing[q.Head], q)
	}
	for i := range heads {
		all := sharing[heads[i].commit]
		heads[i].deciding = Deciding(all, func(q Request) bool { return l.counts(ctx, q, all) })
		heads[i].targets = TargetsOf(heads[i].deciding)
	}
	return heads
}

// counts reports whether a pull request counts for the status of a head that others have, too. If the forge does not answer, it
// counts.
func (l *previewing) counts(ctx context.Context, q Request, all []Request) bool {
	same := func(other Request) bool { return other.Target == q.Target && !l.refuses(other) }
	if l.refuses(q) && slices.ContainsFunc(all, same) {
		return false // a user who may push had the same merge previewed
	}
	by, ok := l.Requests.(counter)
	if !ok {
		return true
	}
	of := authored{q.key(), q.Head}
	if counts, known := l.authors[of]; known {
		return counts
	}
	ctx, cancel := context.WithTimeout(ctx, aCall)
	defer cancel()
	counts, err := by.Counts(ctx, q)
	if err != nil {
		return true
	}
	l.authors[of] = counts
	return counts
}

// refuses reports whether no sync previews a pull request, because it comes from a fork.
func (l *previewing) refuses(q Request) bool {
	return !slices.ContainsFunc(l.following(q), func(s followedSync) bool { return !s.refuses(q) })
}

// TargetsOf returns the targets of pull requests.
func TargetsOf(all []Request) []string {
	targets := make([]string, len(all))
	for i, q := range all {
		targets[i] = q.Target
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

// verdict returns the verdict of the last preview of a pull request, and whether it still holds.
func (l *previewing) verdict(q Request) (report.PullVerdict, bool) {
	if l.runs(q.key()) {
		return report.PullVerdict{}, false
	}
	k := l.known[q.key()]
	if k == nil || !k.done || !k.same(q) {
		return report.PullVerdict{}, false
	}
	return report.PullVerdict{Pull: q.Number, Target: q.Target, Status: k.verdict}, true
}

// verdicts returns the verdicts on some pull requests, and those that have none yet.
func (l *previewing) verdicts(of []Request) (all []report.PullVerdict, missing []Request) {
	for _, q := range of {
		if v, ok := l.verdict(q); ok {
			all = append(all, v)
		} else {
			missing = append(missing, q)
		}
	}
	return all, missing
}

// retarget makes the status of a head pending whose targets are not those of its status any more, so that no verdict counts for
// another target until its turn to be previewed.
func (l *previewing) retarget(ctx context.Context) {
	for _, h := range l.heads {
		was, known := l.decided[h.commit]
		_, missing := l.verdicts(h.deciding)
		if !known || len(missing) == 0 || was.targets == strings.Join(h.targets, " ") {
			continue
		}
		_ = hurried{PreviewPublisher: l.Requests.Publisher(missing[0], h.targets)}.Pending(ctx) // the preview tries it again, and reports the error
	}
}

// decide posts the statuses of heads that changed without a preview: a pull request with the same head was closed or retargeted.
func (l *previewing) decide(ctx context.Context) {
	for _, h := range l.heads {
		verdicts, missing := l.verdicts(h.deciding)
		if len(missing) > 0 {
			continue
		}
		now := headStatus{strings.Join(h.targets, " "), report.Worst(verdicts)}
		if l.decided[h.commit] == now {
			continue
		}
		by, ok := l.Requests.Publisher(h.deciding[0], h.targets).(decider)
		if !ok {
			continue
		}
		deciding, cancel := context.WithTimeout(ctx, aCall)
		err := by.Decide(deciding, now.status)
		cancel()
		if _, passes := patience(err); passes {
			continue // the next look tries again
		}
		if err != nil {
			l.emit(Event{Kind: Previewed, Pull: h.deciding[0].Number, Revision: h.commit, Err: err})
		}
		l.decided[h.commit] = now
	}
}

// keepOpen forgets what is known of heads that are not open any more.
func (l *previewing) keepOpen() {
	open := map[string]bool{}
	for _, q := range l.current {
		open[q.Head] = true
	}
	for head := range l.decided {
		if !open[head] {
			delete(l.decided, head)
		}
	}
	for of := range l.authors {
		if !open[of.head] {
			delete(l.authors, of)
		}
	}
}

// A share is the part of a pull request in the status of its head.
type share struct {
	of      Request
	targets []string             // those of the status
	counts  bool                 // its own verdict counts
	others  []report.PullVerdict // the verdicts of the others that count
	open    bool                 // one of them is not previewed yet
}

// shareOf returns the part of a pull request in the status of its head.
func (l *previewing) shareOf(q Request) share {
	h := l.heads[slices.IndexFunc(l.heads, func(h sharedHead) bool { return h.commit == q.Head })]
	others := slices.DeleteFunc(slices.Clone(h.deciding), func(other Request) bool { return other.key() == q.key() })
	verdicts, missing := l.verdicts(others)
	return share{q, h.targets, len(others) < len(h.deciding), verdicts, len(missing) > 0}
}

// status returns the status of the head after a preview of the pull request.
func (s share) status(own report.Status) headStatus {
	verdicts := s.others
	if s.counts {
		verdicts = append(slices.Clone(verdicts), report.PullVerdict{Pull: s.of.Number, Target: s.of.Target, Status: own})
	}
	return headStatus{strings.Join(s.targets, " "), report.Worst(verdicts)}
}

// in returns previews with the status of their head.
func (s share) in(all report.Combined) report.Combined {
	switch {
	case s.open:
		all.Undecided = true
	case len(s.others) > 0:
		of := s.status(all.Status())
		all.OfHead = &of.status
	}
	return all
}

package reconcile

import (
	"context"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/report"
)

// Several pull requests can have one head, and a forge keeps one status for a commit and a context. So a status is that of a head
// and of the targets of the pull requests that decide about it. See ADR 72.

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

// A headStatus is the status of a head.
type headStatus struct {
	targets string
	status  report.Status
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

// deciding returns the open pull requests that decide about the status of a head.
func (l *previewing) deciding(ctx context.Context, head string) []Request {
	all := slices.DeleteFunc(slices.Clone(l.current), func(q Request) bool { return q.Head != head })
	return Deciding(all, func(q Request) bool { return l.counts(ctx, q, all) })
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
	return q.Fork && !slices.ContainsFunc(l.following(q), func(s PreviewedSync) bool { return s.Forks != nil })
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
	k := l.known[q.key()]
	if k == nil || !k.done || !k.same(q) {
		return report.PullVerdict{}, false
	}
	return report.PullVerdict{Pull: q.Number, Target: q.Target, Status: k.verdict}, true
}

// statusOf returns the status of a head. It returns false while a preview is missing.
func (l *previewing) statusOf(ctx context.Context, head string) (headStatus, bool) {
	all := l.deciding(ctx, head)
	if len(all) == 0 { // closed during its preview
		return headStatus{}, false
	}
	var verdicts []report.PullVerdict
	for _, q := range all {
		v, ok := l.verdict(q)
		if !ok {
			return headStatus{}, false
		}
		verdicts = append(verdicts, v)
	}
	return headStatus{strings.Join(TargetsOf(all), " "), report.Worst(verdicts)}, true
}

// retarget makes the status of a head pending whose targets are not those of its status any more, so that no verdict counts for
// another target until its turn to be previewed.
func (l *previewing) retarget(ctx context.Context) {
	for _, q := range l.current {
		all := l.deciding(ctx, q.Head)
		was, known := l.decided[q.Head]
		if _, done := l.verdict(q); !known || done || was.targets == strings.Join(TargetsOf(all), " ") {
			continue
		}
		_ = hurried{PreviewPublisher: l.Requests.Publisher(q, TargetsOf(all))}.Pending(ctx) // the preview tries it again, and reports the error
	}
}

// decide posts the statuses of heads that changed without a preview: a pull request with the same head was closed or retargeted.
func (l *previewing) decide(ctx context.Context) {
	for _, q := range l.current {
		now, ok := l.statusOf(ctx, q.Head)
		if was, known := l.decided[q.Head]; !ok || known && was == now {
			continue
		}
		all := l.deciding(ctx, q.Head)
		by, ok := l.Requests.Publisher(all[0], TargetsOf(all)).(decider)
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
			l.emit(Event{Kind: Previewed, Pull: q.Number, Revision: q.Head, Err: err})
		}
		l.decided[q.Head] = now
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
	of     Request
	counts bool                 // its own verdict counts
	others []report.PullVerdict // the verdicts of the others that count
	open   bool                 // one of them is not previewed yet
}

// shareOf returns the part of a pull request in the status of its head, and the targets of that status.
func (l *previewing) shareOf(ctx context.Context, q Request) (share, []string) {
	s := share{of: q}
	all := l.deciding(ctx, q.Head)
	for _, other := range all {
		if other.key() == q.key() {
			s.counts = true
			continue
		}
		v, ok := l.verdict(other)
		s.open = s.open || !ok
		s.others = append(s.others, v)
	}
	return s, TargetsOf(all)
}

// in returns previews with the status of their head.
func (s share) in(all report.Combined) report.Combined {
	switch {
	case s.open:
		all.Undecided = true
	case len(s.others) > 0:
		verdicts := s.others
		if s.counts {
			verdicts = append(slices.Clone(verdicts), report.PullVerdict{Pull: s.of.Number, Target: s.of.Target, Status: all.Status()})
		}
		status := report.Worst(verdicts)
		all.OfHead = &status
	}
	return all
}

// Package board posts one pair of statuses for all syncs of a cluster, however many they are. It is the Publisher of each of them, keeps
// what each concluded about which commit, and publishes what follows for the cluster. It leaves retries to an outbox.
//
//	passes of all syncs ─Member.Publish─► Board ─report.OfCluster─► outbox ─► forge
package board

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"
)

// A Publisher publishes the report of a cluster, whose Sync is zero.
type Publisher interface {
	Publish(ctx context.Context, r report.Report) error
}

// A Board is what a cluster reports about its commits. Syncs that follow the same branch report on the same commits. It may be used by
// several goroutines.
type Board struct {
	Next Publisher
	// Open are commits whose last status is pending, from an earlier process.
	Open []string
	// Expected returns the syncs that join sooner or later, with the branch that each follows. It may be nil.
	Expected func() map[inventory.Sync]string

	mu      sync.Mutex
	members []*Member
	lines   map[string]*line // by the name of the branch
	posted  map[string]report.Verdict
	open    map[string]bool // commits without a final status
	posting bool            // a report is under way, and the newest state is next
}

// A Member is one sync of a cluster.
type Member struct {
	board   *Board
	sync    inventory.Sync
	line    *line
	commit  string // that it took up last
	verdict report.Verdict
}

// A line is the order of the commits of one branch.
type line struct {
	members int
	commits []string // in the order in which the first sync took them up; the newest last
}

// mostCommits is the number of commits of a branch that are remembered.
const mostCommits = 100

// Join adds a sync that follows a branch, until Leave.
func (b *Board) Join(sync inventory.Sync, branch string) *Member {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lines == nil {
		b.lines, b.posted, b.open = map[string]*line{}, map[string]report.Verdict{}, map[string]bool{}
		for _, commit := range b.Open {
			b.open[commit] = true
		}
	}
	if b.lines[branch] == nil {
		b.lines[branch] = &line{}
	}
	m := &Member{board: b, sync: sync, line: b.lines[branch]}
	m.line.members++
	b.members = append(b.members, m)
	return m
}

// Leave removes a sync. Its last conclusion counts no more.
func (m *Member) Leave() {
	b := m.board
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.members, m); i >= 0 {
		b.members = slices.Delete(b.members, i, i+1)
		m.line.members--
	}
}

// First reports whether the sync is the oldest one.
func (m *Member) First() bool {
	m.board.mu.Lock()
	defer m.board.mu.Unlock()
	return len(m.board.members) > 0 && m.board.members[0] == m
}

// Publish takes what a sync concludes about a commit, and publishes what the cluster does, unless that is known. It posts nothing while
// another call does, which then posts the newest state. A commit that the sync left for a newer one concerns only the board.
func (m *Member) Publish(ctx context.Context, r report.Report) error {
	if r.Revision == "" || r.SupersededBy != "" {
		return nil
	}
	b := m.board
	b.mu.Lock()
	defer b.mu.Unlock()
	m.commit, m.verdict = r.Revision, r.Verdict
	m.line.takesUp(r.Revision, b.members)
	if b.posting {
		return nil
	}
	b.posting = true
	defer func() { b.posting = false }()
	var errs []error
	for next, due := b.due(); due; next, due = b.due() {
		errs = append(errs, b.publish(ctx, next))
	}
	return errors.Join(errs...)
}

// publish publishes a report without the lock.
func (b *Board) publish(ctx context.Context, r report.Report) error {
	b.mu.Unlock()
	defer b.mu.Lock()
	return b.Next.Publish(ctx, r)
}

// takesUp records a commit. One that is known becomes the newest again if no sync is at a newer one: the branch was reset.
func (l *line) takesUp(commit string, members []*Member) {
	if !slices.Contains(l.commits, commit) {
		l.commits = append(l.commits, commit)
		l.commits = l.commits[max(0, len(l.commits)-mostCommits):]
	}
	at := func(commit string) bool {
		return slices.ContainsFunc(members, func(m *Member) bool { return m.line == l && m.commit == commit })
	}
	for len(l.commits) > 1 && !at(l.newest()) {
		l.commits = l.commits[:len(l.commits)-1]
	}
}

func (l *line) newest() string {
	if len(l.commits) == 0 {
		return ""
	}
	return l.commits[len(l.commits)-1]
}

// due returns the next report to publish, and counts it as published.
func (b *Board) due() (report.Report, bool) {
	newest := map[string]bool{}
	for _, l := range b.lines {
		if l.members > 0 {
			newest[l.newest()] = true
		}
	}
	if r, due := b.superseded(newest); due {
		return r, true
	}
	delete(newest, "") // of a branch that no sync has read yet
	for _, commit := range slices.Sorted(maps.Keys(newest)) {
		r, is := report.OfCluster(commit, b.standings(commit), b.isNew(commit))
		if b.open[commit] = is != report.Over; is == report.Over {
			delete(b.open, commit)
		}
		if was := b.posted[commit]; is != report.Unclear && differs(was, r.Verdict, is) {
			b.posted[commit] = r.Verdict
			return r, true
		}
	}
	return report.Report{}, false
}

// superseded returns the final report of a commit that is no longer the newest one of any branch, and had none. While a branch has not been
// read yet, any commit may be its newest one.
func (b *Board) superseded(newest map[string]bool) (report.Report, bool) {
	if newest[""] {
		return report.Report{}, false
	}
	for commit := range b.posted {
		if !newest[commit] && !b.open[commit] {
			delete(b.posted, commit)
		}
	}
	for _, commit := range slices.Sorted(maps.Keys(b.open)) {
		if newest[commit] {
			continue
		}
		delete(b.open, commit)
		delete(b.posted, commit)
		return report.Superseded(inventory.Sync{}, commit, b.successor(commit)), true
	}
	return report.Report{}, false
}

// successor returns the newest commit of the branch of another one.
func (b *Board) successor(commit string) string {
	by := ""
	for _, l := range b.lines {
		if l.members > 0 && (by == "" || slices.Contains(l.commits, commit)) {
			by = l.newest()
		}
	}
	return by
}

// isNew reports whether this process has seen a commit arrive, or has posted on it.
func (b *Board) isNew(commit string) bool {
	_, is := b.posted[commit]
	for _, l := range b.lines {
		is = is || l.members > 0 && slices.Index(l.commits, commit) > 0
	}
	return is
}

// standings returns what the syncs of the branches that are at a commit conclude about it. One that has not joined has concluded nothing.
func (b *Board) standings(commit string) []report.Standing {
	var all []report.Standing
	var away map[inventory.Sync]string
	if b.Expected != nil {
		away = b.Expected()
	}
	for _, m := range b.members {
		delete(away, m.sync)
		if m.line.newest() == commit {
			all = append(all, report.Standing{Sync: m.sync, Verdict: m.verdict, Known: m.commit == commit})
		}
	}
	for _, sync := range slices.SortedFunc(maps.Keys(away), inventory.Sync.Compare) {
		if l := b.lines[away[sync]]; l != nil && l.newest() == commit {
			all = append(all, report.Standing{Sync: sync})
		}
	}
	return all
}

// differs reports whether a verdict must be published. While syncs are at work, only its states count.
func differs(was, now report.Verdict, is report.Progress) bool {
	if was.Activation.State != now.Activation.State || was.Drift.State != now.Drift.State {
		return true
	}
	return is != report.Begun && (was.Activation != now.Activation || was.Drift != now.Drift)
}

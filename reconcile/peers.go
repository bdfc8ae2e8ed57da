package reconcile

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// Peers holds the syncs of one process, and what each of them declares, so that an object can move between two syncs of one branch and
// one cluster without being deleted. It also holds what the syncs of other processes show. A nil *Peers holds none.
type Peers struct {
	// InTurn is set if the passes of the syncs run one after another. A sync then renders its commit when another sync asks for it.
	InTurn bool
	// Tell is called when Moves of a sync may have changed. It may be nil.
	Tell func(of inventory.Sync)

	mu      sync.Mutex
	all     map[inventory.Sync]*member
	changed chan struct{} // closed when a member changes
}

// A Member describes a sync that joins Peers.
type Member struct {
	Repository string                      // the same for every spelling of its URL; "" is not known yet, and it may be any
	Flux       bool                        // a GitRepository of Flux names the repository, and has a commit when Flux has fetched it
	Cluster    string                      // that the sync applies to; "" is that of the process, and AnyCluster is not known
	Ref        string                      // that the sync follows; "" is the default branch
	Declare    func(context.Context) error // the sync's Declare; only called with InTurn
}

// unread returns how a sync is known until Found: only its source of Flux names the repository.
func (m Member) unread() Member {
	if m.Flux {
		m.Repository = ""
	}
	return m
}

// AnyCluster is the cluster of a sync of which nothing shows where it applies: it may be any.
const AnyCluster = "any"

// A member is one of the syncs.
type member struct {
	Member
	wake *engine.Signal

	declares map[manifest.ID]bool   // nil until it has rendered a commit
	branch   string                 // behind Ref; "" if there is none, or if it has rendered no commit
	revision string                 // of declares
	fetched  bool                   // whether revision was the newest commit at the last fetch
	broken   error                  // why the newest commit could not be rendered
	tried    string                 // the commit with this error; "" if it is not known
	stale    error                  // why its source of Flux has no newer commit, however long others wait; nil if it may get one
	told     time.Time              // when it last declared a commit, or failed to
	takes    map[manifest.ID]string // the objects of declares that other syncs own, with the key of the owner; "" is not known
	moves    Moves                  // between it and other syncs
	awaits   bool                   // whether its last plan waits for other syncs

	elsewhere *Elsewhere // what it shows if another process runs it

	asks  map[inventory.Sync]waited // the syncs that it waits for
	woken map[inventory.Sync]string // the commits of both syncs when it last woke another one
}

// A waited records that a sync waits for another one to render a commit.
type waited struct {
	revision string
	since    time.Time
	owned    map[manifest.ID]bool // what the other sync owns, by ID in the cluster; nil during the wait
	unread   error                // why owned could not be read after the wait
}

const (
	askFor = 10 * time.Second // how long a pass waits for other syncs before it plans
	// A prune waits for one part in waitsPart less than the Timeout, so that the pass can still prune.
	waitsPart = 5
)

// Join adds a sync, or begins it anew. The syncs of a process join before the first pass, and later ones when they are added.
func (p *Peers) Join(of inventory.Sync, as Member) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun()
	p.all[of] = &member{
		Member: as.unread(), wake: new(engine.Signal), fetched: true,
		asks: map[inventory.Sync]waited{}, woken: map[inventory.Sync]string{},
	}
}

func (p *Peers) begun() {
	if p.all == nil {
		p.all, p.changed = map[inventory.Sync]*member{}, make(chan struct{})
	}
}

// Leave removes a sync that ended.
func (p *Peers) Leave(of inventory.Sync) {
	p.change(of, func(*member) {
		delete(p.all, of)
		for _, m := range p.all {
			delete(m.asks, of)
			delete(m.woken, of)
		}
	})
}

// woken returns what is sent when another sync needs the newest commit of a sync; nil if the sync did not join.
func (p *Peers) woken(of inventory.Sync) *engine.Signal {
	if m := p.member(of); m != nil {
		return m.wake
	}
	return nil
}

func (p *Peers) member(of inventory.Sync) *member {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[of]
}

// change changes a member and wakes the syncs that wait for a change.
func (p *Peers) change(of inventory.Sync, how func(*member)) {
	m := p.member(of)
	if m == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	how(m)
	close(p.changed)
	p.changed = make(chan struct{})
}

// declared records what the newest commit of a sync declares, and which of these objects other syncs own. A pass over an older commit,
// because the newest one must not be applied yet, declares nothing new.
func (p *Peers) declared(of inventory.Sync, want render.Desired, declares map[manifest.ID]bool, takes map[manifest.ID]string) {
	p.change(of, func(m *member) {
		m.told = time.Now()
		if !m.fetched && m.declares != nil {
			return
		}
		if m.revision != want.Revision {
			m.moves.Gives = nil
			defer p.arrived(m)
		}
		m.declares, m.branch, m.revision = declares, cmp.Or(want.Source.Branch, m.branch), want.Revision
		m.takes, m.moves.Takes = takes, namesOf(takes)
		if m.fetched {
			m.broken = nil
		}
	})
	p.tell(of)
}

// arrived wakes the syncs whose prunes wait for a sync that sees a commit later than they do. The lock is held.
func (p *Peers) arrived(m *member) {
	if !m.Flux {
		return
	}
	for _, other := range p.all {
		if other.awaits && other != m && m.sharesBranch(other) {
			other.wake.Send()
		}
	}
}

// Found records the repository and the branch, or what it follows instead of one, of a sync with a source of Flux: only the object of that
// source names them. stale is why Flux makes no newer artifact at the moment; nil if it does.
func (p *Peers) Found(of inventory.Sync, repository, branch string, stale error) {
	p.change(of, func(m *member) { m.Repository, m.branch, m.stale = repository, short(branch), stale })
}

// Missing records that a sync has no source now. If nothing is known about its repository, it has none that others have.
func (p *Peers) Missing(of inventory.Sync, name string) {
	p.change(of, func(m *member) { m.Repository = cmp.Or(m.Repository, name) })
}

// fetched records whether the newest commit of a sync could be fetched.
func (p *Peers) fetched(of inventory.Sync, err error) {
	p.change(of, func(m *member) {
		m.fetched = err == nil
		if err != nil {
			m.broken, m.tried, m.told = err, "", time.Now()
		}
	})
}

// Stalled records why a sync does not run.
func (p *Peers) Stalled(of inventory.Sync, why error) { p.failed(of, "", why) }

// failed records that a commit of a sync could not be rendered, or that its cluster could not be observed.
func (p *Peers) failed(of inventory.Sync, revision string, err error) {
	p.change(of, func(m *member) { m.broken, m.tried, m.told = err, revision, time.Now() })
}

// others returns the other syncs of the same branch, for the plan of a sync over a commit.
func (p *Peers) others(of inventory.Sync, revision string) []facts.Peer {
	asks := p.member(of)
	if asks == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []facts.Peer
	for name, m := range p.all {
		if m == asks || !m.sharesBranch(asks) {
			continue
		}
		q := asks.asks[name]
		if m.elsewhere != nil {
			all = append(all, m.shown(name, revision, q))
			continue
		}
		peer := facts.Peer{Sync: name}
		switch {
		case m.rendered(revision):
			peer.Declares = m.declaresFor(of, asks)
		case q.revision == revision && q.owned != nil:
			peer.Declares = maps.Clone(q.owned)
			maps.Copy(peer.Declares, m.declaresFor(of, asks))
		default:
			peer.Reason = firstLine(cmp.Or(q.unread, m.broken, m.stale))
		}
		all = append(all, peer)
	}
	return sorted(all)
}

// sorted sorts peers by name.
func sorted(all []facts.Peer) []facts.Peer {
	slices.SortFunc(all, func(a, b facts.Peer) int { return a.Sync.Compare(b.Sync) })
	return all
}

func firstLine(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// declaresFor returns what a sync declares, for another one. If their clusters may differ, it takes over only what it saw as an object of
// that one: no other cluster has such an object.
func (m *member) declaresFor(of inventory.Sync, asks *member) map[manifest.ID]bool {
	if m.Cluster == asks.Cluster && m.Cluster != AnyCluster {
		return m.declares
	}
	all, takes := maps.Clone(m.declares), m.takesFrom(of)
	for id := range all {
		all[id] = takes[id]
	}
	return all
}

// sharesBranch reports whether two syncs of a cluster follow the same branch of the same repository, so that one commit changes both. What is
// not known may be the same: then a prune waits, and deletes nothing that moves. Forges ignore the case of names.
func (m *member) sharesBranch(asks *member) bool {
	return same(strings.ToLower(m.Repository), strings.ToLower(asks.Repository), "") &&
		same(m.Cluster, asks.Cluster, AnyCluster) && same(m.follows(), asks.follows(), "")
}

// same reports whether two values may be the same.
func same(a, b, unknown string) bool { return a == b || a == unknown || b == unknown }

// follows returns the branch that a sync follows, or what it follows instead of one; "" if that is the default branch, and its name is not
// known yet.
func (m *member) follows() string {
	ref := short(m.Ref)
	if ref == "HEAD" {
		ref = ""
	}
	return cmp.Or(m.branch, ref)
}

// short returns the short name of a branch.
func short(ref string) string { return strings.TrimPrefix(strings.TrimPrefix(ref, "refs/"), "heads/") }

// A wait describes what a sync waits for.
type wait struct {
	revision string                                                              // the commit that others have to render
	timeout  time.Duration                                                       // of the sync that waits
	owned    func(context.Context, inventory.Sync) (map[manifest.ID]bool, error) // reads what another sync owns, by ID in the cluster
}

// ask asks other syncs to render a commit, once per commit, and reports whether to plan again. When the wait for one of them is over,
// ask reads what that sync owns.
func (p *Peers) ask(ctx context.Context, of inventory.Sync, w wait, others []inventory.Sync) bool {
	asks := p.member(of)
	if asks == nil {
		return false
	}
	asked := p.begin(asks, w.revision, others)
	switch {
	case len(asked) == 0:
	case p.InTurn:
		declareInTurn(ctx, w.timeout, asked)
	default:
		p.await(ctx, w.revision, asked)
	}
	ended := p.endWaits(ctx, asks, w, others)
	return ctx.Err() == nil && (ended || len(asked) > 0)
}

// begin records that a sync waits for others to render a commit, and returns those that it did not wait for yet.
func (p *Peers) begin(asks *member, revision string, others []inventory.Sync) []*member {
	p.mu.Lock()
	defer p.mu.Unlock()
	var fresh []*member
	for _, name := range others {
		if asks.asks[name].revision != revision {
			asks.asks[name] = waited{revision: revision, since: time.Now()}
			fresh = append(fresh, p.all[name])
		}
	}
	return fresh
}

// declareInTurn renders the newest commits of syncs that have not failed yet.
func declareInTurn(ctx context.Context, timeout time.Duration, asked []*member) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, m := range asked {
		if m.broken == nil { // the syncs run in turn, so no other goroutine changes it
			_ = m.Declare(ctx) // an error is recorded in broken
		}
	}
}

// await wakes syncs and waits shortly until each has rendered a commit or failed.
func (p *Peers) await(ctx context.Context, revision string, asked []*member) {
	for _, m := range asked {
		m.wake.Send()
	}
	defer engine.Pause(ctx)() // the others need workers
	enough := time.NewTimer(askFor)
	defer enough.Stop()
	for {
		p.mu.Lock()
		changed := p.changed
		open := slices.ContainsFunc(asked, func(m *member) bool { return !m.rendered(revision) && !m.failedOn(revision) })
		p.mu.Unlock()
		if !open {
			return
		}
		select {
		case <-changed:
		case <-enough.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// endWaits reads what the syncs own that a sync has waited for long enough, and reports whether there are any. A sync whose inventory
// cannot be read is still waited for: nothing shows what it would keep.
func (p *Peers) endWaits(ctx context.Context, asks *member, w wait, others []inventory.Sync) bool {
	ended := false
	for _, name := range others {
		if !p.isOver(asks, w, name) {
			continue
		}
		owned, err := p.ownedBy(ctx, w, name)
		p.mu.Lock()
		q := asks.asks[name]
		q.owned, q.unread = owned, err
		asks.asks[name] = q
		p.mu.Unlock()
		ended = true
	}
	return ended
}

// ownedBy returns what counts as owned by a sync after the wait for it. One of another process owns nothing before others release it.
func (p *Peers) ownedBy(ctx context.Context, w wait, name inventory.Sync) (map[manifest.ID]bool, error) {
	if m := p.member(name); m == nil || m.elsewhere != nil {
		return map[manifest.ID]bool{}, nil
	}
	return w.owned(ctx, name)
}

// isOver reports whether a sync has waited for another one long enough. Nothing changes during a wait for a sync that runs in turn.
func (p *Peers) isOver(asks *member, w wait, name inventory.Sync) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.all[name]
	long := time.Since(asks.asks[name].since) >= w.timeout-w.timeout/waitsPart
	switch {
	case m.rendered(w.revision):
		return false
	case m.elsewhere != nil, m.Flux: // a process that is away comes back, and Flux looks at its own interval
		return (long || p.InTurn) && m.failedOn(w.revision)
	}
	return p.InTurn && m.broken != nil || long
}

// rendered reports whether a sync has rendered a commit as its newest one.
func (m *member) rendered(revision string) bool {
	return (m.declares != nil || m.elsewhere != nil) && m.revision == revision
}

// failedOn reports whether a sync has failed to render a commit.
func (m *member) failedOn(revision string) bool {
	tried := m.tried == "" || m.tried == revision
	return m.stale != nil || m.broken != nil && tried
}

// handOver wakes the syncs that will take over objects, once for each pair of commits.
func (p *Peers) handOver(of inventory.Sync, revision string, to []inventory.Sync) {
	gives := p.member(of)
	if gives == nil {
		return
	}
	for _, name := range to {
		m := p.member(name)
		if m == nil {
			continue
		}
		p.mu.Lock()
		pair := revision + " " + m.revision
		fresh := gives.woken[name] != pair
		gives.woken[name] = pair
		p.mu.Unlock()
		if fresh {
			m.wake.Send()
		}
	}
}

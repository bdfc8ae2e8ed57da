package reconcile

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// Peers holds the syncs of one process that apply to the same cluster, and what each of them declares, so that an object can move
// from one to another without being deleted. A nil *Peers holds none.
type Peers struct {
	// InTurn is set if the passes of the syncs run one after another. A sync then renders its commit when another sync asks for it.
	InTurn bool

	mu      sync.Mutex
	all     map[inventory.Sync]*member
	changed chan struct{} // closed when a member changes
}

// A member is one of the syncs.
type member struct {
	ref    string
	render func(context.Context) error
	wake   chan struct{}

	declares   map[manifest.ID]bool // nil until it has rendered a commit
	repository string               // repository of the commit that declares it; "" if it is not known
	revision   string               // of declares
	fetched    bool                 // whether revision was the newest commit at the last fetch
	broken     error                // why the newest commit could not be rendered
	tried      string               // the commit with this error; "" if it is not known
	since      time.Time            // when broken was first set

	asks  map[inventory.Sync]question // the syncs that it waits for
	woken map[inventory.Sync]string   // the commits of both syncs when it last woke another one
}

// A question records that a sync waits for another one.
type question struct {
	revision string // of the sync that waits
	since    time.Time
}

const (
	askFor      = 10 * time.Second // how long a pass waits for other syncs before it plans
	patienceOut = 5                // a pass keeps one part in patienceOut of its Timeout, so that it can still prune
)

// Join adds a sync that follows a ref. All syncs must join before the first pass. render is the sync's Declare; it is only called
// with InTurn.
func (p *Peers) Join(of inventory.Sync, ref string, render func(context.Context) error) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all, p.changed = map[inventory.Sync]*member{}, make(chan struct{})
	}
	p.all[of] = &member{
		ref: ref, render: render, wake: make(chan struct{}, 1), fetched: true,
		asks: map[inventory.Sync]question{}, woken: map[inventory.Sync]string{},
	}
}

// woken returns the channel that receives when another sync needs the newest commit of a sync; nil if the sync did not join.
func (p *Peers) woken(of inventory.Sync) <-chan struct{} {
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

// declared records what the newest commit of a sync declares.
func (p *Peers) declared(of inventory.Sync, want render.Desired, declares map[manifest.ID]bool) {
	p.change(of, func(m *member) {
		m.declares, m.repository, m.revision = declares, want.Source.Repository, want.Revision
		if m.fetched {
			m.broken = nil
		}
	})
}

// fetched records whether the newest commit of a sync could be fetched.
func (p *Peers) fetched(of inventory.Sync, err error) {
	p.change(of, func(m *member) {
		m.fetched = err == nil
		if err != nil {
			m.fails(err, "")
		}
	})
}

// failed records that a commit of a sync could not be rendered, or that its cluster could not be observed.
func (p *Peers) failed(of inventory.Sync, revision string, err error) {
	p.change(of, func(m *member) { m.fails(err, revision) })
}

func (m *member) fails(err error, revision string) {
	if m.broken == nil {
		m.since = time.Now()
	}
	m.broken, m.tried = err, revision
}

// others returns the other syncs, for the plan of a sync over a commit. patience is how long the sync waits for another one that
// has not declared anything.
func (p *Peers) others(of inventory.Sync, revision string, patience time.Duration) []plan.Peer {
	asks := p.member(of)
	if asks == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	patience -= patience / patienceOut
	var all []plan.Peer
	for name, m := range p.all {
		if m == asks {
			continue
		}
		peer := plan.Peer{Sync: name, Declares: m.declares}
		if m.broken != nil {
			peer.Reason, _, _ = strings.Cut(m.broken.Error(), "\n")
		}
		if !m.knows(asks, revision) {
			peer.State = plan.PeerAwaited
			q := asks.asks[name]
			asked := q.revision == revision && !q.since.IsZero()
			if asked && time.Since(q.since) >= patience || m.broken != nil && (time.Since(m.since) >= patience || p.InTurn && asked) {
				peer.State = plan.PeerGivenUp
			}
		}
		all = append(all, peer)
	}
	slices.SortFunc(all, func(a, b plan.Peer) int {
		return cmp.Or(cmp.Compare(a.Sync.Namespace, b.Sync.Namespace), cmp.Compare(a.Sync.Name, b.Sync.Name))
	})
	return all
}

// knows reports whether a sync has rendered the commit that another one needs. If both follow the same branch, that is the same
// commit; otherwise, any commit will do.
func (m *member) knows(asks *member, revision string) bool {
	return m.declares != nil && (!m.follows(asks) || m.revision == revision)
}

// follows reports whether two syncs follow the same ref of the same repository.
func (m *member) follows(other *member) bool {
	return m.ref == other.ref && m.repository == other.repository && m.repository != ""
}

// ask asks other syncs to render their newest commits, and reports whether to plan again. A sync asks each other sync once per
// commit.
func (p *Peers) ask(ctx context.Context, of inventory.Sync, revision string, others []inventory.Sync) bool {
	asks := p.member(of)
	if asks == nil {
		return false
	}
	var open []*member
	for _, name := range others {
		m := p.member(name)
		if m == nil {
			continue
		}
		p.mu.Lock()
		again := asks.asks[name].revision == revision && !asks.asks[name].since.IsZero()
		if !again {
			asks.asks[name] = question{revision, time.Now()}
		}
		p.mu.Unlock()
		if !again {
			open = append(open, m)
		}
	}
	if len(open) == 0 {
		return false
	}
	if p.InTurn {
		for _, m := range open {
			_ = m.render(ctx) // an error is recorded in broken
		}
		return true
	}
	for _, m := range open {
		m.wakeUp()
	}
	defer engine.Pause(ctx)() // the others need slots
	enough := time.NewTimer(askFor)
	defer enough.Stop()
	for {
		p.mu.Lock()
		changed := p.changed
		left := slices.ContainsFunc(open, func(m *member) bool { return !m.knows(asks, revision) && !m.answered(asks, revision) })
		p.mu.Unlock()
		if !left {
			return true
		}
		select {
		case <-changed:
		case <-enough.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// answered reports whether a sync has failed to render the commit that another one needs.
func (m *member) answered(asks *member, revision string) bool {
	return m.broken != nil && (!m.follows(asks) || m.tried == "" || m.tried == revision)
}

// wakeUp wakes a sync, so that it fetches its newest commit and makes a pass.
func (m *member) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
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
			m.wakeUp()
		}
	}
}

package reconcile

import (
	"errors"
	"reflect"
	"slices"
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// An Elsewhere describes a sync that another process runs, by its status in the API server.
type Elsewhere struct {
	Member

	Planned string // the newest commit that it has planned; "" if that is not known
	Branch  string // the branch of Planned; "" if that is not known
	Moves
	More    bool      // whether it takes over more than Takes
	Tried   string    // the newest commit that it could not plan; "" for every commit
	Broken  string    // why; "" if it could
	Changed time.Time // when a pass last changed something
}

// Moves are the objects that move to a sync of the same branch or from it, by ID in the cluster, as far as it knows.
type Moves struct {
	Takes []string // its commit declares them, and other syncs own them
	Gives []string // it owns them, and the commits of other syncs declare them
}

// See records what a sync of another process shows, and wakes the syncs that wait for it.
func (p *Peers) See(of inventory.Sync, shows Elsewhere) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun()
	m := p.all[of]
	switch {
	case m == nil || m.elsewhere == nil:
		m = &member{wake: new(engine.Signal)}
		p.all[of] = m
	case reflect.DeepEqual(*m.elsewhere, shows):
		return
	}
	m.Member, m.elsewhere, m.revision, m.branch, m.tried, m.broken = shows.Member, &shows, shows.Planned, shows.Branch, shows.Tried, nil
	if shows.Broken != "" {
		m.broken = errors.New(shows.Broken)
	}
	close(p.changed)
	p.changed = make(chan struct{})
	for _, other := range p.all {
		if other.dependsOnOthers() && m.sharesBranch(other) {
			other.wake.Send()
		}
	}
}

// dependsOnOthers reports whether the plan of a sync of this process depends on what others show.
func (m *member) dependsOnOthers() bool {
	return m.elsewhere == nil && (m.awaits || len(m.moves.Takes) > 0)
}

// givenUp returns the objects that a plan keeps until other syncs have taken them over.
func givenUp(p plan.Plan) []string {
	var all []string
	home := p.Homes()
	for _, s := range p.Steps {
		if s.Reason.Code == reason.TakenOverBySync {
			all = append(all, home(s.ID).String())
		}
	}
	slices.Sort(all)
	return all
}

// Shows returns what the processes of other syncs must know about a sync of this process. It has planned nothing if it is not known.
func (p *Peers) Shows(of inventory.Sync) Elsewhere {
	m := p.member(of)
	if m == nil {
		return Elsewhere{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return Elsewhere{Member: m.Member, Planned: m.revision, Branch: m.branch, Moves: m.moves}
}

func (p *Peers) tell(of inventory.Sync) {
	if p != nil && p.Tell != nil {
		p.Tell(of)
	}
}

// Knows reports whether a sync has declared a commit.
func (p *Peers) Knows(of inventory.Sync, revision string) bool {
	m := p.member(of)
	if m == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return m.rendered(revision)
}

// planned records what the plan of a sync gives up to others, and whether it waits for others.
func (p *Peers) planned(of inventory.Sync, gives []string, awaits bool) {
	m := p.member(of)
	if m == nil {
		return
	}
	p.mu.Lock()
	m.moves.Gives, m.awaits = gives, awaits
	p.mu.Unlock()
	if len(gives) > 0 {
		p.tell(of)
	}
}

// shown returns what a sync of another process shows to one that has waited for it like q.
func (m *member) shown(name inventory.Sync, revision string, q waited) facts.Peer {
	peer := facts.Peer{Sync: name, Elsewhere: true, Takes: setOf(m.elsewhere.Takes), Gives: setOf(m.elsewhere.Gives)}
	known := m.rendered(revision) && !m.elsewhere.More
	if known || q.revision == revision && q.owned != nil {
		peer.Declares = map[manifest.ID]bool{}
	} else {
		peer.Reason = firstLine(m.broken)
	}
	return peer
}

// namesOf returns the objects that a sync takes over, in order.
func namesOf(takes map[manifest.ID]string) []string {
	var all []string
	for id := range takes {
		all = append(all, id.String())
	}
	slices.Sort(all)
	return all
}

func setOf(ids []string) map[string]bool {
	all := make(map[string]bool, len(ids))
	for _, id := range ids {
		all[id] = true
	}
	return all
}

package reconcile

import (
	"time"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"
)

// An End describes the end of a sync that deletes its objects.
type End struct {
	Member

	Since   time.Time
	Timeout time.Duration // how long the end waits for a sync that cannot declare its commit
}

// Heirs returns the other syncs of its branch for the plan of a sync that ends. One that has not declared its commit since then is asked to,
// and waited for: the push that ends one sync may give its objects to another.
func (p *Peers) Heirs(of inventory.Sync, end End) []facts.Peer {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	ends, long := &member{Member: end.unread()}, time.Since(end.Since) > end.Timeout
	var all []facts.Peer
	for name, m := range p.all {
		if name == of || !m.sharesBranch(ends) {
			continue
		}
		heir := facts.Peer{Sync: name, Declares: m.takesFrom(of)}
		if m.elsewhere != nil {
			heir.Elsewhere, heir.Takes = true, setOf(m.elsewhere.Takes)
		}
		if m.awaited(end.Since, long) {
			heir.Declares, heir.Reason = nil, firstLine(m.broken)
			m.wake.Send()
		}
		all = append(all, heir)
	}
	return sorted(all)
}

// awaited reports whether an end waits for what a sync takes over: what fails may be mended, and a process that is away comes back.
func (m *member) awaited(since time.Time, long bool) bool {
	switch {
	case m.broken != nil:
		return !long
	case m.elsewhere != nil:
		return m.elsewhere.More || m.revision == ""
	}
	return !long && m.told.Before(since)
}

// Inherit makes syncs take over soon what one that ended has given up.
func (p *Peers) Inherit(heirs []facts.Peer) {
	for _, heir := range heirs {
		if m := p.member(heir.Sync); m != nil && len(heir.Declares) > 0 {
			m.wake.Send()
		}
	}
}

// takesFrom returns the objects that a sync takes over from another one, as far as it knows their owners.
func (m *member) takesFrom(of inventory.Sync) map[manifest.ID]bool {
	all := map[manifest.ID]bool{}
	for id, owner := range m.takes {
		if owner == of.Key() || owner == "" {
			all[id] = true
		}
	}
	return all
}

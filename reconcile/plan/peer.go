package plan

import (
	"fmt"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The codes of prunes that wait for other syncs of the same process.
const (
	AwaitsSync       Code = "AwaitsSync"       // the sync, which has not rendered its newest commit yet
	AwaitsBrokenSync Code = "AwaitsBrokenSync" // the sync, and why it cannot render its newest commit
)

// A Peer is another sync of the process that applies to the same cluster.
type Peer struct {
	Sync inventory.Sync
	// Declares holds the objects of the commit that the peer rendered last, by identity in the cluster. The value reports whether
	// the peer takes over an object that exists already. It is nil if the peer has rendered none.
	Declares map[manifest.ID]bool
	State    PeerState
	Reason   string // why the peer cannot render its newest commit; "" if there is no error
}

// A PeerState is how much is known of the newest commit of a Peer.
type PeerState string

// The states of a Peer.
const (
	PeerHeard   PeerState = ""         // Declares is of its newest commit
	PeerAwaited PeerState = "awaited"  // its newest commit is not rendered yet
	PeerGivenUp PeerState = "given up" // the same, and this sync has waited long enough: the commit before counts
)

// Declares returns the objects of the commit, by identity in the cluster. The value reports whether the sync takes over an object
// that exists already. may reports whether it may apply an object at all.
func (o Observed) Declares(may func(manifest.ID) bool) map[manifest.ID]bool {
	home := o.Homes()
	all := make(map[manifest.ID]bool, len(o.Asked))
	for _, a := range o.Asked {
		all[home(a.ID)] = o.Terms.Adoption != AdoptNone && !a.Policy.Observes() && may(a.ID)
	}
	return all
}

// TakenOverBy returns the peer that is to take over an object which this commit does not declare any more, and reports whether
// there is one.
func (o Observed) TakenOverBy(id manifest.ID) (inventory.Sync, bool) {
	if len(o.Peers) == 0 || o.Ends != NoEnding {
		return inventory.Sync{}, false
	}
	id = o.Homes()(id)
	for _, p := range o.Peers {
		if p.State != PeerAwaited && p.Declares[id] {
			return p.Sync, true
		}
	}
	return inventory.Sync{}, false
}

// leftBy reports whether a peer claims an object that its commit no longer declares. That peer would
// prune it.
func (o Observed) leftBy(claim ownership.Claim, id manifest.ID) bool {
	for _, p := range o.Peers {
		if claim.Sync == p.Sync.Key() && p.State != PeerAwaited && p.Declares != nil {
			_, declares := p.Declares[o.Homes()(id)]
			return !declares
		}
	}
	return false
}

// mayBeLeft reports whether another sync of Headgate owns a live object. It may be a peer that leaves the object to this sync, which
// is known only after the cluster was observed.
func (o Observed) mayBeLeft(id manifest.ID, live metav1.Object) bool {
	return o.ClaimOn(id, live).Sync != "" && o.Terms.Adoption != AdoptNone
}

// awaitPeers has prunes wait for peers that may declare the objects.
func (p *Plan) awaitPeers(seen Observed) {
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Action != Prune || s.going {
			continue
		}
		for _, peer := range seen.Peers {
			switch {
			case peer.State != PeerAwaited:
			case peer.Reason != "":
				s.Waits = append(s.Waits, AwaitsBrokenSync.With(peer.Sync.String(), peer.Reason))
			default:
				s.Waits = append(s.Waits, AwaitsSync.With(peer.Sync.String()))
			}
		}
	}
}

// Awaits returns the peers that matter to the plan and have not rendered their newest commit: any of them if the plan prunes, and
// those that own what the plan would write.
func (p Plan) Awaits(seen Observed) []inventory.Sync {
	var all []inventory.Sync
	prunes, owners := p.concerns(seen)
	for _, peer := range seen.Peers {
		if peer.State == PeerAwaited && (prunes > 0 || owners[peer.Sync.Key()]) {
			all = append(all, peer.Sync)
		}
	}
	return all
}

// concerns returns how many objects the plan prunes, or would prune, and the syncs that own what it would write.
func (p Plan) concerns(seen Observed) (prunes int, owners map[string]bool) {
	owners = map[string]bool{}
	for _, s := range p.Steps {
		switch live := seen.Objects[s.ID]; {
		case s.going:
		case s.Action == Prune, s.Action == Hold && s.Would == Prune:
			prunes++
		case s.Action == Hold && live != nil:
			owners[seen.ClaimOn(s.ID, live).Sync] = true
		}
	}
	return prunes, owners
}

// HandsTo returns the peers that are to take over objects of the plan.
func (p Plan) HandsTo(seen Observed) []inventory.Sync {
	to := map[inventory.Sync]bool{}
	for _, s := range p.Steps {
		if _, owned := seen.Inventory.Entries[s.ID]; !owned || s.Action != Keep || s.Cause != Retain {
			continue
		}
		if by, moves := seen.TakenOverBy(s.ID); moves {
			to[by] = true
		}
	}
	var all []inventory.Sync
	for _, peer := range seen.Peers {
		if to[peer.Sync] {
			all = append(all, peer.Sync)
		}
	}
	return all
}

// ruleNotHeard is the rule of notes on peers that did not render their newest commit before this sync prunes.
const ruleNotHeard = "sync-not-heard"

// notesOnPeers returns notes on peers that did not render their newest commit before this sync prunes.
func (p Plan) notesOnPeers(seen Observed) []manifest.Finding {
	var notes []manifest.Finding
	for _, peer := range seen.Peers {
		if prunes, _ := p.concerns(seen); prunes > 0 && peer.State == PeerGivenUp {
			notes = append(notes, noteGivenUp(peer))
		}
	}
	return notes
}

// noteGivenUp is the note on a peer that did not render its newest commit before this sync prunes.
func noteGivenUp(peer Peer) manifest.Finding {
	f := manifest.Finding{
		Rule: ruleNotHeard, Severity: manifest.Note,
		Message: fmt.Sprintf("the sync %s has not rendered its newest commit, which may declare what this pass prunes", peer.Sync),
		Fix:     "check that sync",
	}
	if peer.Reason != "" {
		f.Message += ": " + peer.Reason
		f.Fix = "correct that sync"
	}
	return f
}

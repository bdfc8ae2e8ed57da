package plan

import (
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The codes of prunes that wait for other syncs of the same process.
const (
	AwaitsSync       Code = "AwaitsSync"       // the sync, which has not rendered the commit yet
	AwaitsBrokenSync Code = "AwaitsBrokenSync" // the sync, and why it cannot render the commit
)

// A Peer is another sync of the process that follows the same branch of the same repository, so one commit can move an object from
// one to the other.
type Peer struct {
	Sync inventory.Sync
	// Declares holds the objects of the commit of this pass that the peer declares, by ID in the cluster. The value reports whether
	// the peer takes over an existing object. It is nil while this sync waits for the peer to render the commit. After the wait, it
	// holds the objects of the last commit that the peer rendered, and those of its inventory.
	Declares map[manifest.ID]bool
	Reason   string // why the peer cannot render the commit; "" if there is no error
}

// Declares returns the objects of the commit, by ID in the cluster. The value reports whether the sync takes over an existing
// object. may reports whether the sync may apply an object at all.
func (o Observed) Declares(may func(manifest.ID) bool) map[manifest.ID]bool {
	home := o.Homes()
	all := make(map[manifest.ID]bool, len(o.Asked))
	for _, a := range o.Asked {
		all[home(a.ID)] = o.Terms.Adoption != AdoptNone && !a.Policy.Observes() && may(a.ID)
	}
	return all
}

// TakenOverBy returns the peer that will take over an object which this commit does not declare any more, and whether there is such
// a peer.
func (o Observed) TakenOverBy(id manifest.ID) (inventory.Sync, bool) {
	if len(o.Peers) == 0 || o.Stance.In(Ending) {
		return inventory.Sync{}, false
	}
	id = o.Homes()(id)
	for _, p := range o.Peers {
		if p.Declares[id] {
			return p.Sync, true
		}
	}
	return inventory.Sync{}, false
}

// leftBy reports whether the claim on an object is from a peer whose commit no longer declares it. That peer would prune the
// object.
func (o Observed) leftBy(claim ownership.Claim, id manifest.ID) bool {
	for _, p := range o.Peers {
		if claim.Sync == p.Sync.Key() && p.Declares != nil {
			_, declares := p.Declares[o.Homes()(id)]
			return !declares
		}
	}
	return false
}

// mayBeLeft reports whether another sync owns a live object that this sync may take over. Whether that sync is a peer that gives up
// the object is known only after the cluster was observed.
func (o Observed) mayBeLeft(id manifest.ID, live metav1.Object) bool {
	return o.ClaimOn(id, live).Sync != "" && o.Terms.Adoption != AdoptNone
}

// awaitPeers makes prunes wait for peers that may declare their objects.
func (p *drafted) awaitPeers(seen Observed) {
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Action != Prune || s.Terminating {
			continue
		}
		for _, peer := range seen.Peers {
			switch {
			case peer.Declares != nil:
			case peer.Reason != "":
				s.Waits = append(s.Waits, AwaitsBrokenSync.With(peer.Sync.String(), peer.Reason))
			default:
				s.Waits = append(s.Waits, AwaitsSync.With(peer.Sync.String()))
			}
		}
	}
}

// Awaits returns the peers that matter to the plan and have not rendered its commit: all such peers if the plan prunes, and otherwise
// those that own an object that the plan would write.
func (p Plan) Awaits(seen Observed) []inventory.Sync {
	var all []inventory.Sync
	prunes, owners := p.concerns(seen)
	for _, peer := range seen.Peers {
		if peer.Declares == nil && (prunes > 0 || owners[peer.Sync.Key()]) {
			all = append(all, peer.Sync)
		}
	}
	return all
}

// concerns returns the number of objects that the plan prunes or would prune, and the syncs that own objects which the plan would
// write.
func (p Plan) concerns(seen Observed) (prunes int, owners map[string]bool) {
	owners = map[string]bool{}
	for _, s := range p.Steps {
		switch live := seen.Objects[s.ID]; {
		case s.Terminating:
		case s.Action == Prune, s.Action == Hold && s.Would == Prune:
			prunes++
		case s.Action == Hold && live != nil:
			owners[seen.ClaimOn(s.ID, live).Sync] = true
		}
	}
	return prunes, owners
}

// HandsTo returns the peers that will take over objects of the plan.
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

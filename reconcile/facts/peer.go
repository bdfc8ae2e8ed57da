package facts

import (
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Peer is another sync that follows the same branch of the same repository, so one commit can move an object from one to the other.
type Peer struct {
	Sync inventory.Sync
	// Declares holds the objects of the commit of this pass that the peer declares, by ID in the cluster. The value reports whether
	// the peer takes over an existing object. If the peer may apply to another cluster, it takes over only what it saw as an object of
	// this sync. Declares is nil while this sync waits for the peer to render the commit. After the wait, it
	// holds the objects of the last commit that the peer rendered, and those of its inventory.
	Declares map[manifest.ID]bool
	Reason   string // why the peer cannot render the commit; "" if there is no error
	// Elsewhere is set if another process runs the peer. Declares is then empty, or nil during the wait. Of its objects, only these are
	// known, by ID in the cluster: it takes over those in Takes, which other syncs own, and gives up those in Gives, which it owns.
	Elsewhere    bool
	Takes, Gives map[string]bool
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
	if len(o.Peers) == 0 {
		return inventory.Sync{}, false
	}
	id = o.Homes()(id)
	for _, p := range o.Peers {
		if p.Declares[id] || p.Takes[id.String()] {
			return p.Sync, true
		}
	}
	return inventory.Sync{}, false
}

// Takes returns the objects of the commit that other syncs own and that this one takes over once these give them up, by ID in the cluster.
// The value is the key of the sync that owns the object. It is "" for an object that could not be read, which any other sync may own.
func (o Observed) Takes(may func(manifest.ID) bool) map[manifest.ID]string {
	all := map[manifest.ID]string{}
	home, declares := o.Homes(), o.Declares(may)
	for _, a := range o.Asked {
		live := o.Objects[a.ID]
		_, owned := o.Inventory.Entries[a.ID]
		switch at := home(a.ID); {
		case !declares[at]:
		case live != nil && o.ClaimOn(a.ID, live).Sync != "":
			all[at] = o.ClaimOn(a.ID, live).Sync
		case live == nil && !owned && o.Unread(a.ID) != nil:
			all[at] = ""
		}
	}
	return all
}

// leftBy reports whether the claim on an object is from a peer whose commit no longer declares it. That peer would prune the
// object.
func (o Observed) leftBy(claim ownership.Claim, id manifest.ID) bool {
	for _, p := range o.Peers {
		switch {
		case claim.Sync != p.Sync.Key():
		case p.Elsewhere:
			return p.Gives[o.Homes()(id).String()]
		case p.Declares != nil:
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

package draft

import (
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// awaitPeers makes prunes wait for peers that may declare their objects.
func (p *drafted) awaitPeers(seen facts.Observed) {
	for s := range p.prunes() {
		if s.Terminating {
			continue
		}
		for _, peer := range seen.Peers {
			switch {
			case peer.Declares != nil:
			case peer.Reason != "":
				s.Waits = append(s.Waits, reason.AwaitsBrokenSync.With(peer.Sync.String(), peer.Reason))
			default:
				s.Waits = append(s.Waits, reason.AwaitsSync.With(peer.Sync.String()))
			}
		}
	}
}

// Awaits returns the peers that matter to the plan and have not rendered its commit: all such peers if the plan prunes, and otherwise
// those that own an object that the plan would write.
func Awaits(p plan.Plan, seen facts.Observed) []inventory.Sync {
	var all []inventory.Sync
	prunes, owners := concerns(p, seen)
	for _, peer := range seen.Peers {
		if peer.Declares == nil && (prunes > 0 || owners[peer.Sync.Key()]) {
			all = append(all, peer.Sync)
		}
	}
	return all
}

// concerns returns the number of objects that the plan prunes or would prune, and the syncs that own objects which the plan would
// write.
func concerns(p plan.Plan, seen facts.Observed) (prunes int, owners map[string]bool) {
	owners = map[string]bool{}
	for _, s := range p.Steps {
		switch live := seen.Objects[s.ID]; {
		case s.Terminating:
		case s.Action == plan.Prune, s.Action == plan.Hold && s.Would == plan.Prune:
			prunes++
		case s.Action == plan.Hold && live != nil:
			owners[seen.ClaimOn(s.ID, live).Sync] = true
		}
	}
	return prunes, owners
}

// HandsTo returns the peers that will take over objects of the plan.
func HandsTo(p plan.Plan, seen facts.Observed) []inventory.Sync {
	to := map[inventory.Sync]bool{}
	for _, s := range p.Steps {
		if _, owned := seen.Inventory.Entries[s.ID]; !owned || s.Action != plan.Keep || s.Cause != plan.Retain {
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

package controller

import (
	"cmp"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/target"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// moves returns what the processes of other shards must know about a Sync of this one; nil if there are none. Until this process has planned
// a commit, what the process before it knew still holds.
func (c *controller) moves(s *v1alpha1.Sync, before *v1alpha1.Moves) *v1alpha1.Moves {
	if !c.isShard() {
		return nil
	}
	all := c.Around.Peers.Shows(target.NameOf(*s))
	if all.Planned == "" {
		return before
	}
	takes, gives := min(len(all.Takes), v1alpha1.MostMoves), min(len(all.Gives), v1alpha1.MostMoves)
	moves := &v1alpha1.Moves{Revision: all.Planned, Branch: all.Branch, Takes: all.Takes[:takes], More: len(all.Takes) - takes, Gives: all.Gives[:gives]}
	if s.Spec.KubeConfig != nil {
		moves.Cluster = cmp.Or(all.Cluster, thisCluster)
	}
	if s.Spec.Source.SourceRef != nil {
		moves.Repository = all.Repository
	}
	return moves
}

// thisCluster is what a Sync shows whose kubeconfig names the cluster of the controller.
const thisCluster = "this"

// tell makes a Sync of this shard show what moves.
func (c *controller) tell(of inventory.Sync) {
	c.mu.Lock()
	one := c.subjects[of]
	c.mu.Unlock()
	if one != nil {
		one.show()
	}
}

// show writes the status if something moves that it does not show.
func (j *subject) show() {
	j.mu.Lock()
	changed := j.setMoves()
	j.mu.Unlock()
	if changed {
		j.write()
	}
}

// setMoves records what moves, and reports whether that changed. Its lock is held.
func (j *subject) setMoves() bool {
	before := j.status.Moves
	j.status.Moves = j.of.moves(j.object, before)
	return !equality.Semantic.DeepEqual(before, j.status.Moves)
}

// meet takes up what a Sync of another shard shows. It stops the Sync if it belonged to this shard before.
func (c *controller) meet(s *v1alpha1.Sync) {
	name := target.NameOf(*s)
	c.mu.Lock()
	was := c.subjects[name]
	c.mu.Unlock()
	if was != nil {
		c.forget(name)
		c.Metrics.Forget(name.Namespace, name.Name) // another shard counts its objects
	}
	if shows, moves := elsewhere(*s); moves {
		c.Around.Peers.See(name, shows)
	} else {
		c.Around.Peers.Leave(name)
	}
}

// elsewhere returns what a Sync of another shard shows, and whether objects of other Syncs can move to it.
func elsewhere(s v1alpha1.Sync) (reconcile.Elsewhere, bool) {
	member, moves := target.MemberOf(s)
	shows := reconcile.Elsewhere{Member: member}
	of := s.Status
	if of.Moves != nil && s.Spec.Source.SourceRef != nil {
		shows.Repository = cmp.Or(of.Moves.Repository, shows.Repository)
	}
	if m := of.Moves; m != nil && of.ObservedGeneration == s.Generation {
		shows.Planned, shows.Branch, shows.Takes, shows.Gives, shows.More = m.Revision, m.Branch, m.Takes, m.Gives, m.More > 0
		switch m.Cluster {
		case "":
		case thisCluster:
			shows.Cluster = ""
		default:
			shows.Cluster = m.Cluster
		}
	}
	if n := len(of.Passes); n > 0 {
		shows.Changed = of.Passes[n-1].Ended.Time
	}
	stalled, ready := meta.FindStatusCondition(of.Conditions, v1alpha1.ConditionStalled), meta.FindStatusCondition(of.Conditions, v1alpha1.ConditionReady)
	switch {
	case stalled != nil:
		shows.Broken = stalled.Message
	case ready != nil && ready.Status == "False" && of.LastAttemptedRevision != shows.Planned:
		shows.Tried, shows.Broken = of.LastAttemptedRevision, ready.Message
	}
	return shows, moves
}

// ofOthers matches the changes of Syncs that other shards run.
func (c *controller) ofOthers() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			now, is := e.ObjectNew.(*v1alpha1.Sync)
			return is && !c.runs(now)
		},
	}
}

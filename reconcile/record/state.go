package record

import (
	"cmp"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
)

// A state is what an entry tells about the last action on its object. "" leaves a word as it was.
type state struct{ strategy, actuation, reconcile string }

// of returns the entry in this state.
func (s state) of(e inventory.Entry) inventory.Entry {
	e.Strategy, e.Actuation, e.Reconcile = cmp.Or(s.strategy, e.Strategy), cmp.Or(s.actuation, e.Actuation), cmp.Or(s.reconcile, e.Reconcile)
	return e
}

// A result is how an action on an object ended.
type result int

const (
	ready   result = iota
	late           // it was not ready after the wait
	unknown        // whether it is ready is not known yet
	failed
	results
)

func resultOf(o plan.Outcome) result {
	switch {
	case o.Err != nil:
		return failed
	case o.Unknown:
		return unknown
	case !o.NotReady.None():
		return late
	}
	return ready
}

// states holds the state of an object by action and result. A release changes nothing until it is over, and a check that failed shows
// nothing: what was not ready before is checked again.
var states = map[plan.Action][results]state{
	plan.Create: writes,
	plan.Update: writes,
	plan.Keep:   {ready: isReady, late: isLate},
	plan.Prune:  {ready: isDeleting, late: isDeleting, unknown: isDeleting, failed: {"Delete", "Failed", "Unknown"}},
}

// writes holds the states of objects that were created or updated.
var writes = [results]state{
	ready:   isReady,
	late:    isLate,
	unknown: {reconcile: inventory.ReconcilePending},
	failed:  {actuation: "Failed", reconcile: "Unknown"},
}

var (
	isReady    = state{actuation: "Succeeded", reconcile: "Succeeded"}
	isLate     = state{reconcile: inventory.ReconcileTimeout}
	isDeleting = state{"Delete", "Succeeded", inventory.ReconcilePending} // until it is gone
)

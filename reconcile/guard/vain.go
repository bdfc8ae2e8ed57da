package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
)

// isRefused reports whether a step wants an object that cannot be applied.
func isRefused(s plan.Step, have inventory.Inventory) bool {
	switch {
	case s.Origin.Path == "":
		return false
	case s.Action == plan.Hold && s.Guard == NotOurs:
		_, owned := have.Entries[s.ID]
		return !owned
	}
	return s.Action == plan.Create && s.Cause != plan.Drift && s.Err != nil
}

// replacedInVain retains an object in two cases: its file declares a refused object now, or a refused object has the same kind and
// name. It retains a definition if the file of a former policy now declares a kind that no API serves.
func replacedInVain(s plan.Step, c plan.Case) plan.Ruling {
	path := c.Seen.PathOf(s.ID)
	for _, o := range c.Steps {
		if o.ID == s.ID || !isRefused(o, c.Seen.Inventory) || plan.MayPassLater(o.Err, o.ID, s.ID) {
			continue
		}
		switch {
		case s.Deactivates:
			if o.IsUnserved() && slices.Contains(c.Seen.Inventory.Record.Policies, o.Origin.Path) {
				return retained(PolicyUnserved.With(o.Origin, o.ID))
			}
		case path == o.Origin.Path && o.IsUnserved():
			return retained(KindUnserved.With(o.Origin, o.ID))
		case path == o.Origin.Path || plan.IsMoved(s.ID, o.ID):
			return retained(ReplacedInVain.With(o.Origin, o.ID))
		}
	}
	return allowed
}

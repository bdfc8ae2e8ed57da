package guard

import (
	"headgate.dev/headgate/reconcile/plan"
)

// othersInside holds a namespace in which someone else lives.
func othersInside(s plan.Step, c plan.Case) plan.Ruling {
	if s.ID.Group != "" || s.ID.Kind != "Namespace" {
		return allowed
	}
	for _, o := range c.Want.Objects {
		if o.ID.Namespace == s.ID.Name {
			r := held(text("the commit still wants %s in it; declare the namespace again, or move that", o.ID))
			r.Clears = plan.ClearsWithOther
			return r
		}
	}
	r := counted(plan.Question{Ask: plan.Inside, Of: s.ID}, c, "%s in it would be deleted with it%s; move or delete them first", "foreign object")
	r.Clears = plan.ClearsWithOther
	return r
}

// someInside holds a namespace in which an object of the sync stays that the commit does not want any more.
func someInside(s plan.Step, c plan.Case) plan.Ruling {
	if s.ID.Group != "" || s.ID.Kind != "Namespace" {
		return allowed
	}
	for _, o := range c.Steps {
		if o.ID.Namespace == s.ID.Name && (o.Action != plan.Prune || o.Err != nil) {
			r := held(text("%s in it stays, and would be deleted with it; see there why", o.ID))
			r.Clears = plan.ClearsWithOther
			return r
		}
	}
	return allowed
}

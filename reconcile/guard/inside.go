package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
)

// The codes of the guard others inside.
const (
	WantedInside reason.Code = "WantedInside" // an object of the commit in the namespace
	StaysInside  reason.Code = "StaysInside"  // an object in the namespace that stays
)

// othersInside holds the prune of a namespace that contains objects of others, or objects of the commit.
func othersInside(s plan.Step, c draft.Case) plan.Ruling {
	if s.ID.Group != "" || s.ID.Kind != "Namespace" {
		return allowed
	}
	for _, o := range c.Want.Objects {
		if o.ID.Namespace == s.ID.Name {
			r := held(WantedInside.With(o.ID))
			r.Clears = plan.ClearsWithOther
			return r
		}
	}
	r := counted(question.Inside{Of: s.ID}, c, DeletesForeignObjects)
	r.Clears = plan.ClearsWithOther
	return r
}

// someInside holds a namespace with an object of the sync that stays although the commit does not want it any more.
func someInside(s plan.Step, c draft.Case) plan.Ruling {
	if s.ID.Group != "" || s.ID.Kind != "Namespace" {
		return allowed
	}
	for _, o := range c.Steps {
		if o.ID.Namespace == s.ID.Name && (o.Action != plan.Prune || o.Err != nil) {
			r := held(StaysInside.With(o.ID))
			r.Clears = plan.ClearsWithOther
			return r
		}
	}
	return allowed
}

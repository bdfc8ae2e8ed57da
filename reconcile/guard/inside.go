package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
)

// othersInside holds the prune of a namespace that contains objects of others, or objects of the commit.
func othersInside(s plan.Step, c draft.Case) plan.Ruling {
	if !s.ID.IsNamespace() {
		return allowed
	}
	for _, o := range c.Want.Objects {
		if o.ID.Namespace == s.ID.Name {
			r := held(reason.WantedInside.With(o.ID))
			r.Clears = plan.ClearsWithOther
			return r
		}
	}
	r := counted(question.Inside{Of: s.ID}, c, reason.DeletesForeignObjects)
	r.Clears = plan.ClearsWithOther
	return r
}

// someInside holds a namespace with an object of the sync that stays although the commit does not want it any more.
func someInside(s plan.Step, c draft.Case) plan.Ruling {
	if !s.ID.IsNamespace() {
		return allowed
	}
	for _, o := range c.Steps {
		if o.ID.Namespace == s.ID.Name && (o.Action != plan.Prune || o.Err != nil) {
			r := held(reason.StaysInside.With(o.ID))
			r.Clears = plan.ClearsWithOther
			return r
		}
	}
	return allowed
}

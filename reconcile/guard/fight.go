package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// fight keeps a contested object as it is while the fight rests. If Headgate wrote it again and again, users would not notice that
// they have to decide.
func fight(s plan.Step, c draft.Case) plan.Ruling {
	if s.Cause != plan.Drift {
		return allowed
	}
	for _, f := range c.Seen.Fights {
		if f.ID == s.ID && f.Rests {
			return reported(reason.FightRests.With(f.Manager, f.Path, f.Times))
		}
	}
	return allowed
}

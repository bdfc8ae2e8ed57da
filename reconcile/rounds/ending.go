package rounds

import (
	"slices"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// ending returns the next round of a pass that ends the sync. It deletes tier by tier, in reverse. Later tiers contain what the
// deletions of a tier need, so each tier must be gone before the next begins, and a hold in one tier holds all tiers after it.
//
//	the foremost tier                                   | why      | sends    | until
//	----------------------------------------------------+----------+----------+---------
//	there is none: nothing is owned any more            | Ends     | the plan | Finished
//	is being deleted, and the time is up                | TimeIsUp |          | Late
//	has a step that was not sent yet                    | Deletes  | the tier | Again
//	is being deleted                                    | Going    |          | Again
//	failed fewer than three times in a row              | Deletes  | the tier | Again
//	is held, but an earlier deletion may clear the hold | Settles  |          | Again
//	otherwise                                           | Stuck    |          | Finished
//
// A round without deletions makes the inventory forget the objects that are gone since the last round.
func (p Pass) ending(r Round) Round {
	p = p.seeing(r.now)
	tier := plan.Foremost(r.now)
	if !slices.EqualFunc(p.Last.Steps, r.now.Steps, sameObject) { // so also at first
		r.lastChange = r.at.Now
	}
	since := r.at.Now.Sub(r.lastChange.Time)
	recent := len(p.Done) > 0 && since <= r.at.Grace.Duration // an earlier deletion may clear a hold
	if r.now.Remembers() {                                    // forget objects that are gone
		r.Send = tier.Select(func(s plan.Step) bool { return !s.Writes() })
	}
	has := func(like func(plan.Step) bool) bool { return slices.ContainsFunc(tier.Steps, like) }
	switch {
	case len(r.now.Steps) == 0:
		r.Send, r.Why, r.Until, r.stores = r.now, Ends, Finished, true // it deletes the inventory
	case has(p.goes) && since >= r.at.Limit.Duration:
		r.Why, r.Until = TimeIsUp, Late
	case has(func(s plan.Step) bool { return s.Writes() && !p.tried(s) }):
		r.Send, r.Why = tier, Deletes
	case has(p.goes):
		r.Why = Going
	case has(func(s plan.Step) bool { return s.Writes() && p.Done[s.ID].Err != nil }) && p.failures < mostFailures:
		r.Send, r.Why = tier, Deletes
	case !has(plan.Step.Writes) && has(plan.Step.MayClear) && recent:
		r.Why = Settles
	default:
		r.Why, r.Until = Stuck, Finished
	}
	return r
}

// sameObject reports whether two steps are about one object.
func sameObject(a, b plan.Step) bool { return a.ID == b.ID }

// tierIsLate returns the pass after its last round. If the time is up, what is still there of the foremost tier has failed.
func (p Pass) tierIsLate(r Round) Pass {
	if r.Until != Late {
		return p
	}
	p.Done = cloned(p.Done)
	for _, s := range plan.Foremost(p.Last).Steps {
		if p.goes(s) {
			p.Done[s.ID] = plan.Outcome{ID: s.ID, Action: plan.Prune, Err: reason.CodedError{Reason: reason.NotGone.With(r.at.Limit.Duration.String(), s.Reason)}}
		}
	}
	return p
}

// account returns the first plan of an ending, with the completed steps and the newest versions of all others.
func (p Pass) account() plan.Plan {
	left := p.Last.ByID()
	all := p.Last
	all.Notes, all.Steps = p.First.Notes, nil
	for _, s := range p.First.Steps {
		sent, did := p.sent[s.ID]
		newer, stays := left[s.ID]
		switch {
		case did && (!stays || p.Done[s.ID].Err != nil):
			s = sent
		case stays:
			s = newer
		case s.Action == plan.Hold: // it was deleted with another object
			s = s.Unheld()
		}
		all.Steps = append(all.Steps, s.Over())
	}
	return all
}

// ended returns the outcomes of the steps of an ending. An object that was missing at its end counts as deleted.
func (p Pass) ended() []plan.Outcome {
	p.Done = cloned(p.Done)
	left := p.Last.ByID()
	for _, s := range p.account().Steps {
		o, known := p.Done[s.ID]
		switch _, stays := left[s.ID]; {
		case stays:
		case !known:
			p.Done[s.ID] = plan.Outcome{ID: s.ID, Action: s.Action}
		case !o.Deleting.None():
			o.Deleting = reason.Reason{}
			p.Done[s.ID] = o
		}
	}
	return p.outcomes()
}

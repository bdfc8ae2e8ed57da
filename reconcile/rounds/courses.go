package rounds

import (
	"slices"

	"headgate.dev/headgate/reconcile/plan"
)

// A course is how the passes of some stances go on.
type course struct {
	in       plan.Stances
	next     func(Pass, Round) Round                                         // the next round; it has the newest plan
	after    func(p, was Pass, r Round, done []plan.Outcome, err error) Pass // with the plans as a round left them; was is the pass before it
	end      func(Pass, Round) Pass                                          // after the last round
	plan     func(Pass) plan.Plan                                            // as it was carried out
	outcomes func(Pass) []plan.Outcome                                       // of the steps of that plan
	polls    bool                                                            // others act, so the pass looks again when PollAfter says
}

// courses holds one course for every stance: the first that holds in it.
var courses = []course{
	{in: plan.Stances{plan.Looking}, next: Pass.look, after: renewed, end: Pass.overdue, plan: newest, outcomes: outcomes, polls: true},
	{in: plan.Ending, next: Pass.ending, after: renewed, end: Pass.tierIsLate, plan: Pass.account, outcomes: Pass.ended},
	{next: Pass.apply, after: continued, end: Pass.overdue, plan: newest, outcomes: outcomes},
}

// courseOf returns the course of a pass with this plan.
func courseOf(p plan.Plan) course {
	return courses[slices.IndexFunc(courses, func(c course) bool { return p.Stance.In(c.in) })]
}

// newest returns the first plan with each step as it was carried out or found last.
func newest(p Pass) plan.Plan { return p.Last }

// outcomes returns the newest outcome of each step.
func outcomes(p Pass) []plan.Outcome { return p.outcomes() }

// renewed returns a pass whose every plan replaces the one before.
func renewed(p, _ Pass, r Round, _ []plan.Outcome, _ error) Pass {
	p.Last = r.now
	if !p.begun {
		p.First = r.now
	}
	return p
}

// continued returns a pass that carries out its first plan, of which a round sent another part.
func continued(p, was Pass, r Round, done []plan.Outcome, err error) Pass {
	last := refreshed(p.Last, r.now)
	switch {
	case !p.begun:
		p.First = withCarried(r.now, p.Last, was.outcomes())
		p.First.Notes = slices.Concat(p.First.Notes, p.migration)
		p.Last = plan.FailDependants(p.First, p.outcomes())
	case err != nil: // keep the steps that were carried out before the error
		p.Last = replaced(last, carried(r.next, done), r.phases)
	default:
		p.Last = plan.FailDependants(replaced(last, r.next, r.phases), p.outcomes())
		if r.prunes {
			p.Last.Approval, p.Last.Spent = r.next.Approval, slices.Concat(p.Last.Spent, r.next.Spent[len(r.now.Spent):])
		}
	}
	return p
}

package draft

import (
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Guard rules on the steps of one phase, one step at a time.
type Guard struct {
	Name       plan.GuardName
	Phase      Phase
	Approvable bool         // it only asks whether a step is intended: a person can let the step pass
	In         plan.Stances // where it rules; everywhere if there are none
	Counts     bool         // it rules on the steps that the other guards of the phase let pass, because it counts them
	Passes     bool         // what it holds a step for may end by itself, so nobody is asked about that before it holds
	Rule       Rule
	Commit     func(Case) []plan.Ruling // of a guard of the phase Merge that rules on the commit as a whole, in place of Rule
}

// A Phase is when a guard rules, and on which steps.
type Phase string

// The phases.
const (
	Writes  Phase = "writes"  // on creates and updates
	Effects Phase = "effects" // on what creates and updates make Crossplane install; a ruling on an effect is one on its step
	Prunes  Phase = "prunes"  // on prunes
	Settled Phase = "settled" // on prunes that all other guards let pass, repeatedly until no ruling changes

	Merge        Phase = "merge"         // in a comparison: on every step, for the person who decides whether to merge
	MergeEffects Phase = "merge effects" // in a comparison: on what changes without a step
)

// A Rule starts a guard's work on a plan. It returns a function that rules on one step after the other. The steps of the case are
// as the guards of earlier phases left them, and change with every ruling. A guard that counts rules after the others of its phase.
type Rule func(c Case) func(s plan.Step) plan.Ruling

// Each returns the rule of a guard that keeps no state between steps.
func Each(rule func(s plan.Step, c Case) plan.Ruling) Rule {
	return func(c Case) func(plan.Step) plan.Ruling {
		return func(s plan.Step) plan.Ruling { return rule(s, c) }
	}
}

// prunes reports whether the guard rules on prunes.
func (g Guard) prunes() bool { return g.Phase != Writes && g.Phase != Effects }

// on reports whether the guard rules on a step.
func (g Guard) on(s plan.Step) bool {
	if g.prunes() {
		return s.Action == plan.Prune && !s.Deleting // no guard can stop a deletion that has begun
	}
	return s.Action == plan.Create || s.Action == plan.Update
}

// A Case holds everything besides the step that a guard may use.
type Case struct {
	Want    render.Desired
	Seen    facts.Observed
	Passing int           // number of prunes that passed all earlier guards, without those that an approval lets pass this guard
	Steps   []plan.Step   // of the plan, as the earlier guards left them
	Effects []plan.Effect // in the phase Merge
	Bumps   []plan.Bump   // in the phase Merge

	Asked map[manifest.ID]facts.Asked // the objects that the commit asks for
	Lost  []plan.LostPackage

	lifted     plan.Lifting
	instead    map[manifest.ID]plan.Step // see Plan.Instead
	first      demand.Order              // the declared dependencies of objects
	after      demand.Order              // those that steps wait for
	at         map[manifest.ID]int       // index of Steps, in the phase Settled
	dependants map[manifest.ID][]manifest.ID
}

// IsApproved reports whether a person approved what a guard asks about a step.
func (c Case) IsApproved(s plan.Step, guard plan.GuardName) bool {
	for _, cause := range []approval.Cause{"", approval.Uncounted} {
		if _, has := c.lifted[s.Claim(guard, cause).Key()]; has {
			return true
		}
	}
	return false
}

// Asks reports whether a cluster answers the questions of guards.
func (c Case) Asks() bool { return c.Seen.Asks != nil }

// A Dependant is the step of an object that depends on another object.
type Dependant struct {
	plan.Step
	Still bool // also depends on it in this commit
	Owned bool // the garbage collector deletes its object after the other one
}

// Dependants returns the steps of the objects that depend on an object, sorted by ID. Only guards of the phase Settled may call it.
func (c Case) Dependants(of manifest.ID) []Dependant {
	var all []Dependant
	for _, by := range c.dependants[of] {
		if i, has := c.at[by]; has {
			still := slices.ContainsFunc(c.first[by], func(e demand.Edge) bool { return e.To == of })
			d := Dependant{c.Steps[i], still, c.isOwnedBy(c.Steps[i], of)}
			if d.Owned && by.IsCRD() && d.Action != plan.Release {
				continue // other rules keep CRDs while their definitions go
			}
			all = append(all, d)
		}
	}
	return all
}

// Undone returns the creates and updates of the plan that are known to fail, or that a guard holds, the oldest first.
func (c Case) Undone() []plan.Undone {
	return plan.Plan{Steps: c.Steps, Instead: c.instead, UndoneSince: c.Seen.Inventory.Undone}.Undone(nil)
}

// Live returns the live object of the step, or nil.
func (c Case) Live(s plan.Step) *metav1.PartialObjectMetadata {
	if live, ok := c.Seen.Objects[s.ID]; ok {
		return live
	}
	return c.Seen.Upstream.Objects[s.ID]
}

// guard runs every step of the plan through every guard of its phase, except the phase Settled. It repeats that with the claims that
// a person has approved, until no other one is.
func (p *drafted) guard(seen facts.Observed, guards []Guard) {
	guards = slices.DeleteFunc(slices.Clone(guards), func(g Guard) bool { return g.Phase == Settled || g.merges() })
	before, instead, open := slices.Clone(p.Steps), p.Instead, seen.Needed()
	lifted, because := plan.Lifting{}, map[plan.Change][]plan.Ruling{}
	p.ruleAll(seen, guards, lifted)
	ledger := p.ledger(seen)
	more, notes := p.approve(seen, ledger, guards)
	for len(more) > 0 {
		p.each(func(s plan.Step) plan.Step {
			for _, r := range s.Holds() {
				if more.Covers(s.Ask(r)) {
					because[s.Change()] = append(because[s.Change()], r)
				}
			}
			return s
		})
		maps.Copy(lifted, more)
		p.Steps, p.Instead, p.Approval = slices.Clone(before), instead, nil
		seen.AskOnly(open)
		p.ruleAll(seen, guards, lifted)
		more, notes = p.approve(seen, ledger, guards)
	}
	p.each(func(s plan.Step) plan.Step { return s.Past(because[s.Change()]) })
	p.Notes = append(p.Notes, notes...)
	p.Rewritten = p.Rewritten && (!lifted.Some(History) || p.holdsHistory())
}

// ruleAll runs the guards. Those of a phase that do not count rule independently of each other, so that a person sees all reasons at
// once. Those that count rule on what the others let pass.
func (p *drafted) ruleAll(seen facts.Observed, guards []Guard, lifted plan.Lifting) {
	unruled := map[plan.Change]plan.Step{}
	p.each(func(s plan.Step) plan.Step {
		unruled[s.Change()] = s
		return s
	})
	var counting []Guard
	for _, prunes := range []bool{false, true} {
		var independent []Guard
		for _, g := range guards {
			if g.prunes() == prunes && !g.Counts {
				independent = append(independent, g)
			}
		}
		p.rule(seen, independent, lifted)
		for _, g := range guards {
			if g.prunes() == prunes && g.Counts {
				p.rule(seen, []Guard{g}, lifted)
				counting = append(counting, g)
			}
		}
	}
	p.foresee(seen, guards, counting, lifted, unruled)
}

// foresee adds to held steps the rulings of the guards that count, as they will rule once a person has approved the other claims on
// these steps. A guard whose holds may end by themselves is left out.
func (p *drafted) foresee(seen facts.Observed, guards, counting []Guard, lifted plan.Lifting, unruled map[plan.Change]plan.Step) {
	can := approvable(guards)
	then := *p
	then.Steps = slices.Clone(p.Steps)
	assumed := maps.Clone(lifted)
	then.each(func(s plan.Step) plan.Step {
		if !s.HeldByAny(can) {
			return s
		}
		assumed.Add(s.ClaimsHeld()...)
		return unruled[s.Change()]
	})
	if len(assumed) == len(lifted) {
		return
	}
	for _, g := range counting {
		if !g.Passes {
			then.rule(seen, []Guard{g}, assumed)
		}
	}
	later, more := map[plan.Change][]plan.Ruling{}, false
	then.each(func(s plan.Step) plan.Step {
		later[s.Change()] = s.Holds()
		return s
	})
	p.each(func(s plan.Step) plan.Step {
		if s.HeldByAny(can) && len(later[s.Change()]) > 0 {
			s.Also, more = slices.Concat(s.Also, later[s.Change()]), true
		}
		return s
	})
	if more { // the guards that count rule on what those before them let pass
		p.foresee(seen, guards, counting, lifted, unruled)
	}
}

// settle runs the remaining prunes through the guards of the phase Settled, until no further prune is refused.
func (p *drafted) settle(seen facts.Observed, guards []Guard) {
	guards = slices.DeleteFunc(slices.Clone(guards), func(g Guard) bool { return g.Phase != Settled })
	for n := p.Count(plan.Prune); n > 0; {
		p.rule(seen, guards, nil)
		left := p.Count(plan.Prune)
		if left == n {
			break
		}
		n = left
	}
}

// each replaces every step of the plan, and every update that is made if a prune is not.
func (p *drafted) each(by func(plan.Step) plan.Step) {
	p.Instead = maps.Clone(p.Instead)
	for i, s := range p.Steps {
		if update, has := p.Instead[s.ID]; has {
			p.Instead[s.ID] = by(update)
		}
		p.Steps[i] = by(s)
	}
}

// rule runs every step through guards that rule independently of each other. An approval lifts a single ruling, and no other one.
func (p *drafted) rule(seen facts.Observed, guards []Guard, lifted plan.Lifting) {
	rules := make([]func(plan.Step) plan.Ruling, len(guards))
	for i, g := range guards {
		c := p.caseOf(seen)
		c.lifted = lifted
		for _, s := range p.Steps {
			if s.Counts() && !lifted.Covers(s.Ask(plan.Ruling{Judged: plan.Judged{Guard: g.Name}})) {
				c.Passing++
			}
		}
		rules[i] = g.Rule(c)
		if g.Phase == Effects {
			rules[i] = onEffects(p.Effects, rules[i])
		}
	}
	p.each(func(s plan.Step) plan.Step {
		ruled, notes := s, reason.Reason{}
		for i, g := range guards {
			if !g.on(s) || ruled.Action == plan.Keep {
				continue
			}
			r := rules[i](s)
			r.Guard = g.Name
			ruled = ruled.Ruled(r, lifted)
			if r.Response() == plan.Allowed {
				notes = reason.And(notes, r.Reason)
			}
		}
		ruled.Reason = ruled.Reason.Or(notes)
		return ruled
	})
}

// caseOf returns the case of the plan in its current state.
func (p *drafted) caseOf(seen facts.Observed) Case {
	return Case{Want: p.Want, Seen: seen, Steps: p.Steps, instead: p.Instead, Lost: p.Lost, Asked: p.asked, first: p.first, after: p.after, at: p.at, dependants: p.Dependants}
}

// Users returns the steps that delete users of an object with the same commit. all reports whether these are all users.
func (c Case) Users(of manifest.ID) (going []plan.Step, all bool) {
	a, is := question.Get(question.Known{Answers: c.Seen.Answers}, question.Dependents{Of: of})
	if !is.Known() || a.Count == 0 {
		return nil, false
	}
	these := make(map[manifest.ID]bool, len(a.These))
	for _, id := range a.These {
		these[c.Seen.AsWritten(id)] = true
	}
	serves := of.IsCRD() || crossplane.IsMRD(of) // the kind identifies its objects, even those that are not listed by name
	for _, s := range c.Steps {
		k := c.Seen.Kinds[s.ID.GroupKind()]
		uses := these[s.ID] || serves && k.Resource+"."+s.ID.Group == of.Name
		if uses && (s.Action == plan.Prune || s.Would == plan.Prune) {
			going = append(going, s)
		}
	}
	slices.SortFunc(going, func(a, b plan.Step) int { return a.ID.Compare(b.ID) })
	return going, int64(len(going)) >= a.Count
}

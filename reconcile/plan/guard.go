package plan

import (
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Guard rules on the steps of one phase, one step at a time.
type Guard struct {
	Name       GuardName
	Phase      Phase
	Approvable bool    // it only asks whether a step is intended: a person can let the step pass
	In         Stances // where it rules; everywhere if there are none
	Counts     bool    // it rules on the steps that the other guards of the phase let pass, because it counts them
	Rule       Rule
	Commit     func(Case) []Ruling // of a guard of the phase Merge that rules on the commit as a whole, in place of Rule
}

// A GuardName names a guard in reports, approvals and documentation. A guard with rules for several phases has one
// name.
type GuardName string

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
type Rule func(c Case) func(s Step) Ruling

// Each returns the rule of a guard that keeps no state between steps.
func Each(rule func(s Step, c Case) Ruling) Rule {
	return func(c Case) func(Step) Ruling {
		return func(s Step) Ruling { return rule(s, c) }
	}
}

// prunes reports whether the guard rules on prunes.
func (g Guard) prunes() bool { return g.Phase != Writes && g.Phase != Effects }

// on reports whether the guard rules on a step.
func (g Guard) on(s Step) bool {
	if g.prunes() {
		return s.Action == Prune && !s.Deleting // no guard can stop a deletion that has begun
	}
	return s.Action == Create || s.Action == Update
}

// A Case holds everything besides the step that a guard may use.
type Case struct {
	Want    render.Desired
	Seen    Observed
	Passing int      // number of prunes that passed all earlier guards, without those that an approval lets pass this guard
	Steps   []Step   // of the plan, as the earlier guards left them
	Effects []Effect // in the phase Merge
	Bumps   []Bump   // in the phase Merge

	Lost []LostPackage

	lifted     Lifting
	first      order
	at         map[manifest.ID]int // index of Steps, in the phase Settled
	dependants map[manifest.ID][]manifest.ID
}

// IsApproved reports whether a person approved what a guard asks about a step.
func (c Case) IsApproved(s Step, guard GuardName) bool {
	for _, cause := range []approval.Cause{"", approval.Uncounted} {
		if _, has := c.lifted[s.claim(guard, cause).Key()]; has {
			return true
		}
	}
	return false
}

// Asks reports whether a cluster answers the questions of guards.
func (c Case) Asks() bool { return c.Seen.Stance.In(Answered) }

// A Dependant is the step of an object that depends on another object.
type Dependant struct {
	Step
	Still bool // also depends on it in this commit
}

// Dependants returns the steps of the objects that depend on an object, sorted by ID. Only guards of the phase Settled may call it.
func (c Case) Dependants(of manifest.ID) []Dependant {
	var all []Dependant
	for _, by := range c.dependants[of] {
		if i, has := c.at[by]; has {
			still := slices.ContainsFunc(c.first[by], func(e edge) bool { return e.to == of })
			all = append(all, Dependant{c.Steps[i], still})
		}
	}
	return all
}

// Undone returns the creates and updates of the plan that are known to fail, or that a guard holds, the oldest first.
func (c Case) Undone() []Undone {
	return Plan{Steps: c.Steps, UndoneSince: c.Seen.Inventory.Undone}.Undone(nil)
}

// Live returns the live object of the step, or nil.
func (c Case) Live(s Step) *metav1.PartialObjectMetadata {
	if live, ok := c.Seen.Objects[s.ID]; ok {
		return live
	}
	return c.Seen.Upstream.Objects[s.ID]
}

// A Ruling is the result of a guard. The zero value allows the step.
type Ruling struct {
	Guard    GuardName // the guard that ruled; set by the plan
	Severity Severity
	Answer   Response // never Held
	Reason   Reason   // a reason that a person can act on; for an allowed step, a note
	Clears   Clearing // how the hold can end
	Cause    approval.Cause
	Amount   approval.Amount // of a hold that a person can approve: how much it concerns beyond the step's object

	Of     manifest.ID       // of a ruling on the commit as a whole: the object
	At     []manifest.Origin // of a ruling of the phase Merge: places in the commit
	Claims []approval.Ask    // of a ruling of the phase Merge that blocks: what a cluster asks about it
}

// Clearing is whether and how a hold can end without the action of a person.
type Clearing int

// The clearings.
const (
	Stays           Clearing = iota // a person has to act
	ClearsWithOther                 // another deletion may delete the obstacle, too
	ClearsSoon                      // Crossplane removes the obstacle in a moment
)

// A Severity is how much a ruling matters to a person.
type Severity int

// The severities, from the mildest.
const (
	Note  Severity = iota // it only explains
	Look                  // a person should see it
	Block                 // nothing happens until a person acts
)

// A Response is what becomes of a step.
type Response int

// The responses.
const (
	Allowed Response = iota
	Retained
	Held     // no guard answers this: it follows from the severity
	Reported // the object keeps its drift, which is reported
)

// Response returns what becomes of the step. A ruling of the severity Block holds it.
func (r Ruling) Response() Response {
	if r.Severity == Block {
		return Held
	}
	return r.Answer
}

// guard runs every step of the plan through every guard of its phase, except the phase Settled. It repeats that with the claims that
// a person has approved, until no other one is.
func (p *drafted) guard(seen Observed, guards []Guard) {
	guards = slices.DeleteFunc(slices.Clone(guards), func(g Guard) bool { return g.Phase == Settled || g.merges() })
	before, open := slices.Clone(p.Steps), seen.asked()
	lifted, because := Lifting{}, map[change][]Ruling{}
	p.ruleAll(seen, guards, lifted)
	ledger := p.ledger(seen)
	more, notes := p.approve(seen, ledger, guards)
	for len(more) > 0 {
		p.each(func(s Step) Step {
			for _, r := range s.holds() {
				if more.Covers(s.ask(r)) {
					because[s.change()] = append(because[s.change()], r)
				}
			}
			return s
		})
		maps.Copy(lifted, more)
		p.Steps, p.Approval = slices.Clone(before), nil
		seen.askOnly(open)
		p.ruleAll(seen, guards, lifted)
		more, notes = p.approve(seen, ledger, guards)
	}
	p.each(func(s Step) Step { return s.past(because[s.change()]) })
	p.Notes = append(p.Notes, notes...)
	p.Rewritten = p.Rewritten && (!lifted.Some(History) || p.holdsHistory())
}

// ruleAll runs the guards. Those of a phase that do not count rule independently of each other, so that a person sees all reasons at
// once. Those that count rule on what the others let pass.
func (p *drafted) ruleAll(seen Observed, guards []Guard, lifted Lifting) {
	unruled := map[change]Step{}
	p.each(func(s Step) Step {
		unruled[s.change()] = s
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
// these steps. The guard Unfinished is left out: what it waits for may end by itself.
func (p *drafted) foresee(seen Observed, guards, counting []Guard, lifted Lifting, unruled map[change]Step) {
	can := approvable(guards)
	then := *p
	then.Steps, seen.asks = slices.Clone(p.Steps), nil
	assumed := maps.Clone(lifted)
	then.each(func(s Step) Step {
		if !s.isHeldBy(can) {
			return s
		}
		assumed.Add(s.claims()...)
		return unruled[s.change()]
	})
	if len(assumed) == len(lifted) {
		return
	}
	for _, g := range counting {
		if g.Name != Unfinished {
			then.rule(seen, []Guard{g}, assumed)
		}
	}
	later, more := map[change][]Ruling{}, false
	then.each(func(s Step) Step {
		later[s.change()] = s.holds()
		return s
	})
	p.each(func(s Step) Step {
		if s.isHeldBy(can) && len(later[s.change()]) > 0 {
			s.Also, more = slices.Concat(s.Also, later[s.change()]), true
		}
		return s
	})
	if more { // the guards that count rule on what those before them let pass
		p.foresee(seen, guards, counting, lifted, unruled)
	}
}

// settle runs the remaining prunes through the guards of the phase Settled, until no further prune is refused.
func (p *drafted) settle(seen Observed, guards []Guard) {
	guards = slices.DeleteFunc(slices.Clone(guards), func(g Guard) bool { return g.Phase != Settled })
	for n := p.Count(Prune); n > 0; {
		p.rule(seen, guards, nil)
		left := p.Count(Prune)
		if left == n {
			break
		}
		n = left
	}
}

// A change is what a step does to an object, or would do if it were not held.
type change struct {
	to     manifest.ID
	action Action
}

func (s Step) change() change {
	if s.Action == Hold {
		return change{s.ID, s.Would}
	}
	return change{s.ID, s.Action}
}

// each replaces every step of the plan, and every update that is made if a prune is not.
func (p *drafted) each(by func(Step) Step) {
	for i, s := range p.Steps {
		if s.Otherwise != nil {
			update := by(*s.Otherwise)
			s.Otherwise = &update
		}
		p.Steps[i] = by(s)
	}
}

// rule runs every step through guards that rule independently of each other. An approval lifts a single ruling, and no other one.
func (p *drafted) rule(seen Observed, guards []Guard, lifted Lifting) {
	rules := make([]func(Step) Ruling, len(guards))
	for i, g := range guards {
		c := p.caseOf(seen)
		c.lifted = lifted
		for _, s := range p.Steps {
			if s.Counts() && !lifted.Covers(s.ask(Ruling{Guard: g.Name})) {
				c.Passing++
			}
		}
		rules[i] = g.Rule(c)
		if g.Phase == Effects {
			rules[i] = onEffects(p.Effects, rules[i])
		}
	}
	p.each(func(s Step) Step {
		ruled, notes := s, Reason{}
		for i, g := range guards {
			if !g.on(s) || ruled.Action == Keep {
				continue
			}
			r := rules[i](s)
			r.Guard = g.Name
			ruled = ruled.ruled(r, lifted)
			if r.Response() == Allowed {
				notes = And(notes, r.Reason)
			}
		}
		ruled.Reason = ruled.Reason.Or(notes)
		return ruled
	})
}

// ruled returns the step after the ruling of a guard. The first ruling that no approval lifts decides about the step; a person sees
// all of those that hold it.
func (s Step) ruled(r Ruling, lifted Lifting) Step {
	switch {
	case r.Response() == Allowed:
	case r.Response() == Held && lifted.Covers(s.ask(r)): // a person approved it
	case s.Action == Hold && r.Response() == Held:
		s.Also = append(slices.Clip(s.Also), r)
	case s.Action == Hold: // what would be kept without the hold stays held until the hold is gone
	case r.Answer == Retained:
		s.Action, s.Cause = Keep, Retain
		s.Guard, s.Reason, s.Clears = r.Guard, r.Reason, r.Clears
	case r.Answer == Reported:
		s.Action, s.Would, s.Err = Keep, s.Action, nil
		s.Waits, s.AwaitsAny = nil, nil
		s.Guard, s.Reason, s.Clears = r.Guard, r.Reason, r.Clears
	default:
		s.Action, s.Would, s.Err = Hold, s.Action, nil
		s.Guard, s.Reason, s.Clears, s.HeldFor, s.Amount = r.Guard, r.Reason, r.Clears, r.Cause, r.Amount
	}
	return s
}

// caseOf returns the case of the plan in its current state.
func (p *drafted) caseOf(seen Observed) Case {
	return Case{Want: p.Want, Seen: seen, Steps: p.Steps, Lost: p.Lost, first: p.first, at: p.at, dependants: p.Dependants}
}

// MayClear reports whether the reason of a hold may go away without the action of a person: another deletion may delete other
// objects, too, and Crossplane removes its label from an object after its last Usage.
func (s Step) MayClear() bool {
	return len(s.holds()) > 0 && !slices.ContainsFunc(s.holds(), func(r Ruling) bool { return r.Clears == Stays })
}

// holds returns the rulings that hold the step, in the order of the guards; none if it is not held.
func (s Step) holds() []Ruling {
	if s.Action != Hold {
		return nil
	}
	return append([]Ruling{{Guard: s.Guard, Severity: Block, Reason: s.Reason, Clears: s.Clears, Cause: s.HeldFor, Amount: s.Amount}}, s.Also...)
}

// IsHeldBy reports whether a guard holds the step, alone or with others.
func (s Step) IsHeldBy(guard GuardName) bool {
	return slices.ContainsFunc(s.holds(), func(r Ruling) bool { return r.Guard == guard })
}

// Why returns the reason of the step. If several guards hold it, it returns all of their reasons.
func (s Step) Why() Reason {
	why := s.Reason
	for _, r := range s.Also {
		why = AlsoHeld.With(why, string(r.Guard), r.Reason)
	}
	return why
}

// Users returns the steps that delete users of an object with the same commit. all reports whether these are all users.
func (c Case) Users(of manifest.ID) (going []Step, all bool) {
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
		if (s.Action == Prune || s.Would == Prune) && (these[s.ID] || serves && k.Resource+"."+s.ID.Group == of.Name) {
			going = append(going, s)
		}
	}
	slices.SortFunc(going, func(a, b Step) int { return a.ID.Compare(b.ID) })
	return going, int64(len(going)) >= a.Count
}

// Counts reports whether a step counts against the maximum number of prunes: it deletes an object that a person declared and that
// is not being deleted already.
func (s Step) Counts() bool { return s.Action == Prune && !s.Deleting && !isOurUsage(s.ID) }

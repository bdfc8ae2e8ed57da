package plan

import (
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Guard rules on the steps of one phase, one step at a time.
type Guard struct {
	Name       GuardName
	Phase      Phase
	Approvable bool // it only asks whether a step is intended: a person can let the step pass
	Rule       Rule
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
)

// A Rule starts a guard's work on a plan. It returns a function that rules on one step after the other. The steps of the case are
// as the earlier guards left them, and change with every ruling.
type Rule func(c Case) func(s Step) Ruling

// Each returns the rule of a guard that keeps no state between steps.
func Each(rule func(s Step, c Case) Ruling) Rule {
	return func(c Case) func(Step) Ruling {
		return func(s Step) Ruling { return rule(s, c) }
	}
}

// on reports whether the guard rules on a step.
func (g Guard) on(s Step) bool {
	if g.Phase == Writes || g.Phase == Effects {
		return s.Action == Create || s.Action == Update
	}
	return s.Action == Prune
}

// A Case holds everything besides the step that a guard may use.
type Case struct {
	Want    render.Desired
	Seen    Observed
	Passing int    // number of prunes that passed all earlier guards, without approved ones
	Steps   []Step // of the plan, as the earlier guards left them

	Lost []LostPackage

	first      order
	at         map[manifest.ID]int // index of Steps, in the phase Settled
	dependants map[manifest.ID][]manifest.ID
}

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
	return Plan{Steps: c.Steps, undoneSince: c.Seen.Inventory.Undone}.Undone(nil)
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
	Answer Response
	Reason Reason     // a reason that a person can act on; for an allowed step, a note
	Needs  []Question // questions without which the guard holds, or only notes that something is not known
	Clears Clearing   // how the hold can end
}

// Clearing is whether and how a hold can end without the action of a person.
type Clearing int

// The clearings.
const (
	Stays           Clearing = iota // a person has to act
	ClearsWithOther                 // another deletion may delete the obstacle, too
	ClearsSoon                      // Crossplane removes the obstacle in a moment
)

// A Response is the decision of a guard.
type Response int

// The responses.
const (
	Allowed Response = iota
	Retained
	Held
	Reported // the object keeps its drift, which is reported
)

// guard runs every step of the plan through every guard of its phase, except the phase Settled. It repeats that with the approved
// steps: an approval lets a step pass only the guards that can be approved.
func (p *Plan) guard(seen Observed, guards []Guard) {
	guards = slices.DeleteFunc(slices.Clone(guards), func(g Guard) bool { return g.Phase == Settled })
	before := slices.Clone(p.Steps)
	p.rule(seen, guards, nil)
	if seen.Looks {
		return
	}
	approved, notes := p.approve(seen, guards)
	if len(approved) == 0 {
		p.Notes = append(p.Notes, notes...)
		return
	}
	held := make(map[change]Step, len(approved))
	allowed := false // a person approved a change of a rewritten branch
	p.each(func(s Step) Step {
		if approved[s.change()] {
			held[s.change()] = s
			allowed = allowed || s.Guard == History
		}
		return s
	})
	p.Steps, p.open = before, nil
	p.rule(seen, guards, approved)
	p.pass(held)
	p.rewritten = p.rewritten && (!allowed || p.holdsHistory())
	can := approvable(guards)
	if slices.ContainsFunc(p.Steps, func(s Step) bool { return s.asks(can).isHeldBy(can) }) {
		p.Notes = append(p.Notes, notes...)
	} else { // the others were held only because there were too many prunes
		p.Approval = nil
	}
}

// settle runs the remaining prunes through the guards of the phase Settled, until no further prune is refused.
func (p *Plan) settle(seen Observed, guards []Guard) {
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
func (p *Plan) each(by func(Step) Step) {
	for i, s := range p.Steps {
		if s.otherwise != nil {
			update := by(*s.otherwise)
			s.otherwise = &update
		}
		p.Steps[i] = by(s)
	}
}

// rule runs one guard after the other, so that those that count see what earlier guards let pass.
func (p *Plan) rule(seen Observed, guards []Guard, approved map[change]bool) {
	for _, g := range guards {
		passing := 0
		for _, s := range p.Steps {
			if s.Counts() && !approved[s.change()] {
				passing++
			}
		}
		c := p.caseOf(seen)
		c.Passing = passing
		rule := g.Rule(c)
		if g.Phase == Effects {
			rule = onEffects(p.Effects, rule)
		}
		p.each(func(s Step) Step {
			if !g.on(s) || approved[s.change()] && g.Approvable {
				return s
			}
			r := rule(s)
			if !seen.Offline || seen.Counts {
				p.open = append(p.open, r.Needs...)
			}
			switch r.Answer {
			case Allowed:
				s.Reason = s.Reason.Or(r.Reason)
				return s
			case Retained:
				s.Action, s.Cause = Keep, Retain
			case Reported:
				s.Action, s.Would, s.Err = Keep, s.Action, nil
			case Held: // a later pass shows further problems, once this one is solved
				s.Action, s.Would, s.Err = Hold, s.Action, nil
			}
			s.Guard, s.Reason, s.Clears = g.Name, r.Reason, r.Clears
			return s
		})
	}
}

// caseOf returns the case of the plan in its current state.
func (p *Plan) caseOf(seen Observed) Case {
	return Case{Want: p.Want, Seen: seen, Steps: p.Steps, Lost: p.lost, first: p.first, at: p.at, dependants: p.dependants}
}

// MayClear reports whether the reason of a hold may go away without the action of a person: another deletion may delete other
// objects, too, and Crossplane removes its label from an object after its last Usage.
func (s Step) MayClear() bool { return s.Action == Hold && s.Clears != Stays }

// Users returns the steps that delete users of an object with the same commit. all reports whether these are all users.
func (c Case) Users(of manifest.ID) (going []Step, all bool) {
	a := c.Seen.Answers[Question{Ask: Dependents, Of: of}]
	if !a.Unknown.None() || a.Count == 0 {
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

package plan

import (
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Guard objects to steps of one phase. It rules on one step at a time.
type Guard struct {
	Name       GuardName
	Phase      Phase
	Approvable bool // it only asks whether something is meant: a person can let its steps pass
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
	Effects Phase = "effects" // on what creates and updates have Crossplane install: a ruling on an effect is one on its step
	Prunes  Phase = "prunes"  // on prunes
	Settled Phase = "settled" // on prunes that all other guards let pass, and again until no ruling changes another one
)

// A Rule begins a guard's part of a plan and returns what rules on one step after the other. Steps of the case
// are as the guards before left them, and change with every ruling.
type Rule func(c Case) func(s Step) Ruling

// Each returns the rule of a guard that remembers nothing from one step to the next.
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

// A Case is what a guard may look at beside the step.
type Case struct {
	Want    render.Desired
	Seen    Observed
	Passing int    // prunes that passed all earlier guards, without approved ones
	Steps   []Step // of the plan, as the guards before this one left them

	Lost []LostPackage

	first      order
	at         map[manifest.ID]int // indices of Steps, in the phase Settled
	dependants map[manifest.ID][]manifest.ID
}

// A Dependant is the step on an object that depends on another one.
type Dependant struct {
	Step
	Still bool // it depends on it in this commit
}

// Dependants returns the steps on the objects that depend on an object, in order of identity. Only guards of the
// phase Settled may ask.
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

// Live is the live object of the step.
func (c Case) Live(s Step) *metav1.PartialObjectMetadata {
	if live, ok := c.Seen.Objects[s.ID]; ok {
		return live
	}
	return c.Seen.Upstream.Objects[s.ID]
}

// A Ruling is what a guard says. The zero value allows.
type Ruling struct {
	Answer Response
	Reason Reason     // a reason that a person can act on; for an allowed step, a note
	Needs  []Question // questions of the guard; without answers it holds, or notes that they are not known
	Clears Clearing   // how a hold can be cleared
}

// Clearing is whether what holds a step may go away without a person.
type Clearing int

// The clearings.
const (
	Stays           Clearing = iota // a person has to act
	ClearsWithOther                 // what was just deleted may take it along
	ClearsSoon                      // Crossplane takes it away in a moment
)

// A Response is allow, retain or hold.
type Response int

// The responses.
const (
	Allowed Response = iota
	Retained
	Held
	Reported // drift that stays as it is
)

// guard runs every step of the plan through every guard of its phase, except the phase Settled. It runs approved steps
// once more: an approval passes only the guards that can be approved.
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
	held := make(map[manifest.ID]Step, len(approved))
	allowed := false // a change of a rewritten branch
	for _, s := range p.Steps {
		if approved[s.ID] {
			held[s.ID] = s
			allowed = allowed || s.Guard == History
		}
	}
	p.Steps, p.open = before, nil
	p.rule(seen, guards, approved)
	p.pass(held)
	p.rewritten = p.rewritten && (!allowed || p.holdsHistory())
	can := approvable(guards)
	if slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Action == Hold && can[s.Guard] }) {
		p.Notes = append(p.Notes, notes...)
	} else { // the others were held for being many together
		p.Approval = nil
	}
}

// settle puts the prunes that passed before the guards of the phase Settled, until no prune is refused any more.
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

// rule goes guard by guard, so that those who count see what the others let pass.
func (p *Plan) rule(seen Observed, guards []Guard, approved map[manifest.ID]bool) {
	for _, g := range guards {
		passing := 0
		for _, s := range p.Steps {
			if s.Counts() && !approved[s.ID] {
				passing++
			}
		}
		c := p.caseOf(seen)
		c.Passing = passing
		rule := g.Rule(c)
		if g.Phase == Effects {
			rule = onEffects(p.Effects, rule)
		}
		for i, s := range p.Steps {
			if !g.on(s) || approved[s.ID] && g.Approvable {
				continue
			}
			r := rule(s)
			if !seen.Offline || seen.Counts {
				p.open = append(p.open, r.Needs...)
			}
			switch r.Answer {
			case Allowed:
				p.Steps[i].Reason = s.Reason.Or(r.Reason)
				continue
			case Retained:
				s.Action, s.Cause = Keep, Retain
			case Reported:
				s.Action, s.Would, s.Err = Keep, s.Action, nil
			case Held: // the next pass shows further problems after this one is solved
				s.Action, s.Would, s.Err = Hold, s.Action, nil
			}
			s.Guard, s.Reason, s.Clears = g.Name, r.Reason, r.Clears
			p.Steps[i] = s
		}
	}
}

// caseOf returns the case of the plan as it is.
func (p *Plan) caseOf(seen Observed) Case {
	return Case{Want: p.Want, Seen: seen, Steps: p.Steps, Lost: p.lost, first: p.first, at: p.at, dependants: p.dependants}
}

// MayClear reports whether what holds a step may go away without a person: an object that was just deleted takes
// others along, and Crossplane takes its label off what a Usage protected.
func (s Step) MayClear() bool { return s.Action == Hold && s.Clears != Stays }

// Users returns the steps of the users of an object that leave with the same commit. all reports whether these are all
// users.
func (c Case) Users(of manifest.ID) (going []Step, all bool) {
	a := c.Seen.Answers[Question{Ask: Dependents, Of: of}]
	if !a.Unknown.None() || a.Count == 0 {
		return nil, false
	}
	these := make(map[manifest.ID]bool, len(a.These))
	for _, id := range a.These {
		these[c.Seen.AsWritten(id)] = true
	}
	serves := of.IsCRD() || crossplane.IsMRD(of) // then the kind tells, however many there are
	for _, s := range c.Steps {
		k := c.Seen.Kinds[s.ID.GroupKind()]
		if (s.Action == Prune || s.Would == Prune) && (these[s.ID] || serves && k.Resource+"."+s.ID.Group == of.Name) {
			going = append(going, s)
		}
	}
	slices.SortFunc(going, func(a, b Step) int { return a.ID.Compare(b.ID) })
	return going, int64(len(going)) >= a.Count
}

// Counts reports whether a step counts against the maximum of prunes: it deletes an object that a person declared and
// that is not being deleted already.
func (s Step) Counts() bool { return s.Action == Prune && !s.Deleting && !isOurUsage(s.ID) }

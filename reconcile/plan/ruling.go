package plan

import (
	"slices"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// HeldByAny reports whether some guards, and no others, hold the step.
func (s Step) HeldByAny(guards map[GuardName]bool) bool {
	return s.Action == Hold && !slices.ContainsFunc(s.Holds(), func(r Ruling) bool { return !guards[r.Guard] })
}

// A GuardName names a guard in reports, approvals and documentation. A guard with rules for several phases has one
// name.
type GuardName string

// Judged is what a guard decided about a step. The zero value allows the step.
type Judged struct {
	Guard    GuardName // the guard that ruled; set by the plan
	Severity Severity
	Answer   Response      // never Held
	Reason   reason.Reason // a reason that a person can act on; for an allowed step, a note
	Clears   Clearing      // how the hold can end
	Cause    approval.Cause
	Amount   approval.Amount // of a hold that a person can approve: how much it concerns beyond the step's object
}

// A Ruling is the result of a guard.
type Ruling struct {
	Judged

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
func (d Judged) Response() Response {
	if d.Severity == Block {
		return Held
	}
	return d.Answer
}

// A Change is what a step does to an object, or would do if it were not held.
type Change struct {
	to     manifest.ID
	Action Action
}

// Change returns what the step does, or would do.
func (s Step) Change() Change {
	if s.Action == Hold {
		return Change{s.ID, s.Would}
	}
	return Change{s.ID, s.Action}
}

// Is reports whether the step does, or would do, this. In contrast to Change, this includes what is only reported.
func (s Step) Is(a Action) bool { return s.Action == a || s.Would == a }

// Ruled returns the step after the ruling of a guard. The first ruling that no approval lifts decides about the step; a person sees
// all of those that hold it.
func (s Step) Ruled(r Ruling, lifted Lifting) Step {
	switch {
	case r.Response() == Allowed:
	case r.Response() == Held && lifted.Covers(s.Ask(r)): // a person approved it
	case s.Action == Hold && r.Response() == Held:
		s.Also = append(slices.Clip(s.Also), r)
	case s.Action == Hold: // what would be kept without the hold stays held until the hold is gone
	case r.Answer == Retained:
		s.Action, s.Cause, s.Judged = Keep, Retain, r.Judged
	case r.Answer == Reported:
		s.Action, s.Would, s.Err, s.Judged = Keep, s.Action, nil, r.Judged
		s.Waits, s.AwaitsAny = nil, nil
	default:
		s.Action, s.Would, s.Err, s.Judged = Hold, s.Action, nil, r.Judged
	}
	return s
}

// MayClear reports whether the reason of a hold may go away without the action of a person: another deletion may delete other
// objects, too, and Crossplane removes its label from an object after its last Usage.
func (s Step) MayClear() bool {
	return len(s.Holds()) > 0 && !slices.ContainsFunc(s.Holds(), func(r Ruling) bool { return r.Clears == Stays })
}

// Holds returns the rulings that hold the step, in the order of the guards; none if it is not held.
func (s Step) Holds() []Ruling {
	if s.Action != Hold {
		return nil
	}
	return append([]Ruling{{Judged: s.Judged}}, s.Also...)
}

// IsHeldBy reports whether a guard holds the step, alone or with others.
func (s Step) IsHeldBy(guard GuardName) bool {
	return slices.ContainsFunc(s.Holds(), func(r Ruling) bool { return r.Guard == guard })
}

// Why returns the reason of the step. If several guards hold it, it returns all of their reasons.
func (s Step) Why() reason.Reason {
	why := s.Reason
	for _, r := range s.Also {
		why = reason.AlsoHeld.With(why, string(r.Guard), r.Reason)
	}
	return why
}

// Counts reports whether a step counts against the maximum number of prunes: it deletes an object that a person declared and that
// is not being deleted already.
func (s Step) Counts() bool { return s.Action == Prune && !s.Deleting && !isOurUsage(s.ID) }

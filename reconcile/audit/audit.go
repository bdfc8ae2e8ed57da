// Package audit records what people let Headgate do beyond its guards: one line of JSON for each approval, guarded write, take-over,
// release, suspension and change of the settings of a Sync. A line of a write is written before the write: if it cannot be written, nothing
// is sent. So the log may name a write that was not sent any more, but no write is missing.
package audit

import (
	"context"
	"slices"
	"time"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
)

// An Event is what a line records.
type Event string

// The events.
const (
	ApprovalGiven   Event = "ApprovalGiven"   // a user approved on a Sync object or on a forge
	ApprovalRefused Event = "ApprovalRefused" // an approval does not count
	ApprovalUsed    Event = "ApprovalUsed"    // a plan uses an approval for the first time
	GuardedWrite    Event = "GuardedWrite"    // a step is carried out that a guard would hold without an approval
	TakeOver        Event = "TakeOver"        // an object or fields of it are taken over from other appliers
	SourceTakenOver Event = "SourceTakenOver" // the inventory of another source is taken over, because takeOver of the Sync names it
	Release         Event = "Release"         // an object is left to others
	Suspended       Event = "Suspended"       // a Sync is suspended
	Resumed         Event = "Resumed"         // a Sync is no longer suspended
	Configured      Event = "Configured"      // a Sync begins with some settings, or they change
)

// An Entry is a line. Its JSON is an interface for programs: fields are only added, never renamed.
type Entry struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Time       time.Time `json:"time"`
	Event      Event     `json:"event"`
	Sync       string    `json:"sync"`
	Commit     string    `json:"commit,omitempty"`

	By     string `json:"by,omitempty"`     // the user, if it is known
	Digest string `json:"digest,omitempty"` // of an approval on a Sync object
	At     string `json:"at,omitempty"`     // when the user approved, as the approval says
	Reason string `json:"reason,omitempty"` // why an approval does not count, or why a Sync is suspended

	Action    plan.Action       `json:"action,omitempty"`
	Object    string            `json:"object,omitempty"`
	Guards    []plan.GuardName  `json:"guards,omitempty"`    // the guards that would hold the step
	Shown     string            `json:"shown,omitempty"`     // why they would, as the approver saw it
	From      []string          `json:"from,omitempty"`      // the field managers that lose fields
	Approvals []report.Approved `json:"approvals,omitempty"` // who approved, when, where, and which digests

	Settings []Setting `json:"settings,omitempty"` // that changed
}

// A Setting is a field of a Sync whose value changed. Values are JSON; "" is the default.
type Setting struct {
	Field string `json:"field"`
	Was   string `json:"was,omitempty"`
	Is    string `json:"is,omitempty"`
}

// Of returns the entries of a plan that is about to be carried out.
func Of(p plan.Plan) []Entry {
	of := Entry{Sync: p.Sync.String(), Commit: p.Want.Revision}
	var all []Entry
	if len(p.Spent) > 0 {
		used := of
		used.Event, used.Approvals = ApprovalUsed, report.ApprovedBy(p.Spent)
		all = append(all, used)
	}
	if p.TakesOver {
		taken := of
		taken.Event, taken.Reason = SourceTakenOver, "now from "+p.Want.Source.String()
		all = append(all, taken)
	}
	recorded := p
	recorded.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(s plan.Step) bool { return len(eventsOf(s)) == 0 })
	if len(recorded.Steps) == 0 {
		return all
	}
	shown := report.New(recorded, nil, false)
	for i, s := range recorded.Steps {
		for _, event := range eventsOf(s) {
			one := of
			one.Event, one.Action, one.Object = event, s.Action, shown.Steps[i].ID.String()
			switch event {
			case GuardedWrite:
				one.Guards, one.Shown, one.Approvals = guardsOf(s), shown.Steps[i].Reason, shown.Approvals
			case TakeOver:
				one.From = managersOf(s)
			}
			all = append(all, one)
		}
	}
	return all
}

// eventsOf returns what a step has recorded.
func eventsOf(s plan.Step) []Event {
	if !s.Writes() {
		return nil
	}
	var all []Event
	if len(s.Lifted) > 0 {
		all = append(all, GuardedWrite)
	}
	if !s.Adopts.None() || len(s.Takes) > 0 {
		all = append(all, TakeOver)
	}
	if s.Action == plan.Release {
		all = append(all, Release)
	}
	return all
}

func guardsOf(s plan.Step) []plan.GuardName {
	var all []plan.GuardName
	for _, r := range s.Lifted {
		all = append(all, r.Guard)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func managersOf(s plan.Step) []string {
	all := s.TakesFrom()
	for _, h := range s.Adopts.From {
		all = append(all, h.Manager)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// An Applier carries out plans.
type Applier interface {
	Apply(ctx context.Context, p plan.Plan) ([]plan.Outcome, error)
}

// Around returns an applier that records each plan before another one carries it out.
func (l *Log) Around(next Applier) Applier {
	if l == nil {
		return next
	}
	return audited{l, next}
}

type audited struct {
	log  *Log
	next Applier
}

// Apply carries out a plan.
func (a audited) Apply(ctx context.Context, p plan.Plan) ([]plan.Outcome, error) {
	if err := a.log.Write(Of(p)...); err != nil {
		return nil, err
	}
	return a.next.Apply(ctx, p)
}

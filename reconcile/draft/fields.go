package draft

import (
	"fmt"
	once "sync"

	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// fields names the fields that updates give up. If managed fields were lost, the last applied commit shows which fields left Git.
func (p *drafted) fields(seen facts.Observed) {
	for i := range p.Steps {
		s := &p.Steps[i]
		a, wanted := p.asked[s.ID]
		if !wanted || s.Err != nil || len(s.Migrates) > 0 {
			continue
		}
		switch s.Action {
		case plan.Update:
			p.fieldsOfUpdate(s, a, seen)
		case plan.Keep:
			p.fieldsOfKeep(s, a, seen)
		}
	}
}

// fieldsOfUpdate names the fields that an update gives up.
func (p *drafted) fieldsOfUpdate(s *plan.Step, a facts.Asked, seen facts.Observed) {
	if s.Live == nil || s.After == nil || !seen.Mine(s.ID, s.Live) {
		return
	}
	giveUp(s, p.givenUp(s, ownership.UpdateOf(s.Live, s.After, demand.Adopting(seen, a, s.Live)).Taking(s.Adopts), a, seen))
}

// fieldsOfKeep names the fields that an unchanged object gave up, because another manager took them before they left the commit. If
// the commit does not set some of them any more, the keep becomes an update.
func (p *drafted) fieldsOfKeep(s *plan.Step, a facts.Asked, seen facts.Observed) {
	live := seen.Trials[s.ID].Live
	if s.Guard != "" || live == nil || !seen.Mine(s.ID, live) {
		return
	}
	stay := p.givenUp(s, ownership.UpdateOf(live, live, demand.Adopting(seen, a, live)), a, seen)
	if s.Action == plan.Update {
		giveUp(s, stay)
		return
	}
	for _, h := range stay { // reports do not list a keep
		p.Notes = append(p.Notes, manifest.Finding{
			Rule: "fields-stay", Severity: manifest.Note, Origin: s.Origin, About: manifest.About{Object: s.ID, Subject: h.Manager},
			Message: fmt.Sprintf("%s gives up %s; %s keeps it", s.ID, plan.Few(h.Fields), keeper(h.Manager)),
			Fix:     "remove them by hand if nothing needs them",
		})
	}
}

func giveUp(s *plan.Step, stay []ownership.Held) {
	for _, h := range stay {
		s.GivesUp = reason.And(s.GivesUp, reason.FieldsStay.With(h.Fields, h.Manager))
	}
}

// givenUp returns the fields that left the commit and stay. If managed fields were lost, the last applied commit shows what left, and
// the step takes back what it can.
func (p *drafted) givenUp(s *plan.Step, u ownership.Update, a facts.Asked, seen facts.Observed) []ownership.Held {
	if !demand.LostFields(seen, a, u.Live) {
		return u.Stays(ownership.Applied(u.Live))
	}
	before, is := question.Get(seen.Known(), question.AppliedBefore{Of: s.ID})
	switch {
	case is.Open:
		return nil
	case before == nil:
		if unclaimed := u.Unclaimed(); ownership.IsLost(u.Live) && len(unclaimed) > 0 {
			s.GivesUp = reason.And(s.GivesUp, reason.FieldsUnknown.With(reason.Of(is.Err), unclaimed))
		}
		return nil
	}
	u = u.Reclaim(ownership.Unchanged(u.Live, before))
	if !u.Takeover.None() {
		reclaim(s, u)
	}
	return u.Stays(ownership.Applied(before))
}

// reclaim makes a step remove the fields of a takeover that the commit does not set any more.
func reclaim(s *plan.Step, u ownership.Update) {
	s.Action, s.Adopts, s.Live, s.After = plan.Update, u.Takeover, u.Live, u.After
	s.Renew, s.Unready = inventory.Entry{}, false
	s.Difference = once.OnceValue(s.CompareSchema)
}

// keeper names a manager of fields in a finding.
func keeper(manager string) string {
	switch manager {
	case "":
		return "the API server"
	case plan.UnknownManager:
		return "another writer"
	}
	return manager
}

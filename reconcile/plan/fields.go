package plan

import (
	"fmt"
	"strings"
	once "sync"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What leaves Git leaves the cluster, or the plan names it. Package ownership has the rules; this file adds what only the last
// applied commit shows, and gives every update a reason.

// The codes of updates that change the managers of fields.
const (
	FieldsReclaimed Code = "FieldsReclaimed" // the number of fields, and the field managers that have them since our managed fields were lost
	FieldsUnknown   Code = "FieldsUnknown"   // why the last applied commit is not known, and the fields that stay
	FieldsStay      Code = "FieldsStay"      // fields that the update gives up, and who keeps them
	FieldsGained    Code = "FieldsGained"    // fields that the update begins to manage
	VersionManaged  Code = "VersionManaged"  // the version of managed fields
	NoValueChanges  Code = "NoValueChanges"  // no value
	NotInSource     Code = "NotInSource"     // no value: the last applied commit cannot be rendered again
)

// fields names the fields that updates give up. If managed fields were lost, the last applied commit shows which fields left Git.
func (p *drafted) fields(seen Observed) {
	asked := seen.askedByID()
	for i := range p.Steps {
		s := &p.Steps[i]
		a, wanted := asked[s.ID]
		if !wanted || s.Err != nil || len(s.Migrates) > 0 {
			continue
		}
		switch s.Action {
		case Update:
			p.fieldsOfUpdate(s, a, seen)
		case Keep:
			p.fieldsOfKeep(s, a, seen)
		}
	}
}

// fieldsOfUpdate names the fields that an update gives up.
func (p *drafted) fieldsOfUpdate(s *Step, a Asked, seen Observed) {
	if s.Live == nil || s.After == nil || !seen.Mine(s.ID, s.Live) {
		return
	}
	s.giveUp(p.givenUp(s, ownership.UpdateOf(s.Live, s.After, seen.Adopting(a, s.Live)).Taking(s.Adopts), a, seen))
}

// fieldsOfKeep names the fields that an unchanged object gave up, because another manager took them before they left the commit. If
// the commit does not set some of them any more, the keep becomes an update.
func (p *drafted) fieldsOfKeep(s *Step, a Asked, seen Observed) {
	live := seen.Trials[s.ID].Live
	if s.Guard != "" || live == nil || !seen.Mine(s.ID, live) {
		return
	}
	stay := p.givenUp(s, ownership.UpdateOf(live, live, seen.Adopting(a, live)), a, seen)
	if s.Action == Update {
		s.giveUp(stay)
		return
	}
	for _, h := range stay { // reports do not list a keep
		p.Notes = append(p.Notes, manifest.Finding{
			Rule: "fields-stay", Severity: manifest.Note, Origin: s.Origin,
			Message: fmt.Sprintf("%s gives up %s; %s keeps it", s.ID, few(h.Fields), keeper(h.Manager)),
			Fix:     "remove them by hand if nothing needs them",
		})
	}
}

func (s *Step) giveUp(stay []ownership.Held) {
	for _, h := range stay {
		s.GivesUp = And(s.GivesUp, FieldsStay.With(h.Fields, h.Manager))
	}
}

// givenUp returns the fields that left the commit and stay. If managed fields were lost, the last applied commit shows what left, and
// the step takes back what it can.
func (p *drafted) givenUp(s *Step, u ownership.Update, a Asked, seen Observed) []ownership.Held {
	if !seen.LostFields(a, u.Live) {
		return u.Stays(ownership.Applied(u.Live))
	}
	before, is := question.Get(seen.Known(), question.AppliedBefore{Of: s.ID})
	switch {
	case is.Open:
		return nil
	case before == nil:
		if unclaimed := u.Unclaimed(); ownership.IsLost(u.Live) && len(unclaimed) > 0 {
			s.GivesUp = And(s.GivesUp, FieldsUnknown.With(ReasonOf(is.Err), unclaimed))
		}
		return nil
	}
	u = u.Reclaim(ownership.Unchanged(u.Live, before))
	if !u.Takeover.None() {
		s.reclaim(u)
	}
	return u.Stays(ownership.Applied(before))
}

// LostFields reports whether a new commit meets managed fields that do not show all that we applied: another writer removed them, or
// took some of the fields.
func (o Observed) LostFields(a Asked, live metav1.Object) bool {
	e := o.Inventory.Entries[a.ID]
	if !o.Mine(a.ID, live) || o.AsBefore(a.Object) {
		return false
	}
	return ownership.IsLost(live) || e.Fields != "" && e.Fields != diff.OwnFields(live, ignoredBy(e, o.Inventory.Record))
}

// reclaim makes a step remove the fields of a takeover that the commit does not set any more.
func (s *Step) reclaim(u ownership.Update) {
	s.Action, s.Adopts, s.Live, s.After = Update, u.Takeover, u.Live, u.After
	s.Renew, s.Unready = inventory.Entry{}, false
	s.Difference = once.OnceValue(s.compareSchema)
}

// UnknownManager is the field manager in a FieldsStay of a field that another writer changed after managed fields were lost.
const UnknownManager = ownership.Nobody

// keeper names a manager of fields in a finding.
func keeper(manager string) string {
	switch manager {
	case "":
		return "the API server"
	case UnknownManager:
		return "another writer"
	}
	return manager
}

// few returns the first fields for a finding.
func few(fields []string) string {
	const most = 8
	if len(fields) > most {
		return strings.Join(fields[:most], ", ") + ", …"
	}
	return strings.Join(fields, ", ")
}

// Explained returns the changes of a step and its reason. Every update that is sent has one of them.
func (s Step) Explained() ([]diff.Change, Reason) {
	changes, why := s.Changes(), And(s.Why(), s.GivesUp)
	if s.Action != Update || s.Err != nil || s.Waiting() || len(changes) > 0 || !why.None() {
		return changes, why
	}
	if s.Live == nil || s.After == nil {
		return nil, NoValueChanges.With()
	}
	gained, version := ownership.Gained(s.Live, s.After), ownership.VersionOf(s.After)
	switch {
	case len(gained) > 0:
		return nil, FieldsGained.With(few(gained))
	case version != ownership.VersionOf(s.Live):
		return nil, VersionManaged.With(version)
	}
	return nil, NoValueChanges.With()
}

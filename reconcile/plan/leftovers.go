package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	once "sync"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A sync that adopts an object takes over the fields that the commit sets from the tool that applied it before. Otherwise, every
// change would conflict with that tool, and a field that is removed from Git would stay. Fields that only that tool manages are
// leftovers.

// The codes of adoptions.
const (
	FieldsTakenOver Code = "FieldsTakenOver" // the number of fields, and the field managers that applied them
	LeftBehind      Code = "LeftBehind"      // how many fields only these field managers manage, and which fields
	LeftoversMoved  Code = "LeftoversMoved"  // the object, which another writer has changed in the meantime
	LeftoversGo     Code = "LeftoversGo"     // the number of fields, and the field managers that left them behind
)

// leftoverFields names the removal of leftovers in approvals, like a guard.
const leftoverFields GuardName = "leftovers"

// Adopting returns from which field managers an apply of an object takes fields. From tools that applied an object of this sync, it
// takes only fields that were updated, and only for a new commit: a server-side apply in between is intentional. If managed fields
// were lost, it takes back what it applied.
func (o Observed) Adopting(a Asked, live metav1.Object) ownership.Taking {
	switch {
	case a.Policy.Observes(), render.Merges(a.Asks), !o.Reconciled[a.ID].None(), !o.Refused(a.ID, live).None():
		return ownership.Taking{}
	case !o.Mine(a.ID, live):
		return ownership.Taking{Appliers: true}
	}
	isNew, lost := !o.AsBefore(a.Object), ownership.IsLost(live)
	return ownership.Taking{Appliers: isNew, OnlyUpdates: true, Nobody: isNew || lost, Restorers: lost && o.Restored(a.ID, live)}
}

// adopt makes an update take over fields first.
func (s *Step) adopt(t Trial, isMine bool) {
	if t.Err != nil || t.Adopts.None() {
		return
	}
	s.Adopts = t.Adopts
	code := FieldsTakenOver
	if isMine && ownership.IsLost(t.Live) {
		code = FieldsReclaimed
	}
	if len(t.Adopts.From) > 0 {
		s.Reason = code.With(ownership.Fields(t.Adopts.From), ownership.Managers(t.Adopts.From))
	}
	if n := ownership.Fields(t.Adopts.Left); n > 0 {
		s.Reason = And(s.Reason, LeftBehind.With(n, fieldsOf(t.Adopts.Left)))
	}
}

// fieldsOf returns all fields.
func fieldsOf(all []ownership.Held) []string {
	var fields []string
	for _, h := range all {
		fields = append(fields, h.Fields...)
	}
	return fields
}

// leftovers removes the leftovers of tools that applied an object before, if the sync or a person requests that. Otherwise, it adds
// a note. The pass that adopts an object removes none of its fields.
func (p *drafted) leftovers(seen Observed) {
	asked := seen.askedByID()
	var steps []Step
	at, coming := map[manifest.ID]int{}, map[manifest.ID]bool{}
	for i, s := range p.Steps {
		a, live := asked[s.ID], seen.Objects[s.ID]
		switch {
		case len(s.Adopts.Left) > 0:
			s.Drops, coming[s.ID] = s.Adopts.Left, true
		case a.Digest == "": // not wanted by the commit
		case s.Action == Keep && s.Guard == "" && live != nil && seen.mayClear(a, live):
			s.Drops, _ = ownership.Leftovers(live)
		}
		if len(s.Drops) > 0 {
			steps, at[s.ID] = append(steps, s), i
		}
	}
	if len(steps) == 0 {
		return
	}
	p.clear = digestOf(steps)
	ready := slices.DeleteFunc(slices.Clone(steps), func(s Step) bool { return coming[s.ID] })
	approved := Lifting{}
	if len(ready) == len(steps) {
		approved = p.approveLeftovers(leftoversOf(ready), p.ledger(seen))
	}
	var left []Step
	for _, s := range steps {
		if coming[s.ID] || !seen.Terms.Clear && !approved.Covers(s.ask(Ruling{Guard: leftoverFields})) {
			left = append(left, s)
			continue
		}
		if why := p.drop(&p.Steps[at[s.ID]], s.Drops, seen); !why.None() {
			p.Leftovers = append(p.Leftovers, Leftover{s.ID, s.Origin, ownership.Fields(s.Drops), ownership.Managers(s.Drops), why})
		}
	}
	if len(left) > 0 {
		p.Notes = append(p.Notes, p.noteLeftovers(left, seen))
	}
}

// mayClear reports whether leftovers of an unchanged object may be removed.
func (o Observed) mayClear(a Asked, live metav1.Object) bool {
	return o.Inventory.Holds(a.ID, live) && live.GetDeletionTimestamp() == nil && !a.Policy.Observes() && !render.Merges(a.Asks)
}

// A Leftover is an object whose leftovers a plan should remove but does not.
type Leftover struct {
	ID     manifest.ID
	Origin manifest.Origin // where the commit declares it

	Fields   int      // number of leftover fields
	Managers []string // the field managers of these fields
	Reason   Reason
}

// drop changes a keep into the update that removes leftovers, or returns why it does not.
func (p *drafted) drop(s *Step, fields []ownership.Held, seen Observed) Reason {
	a, is := question.Get(seen.Known(), question.Leftovers{Of: s.ID})
	switch {
	case is.Open:
		return Reason{}
	case is.Err != nil:
		return ReasonOf(is.Err)
	case a.After == nil:
		return Reason{} // it was deleted in the meantime
	}
	if now, _ := ownership.Leftovers(a.Live); !reflect.DeepEqual(now, fields) {
		return LeftoversMoved.With(s.ID)
	}
	s.Action, s.Live, s.After, s.Drops, s.Adopts = Update, a.Live, a.After, fields, ownership.TakeLeftovers(a.Live, s.APIVersion)
	s.Renew, s.Unready = inventory.Entry{}, false
	s.Reason = LeftoversGo.With(ownership.Fields(fields), ownership.Managers(fields))
	s.Difference = once.OnceValue(s.compareSchema)
	return Reason{}
}

// approveLeftovers returns the claims on leftovers that a person has approved.
func (p *drafted) approveLeftovers(asks []approval.Ask, ledger *approval.Ledger) Lifting {
	approved := Lifting{}
	var open []approval.Ask
	for _, a := range asks {
		if _, does := ledger.Continues(a); does {
			approved.Add(a)
		} else {
			open = append(open, a)
		}
	}
	if len(open) < len(asks) {
		return approved
	}
	uses, _, _ := ledger.Cover(open)
	for _, use := range uses {
		p.spend(use, nil)
		approved.Add(use.Asks...)
	}
	return approved
}

// digestOf returns the digest that approves the removal of leftovers.
func digestOf(steps []Step) string { return approval.Whole(leftoversOf(steps)) }

// leftoversOf returns what a person is asked about the leftovers of some steps.
func leftoversOf(steps []Step) []approval.Ask {
	all := make([]approval.Ask, len(steps))
	for i, s := range steps {
		all[i] = s.ask(Ruling{Guard: leftoverFields})
	}
	return all
}

// mostListed is the maximum number of objects in a note.
const mostListed = 20

// noteLeftovers returns a note that lists leftovers.
func (p *drafted) noteLeftovers(steps []Step, seen Observed) manifest.Finding {
	fields := 0
	var managers, objects []string
	home := seen.Homes()
	for _, s := range steps {
		fields += ownership.Fields(s.Drops)
		managers = append(managers, ownership.Managers(s.Drops)...)
		objects = append(objects, home(s.ID).String()+": "+strings.Join(fieldsOf(s.Drops), ", "))
	}
	slices.Sort(managers)
	slices.Sort(objects)
	more := len(objects) - mostListed
	objects = objects[:min(len(objects), mostListed)]
	f := manifest.Finding{
		Rule: "fields-left-behind", Severity: manifest.Note,
		Message: fmt.Sprintf("%s left behind by %s, which the commit does not set: %s", manifest.Count(fields, "field"), strings.Join(slices.Compact(managers), ", "), strings.Join(objects, "; ")),
		Fix:     "adoptionLeftovers: Remove removes what is left behind, and so does the approval " + p.clear,
	}
	if more > 0 {
		f.Message = fmt.Sprintf("%s; and %s more", f.Message, manifest.Count(more, "object"))
	}
	if seen.Terms.Clear {
		f.Fix = "the next pass removes them"
	}
	return f
}

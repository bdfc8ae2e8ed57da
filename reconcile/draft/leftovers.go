package draft

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	once "sync"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// adopt makes an update take over fields first.
func adopt(s *plan.Step, t facts.Trial, isMine bool) {
	if t.Err != nil || t.Adopts.None() {
		return
	}
	s.Adopts = t.Adopts
	code := reason.FieldsTakenOver
	if isMine && ownership.IsLost(t.Live) {
		code = reason.FieldsReclaimed
	}
	if len(t.Adopts.From) > 0 {
		s.Reason = code.With(ownership.Fields(t.Adopts.From), ownership.Managers(t.Adopts.From))
	}
	if n := ownership.Fields(t.Adopts.Left); n > 0 {
		s.Reason = reason.And(s.Reason, reason.LeftBehind.With(n, fieldsOf(t.Adopts.Left)))
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
func (p *drafted) leftovers(seen facts.Observed) {
	var steps []plan.Step
	at, coming := map[manifest.ID]int{}, map[manifest.ID]bool{}
	for i, s := range p.Steps {
		a, live := p.asked[s.ID], seen.Objects[s.ID]
		switch {
		case len(s.Adopts.Left) > 0:
			s.Drops, coming[s.ID] = s.Adopts.Left, true
		case a.Digest == "": // not wanted by the commit
		case isAsWanted(s) && live != nil && mayClear(seen.Ground, a, live):
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
	ready := slices.DeleteFunc(slices.Clone(steps), func(s plan.Step) bool { return coming[s.ID] })
	approved := plan.Lifting{}
	if len(ready) == len(steps) {
		approved = p.approveLeftovers(leftoversOf(ready), p.ledger(seen))
	}
	var left []plan.Step
	for _, s := range steps {
		covered := approved.Covers(s.Ask(plan.Ruling{Judged: plan.Judged{Guard: plan.LeftoverFields}}))
		if coming[s.ID] || !seen.Terms.Clear && !covered {
			left = append(left, s)
			continue
		}
		p.Steps[at[s.ID]].Approved = covered
		if why := p.drop(&p.Steps[at[s.ID]], s.Drops, seen); !why.None() {
			p.Leftovers = append(p.Leftovers, plan.Leftover{ID: s.ID, Origin: s.Origin, Fields: ownership.Fields(s.Drops), Managers: ownership.Managers(s.Drops), Reason: why})
		}
	}
	if len(left) > 0 {
		p.Notes = append(p.Notes, p.noteLeftovers(left, seen))
	}
}

// mayClear reports whether leftovers of an unchanged object may be removed.
func mayClear(o facts.Ground, a facts.Asked, live metav1.Object) bool {
	if a.Policy.Observes() || render.Merges(a.Asks) { // its fields belong to others, too
		return false
	}
	return o.Inventory.Holds(a.ID, live) && live.GetDeletionTimestamp() == nil
}

// drop changes a keep into the update that removes leftovers, or returns why it does not.
func (p *drafted) drop(s *plan.Step, fields []ownership.Held, seen facts.Observed) reason.Reason {
	a, is := question.Get(seen.Known(), question.Leftovers{Of: s.ID})
	switch {
	case is.Err != nil:
		return reason.Of(is.Err)
	case is.Open, a.After == nil: // it may have been deleted in the meantime
		return reason.Reason{}
	}
	if now, _ := ownership.Leftovers(a.Live); !reflect.DeepEqual(now, fields) {
		return reason.LeftoversMoved.With(s.ID)
	}
	s.Action, s.Live, s.After, s.Drops, s.Adopts = plan.Update, a.Live, a.After, fields, ownership.TakeLeftovers(a.Live, s.APIVersion)
	s.Renew, s.Unready = inventory.Entry{}, false
	s.Reason = reason.LeftoversGo.With(ownership.Fields(fields), ownership.Managers(fields))
	s.Difference = once.OnceValue(s.CompareSchema)
	return reason.Reason{}
}

// approveLeftovers returns the claims on leftovers that a person has approved.
func (p *drafted) approveLeftovers(asks []approval.Ask, ledger *approval.Ledger) plan.Lifting {
	approved := plan.Lifting{}
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
func digestOf(steps []plan.Step) string { return approval.Whole(leftoversOf(steps)) }

// leftoversOf returns what a person is asked about the leftovers of some steps.
func leftoversOf(steps []plan.Step) []approval.Ask {
	all := make([]approval.Ask, len(steps))
	for i, s := range steps {
		all[i] = s.Ask(plan.Ruling{Judged: plan.Judged{Guard: plan.LeftoverFields}})
	}
	return all
}

// mostListed is the maximum number of objects in a note.
const mostListed = 20

// noteLeftovers returns a note that lists leftovers.
func (p *drafted) noteLeftovers(steps []plan.Step, seen facts.Observed) manifest.Finding {
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
		Rule: "fields-left-behind", Severity: manifest.Note, About: manifest.About{},
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

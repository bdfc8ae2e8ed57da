// Package rounds decides what each round of a pass sends, and when the pass is over.
package rounds

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Pass is one reconciliation of a target, in rounds: observe, Compute, Next, Apply, After. It keeps the first plan, the newest
// state of its steps, and their outcomes. It does not keep the plans in between, because five minutes of waiting are sixty plans.
// The zero Pass has not begun. A Pass never changes: After and End return a new one.
type Pass struct {
	First plan.Plan // everything that the pass may carry out: the plan before its first write
	Last  plan.Plan // First, with each step as it was carried out or as the newest round found it
	Waits Waits     // since when each object has been pending
	Account

	started    bool               // there is a plan to report
	begun      bool               // the first round was sent with an inventory that had not moved
	pruned     bool               // the round with the prunes was sent
	migrated   bool               // the round that migrates managed fields was sent
	migration  []manifest.Finding // notes on the migration
	at         Times              // of the newest round
	waiting    int                // number of waiting steps in the newest plan
	lastChange metav1.Time        // when the cluster was last seen changing
	failures   int                // number of rounds in a row with a failed step
	moved      int                // how often the inventory had moved when the prunes were sent
}

// Times holds the times of a round and its limits. Package plan has no clock; the caller measures.
type Times struct {
	Now   metav1.Time
	Began metav1.Time     // when the first round was sent
	Limit metav1.Duration // time after which pending objects are late
	Grace metav1.Duration // how long a problem may last after the last change in the cluster
	Hurry bool            // do not wait: the pass ends as soon as there is nothing to send
}

// A Round is what a round sends, why, and what follows it.
type Round struct {
	Send  plan.Plan
	Until Until
	Why   Why

	now        plan.Plan            // the newest plan
	next       plan.Plan            // the steps of now that replace steps of the pass
	phases     map[manifest.ID]bool // the objects whose step in next is a later phase of one that the pass has sent
	at         Times
	lastChange metav1.Time
}

// Sends reports whether the round has something to carry out or to remember.
func (r Round) Sends() bool {
	// The last round of an ending has no steps, but deletes the inventory.
	return len(r.Send.Steps) > 0 || len(r.Send.Gone) > 0 || r.Why == Begins || r.Why == Ends && r.now.Stance.In(plan.Ending)
}

// Until is what follows a round.
type Until string

// The actions after a round.
const (
	Finished Until = "finished" // the pass is over
	Again    Until = "again"    // observe again, and call Next
	Late     Until = "late"     // the pass is over: the time is up, and pending objects are late
)

// Why is the reason of a Round.
type Why string

// The reasons of a Round.
const (
	Migrates   Why = "Migrates"   // managed fields have to be migrated before anything is applied
	Begins     Why = "Begins"     // the first round sends the plan, without its prunes if anything else is written or waits
	Resumes    Why = "Resumes"    // objects that steps waited for are ready
	PrunesLast Why = "PrunesLast" // everything else is written, so the prunes are sent
	Awaits     Why = "Awaits"     // something is pending
	Settles    Why = "Settles"    // there is a problem that may be gone in a moment
	Ends       Why = "Ends"       // nothing is pending
	TimeIsUp   Why = "TimeIsUp"   // something is pending, but the time is up
	Deletes    Why = "Deletes"    // the foremost tier can be deleted
	Going      Why = "Going"      // the foremost tier is being deleted
	Stuck      Why = "Stuck"      // what is left cannot be deleted
)

// mostFailures is how often in a row a pass may fail and send again.
const mostFailures = 3

// mostPhases is the maximum number of requests that a pass sends for one step, because another writer may undo each of them.
const mostPhases = 8

// Next returns the next round of a pass, given the newest plan.
//
//	the pass      | the newest plan                     | why        | sends             | until
//	--------------+-------------------------------------+------------+-------------------+------------------
//	only looks    | pending, and not late               | Awaits     |                   | Again
//	              | otherwise                           | Ends       |                   | Finished
//	has not begun | managed fields must be migrated     | Migrates   | their migration   | Again
//	              | otherwise                           | Begins     | the plan, perhaps | Again or Finished
//	              |                                     |            | without prunes    |
//	has begun     | waiting steps can be sent, or steps | Resumes    | these steps       | Again
//	              | that an old schema had refused      |            |                   |
//	              | prunes were not sent, and nothing   | PrunesLast | the prunes, and   | Again
//	              | else waits, or the time is up       |            | unready objects   |
//	              | nothing is pending or broken        | Ends       | unready objects   | Finished
//	              | the time is up                      | TimeIsUp   | unready objects   | Late
//	              | pending, and not late               | Awaits     |                   | Again
//	              | broken, refused by an old schema,   | Settles    |                   | Again
//	              | or being deleted, and in grace      |            |                   |
//	ends the sync | see ending                          |            |                   |
//
// A pass in a hurry is never pending, and it has no grace.
func Next(p Pass, now plan.Plan, t Times) Round {
	r := Round{Send: none(now), Until: Again, now: now, at: t, lastChange: p.lastChange}
	switch {
	case now.Stance == plan.Looking:
		if r.Why = Awaits; t.Hurry || !pends(now, p.Waits.noted(now, t).late(t)) {
			r.Why, r.Until = Ends, Finished
		}
	case now.Stance.In(plan.Ending):
		return p.ending(r)
	case p.begun:
		return p.later(r)
	case plan.Migration(now).Writes() && !p.migrated:
		r.Send, r.Why = plan.Migration(now), Migrates
	default:
		r.Send, r.Why = withoutPrunes(now), Begins
		late := p.Waits.noted(now, t).late(t)
		switch {
		case r.Send.PrunesLater, slices.ContainsFunc(now.Steps, plan.Step.More):
		case t.Hurry, now.Writes() && !plan.Coming(now, nil) && !slices.ContainsFunc(now.Effects, plan.Effect.Awaited), !now.Writes() && !plan.Coming(now, late) && !pends(now, late):
			r.Until = Finished
		}
	}
	return r
}

// later returns a round after the first one. It sends only what the first plan showed: the steps that waited in it, and the next
// phase of a deactivation.
func (p Pass) later(r Round) Round {
	p = p.seeing(r.now)
	if p.lastChange.IsZero() || r.now.ChangedSince(p.Last) || p.waiting != draft.Waiting(r.now) {
		r.lastChange = r.at.Now
	}
	patient := !r.at.Hurry && r.at.Now.Sub(r.lastChange.Time) < r.at.Grace.Duration
	outcomes := p.outcomes()
	with := func(next plan.Plan) plan.Plan {
		return draft.FailDependants(draft.Replaced(draft.Refreshed(p.Last, r.now), next, r.phases), outcomes)
	}
	r.next = p.resumed(r.now, patient)
	r.phases = p.following(r.next)
	if r.next = withoutPrunes(r.next); p.pruned {
		r.next = p.holdPrunes(r.next, with(r.next))
	} else {
		r.next = r.next.Select(func(s plan.Step) bool { return !comesLast(s) || p.follows(s) })
	}
	shown := with(r.next)
	late := p.Waits.noted(shown, r.at).late(r.at)
	pending := !r.at.Hurry && (plan.Coming(shown, late) || pends(shown, late))
	unsettled := patient && (shown.Has(plan.Broken) || p.Retries() || p.Deletes()) // each may be over in a moment
	first := !r.at.Hurry && plan.Coming(withoutPrunes(shown), late) || patient && p.Retries()
	rest, unready := r.Send, p.unready()
	if len(unready) > 0 || len(r.now.Gone) > 0 {
		rest = r.now.Select(func(s plan.Step) bool { return s.Unready && unready[s.ID] })
	}
	over := r.at.Now.Sub(r.at.Began.Time) >= r.at.Limit.Duration
	switch {
	case r.next.Writes() && !over:
		r.Send, r.Why = r.next, Resumes
	case !p.pruned && (over || !first) && p.moved < mostFailures:
		r.next = p.holdPrunes(p.prunes(r.now), shown)
		r.Send, r.Why = joined(r.next, r.now, unready), PrunesLast
	case !r.next.Writes() && !pending && !unsettled:
		r.Send, r.Why, r.Until = rest, Ends, Finished
	case over:
		r.Send, r.Why, r.Until = rest, TimeIsUp, Late
	case pending:
		r.Why = Awaits
	default:
		r.Why = Settles
	}
	return r
}

// ending returns the next round of a pass that ends the sync. It deletes tier by tier, in reverse. Later tiers contain what the
// deletions of a tier need, so each tier must be gone before the next begins, and a hold in one tier holds all tiers after it.
//
//	the foremost tier                                   | why      | sends    | until
//	----------------------------------------------------+----------+----------+---------
//	there is none: nothing is owned any more            | Ends     | the plan | Finished
//	is being deleted, and the time is up                | TimeIsUp |          | Late
//	has a step that was not sent yet                    | Deletes  | the tier | Again
//	is being deleted                                    | Going    |          | Again
//	failed fewer than three times in a row              | Deletes  | the tier | Again
//	is held, but an earlier deletion may clear the hold | Settles  |          | Again
//	otherwise                                           | Stuck    |          | Finished
//
// A round without deletions makes the inventory forget the objects that are gone since the last round.
func (p Pass) ending(r Round) Round {
	p = p.seeing(r.now)
	tier := draft.Foremost(r.now)
	if p.lastChange.IsZero() || !slices.Equal(ids(p.Last), ids(r.now)) {
		r.lastChange = r.at.Now
	}
	since := r.at.Now.Sub(r.lastChange.Time)
	if r.now.Remembers() { // forget objects that are gone
		r.Send = tier.Select(func(s plan.Step) bool { return !s.Writes() })
	}
	has := func(like func(plan.Step) bool) bool { return slices.ContainsFunc(tier.Steps, like) }
	switch {
	case len(r.now.Steps) == 0:
		r.Send, r.Why, r.Until = r.now, Ends, Finished
	case has(p.goes) && since >= r.at.Limit.Duration:
		r.Why, r.Until = TimeIsUp, Late
	case has(func(s plan.Step) bool { return s.Writes() && !p.tried(s) }):
		r.Send, r.Why = tier, Deletes
	case has(p.goes):
		r.Why = Going
	case has(func(s plan.Step) bool { return s.Writes() && p.Done[s.ID].Err != nil }) && p.failures < mostFailures:
		r.Send, r.Why = tier, Deletes
	case !has(plan.Step.Writes) && has(plan.Step.MayClear) && len(p.Done) > 0 && since <= r.at.Grace.Duration:
		r.Why = Settles
	default:
		r.Why, r.Until = Stuck, Finished
	}
	return r
}

// After returns the pass after a round with the given outcomes. err is the error that ended the round, or nil. If the inventory
// moved in the first round, the next plan becomes the first plan.
func (p Pass) After(r Round, done []plan.Outcome, err error) Pass {
	before := p.outcomes()
	if r.Why == Migrates {
		p.migrated, p.migration = true, draft.NoteMigrated(r.Send, done)
		return p
	}
	p = p.seeing(r.now)
	p.Account, p.lastChange = p.after(r.Send, done), r.lastChange
	failed := slices.ContainsFunc(done, func(o plan.Outcome) bool { return o.Err != nil })
	switch {
	case r.now.Stance == plan.Looking || r.now.Stance.In(plan.Ending):
		p.Last = r.now
		if !p.begun {
			p.First = r.now
		}
	case !p.begun:
		p.First = Continued(r.now, p.Last, before)
		p.First.Notes = slices.Concat(p.First.Notes, p.migration)
		p.Last = draft.FailDependants(p.First, p.outcomes())
	case err != nil: // keep the steps that were carried out before the error
		p.Last = draft.Replaced(draft.Refreshed(p.Last, r.now), carried(r.next, done), r.phases)
	default:
		p.Last = draft.FailDependants(draft.Replaced(draft.Refreshed(p.Last, r.now), r.next, r.phases), p.outcomes())
	}
	if err == nil && (r.Why == PrunesLast || r.Why == Resumes && p.pruned) {
		p.Last.Approval, p.Last.Spent = r.next.Approval, slices.Concat(p.Last.Spent, r.next.Spent[len(r.now.Spent):])
	}
	if r.Why == PrunesLast { // objects that disappeared without us count as deleted
		for _, s := range p.First.Steps {
			if _, known := p.Done[s.ID]; !known && comesLast(s) && slices.Contains(r.now.Absent, s.ID) {
				p.Done[s.ID] = plan.Outcome{ID: s.ID, Action: plan.Prune}
			}
		}
	}
	switch {
	case failed:
		p.failures++
	case len(done) > 0:
		p.failures = 0
	}
	if r.Why == PrunesLast && errors.Is(err, reason.ErrMoved) {
		p.moved++
	}
	p.started, p.begun = true, p.begun || !errors.Is(err, reason.ErrMoved)
	p.pruned = p.pruned || p.begun && err == nil && (r.Why == PrunesLast || r.Why == Begins && !r.Send.PrunesLater)
	p.Waits, p.at, p.waiting = p.Waits.noted(p.Last, r.at), r.at, draft.Waiting(r.now)
	return p
}

// Started reports whether the pass has a plan to report.
func (p Pass) Started() bool { return p.started }

// Begun reports whether the first round was sent, so that later rounds continue it.
func (p Pass) Begun() bool { return p.begun }

// End returns the pass after its last round. If the time is up, every pending effect is late until it is no longer pending.
func (p Pass) End(r Round) Pass {
	if r.Until == Late && p.Last.Stance.In(plan.Ending) {
		p.Done = cloned(p.Done)
		for _, s := range draft.Foremost(p.Last).Steps {
			if p.goes(s) {
				p.Done[s.ID] = plan.Outcome{ID: s.ID, Action: plan.Prune, Err: reason.CodedError{Reason: reason.NotGone.With(r.at.Limit.Duration.String(), s.Reason)}}
			}
		}
		return p
	}
	if r.Until == Late {
		p.Waits = Waits{}.noted(p.Last, Times{}) // everything is late
	}
	p.Last = Overdue(p.Last, r.at, p.Waits.late(r.at))
	return p
}

// Retries reports whether another round may succeed with a step that failed in this pass.
func (p Pass) Retries() bool {
	return p.failures < mostFailures && slices.ContainsFunc(p.Last.Steps, p.outlived())
}

// outlived returns a function that reports whether a step failed and this pass has since changed a possible cause. One cause is a
// schema: the object may set a field that its CRD gains in the same commit, or its managed fields may name a version that is
// removed in it. The other cause is a webhook that refused the object and is pruned. After a migration of its managed fields, the
// object itself is sent. A step whose object is not as observed any more is planned again.
func (p Pass) outlived() func(plan.Step) bool {
	webhook, groups := false, map[string]bool{} // the causes that this pass has changed
	for _, s := range p.Last.Steps {
		switch o, did := p.Done[s.ID]; {
		case !did || o.Err != nil:
		case s.Admits():
			webhook = webhook || s.Action == plan.Prune
		case s.ID.IsCRD() && s.Action != plan.Prune:
			_, group, _ := strings.Cut(s.ID.Name, ".")
			groups[group] = true
		}
	}
	return func(s plan.Step) bool {
		o, did := p.Done[s.ID]
		failed := s.Err != nil || did && (o.Err != nil || o.Did == plan.DoMigrate)
		return failed && s.Action != plan.Prune && (webhook || s.ID.Group != "" && groups[s.ID.Group] || movedAway(o))
	}
}

// movedAway reports whether a step was not carried out because its object is not as observed any more.
func movedAway(o plan.Outcome) bool {
	if o.Err == nil {
		return false
	}
	code := reason.Of(o.Err).Code
	return code == reason.MadeAnew || code == reason.ChangedMeanwhile
}

// resumed returns the steps of a newer plan that replace waiting or failed steps of this pass. An API server may serve a kind a
// moment after its CRD was made, and Crossplane may remove a label a moment after the Usage, so a patient pass keeps waiting for
// these. A definition that could not be deactivated is left to the next pass.
func (p Pass) resumed(now plan.Plan, patient bool) plan.Plan {
	waited, retried, pruned, takesBack := map[manifest.ID]bool{}, map[manifest.ID]bool{}, map[manifest.ID]bool{}, map[string]bool{}
	outlived := p.outlived()
	for _, s := range p.Last.Steps {
		waited[s.ID], retried[s.ID] = s.Waiting(), p.failures < mostFailures && outlived(s)
	}
	for _, s := range p.First.Steps {
		pruned[s.ID], takesBack[s.ID.Name] = s.Action == plan.Prune, takesBack[s.ID.Name] || s.Deactivates
	}
	for _, e := range p.First.Effects {
		takesBack[e.On.Name] = takesBack[e.On.Name] || e.Kind == plan.Deactivate
	}
	return now.Select(func(s plan.Step) bool {
		switch {
		case p.follows(s):
			return true
		case s.Deactivates:
			return p.Done[s.ID].Err == nil && (takesBack[s.ID.Name] || s.ID == crossplane.ProviderRevision(s.ID.Name) && len(takesBack) > 0)
		case retried[s.ID]:
			return s.Applies() && s.Err == nil
		case s.Writes() && pruned[s.ID] && !s.Action.Removes(), s.Writes() && !pruned[s.ID] && s.Action == plan.Prune:
			return false // the first plan showed the opposite action
		case patient && (errors.Is(s.Err, reason.ErrUnserved) || s.Action == plan.Hold && s.Clears == plan.ClearsSoon):
			return false
		}
		return waited[s.ID]
	})
}

// seeing returns the pass after the newest plan is known. If that plan has nothing to do for an object, another writer has done the
// remaining phases. If a guard now keeps an object whose prune the pass began, the object was not pruned.
func (p Pass) seeing(now plan.Plan) Pass {
	newest := now.ByID()
	p.Done, p.Last.Steps = cloned(p.Done), slices.Clone(p.Last.Steps)
	for i, s := range p.Last.Steps {
		o, n := p.Done[s.ID], newest[s.ID]
		switch {
		case !o.More || n.Action != plan.Hold && n.IsDue():
		case s.Action == plan.Prune && (n.Action == plan.Hold || n.Action == plan.Keep):
			delete(p.Done, s.ID)
			p.Last.Steps[i] = n
		case n.Action != plan.Hold: // if it is held, the remaining phase is not reached
			o.More, p.Last.Steps[i] = false, s.Free()
			p.Done[s.ID] = o
		}
	}
	return p.withoutGone(now)
}

// withoutPrunes returns the plan to send first. Prunes come last, after everything else is written. If nothing else is written or
// waits, it returns the whole plan.
func withoutPrunes(p plan.Plan) plan.Plan {
	first := p.Select(func(s plan.Step) bool { return !comesLast(s) })
	if len(first.Steps) == len(p.Steps) || !slices.ContainsFunc(first.Steps, plan.Step.IsDue) {
		return p
	}
	first.PrunesLater = true
	return first
}

// comesLast reports whether a step prunes, belongs to the deactivation of a definition, or may be pruned once everything else is
// done.
func comesLast(s plan.Step) bool {
	return s.IsUnfinished() || (s.Action == plan.Prune || s.Deactivates) && s.IsDue()
}

// prunes returns the first plan's prunes as the newer plan has them.
func (p Pass) prunes(now plan.Plan) plan.Plan {
	shown := map[manifest.ID]bool{}
	for _, s := range p.First.Steps {
		_, sent := p.Done[s.ID]
		shown[s.ID] = comesLast(s) && !sent
	}
	return now.Select(func(s plan.Step) bool { return shown[s.ID] && (!s.Applies() || s.Deactivates) })
}

// joined returns the plan with additional steps of another one, which only wait until these objects are ready.
func joined(p plan.Plan, other plan.Plan, unready map[manifest.ID]bool) plan.Plan {
	p.Steps = slices.Concat(p.Steps, other.Select(func(s plan.Step) bool { return s.Unready && unready[s.ID] }).Steps)
	slices.SortStableFunc(p.Steps, plan.InOrder)
	return p
}

// cloned returns a writable copy.
func cloned[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}

// Plan returns the plan as it was carried out, for the report.
func (p Pass) Plan() plan.Plan {
	if p.Last.Stance.In(plan.Following) {
		return p.Last
	}
	return p.account()
}

// account returns the first plan of an ending, with the completed steps and the newest versions of all others.
func (p Pass) account() plan.Plan {
	left := p.Last.ByID()
	all := p.Last
	all.Notes, all.Steps = p.First.Notes, nil
	for _, s := range p.First.Steps {
		sent, did := p.sent[s.ID]
		newer, stays := left[s.ID]
		switch {
		case did && (!stays || p.Done[s.ID].Err != nil):
			s = sent
		case stays:
			s = newer
		case s.Action == plan.Hold: // it was deleted with another object
			s = s.Unheld()
		}
		all.Steps = append(all.Steps, s.Over())
	}
	return all
}

// Outcomes returns the outcomes of the steps of Plan. An object that was missing at the end of an ending counts as deleted.
func (p Pass) Outcomes() []plan.Outcome {
	if p.Last.Stance.In(plan.Following) {
		return p.outcomes()
	}
	p.Done = cloned(p.Done)
	left := p.Last.ByID()
	for _, s := range p.account().Steps {
		o, known := p.Done[s.ID]
		switch _, stays := left[s.ID]; {
		case stays:
		case !known:
			p.Done[s.ID] = plan.Outcome{ID: s.ID, Action: s.Action}
		case !o.Deleting.None():
			o.Deleting = reason.Reason{}
			p.Done[s.ID] = o
		}
	}
	return p.outcomes()
}

// Waits records since when effects and steps have been pending, over the passes of one commit. A late one stays late until it is no
// longer pending, so that no later pass waits for it again.
type Waits struct {
	revision string
	since    map[manifest.ID]metav1.Time // zero: late
}

// noted returns the waits after an observation.
func (w Waits) noted(p plan.Plan, t Times) Waits {
	next := Waits{p.Want.Revision, map[manifest.ID]metav1.Time{}}
	for id := range pending(p) {
		next.since[id] = t.Now
		if since, waited := w.since[id]; waited && w.revision == next.revision {
			next.since[id] = since
		}
	}
	return next
}

// late returns what has been pending for too long.
func (w Waits) late(t Times) map[manifest.ID]bool {
	late := make(map[manifest.ID]bool, len(w.since))
	for id, since := range w.since {
		late[id] = t.Now.Sub(since.Time) >= t.Limit.Duration
	}
	return late
}

// For returns the pending objects, sorted.
func (w Waits) For() []manifest.ID {
	return slices.SortedFunc(maps.Keys(w.since), manifest.ID.Compare)
}

// PollAfter returns the delay until the next look at pending objects. It grows with the time for which they have been pending. Zero
// means that nothing is pending.
func (p Pass) PollAfter() metav1.Duration {
	var after metav1.Duration
	w, t := p.Waits, p.at
	late := w.late(t)
	for id, since := range w.since {
		if late[id] {
			continue
		}
		passed := t.Now.Sub(since.Time)
		next := min(max(minPoll, passed/4), t.Limit.Duration-passed)
		if after.Duration == 0 || next < after.Duration {
			after.Duration = next
		}
	}
	return after
}

// minPoll is the shortest delay between two looks at pending objects: two seconds.
const minPoll = 2_000_000_000

// pending returns the objects of pending effects and waiting steps.
func pending(p plan.Plan) map[manifest.ID]bool {
	ids := map[manifest.ID]bool{}
	for _, e := range p.Effects {
		if e.State == plan.Pending {
			ids[e.On] = true
		}
	}
	for _, s := range p.Steps {
		if s.Waiting() && !s.Lingers() {
			ids[s.ID] = true
		}
	}
	return ids
}

// pends reports whether there is a pending effect that is not late.
func pends(p plan.Plan, late map[manifest.ID]bool) bool {
	return slices.ContainsFunc(p.Effects, func(e plan.Effect) bool { return e.State == plan.Pending && !late[e.On] })
}

// none returns a plan without steps and without changes to the inventory.
func none(p plan.Plan) plan.Plan { return plan.Plan{Sync: p.Sync, Want: p.Want, Stance: p.Stance} }

// ids returns the IDs of the steps, in their order.
func ids(p plan.Plan) []manifest.ID {
	ids := make([]manifest.ID, len(p.Steps))
	for i, s := range p.Steps {
		ids[i] = s.ID
	}
	return ids
}

// Package rounds decides what each round of a pass sends, and when the pass is over.
package rounds

import (
	"errors"
	"maps"
	"slices"
	"strings"

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
	stores     bool                 // it has something to store, even without a step
	prunes     bool                 // it sends the prunes, or a round before it did
	at         Times
	lastChange metav1.Time
}

// Sends reports whether the round has something to carry out or to remember.
func (r Round) Sends() bool {
	return len(r.Send.Steps) > 0 || len(r.Send.Gone) > 0 || r.stores
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
	return courseOf(now).next(p, Round{Send: none(now), Until: Again, now: now, at: t, lastChange: p.lastChange})
}

// look returns the next round of a pass that only looks.
func (p Pass) look(r Round) Round {
	if r.Why = Awaits; !pends(r.now, p.late(r.now, r.at)) {
		r.Why, r.Until = Ends, Finished
	}
	return r
}

// apply returns the next round of a pass that makes its place as the commit wants.
func (p Pass) apply(r Round) Round {
	migration := plan.Migration(r.now)
	switch {
	case p.begun:
		return p.later(r)
	case migration.Writes() && !p.migrated:
		r.Send, r.Why = migration, Migrates
		return r
	}
	r.Send, r.Why, r.stores = withoutPrunes(r.now), Begins, true
	r.prunes = !r.Send.PrunesLater
	if !p.continues(r) {
		r.Until = Finished
	}
	return r
}

// continues reports whether a pass sends or waits for something after its first round. Its writes may help what is late.
func (p Pass) continues(r Round) bool {
	switch {
	case r.Send.PrunesLater, slices.ContainsFunc(r.now.Steps, plan.Step.More):
		return true
	case r.at.Hurry:
		return false
	case r.now.Writes():
		return plan.Coming(r.now, nil) || slices.ContainsFunc(r.now.Effects, plan.Effect.Awaited)
	}
	return isPending(r.now, p.late(r.now, r.at))
}

// later returns a round after the first one. It sends only what the first plan showed: the steps that waited in it, and the next
// phase of a deactivation.
func (p Pass) later(r Round) Round {
	p = p.seeing(r.now)
	if p.lastChange.IsZero() || r.now.ChangedSince(p.Last) || p.waiting != waiting(r.now) {
		r.lastChange = r.at.Now
	}
	patient := !r.at.Hurry && r.at.Now.Sub(r.lastChange.Time) < r.at.Grace.Duration
	outcomes := p.outcomes()
	with := func(next plan.Plan) plan.Plan {
		return plan.FailDependants(replaced(refreshed(p.Last, r.now), next, r.phases), outcomes)
	}
	r.next = p.resumed(r.now, patient)
	r.phases = where(r.next.Steps, p.follows)
	if r.next = withoutPrunes(r.next); p.pruned {
		r.next = p.holdPrunes(r.next, with(r.next))
	} else {
		r.next = r.next.Select(func(s plan.Step) bool { return !comesLast(s) || p.follows(s) })
	}
	shown := with(r.next)
	late := p.late(shown, r.at)
	waits := p.waitsFor(shown, late, patient)
	over := r.at.Now.Sub(r.at.Began.Time) >= r.at.Limit.Duration
	unready := p.unready()
	rest := r.now.Select(func(s plan.Step) bool { return s.Unready && unready[s.ID] })
	switch {
	case r.next.Writes() && !over:
		r.Send, r.Why, r.prunes = r.next, Resumes, p.pruned
	case p.mayPrune() && (over || p.hasWritten(shown, late, patient)):
		r.next = p.holdPrunes(p.prunes(r.now), shown)
		r.Send, r.Why, r.prunes = joined(r.next, rest), PrunesLast, true
	case waits == Ends && !r.next.Writes():
		r.Send, r.Why, r.Until = rest, Ends, Finished
	case over:
		r.Send, r.Why, r.Until = rest, TimeIsUp, Late
	default:
		r.Why = waits
	}
	return r
}

// waitsFor returns why a pass that sends nothing goes on; Ends if it does not. A failure, a deletion, or an effect that looks broken
// may be over in a moment.
func (p Pass) waitsFor(shown plan.Plan, late map[manifest.ID]bool, patient bool) Why {
	switch {
	case isPending(shown, late):
		return Awaits
	case patient && (p.isUnsettled() || shown.Has(plan.Broken)):
		return Settles
	}
	return Ends
}

// hasWritten reports whether a pass has carried out everything but its prunes, as far as it waits for that.
func (p Pass) hasWritten(shown plan.Plan, late map[manifest.ID]bool, patient bool) bool {
	if patient && p.Retries() {
		return false
	}
	return !plan.Coming(withoutPrunes(shown), late)
}

// isUnsettled reports whether a failure or a deletion of the pass may be over in a moment.
func (p Pass) isUnsettled() bool { return p.Retries() || p.Deletes() }

// mayPrune reports whether the prunes can still be sent. If the inventory moves again and again, the next pass prunes.
func (p Pass) mayPrune() bool { return !p.pruned && p.moved < mostFailures }

// late returns the objects for which the pass does not wait any more; in a hurry, these are all.
func (p Pass) late(shown plan.Plan, t Times) map[manifest.ID]bool {
	if t.Hurry {
		t.Limit.Duration = 0
	}
	return p.Waits.noted(shown, t).late(t)
}

// After returns the pass after a round with the given outcomes. err is the error that ended the round, or nil. If the inventory
// moved in the first round, the next plan becomes the first plan.
func (p Pass) After(r Round, done []plan.Outcome, err error) Pass {
	if r.Why == Migrates {
		p.migrated, p.migration = true, noteMigrated(r.Send, done)
		return p
	}
	was := p
	p = p.seeing(r.now)
	p.Account, p.lastChange = p.after(r.Send, done), r.lastChange
	p = courseOf(r.now).after(p, was, r, done, err)
	moved := errors.Is(err, reason.ErrMoved)
	if r.Why == PrunesLast {
		p = p.withAbsent(r.now.Absent)
		if moved {
			p.moved++
		}
	}
	switch {
	case slices.ContainsFunc(done, func(o plan.Outcome) bool { return o.Err != nil }):
		p.failures++
	case len(done) > 0:
		p.failures = 0
	}
	p.started, p.begun = true, p.begun || !moved
	p.pruned = p.pruned || r.prunes && err == nil
	p.Waits, p.at, p.waiting = p.Waits.noted(p.Last, r.at), r.at, waiting(r.now)
	return p
}

// Started reports whether the pass has a plan to report.
func (p Pass) Started() bool { return p.started }

// Begun reports whether the first round was sent, so that later rounds continue it.
func (p Pass) Begun() bool { return p.begun }

// IsOver reports whether the pass is over after a round. What failed or is being deleted after the only round may be over in a moment.
func (p Pass) IsOver(r Round) bool {
	if r.Why == Begins && !r.at.Hurry {
		return r.Until != Again && !p.isUnsettled()
	}
	return r.Until != Again
}

// End returns the pass after its last round.
func (p Pass) End(r Round) Pass { return courseOf(p.Last).end(p, r) }

// overdue returns the pass after its last round. If the time is up, every pending effect is late until it is no longer pending.
func (p Pass) overdue(r Round) Pass {
	if r.Until == Late {
		p.Waits = Waits{}.noted(p.Last, Times{}) // everything is late
	}
	p.Last = overdue(p.Last, r.at, p.Waits.late(r.at))
	return p
}

// Retries reports whether another round may succeed with a step that failed in this pass.
func (p Pass) Retries() bool { return len(p.retried()) > 0 }

// retried returns the objects whose step failed, and for which this pass has since changed a possible cause. After a migration of its
// managed fields, the object itself is sent. A step whose object is not as observed any more is planned again.
func (p Pass) retried() map[manifest.ID]bool {
	if p.failures >= mostFailures {
		return nil
	}
	webhook, groups := p.remedies()
	return where(p.Last.Steps, func(s plan.Step) bool {
		o := p.Done[s.ID]
		fails := s.Err != nil || o.Err != nil || o.Did == plan.DoMigrate
		changed := webhook || groups[s.ID.Group] || movedAway(o)
		return fails && changed && s.Action != plan.Prune
	})
}

// remedies returns the causes of failures that this pass has changed: whether it pruned a webhook, which may have refused objects, and
// the API groups of the CRDs that it wrote. An object may set a field that its CRD gains in the same commit, or its managed fields may
// name a version that is removed in it.
func (p Pass) remedies() (webhook bool, groups map[string]bool) {
	groups = map[string]bool{}
	for _, s := range p.Last.Steps {
		switch o, did := p.Done[s.ID]; {
		case !did || o.Err != nil:
		case s.Admits():
			webhook = webhook || s.Action == plan.Prune
		case s.ID.IsCRD() && s.Action != plan.Prune:
			_, group, _ := strings.Cut(s.ID.Name, ".")
			groups[group] = group != "" // the group of kinds such as Secret has no CRDs
		}
	}
	return webhook, groups
}

// movedAway reports whether a step was not carried out because its object is not as observed any more.
func movedAway(o plan.Outcome) bool {
	return slices.Contains([]reason.Code{reason.MadeAnew, reason.ChangedMeanwhile}, reason.Of(o.Err).Code)
}

// resumed returns the steps of a newer plan that replace waiting or failed steps of this pass. An API server may serve a kind a
// moment after its CRD was made, and Crossplane may remove a label a moment after the Usage, so a patient pass keeps waiting for
// these. A definition that could not be deactivated is left to the next pass.
func (p Pass) resumed(now plan.Plan, patient bool) plan.Plan {
	waited, retried, takesBack := where(p.Last.Steps, plan.Step.Waiting), p.retried(), p.takesBack()
	pruned := where(p.First.Steps, func(s plan.Step) bool { return s.Action == plan.Prune })
	return now.Select(func(s plan.Step) bool {
		switch {
		case p.follows(s):
			return true
		case s.Deactivates:
			return p.Done[s.ID].Err == nil && takesBack(s.ID)
		case retried[s.ID]:
			return s.Applies() && s.Err == nil
		case s.Writes() && isOpposite(s, pruned[s.ID]):
			return false
		case patient && soonOver(s):
			return false
		}
		return waited[s.ID]
	})
}

// takesBack returns a function that reports whether an object is part of a deactivation that the first plan showed. Of a package, it is
// the revision that makes Crossplane act.
func (p Pass) takesBack() func(manifest.ID) bool {
	names := map[string]bool{}
	for _, s := range p.First.Steps {
		if s.Deactivates {
			names[s.ID.Name] = true
		}
	}
	for _, e := range p.First.Effects {
		if e.Kind == plan.Deactivate {
			names[e.On.Name] = true
		}
	}
	return func(id manifest.ID) bool {
		return names[id.Name] || id == crossplane.ProviderRevision(id.Name) && len(names) > 0
	}
}

// isOpposite reports whether a step does the opposite of what the first plan showed: it applies an object that was to be pruned, or
// prunes one that was not.
func isOpposite(s plan.Step, pruned bool) bool {
	if pruned {
		return !s.Action.Removes()
	}
	return s.Action == plan.Prune
}

// soonOver reports whether the reason why a step is not carried out may be over in a moment.
func soonOver(s plan.Step) bool {
	return errors.Is(s.Err, reason.ErrUnserved) || s.Action == plan.Hold && s.Clears == plan.ClearsSoon
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
	return p.withoutGone(newest)
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
	if s.IsUnfinished() {
		return true
	}
	return s.IsDue() && (s.Action == plan.Prune || s.Deactivates)
}

// prunes returns the first plan's prunes as the newer plan has them.
func (p Pass) prunes(now plan.Plan) plan.Plan {
	left := where(p.First.Steps, func(s plan.Step) bool {
		_, sent := p.Done[s.ID]
		return comesLast(s) && !sent
	})
	return now.Select(func(s plan.Step) bool { return left[s.ID] && (!s.Applies() || s.Deactivates) })
}

// joined returns the plan with the additional steps of another one.
func joined(p plan.Plan, other plan.Plan) plan.Plan {
	p.Steps = slices.Concat(p.Steps, other.Steps)
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
func (p Pass) Plan() plan.Plan { return courseOf(p.Last).plan(p) }

// Outcomes returns the outcomes of the steps of Plan.
func (p Pass) Outcomes() []plan.Outcome { return courseOf(p.Last).outcomes(p) }

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

// Within returns the delay until the next look: the given one, or an earlier one if others act and something is pending.
func (p Pass) Within(wait metav1.Duration) metav1.Duration {
	if after := p.PollAfter(); after.Duration > 0 && courseOf(p.Last).polls {
		wait.Duration = min(wait.Duration, after.Duration)
	}
	return wait
}

// minPoll is the shortest delay between two looks at pending objects: two seconds.
const minPoll = 2_000_000_000

// pending returns the objects of pending effects and waiting steps.
func pending(p plan.Plan) map[manifest.ID]bool {
	ids := where(p.Steps, func(s plan.Step) bool { return s.Waiting() && !s.Lingers() })
	for _, e := range p.Effects {
		if e.State == plan.Pending {
			ids[e.On] = true
		}
	}
	return ids
}

// pends reports whether there is a pending effect that is not late.
func pends(p plan.Plan, late map[manifest.ID]bool) bool {
	return slices.ContainsFunc(p.Effects, func(e plan.Effect) bool { return e.State == plan.Pending && !late[e.On] })
}

// isPending reports whether the plan waits for something that is not late.
func isPending(p plan.Plan, late map[manifest.ID]bool) bool {
	return plan.Coming(p, late) || pends(p, late)
}

// none returns a plan without steps and without changes to the inventory.
func none(p plan.Plan) plan.Plan { return plan.Plan{Sync: p.Sync, Want: p.Want, Stance: p.Stance} }

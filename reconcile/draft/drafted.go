// Package draft decides what a pass does: it is the only package that makes a plan. Compute drafts the steps, has the guards rule on
// them, and finds what they wait for and what follows from them.
package draft

import (
	"cmp"
	"slices"

	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/installed"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Compute makes a plan in four stages. Each stage takes what only the stage before it returns:
//
//	decide ─► drafted ─► rule ─► ruled ─► await ─► awaiting ─► expect ─► Plan

// A drafted plan holds what the commit asks for. After decide, a step only becomes weaker: a guard holds it, it waits, or it keeps
// its object after all.
type drafted struct {
	plan.Plan

	seen  facts.Observed
	asked map[manifest.ID]facts.Asked // the objects that the commit asks for
	first demand.Order                // the declared dependencies of objects
	after demand.Order                // those that steps wait for
	parts plan.Action                 // what the plan does with owned objects that the commit does not want: a prune or a release
	at    map[manifest.ID]int         // index of Steps, once all of them are there
	kept  map[manifest.ID]plan.Step   // the steps that keep objects unless the values change that references copy into them

	unreachable []plan.Step // for owned objects whose kind is not served
	clear       string      // the digest that approves the removal of leftovers; "" if there are none
	begins      bool        // an object is being deleted, and the inventory does not record that
	moves       bool        // the inventory does not record the present paths
}

// A ruled plan has the rulings of all guards.
type ruled struct {
	drafted
	guards []Guard
}

// An awaiting plan knows what each of its steps waits for.
type awaiting struct{ ruled }

// decide returns the steps that the commit asks for, regardless of guards.
func decide(seen facts.Observed) (drafted, error) {
	if seen.Commit == nil {
		return drafted{}, demand.ErrNotAsked
	}
	seen, err := withPremises(seen)
	if err != nil {
		return drafted{}, err
	}
	want, asked := seen.Want, seen.Asked
	p := drafted{seen: seen, asked: seen.AskedByID(), Plan: begin(seen), parts: cmp.Or(partings[seen.Stance], plan.Prune)}
	if p.first, err = demand.OrderOf(seen); err != nil {
		return drafted{}, err
	}
	wanted := make(map[manifest.ID]bool, len(asked))
	// Kinds with objects whose names come from references. A changed or missing value must not delete such an object.
	renamed, nameless := map[schema.GroupKind]bool{}, map[schema.GroupKind]bool{}
	kinds := newComing(seen)
	for _, a := range asked {
		wanted[a.ID] = true
		if a.Resolved.Names {
			renamed[a.ID.GroupKind()] = true
			nameless[a.ID.GroupKind()] = nameless[a.ID.GroupKind()] || a.Resolved.Nameless
		}
		if err := p.want(a, seen, kinds); err != nil {
			return drafted{}, err
		}
	}
	if names := facts.Unexplained(want, seen.Upstream); len(names) > 0 {
		p.Retained = names
	}
	p.Notes = append(p.Notes, p.notesOf(notesOnCommit)...)
	p.unwanted(wanted, renamed, nameless, seen)
	p.run(drafting)
	slices.SortStableFunc(p.Steps, plan.InOrder) // guards must see the steps in the order of writing
	p.Lost = lostPackages(want, seen.Ground)
	return p, nil
}

// A premise adds to the observation what has to be known before a plan is made, in some stances.
type premise struct {
	in plan.Stances
	of func(facts.Observed) (facts.Observed, error)
}

// premises are found in this order.
var premises = []premise{
	{plan.Stances{plan.Applying}, checkedSource},
	{plan.Stances{plan.Applying}, sureOf(func(o *facts.Observed) { o.First = isFirst(o.Ground) })},
	{plan.Writing, sureOf(func(o *facts.Observed) { o.Lost = o.IsLost() })},
	{plan.OnCommit, sureOf(func(o *facts.Observed) { o.InGit = ofTarget(*o) })},
	{plan.OnCluster, sureOf(func(o *facts.Observed) { o.InGit = ofCommit(*o) })},
	{nil, sureOf(func(o *facts.Observed) { o.Approvals = withGit(*o) })},
	{plan.Answered, sureOf(func(o *facts.Observed) { o.Asks = new([]question.Any) })},
}

// sureOf returns a premise that has no error.
func sureOf(set func(*facts.Observed)) func(facts.Observed) (facts.Observed, error) {
	return func(o facts.Observed) (facts.Observed, error) {
		set(&o)
		return o, nil
	}
}

// withPremises returns the observation with the premises of its stance.
func withPremises(seen facts.Observed) (_ facts.Observed, err error) {
	for _, p := range premises {
		if !seen.Stance.In(p.in) {
			continue
		}
		if seen, err = p.of(seen); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// partings are the stances in which owned objects that the commit does not want are not pruned.
var partings = map[plan.Stance]plan.Action{plan.Orphaning: plan.Release}

// begin returns a plan without steps.
func begin(seen facts.Observed) plan.Plan {
	return plan.Plan{
		Sync:      seen.Inventory.Sync,
		Want:      seen.Want,
		Owned:     len(seen.Inventory.Entries),
		Version:   seen.Inventory.ResourceVersion,
		Stance:    seen.Stance,
		Instead:   map[manifest.ID]plan.Step{},
		Effects:   slices.Clone(seen.Effects),
		Bumps:     seen.Bumps,
		Held:      seen.Inventory.Held,
		Approvals: plan.Approvals{Given: seen.Approvals.At(seen.Now), Now: seen.Now, GrantedBefore: seen.Inventory.Grants, Rebuilt: seen.Lost},
		Places:    facts.HomesOf(seen),

		Memory:      plan.Memory{Applied: seen.Inventory.Record.Source.Commit, Forwards: seen.Terms.FastForward, Rewritten: !seen.Rewritten.None(), TakesOver: seen.TakesOver, Object: seen.Terms.Object},
		UndoneSince: seen.Inventory.Undone,
	}
}

// rule returns the plan after all guards have ruled on its steps.
func rule(d drafted, guards []Guard) ruled {
	guards = slices.DeleteFunc(slices.Clone(guards), func(g Guard) bool { return !d.seen.Stance.In(g.In) })
	p, seen := ruled{d, guards}, d.seen
	p.AskAgain = asking(seen, guards)
	p.guard(seen, guards)
	p.noteRewritten(seen.Ground)
	p.Steps = append(p.Steps, p.unreachable...) // guards cannot judge them
	slices.SortStableFunc(p.Steps, plan.InOrder)
	p.indexDependants(p.first, seen)
	p.settle(seen, guards)
	return p
}

// await returns the plan with what its steps wait for.
func await(p ruled) awaiting {
	p.run(waits)
	p.concludeDeactivation(p.guards)
	p.run(concluding)
	return awaiting{p}
}

// expect returns the complete plan: with what is in force after its writes, the expected effects, and what to record.
func expect(p awaiting) plan.Plan {
	seen := p.seen
	p.WasActive = seen.Upstream.Active()
	for _, e := range effects {
		if seen.Stance.In(e.in) {
			p.Effects = append(p.Effects, e.of(p)...)
		}
	}
	p.Notes = append(p.Notes, p.notesOf(notesOnSteps)...)
	slices.SortStableFunc(p.Steps, plan.InOrder)
	p.Stale = slices.ContainsFunc(unstored, func(c cause) bool { return p.Stance.In(c.in) && c.holds(p.drafted) })
	p.Plan = plan.FailDependants(p.ruled.drafted.Plan, nil)
	p.merge()
	p.Unanswered = seen.Needed()
	return p.Plan
}

// A stage changes the plan in some stances.
type stage struct {
	in plan.Stances
	do func(*drafted, facts.Observed)
}

// run makes the stages of the stance of the plan.
func (p *drafted) run(stages []stage) {
	for _, s := range stages {
		if p.Stance.In(s.in) {
			s.do(p, p.seen)
		}
	}
}

// drafting are the steps of a pass in addition to those for the objects of the commit and of the inventory.
var drafting = []stage{
	{plan.Stances{plan.Applying}, (*drafted).locate},
	{plan.OnCluster, (*drafted).follows}, // no commit shows whether dependencies are ready
	{plan.Stances{plan.Looking}, (*drafted).leave},
	{plan.Stances{plan.Applying}, (*drafted).deactivate},
	{plan.Stances{plan.Applying}, (*drafted).fields},
	{plan.Stances{plan.Applying}, (*drafted).leftovers},
	{plan.OnCluster, (*drafted).follow},
}

// waits make steps wait for other objects.
var waits = []stage{
	{plan.Writing, (*drafted).awaitOpeners},
	{plan.Writing, (*drafted).keepCRDs},
	{plan.Stances{plan.Applying}, (*drafted).leaveCRDs},
	{nil, (*drafted).awaitDependants},
	{plan.Following, (*drafted).awaitUsers}, // an ending deletes tier by tier
	{nil, (*drafted).awaitPeers},
	{nil, (*drafted).arrange},
}

// concluding are what follows once every step is known.
var concluding = []stage{
	{plan.Stances{plan.Counting}, (*drafted).countEffects},
	{plan.Stances{plan.Destroying}, (*drafted).releaseRetained}, // nobody will own them
	{plan.Stances{plan.Applying}, (*drafted).remember},
	{plan.Stances{plan.Applying}, (*drafted).askForge},
	{plan.Stances{plan.Looking}, (*drafted).forceAll},
	{plan.Except(plan.Looking), (*drafted).forceSent},
}

// effects are those of the steps.
var effects = []struct {
	in plan.Stances
	of func(awaiting) []plan.Effect
}{
	{plan.OnCommit, func(p awaiting) []plan.Effect { return facts.Activated(p.Want) }},
	{plan.OnCluster, func(p awaiting) []plan.Effect {
		return withoutThose(facts.Expected(p.Want, p.seen.Upstream, p.Steps, p.Policies), p.Effects)
	}},
}

// A noting returns notes on one subject.
type noting struct {
	in    plan.Stances
	notes func(drafted) []manifest.Finding
}

// notesOf returns the notes of those that hold in the stance of the plan.
func (p drafted) notesOf(all []noting) (notes []manifest.Finding) {
	for _, n := range all {
		if p.Stance.In(n.in) {
			notes = append(notes, n.notes(p)...)
		}
	}
	return notes
}

// notesOnCommit are about effects of the commit that the author may not expect.
var notesOnCommit = []noting{
	{nil, func(p drafted) []manifest.Finding { return facts.NoteOwner(p.seen) }},
	{plan.OnCluster, func(p drafted) []manifest.Finding { return facts.NoteUnexplained(p.seen) }},
	{plan.OnCommit, func(p drafted) []manifest.Finding { return facts.NoteUnexplainedBefore(p.seen) }},
	{plan.Writing, func(p drafted) []manifest.Finding { return demand.Unprotected(p.first, p.seen) }},
	{nil, func(p drafted) []manifest.Finding { return NoteSkippedPolicy(p.Want, p.seen) }},
	{nil, func(p drafted) []manifest.Finding { return facts.Copies(p.seen.Live) }},
	{nil, func(p drafted) []manifest.Finding {
		return installed.Differences(p.Want, p.seen.Upstream.Definitions, p.seen.Upstream.Packages)
	}},
	{nil, func(p drafted) []manifest.Finding { return installed.Upgrades(p.Want, p.seen.Upstream.Packages) }},
	{nil, func(p drafted) []manifest.Finding { return p.seen.Notes }},
	{nil, func(p drafted) []manifest.Finding { return noteOnForge(p.seen) }},
	{plan.Stances{plan.Applying}, func(p drafted) []manifest.Finding { return notesOnReleases(p.seen) }},
	{nil, func(p drafted) []manifest.Finding { return noteRebuilt(p.seen.Ground) }},
	{plan.OnCluster, func(p drafted) []manifest.Finding { return noteOnTrailers(p.seen.Given) }},
	{nil, func(p drafted) []manifest.Finding {
		return unknownConversions(slices.Concat(vendoredMoves(p.Plan), p.seen.CopiedMoves))
	}},
}

// notesOnSteps are about steps, as the guards left them.
var notesOnSteps = []noting{
	{plan.Ending, func(p drafted) []manifest.Finding { return notesOnEnding(p.Plan, p.seen.Ground) }},
	{plan.OnCommit, func(p drafted) []manifest.Finding { return notesOnLost(p.Plan, p.seen.Ground) }},
}

// A cause is a reason to store the inventory even if no object is written.
type cause struct {
	in    plan.Stances
	name  string
	holds func(drafted) bool
}

// unstored are all of them.
var unstored = []cause{
	{nil, "the inventory was lost", func(p drafted) bool { return p.seen.Inventory.Rebuilt }},
	{nil, "CRDs have another owner", func(p drafted) bool {
		return len(p.seen.Inventory.Entries) > 0 && p.seen.Inventory.Owner != p.Want.Owner
	}},
	{nil, "an approval was taken back", func(p drafted) bool { return forgets(p.Plan, p.seen.Inventory.Grants) }},
	{plan.Following, "the commit or its source is another", func(p drafted) bool { return record.LearnsSource(p.Plan, p.seen.Inventory) }},
	{nil, "a file or a policy has moved", func(p drafted) bool { return p.moves }},
	{plan.Following, "a tag names another image", func(p drafted) bool { return record.LearnsImages(p.Plan, p.seen.Inventory) }},
	{nil, "a deletion has begun", func(p drafted) bool { return p.begins }},
	{nil, "an object has two identities", func(p drafted) bool {
		return slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return record.IsOld(s, p.seen.Inventory) })
	}},
	{plan.Ending, "the sync owns nothing any more", func(p drafted) bool { return len(p.Steps) == 0 && p.Version != "" }},
	{nil, "the commit declares other objects", func(p drafted) bool { return record.LearnsUndeclared(p.Plan, p.seen.Inventory) }},
	{nil, "a CRD belongs to a definition", func(p drafted) bool { return unrecorded(p.Plan, p.seen.Inventory) }},
}

// follow makes updates of unchanged objects into which references copy values that other updates of this plan change.
func (p *drafted) follow(seen facts.Observed) {
	copies := map[manifest.ID]facts.Asked{}
	for _, a := range seen.Asked {
		if a.Resolved.References != nil {
			copies[a.ID] = a
		}
	}
	if len(copies) == 0 {
		return
	}
	steps := p.ByID()
	p.kept = map[manifest.ID]plan.Step{}
	for i, s := range p.Steps {
		a := copies[s.ID]
		if !isAsWanted(s) || s.Policy.Observes() || !changes(a.Resolved, steps, seen.Live) {
			continue
		}
		p.kept[s.ID] = s
		s.Sends = func() (*unstructured.Unstructured, error) { return demand.Sent(seen.Inventory.Sync, a.Object) }
		s.Action, s.Unready, s.Renew, s.Err = plan.Update, false, inventory.Entry{}, cmp.Or(s.Err, a.Resolved.Problem)
		p.Steps[i] = s
	}
}

// isAsWanted reports whether a step keeps an object because nothing differs, and not because a guard keeps it.
func isAsWanted(s plan.Step) bool { return s.Action == plan.Keep && s.Guard == "" }

// withdraw keeps the objects of such updates if a guard keeps the other updates from being made.
func (p *drafted) withdraw(seen facts.Observed) {
	if len(p.kept) == 0 {
		return
	}
	steps := p.ByID()
	for i, s := range p.Steps {
		kept, follows := p.kept[s.ID]
		if follows && s.Action == plan.Update && !changes(p.asked[s.ID].Resolved, steps, seen.Live) {
			p.Steps[i] = kept
		}
	}
}

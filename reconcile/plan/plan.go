// Package plan decides what a pass does: want × seen × owned → steps. It is pure.
//
//	want ─┐
//	seen ─┼─ Ask … Found ─► Observed ─ Compute ─ Open? ─ answers ─ Compute ─► Plan ─► Intent … Settled
//	owned ┘
package plan

import (
	"cmp"
	"errors"
	"slices"
	once "sync"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/lint"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The codes of updates.
const (
	ManagedFieldsMigrate Code = "ManagedFieldsMigrate" // the unserved versions in managed fields
	FinalizerLeft        Code = "FinalizerLeft"        // a pass that stopped left Headgate's finalizer
	TakenOver            Code = "TakenOver"            // the previous owner
)

// A Plan holds all decisions of a pass. The diff, the comment, the writes and the status all use this one value.
type Plan struct {
	Sync     inventory.Sync
	Want     render.Desired
	Steps    []Step             // in the order in which they are carried out
	Gone     []manifest.ID      // objects for the inventory to forget, because they do not exist any more or have another owner now
	Retained []string           // names of the definitions that are active but that the commit does not activate any more
	Notes    []manifest.Finding // findings from the cluster, in addition to those of the commit

	Leftovers []Leftover      // objects with leftovers that should be removed but are not
	Owned     int             // number of entries in the inventory that the plan was made from
	Version   string          // resourceVersion of that inventory
	Stance    Stance          // what the pass may do in its place
	Stale     bool            // the inventory must be stored, even if no object is written
	Effects   []Effect        // the expected effects of Crossplane, or of another tool
	Bumps     []Bump          // in a comparison: packages whose images differ
	Held      inventory.Holds // what the previous pass held
	Rulings   []Ruling        // in a comparison: on the commit as a whole
	Approval  *Approval       // the approval that would let the held steps pass; nil if no approval can

	Memory
	Approvals

	Unanswered  []question.Any                    // what guards ask; Open returns each question once
	Policies    PoliciesInForce                   // in force after the writes, but before the prunes
	WasActive   map[string]bool                   // definitions that Crossplane had active at first
	Dependants  map[manifest.ID][]manifest.ID     // dependants of objects that may be pruned
	Absent      []manifest.ID                     // the part of Gone that does not exist any more
	PrunesLater bool                              // a later round of the pass sends the prunes
	UndoneSince map[manifest.ID]metav1.Time       // since when earlier passes found creates and updates undone
	AskAgain    func(of *Plan) (approved Lifting) // returns which holds of a later state of the plan are approved
	Places      Homes                             // completes IDs with their namespaces in the cluster
}

// A Memory is what a plan adds to the record of the inventory.
type Memory struct {
	Record *inventory.Record // to store after the plan was carried out; nil leaves the stored one unchanged
	News   bool              // Record differs from the stored one
	Known  map[string]bool   // names of in-tree packages' definitions, and of existing CRDs
	Lost   []LostPackage     // packages of applied commits that are not packages in this one any more

	Behind     map[manifest.ID]inventory.Entry // entries of the CRDs that stay when their MRDs are deleted, by MRD
	Undeclared map[manifest.ID]bool            // owned objects that the commit does not declare; nil if the plan is not for a commit
	Partial    bool                            // the plan is for some entries of the inventory and not for a commit: owner and grants stay

	Forwards  bool // a commit must descend from the last applied one
	Rewritten bool // this commit does not, and no person has approved a change of it
	TakesOver bool // another source replaces the recorded one
}

// Approvals are the approvals that a plan was made with, and those that it uses.
type Approvals struct {
	Given         approval.Given    // the approvals in the places that were read
	GrantedBefore []inventory.Grant // the grants in the inventory
	Spent         []inventory.Grant // the grants by this plan, of approvals that were not used before
	Now           metav1.Time
	Rebuilt       bool // the inventory with the grants was lost and has not been stored again
}

// Findings returns the problems of the commit, including the kinds that it uses although they stay inactive.
func (p Plan) Findings() []manifest.Finding {
	return slices.Concat(p.Want.Findings, lint.Findings(p.Want, p.Retained...))
}

// Open returns the questions that guards still need answered, without duplicates. With the answers, call Compute again.
func (p Plan) Open() []question.Any { return question.Unique(p.Unanswered) }

// byID returns the steps by object.
func (p Plan) byID() map[manifest.ID]Step {
	steps := make(map[manifest.ID]Step, len(p.Steps))
	for _, s := range p.Steps {
		steps[s.ID] = s
	}
	return steps
}

// Writes reports whether carrying out the plan changes anything in the cluster.
func (p Plan) Writes() bool {
	return slices.ContainsFunc(p.Steps, Step.Writes)
}

// Waits reports whether an unchanged object still has to become ready.
func (p Plan) Waits() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Unready })
}

// Remembers reports whether the inventory must be stored although no object is written.
func (p Plan) Remembers() bool {
	return p.Stale || p.News || len(p.Gone) > 0 || p.Stance.In(Ending) && len(p.Steps) == 0 && p.Version != "" ||
		slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Renew.UID != "" })
}

// Count returns the number of steps with this action.
func (p Plan) Count(a Action) int {
	return len(p.Select(func(s Step) bool { return s.Action == a }).Steps)
}

// Compute returns the plan for the commit that was passed to Ask. Every prune passes every guard. The order of guards only
// determines which of them is named.
func Compute(seen Observed, guards ...Guard) (Plan, error) {
	drafted, err := decide(seen)
	if err != nil {
		return Plan{}, err
	}
	return expect(await(rule(drafted, guards))), nil
}

// want adds the step for an object that the commit wants, or what is known instead.
func (p *drafted) want(a Asked, seen Observed, kinds *coming) error {
	s, ok, err := stepFor(a, seen, kinds)
	if err != nil {
		return err
	}
	entry, owned := seen.Inventory.Entries[a.ID]
	if seen.takesBack(a) {
		switch live := seen.Objects[a.ID]; {
		case live != nil:
			s = s.pruneInstead(live, entry)
		case seen.Unreadable[a.ID.GroupKind()] == nil: // deleted by another writer
			p.Gone = append(p.Gone, a.ID)
			return nil
		}
	}
	if !a.Retained.None() {
		p.Retained = append(p.Retained, a.Definition)
	}
	switch {
	case ok:
		p.Steps = append(p.Steps, s)
	case seen.hides(a.ID) != nil: // its API is optional, and we own the object
		p.unreachable = append(p.unreachable, p.outOfReach(a.ID, seen))
	case a.Policy.Observes():
		p.Effects = append(p.Effects, notThere(a))
	}
	if owned && (seen.leavesToPackage(a) || seen.gaveAway(a)) {
		p.Gone = append(p.Gone, a.ID)
	}
	return nil
}

// takesBack reports whether a retained definition is deactivated. A paused policy keeps the definitions that it names.
func (o Observed) takesBack(a Asked) bool {
	return !a.Retained.None() && !a.Paused && o.Deactivates(o.Want) && o.Want.Pauses(a.ID.Name) == ""
}

// unwanted adds steps for owned objects that the commit does not want any more, or forgets the objects. If references set the names
// of a kind, an object whose name has changed is only forgotten, and an object without a name stays.
func (p *drafted) unwanted(wanted map[manifest.ID]bool, renamed, nameless map[schema.GroupKind]bool, seen Observed) {
	var left []string
	uids := wantedUIDs(seen)
	for id, e := range seen.Inventory.Entries {
		live, exists := seen.Objects[id]
		same := uids[seen.uidOf(id)]
		switch {
		case wanted[id], e.Policy == inventory.ObservableAndDeletable && nameless[id.GroupKind()]:
		case seen.hides(id) != nil && e.Policy != inventory.Observable:
			p.unreachable = append(p.unreachable, p.outOfReach(id, seen))
		case same != (manifest.ID{}):
			p.Steps = append(p.Steps, prune(id, e, live).keptAs(same))
		case !exists:
			p.Gone, p.Absent = append(p.Gone, id), append(p.Absent, id)
		case e.IsAnother(live): // ours is gone
			p.Gone = append(p.Gone, id)
		case seen.asksRelease(id, live).None() && p.keepLeft(id, e, live, wanted, seen):
		case p.remove(id, live, renamed[id.GroupKind()], seen):
			left = append(left, id.Name)
		}
	}
	slices.SortFunc(p.Gone, manifest.ID.Compare)
	if slices.Sort(left); len(left) > 0 {
		p.Notes = append(p.Notes, noteLeft(left))
	}
}

// remove adds the step that prunes or releases an object, or forgets it. isRenamed is set if a reference sets the names of its kind. It
// reports whether a CRD is left without an owner.
func (p *drafted) remove(id manifest.ID, live *metav1.PartialObjectMetadata, isRenamed bool, seen Observed) (isLeft bool) {
	e := seen.Inventory.Entries[id]
	handedOver := p.handedOver(id, live, seen.Inventory)
	isForgotten := handedOver && p.Stance.In(Following) || e.Policy == inventory.Observable || e.Policy == inventory.ObservableAndDeletable && isRenamed || e.NeverApplied(live)
	if isForgotten && !slices.Contains(live.GetFinalizers(), ProtectFinalizer) {
		p.Gone = append(p.Gone, id)
		return p.leaves(id)
	}
	stays := handedOver || isForgotten
	if why := seen.released(id, live); !why.None() && !stays {
		p.release(id, why, seen)
		return false
	}
	gone := prune(id, e, live)
	gone.Serves = isServed(id, id.Name, seen)
	s, some := p.leaving(gone, live, stays)
	if !some {
		p.Gone = append(p.Gone, id)
		return false
	}
	s.Earlier = e.Undeclared && e.RemovedBy != p.Want.Revision
	p.begins = p.begins || s.Deleting && !e.Deleting()
	p.Steps = append(p.Steps, s)
	return false
}

// handedOver reports whether an object leaves the inventory without being pruned, because the owner of CRDs has changed, or because
// a package installs the object now.
func (p Plan) handedOver(id manifest.ID, live metav1.Object, have inventory.Inventory) bool {
	if have.Owner != "" && have.Owner != p.Want.Owner && (id.IsCRD() || crossplane.IsMRD(id) || id == crossplane.MRAP(id.Name) || crossplane.IsPackage(id)) {
		return true
	}
	if isInstalled(live) && slices.ContainsFunc(p.Want.Left, func(l render.Left) bool { return l.ID == id }) {
		return true
	}
	if p.Want.Owner != render.OwnerCrossplane || !id.IsCRD() {
		return false
	}
	return isInstalled(live) || slices.ContainsFunc(p.Want.Definitions, func(d render.DecidedDefinition) bool { return d.Name == id.Name })
}

// leaves reports whether a CRD that is handed over to Crossplane will have no owner, because its definition is not active.
func (p Plan) leaves(id manifest.ID) bool {
	return p.Want.Owner == render.OwnerCrossplane && id.IsCRD() &&
		slices.ContainsFunc(p.Want.Definitions, func(d render.DecidedDefinition) bool { return d.Name == id.Name && !d.Active })
}

// isCatalogue reports whether an object comes with a package of the commit and a package revision controls the live object. The
// copy in the commit then only serves as a catalogue.
func (o Observed) isCatalogue(a Asked) bool {
	live, exists := o.Objects[a.ID]
	return exists && a.Package != "" && isInstalled(live)
}

// leavesToPackage reports whether an object is not applied because it comes with an installed package.
func (o Observed) leavesToPackage(a Asked) bool {
	return o.isCatalogue(a) && !a.Paused && (o.Stance == Looking || !a.Policy.Observes())
}

// stepFor returns the step for one wanted object. It returns false if there is no step, for example for an optional object whose API
// is not served.
func stepFor(a Asked, seen Observed, kinds *coming) (Step, bool, error) {
	live, exists := seen.Objects[a.ID]
	s := stepOf(a, seen)
	if err := seen.Unreadable[a.ID.GroupKind()]; err != nil && !a.Paused {
		return s.unreadable(a, seen, err), true, nil
	}
	if a.Policy.Observes() && !a.Paused && seen.Stance != Looking {
		if seen.Stance.In(OnCommit) {
			return s.observeCommit(a, seen), true, nil
		}
		return s.observe(a, seen, live), exists && !a.resolved.nameless, nil
	}
	s.choose(a, seen)
	if !s.writes() || exists && !seen.Refused(a.ID, live).None() {
		return s, true, nil
	}
	s.Err = cmp.Or(s.Err, a.resolved.problem)
	trial, of := seen.Trials[a.ID], seen.Inventory.Sync
	s.Sends = func() (*unstructured.Unstructured, error) {
		if trial.Sent != nil {
			return trial.Sent.DeepCopy(), nil
		}
		return Sent(of, a.Object)
	}
	s.Vendored = seen.Stance.In(OnCommit) && a.Package != "" && kinds.want.Owner == render.OwnerCrossplane
	s.Whole, s.Compared = trial.Whole, trial.Schema
	if seen.Stance != Looking { // otherwise, only the differing fields are there to compare
		s.Difference = once.OnceValue(s.compareSchema)
	}
	first, err := s.needs(kinds)
	switch {
	case errors.Is(err, ErrUnserved) && a.Optional:
		return Step{}, false, nil
	case errors.Is(err, ErrUnserved):
		s.Err = cmp.Or(s.Err, seen.hides(a.ID), err)
	case err != nil:
		return Step{}, false, err
	}
	s.Needs, s.Waits, s.AwaitsAny = first.crd, slices.Concat(s.Waits, first.waits), first.on
	if len(a.Because) > 0 || seen.Upstream.Definitions[a.Definition].Active { // otherwise, Crossplane makes no CRD for it
		s.Err = cmp.Or(s.Err, a.Problem)
	}
	return s, true, nil
}

// unreadable returns the step for an object that may exist but could not be read. It sends nothing.
func (s Step) unreadable(a Asked, seen Observed, why error) Step {
	s.Action, s.Err = Create, why
	if _, owned := seen.Inventory.Entries[a.ID]; owned {
		s.Action = Update
	}
	s.Sends = func() (*unstructured.Unstructured, error) { return Sent(seen.Inventory.Sync, a.Object) }
	return s
}

// stepOf returns the step for an object before any decision.
func stepOf(a Asked, seen Observed) Step {
	s := Step{
		ID:         a.ID,
		APIVersion: a.APIVersion,
		Origin:     a.Origin,
		Because:    a.Because,
		Definition: a.Definition != "",
		Packaged:   a.Package != "",
		Policy:     a.Policy,
		Cause:      Commit,
		Serves:     serves(a, seen),
		Write:      Write{Activates: a.Activates && !seen.Upstream.Definitions[a.ID.Name].Active && seen.Stance != Looking, Wants: a.approvable()},
		Digest:     seen.Digest(a.Object),
		Asks:       a.Asks,
	}
	if trial := seen.Trials[a.ID]; a.resolved.references != nil || trial.Live != nil {
		s.Hidden = a.resolved.hidden.And(seen.masks[a.ID])
		s.Hidden.Paths = append(slices.Clip(s.Hidden.Paths), secretPaths(trial.Live)...)
	}
	if !a.Retained.None() {
		s.Cause, s.Guard, s.Reason = Retain, Final, a.Retained
	}
	if live, exists := seen.Objects[a.ID]; exists {
		s.UID, s.ResourceVersion, s.Terminating = live.GetUID(), live.GetResourceVersion(), live.GetDeletionTimestamp() != nil
	}
	return s
}

// choose sets the action before the guards: create, update or keep.
func (s *Step) choose(a Asked, seen Observed) {
	live, exists := seen.Objects[a.ID]
	trial, tried := seen.Trials[a.ID]
	switch asWanted := trial.After == nil && trial.Err == nil; {
	case a.Paused:
		s.Action = Keep
	case seen.isCatalogue(a), seen.gaveAway(a):
		s.Action = Update // a guard retains it
	case !exists:
		s.create(a, seen)
	case !seen.Refused(a.ID, live).None():
		s.Action, s.Err = Update, ReasonError{seen.Refused(a.ID, live)} // a guard holds it
	case len(trial.Migrates) > 0:
		s.Action, s.Live, s.After, s.Migrates, s.Activates = Update, trial.Live, trial.After, trial.Migrates, false
		s.Reason = ManagedFieldsMigrate.With(trial.Migrates)
	case len(a.resolved.missing) > 0:
		s.Action = Update
	case trial.After == nil && leftHeld(a.Object, live):
		s.Action, s.Err, s.Frees, s.Reason = Update, trial.Err, true, FinalizerLeft.With()
	case s.Activates, !asWanted:
		s.update(a, live, seen)
	case s.Terminating && seen.Stance.In(Writing):
		s.Action, s.Waits = Create, []Reason{AwaitsOwnEnd.With(WhyDeleting(live))}
		if entry, owned := seen.Inventory.Entries[a.ID]; owned && entry.UID == s.UID && !entry.Deleting() {
			s.Cause = Drift // another writer deletes it
		}
	default:
		s.keep(a, live, tried, seen)
	}
}

// create chooses for an object that does not exist.
func (s *Step) create(a Asked, seen Observed) {
	s.Action = Create
	if len(a.resolved.missing) > 0 {
		return
	}
	s.After, s.Err = seen.Trials[a.ID].After, seen.Trials[a.ID].Err
	if entry := seen.Inventory.Entries[a.ID]; entry.UID != "" && !entry.Deleting() && !seen.Inventory.Rebuilt {
		s.Cause = Drift // we applied it, and another writer has deleted it
	}
}

// update chooses for an object that differs, or that activates a definition.
func (s *Step) update(a Asked, live metav1.Object, seen Observed) {
	trial, isMine := seen.Trials[a.ID], seen.Mine(a.ID, live)
	s.Action, s.Live, s.After, s.Err = Update, trial.Live, trial.After, trial.Err
	s.adopt(trial, isMine)
	if s.Activates {
		return
	}
	s.Takes = trial.TakenBy
	// We have sent exactly this before. If fields are ignored, the update may only change the ownership of fields.
	entry, owned := seen.Inventory.Entries[a.ID]
	if owned && entry.Digest == s.Digest && (trial.Sent == nil || trial.Err != nil || len(s.Changes()) > 0) {
		s.Cause = Drift
	}
	if by := seen.ClaimOn(a.ID, live).By; by != "" && !isMine {
		s.Reason = And(TakenOver.With(by), s.Reason)
	}
}

// keep chooses for an object that is as wanted. If it was not tried, its metadata proves that.
func (s *Step) keep(a Asked, live metav1.Object, tried bool, seen Observed) {
	entry, owned := seen.Inventory.Entries[a.ID]
	s.Action, s.Unready = Keep, entry.Unready()
	now, ignored := entry, seen.Terms.Ignore.Paths(a.ID)
	switch {
	case tried:
		now = Applied(live, s.Digest, ignored...).Following(entry)
		now.Policy = a.Policy
	case owned: // an older version did not record all of it
		if now.Foreign = ownership.SentMarks(live); now.Fields == "" {
			now.Fields = diff.OwnFields(live, ignored)
		}
	}
	if shown(now) != shown(entry) {
		s.Renew = now
	}
	if s.Unready {
		s.Renew.Reconcile = entry.Reconcile
	}
}

// shown returns the fields of an entry that a look at the object shows.
func shown(e inventory.Entry) inventory.Entry {
	return inventory.Entry{UID: e.UID, Digest: e.Digest, Mark: e.Mark, Policy: e.Policy, Foreign: e.Foreign, Fields: e.Fields, Rebuilt: e.Rebuilt, Releasing: e.Releasing}
}

// serves reports whether the declared kind may have objects. In a comparison of two commits, a kind that only the second one
// activates has none.
func serves(a Asked, seen Observed) bool {
	return len(a.Because) > 0 && seen.Stance.In(OnCluster) || isServed(a.ID, a.Definition, seen) || seen.isPresent(a.ID)
}

// isServed reports whether the kind that an object declares is served now. definition is the name of the object's definition, if it
// has one.
func isServed(id manifest.ID, definition string, seen Observed) bool {
	return id.IsCRD() || crossplane.IsXRD(id) || seen.Upstream.Definitions[definition].Active
}

// prune returns the step for an owned object that the commit does not want, before the guards.
func prune(id manifest.ID, e inventory.Entry, live *metav1.PartialObjectMetadata) Step {
	return Step{
		Action:          Prune,
		Cause:           Commit,
		ID:              id,
		APIVersion:      live.APIVersion,
		UID:             live.GetUID(),
		ResourceVersion: live.GetResourceVersion(),
		Digest:          e.Digest,
		Removal:         Removal{Webhooks: webhooksOf(live), Protected: slices.Contains(live.GetFinalizers(), ProtectFinalizer)},
		Terminating:     live.GetDeletionTimestamp() != nil,
	}
}

func inOrder(a, b Step) int {
	return cmp.Or(
		cmp.Compare(a.Tier(), b.Tier()),
		a.ID.Compare(b.ID),
	)
}

// ErrMoved means that the inventory has changed since the plan was made, so that a new plan is needed.
var ErrMoved = errors.New("the inventory changed since the plan was made")

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
	"headgate.dev/headgate/reconcile/installed"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
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
	Offline   bool            // the plan compares two commits, without a cluster
	Looks     bool            // the sync only looks: nothing in the plan writes
	Ends      Ending          // how the sync ends, if it does
	Stale     bool            // the inventory must be stored, even if no object is written
	Effects   []Effect        // the expected effects of Crossplane, or of another tool
	Bumps     []Bump          // in a comparison: packages whose images differ
	Held      inventory.Holds // what the previous pass held
	Approval  *Approval       // the approval that would let the held steps pass; nil if no approval can

	open     []Question
	policies PoliciesInForce   // in force after the plan's writes, but before its prunes
	lost     []LostPackage     // packages of applied commits that are not packages in this one any more
	news     bool              // record differs from the stored one
	record   *inventory.Record // to store after the plan was carried out; nil leaves the stored one unchanged
	known    map[string]bool   // names of in-tree packages' definitions, and of existing CRDs
	first    order             // the declared dependencies of objects

	at         map[manifest.ID]int           // index of Steps, once all of them are there
	dependants map[manifest.ID][]manifest.ID // dependants of objects that may be pruned

	absent    []manifest.ID // the part of Gone that does not exist any more
	continues bool          // a later round sends its prunes

	partial bool // the plan is for some entries of the inventory and not for a commit: owner and grants stay

	unreachable []Step // for owned objects whose kind is not served

	was     map[string]bool // definitions that Crossplane had active at first
	now     metav1.Time
	given   approval.Given    // the approvals in the places that were read
	granted []inventory.Grant // the grants in the inventory
	spent   []inventory.Grant // the grants by this plan, of approvals that were not used before
	clear   string            // the digest that approves the removal of leftovers; "" if there are none

	behind map[manifest.ID]inventory.Entry // entries of the CRDs that stay when their MRDs are deleted, by MRD

	undeclared map[manifest.ID]bool // owned objects that the commit does not declare; nil if the plan is not for a commit

	forwards  bool // a commit must descend from the last applied one
	rewritten bool // this commit does not, and no person has approved a change of it
	takesOver bool // another source replaces the recorded one

	rebuilt bool // the inventory with the grants was lost and has not been stored again

	undoneSince map[manifest.ID]metav1.Time       // since when earlier passes found creates and updates undone
	ask         func(of *Plan) (approved lifting) // asks again for the approval of what a plan holds

	homes homes // to complete IDs with their namespaces in the cluster
}

// Findings returns the problems of the commit, including the kinds that it uses although they stay inactive.
func (p Plan) Findings() []manifest.Finding {
	return slices.Concat(p.Want.Findings, lint.Coverage(p.Want, p.Retained...))
}

// Open returns the questions that guards still need answered, without duplicates. With the answers, call Compute again.
func (p Plan) Open() []Question {
	var open []Question
	asked := make(map[Question]bool, len(p.open))
	for _, q := range p.open {
		if !asked[q] {
			asked[q] = true
			open = append(open, q)
		}
	}
	return open
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
	return p.Stale || p.news || len(p.Gone) > 0 || p.Ends != NoEnding && len(p.Steps) == 0 && p.Version != "" ||
		slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Renew.UID != "" })
}

// Count returns the number of steps with this action.
func (p Plan) Count(a Action) int {
	n := 0
	for _, s := range p.Steps {
		if s.Action == a {
			n++
		}
	}
	return n
}

// Compute returns the plan for the commit that was passed to Ask. Every prune passes every guard. The order of guards only
// determines which of them is named.
func Compute(seen Observed, guards ...Guard) (Plan, error) {
	if seen.commit == nil {
		return Plan{}, errNotAsked
	}
	want, asked := seen.Want, seen.Asked
	var err error
	if seen.takesOver, err = seen.checkSource(want.Source); err != nil {
		return Plan{}, err
	}
	if seen.rewritten, err = seen.checkHistory(); err != nil {
		return Plan{}, err
	}
	seen.Approvals, seen.first = seen.withGit(want), seen.isFirst()
	p := Plan{
		Sync:    seen.Inventory.Sync,
		Want:    want,
		Owned:   len(seen.Inventory.Entries),
		Version: seen.Inventory.ResourceVersion,
		Offline: seen.Offline,
		Looks:   seen.Looks,
		Ends:    seen.Ends,
		Stale:   seen.Inventory.Rebuilt || seen.Inventory.Owner != want.Owner && len(seen.Inventory.Entries) > 0,
		Effects: slices.Clone(seen.Effects),
		Bumps:   seen.Bumps,
		Held:    seen.Inventory.Held,
		given:   seen.Approvals.At(seen.Now),
		now:     seen.Now,
		granted: seen.Inventory.Grants,
		rebuilt: seen.isLost(),
		homes:   homesOf(seen),

		forwards: seen.Terms.FastForward, rewritten: !seen.Rewritten().None(), takesOver: seen.takesOver,
	}
	p.Stale = p.Stale || !seen.Offline && (p.forgets(seen.Inventory.Grants) || p.recordsSource(seen.Inventory))
	p.undoneSince, p.ask = seen.Inventory.Undone, seen.asking(guards)
	first, err := orderOf(seen)
	if err != nil {
		return Plan{}, err
	}
	wanted := make(map[manifest.ID]bool, len(asked))
	// Kinds with objects whose names come from references. A changed or missing value must not delete such an object.
	renamed, nameless := map[schema.GroupKind]bool{}, map[schema.GroupKind]bool{}
	kinds := newComing(seen)
	for _, a := range asked {
		wanted[a.ID] = true
		if !a.Retained.None() {
			p.Retained = append(p.Retained, a.Definition)
		}
		s, ok, err := decide(a, seen, kinds)
		if err != nil {
			return Plan{}, err
		}
		if !a.Retained.None() && seen.Deactivates(want) && !a.Paused && want.Pauses(a.ID.Name) == "" && !seen.Looks {
			entry, live := seen.Inventory.Entries[a.ID], seen.Objects[a.ID]
			if live == nil && seen.Unreadable[a.ID.GroupKind()] != nil {
				p.Steps = append(p.Steps, s)
				continue
			}
			if live == nil { // deleted by another writer
				p.Gone = append(p.Gone, a.ID)
				p.Retained = p.Retained[:len(p.Retained)-1]
				continue
			}
			s = s.pruneInstead(live, entry)
		}
		switch {
		case ok:
			p.Steps = append(p.Steps, s)
		case seen.hides(a.ID) != nil: // its API is optional, and we own the object
			p.unreachable = append(p.unreachable, p.outOfReach(a.ID, seen))
		case a.Policy.Observes():
			p.Effects = append(p.Effects, notThere(a))
		}
		if a.resolved.names {
			renamed[a.ID.GroupKind()] = true
			nameless[a.ID.GroupKind()] = nameless[a.ID.GroupKind()] || a.resolved.nameless
		}
		if _, owned := seen.Inventory.Entries[a.ID]; owned && (seen.leavesToPackage(a) || seen.gaveAway(a)) {
			p.Gone = append(p.Gone, a.ID)
		}
	}
	p.Stale = p.Stale || p.locates(seen.Inventory)
	if !seen.Offline && !seen.Looks && p.Ends == NoEnding {
		p.undeclared = undeclared(seen.Inventory, wanted)
	}
	p.note(first, seen)
	p.unwanted(wanted, renamed, nameless, seen)
	if seen.Looks {
		p.leave(seen)
	}
	p.deactivate(seen)
	p.fields(seen)
	p.leftovers(seen)
	slices.SortStableFunc(p.Steps, inOrder) // guards must see the steps in the order of writing
	p.first = first
	p.lost = lostPackages(want, seen)
	p.guard(seen, guards)
	p.noteRewritten(seen)
	p.awaitOpeners(seen)
	p.Steps = append(p.Steps, p.unreachable...) // guards cannot judge them
	slices.SortStableFunc(p.Steps, inOrder)
	var uncounted []Question
	p.Effects, uncounted = counted(p.Effects, seen)
	p.open = append(p.open, uncounted...)
	p.indexDependants(first, seen)
	p.settle(seen, guards)
	p.keepCRDs(seen)
	p.awaitDependants(seen)
	p.awaitPeers(seen)
	p.arrange(first, seen)
	p.concludeDeactivation(guards)
	p.policies = p.inForce(seen)
	p.was = seen.Upstream.active()
	if p.Ends == Delete {
		p.releaseRetained()
	}
	p.Notes = append(p.Notes, p.notesOnEnding(seen)...)
	p.Notes = append(p.Notes, p.notesOnPeers(seen)...)
	if seen.Offline {
		p.Effects = append(p.Effects, activated(want)...)
	} else {
		p.Effects = append(p.Effects, withoutThose(expected(want, seen.Upstream, p.Steps, p.policies), p.Effects)...)
	}
	slices.SortStableFunc(p.Steps, inOrder)
	p.remember(seen)
	p.Stale = p.Stale || p.learnsUndeclared(seen.Inventory)
	p.Stale = p.Stale || !seen.Offline && !seen.Looks && p.unrecorded(seen.Inventory)
	return p.failDependants(nil), nil
}

// note adds findings about effects of the commit that the author may not expect.
func (p *Plan) note(first order, seen Observed) {
	want := p.Want
	if names := madeByCrossplane(seen); len(names) > 0 {
		p.Notes = append(p.Notes, noteOwner(names))
	}
	if names := unexplained(want, seen.Upstream); len(names) > 0 {
		p.Retained = names
		if !seen.Terms.Deactivate { // otherwise, each of them has a step that explains it
			p.Notes = append(p.Notes, noteUnexplained(names, seen))
		}
	}
	p.Notes = append(p.Notes, unprotected(first, seen)...)
	p.Notes = append(p.Notes, NoteSkippedPolicy(want, seen)...)
	p.Notes = append(p.Notes, copies(seen)...)
	p.Notes = append(p.Notes, installed.Differences(want, seen.Upstream.Definitions, seen.Upstream.Packages)...)
	p.Notes = append(p.Notes, installed.Upgrades(want, seen.Upstream.Packages)...)
	p.Notes = append(p.Notes, seen.Notes...)
	p.Notes = append(p.Notes, seen.notesOnReleases()...)
	p.Notes = append(p.Notes, seen.noteRebuilt()...)
	p.Notes = append(p.Notes, seen.noteOnTrailers()...)
	p.Notes = append(p.Notes, unknownConversions(slices.Concat(p.vendoredMoves(), seen.CopiedMoves))...)
}

// unwanted adds steps for owned objects that the commit does not want any more, or forgets the objects. If references set the names
// of a kind, an object whose name has changed is only forgotten, and an object without a name stays.
func (p *Plan) unwanted(wanted map[manifest.ID]bool, renamed, nameless map[schema.GroupKind]bool, seen Observed) {
	var left []string
	uids := wantedUIDs(seen)
	for id, e := range seen.Inventory.Entries {
		if wanted[id] || e.Policy == inventory.ObservableAndDeletable && nameless[id.GroupKind()] {
			continue
		}
		live, exists := seen.Objects[id]
		if seen.hides(id) != nil && e.Policy != inventory.Observable {
			p.unreachable = append(p.unreachable, p.outOfReach(id, seen))
			continue
		}
		if same := uids[seen.uidOf(id)]; same != (manifest.ID{}) {
			s := prune(id, e, live).keptAs(same)
			p.Steps, p.Stale = append(p.Steps, s), p.Stale || s.isOld(seen.Inventory)
			continue
		}
		if exists && e.IsAnother(live) { // ours is gone
			p.Gone = append(p.Gone, id)
			continue
		}
		if exists && seen.asksRelease(id, live).None() && p.keepLeft(id, e, live, wanted, seen) {
			continue
		}
		released := exists && p.handedOver(id, live, seen.Inventory)
		forgotten := released && p.Ends == NoEnding || e.Policy == inventory.Observable || e.Policy == inventory.ObservableAndDeletable && renamed[id.GroupKind()] ||
			exists && e.NeverApplied(live)
		if !exists {
			p.absent = append(p.absent, id)
		}
		if !exists || forgotten && !slices.Contains(live.GetFinalizers(), ProtectFinalizer) {
			p.Gone = append(p.Gone, id)
			if exists && p.leaves(id) {
				left = append(left, id.Name)
			}
			continue
		}
		if why := seen.released(id, live); !why.None() && !released && !forgotten {
			p.release(id, why, seen)
			continue
		}
		gone := prune(id, e, live)
		gone.Serves = isServed(id, id.Name, seen)
		s, some := p.leaving(gone, live, released || forgotten)
		if !some {
			p.Gone = append(p.Gone, id)
			continue
		}
		s.earlier = e.Undeclared && e.RemovedBy != p.Want.Revision
		p.Stale = p.Stale || s.Deleting && !e.Deleting()
		p.Steps = append(p.Steps, s)
	}
	slices.SortFunc(p.Gone, manifest.ID.Compare)
	if slices.Sort(left); len(left) > 0 {
		p.Notes = append(p.Notes, noteLeft(left))
	}
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
	return o.isCatalogue(a) && !a.Paused && (o.Looks || !a.Policy.Observes())
}

// decide returns the step for one wanted object. It returns false if there is no step, for example for an optional object whose API
// is not served.
func decide(a Asked, seen Observed, kinds *coming) (Step, bool, error) {
	live, exists := seen.Objects[a.ID]
	s := stepOf(a, seen)
	if err := seen.Unreadable[a.ID.GroupKind()]; err != nil && !a.Paused {
		return s.unreadable(a, seen, err), true, nil
	}
	if a.Policy.Observes() && !a.Paused && !seen.Looks {
		return s.observe(a, seen, live), exists && !a.resolved.nameless || seen.Offline, nil
	}
	s.choose(a, seen)
	if s.Action != Create && s.Action != Update || exists && !seen.Refused(a.ID, live).None() {
		return s, true, nil
	}
	s.Err = cmp.Or(s.Err, a.resolved.problem)
	trial, of := seen.Trials[a.ID], seen.Inventory.Sync
	s.object = func() (*unstructured.Unstructured, error) {
		if trial.Sent != nil {
			return trial.Sent.DeepCopy(), nil
		}
		return Sent(of, a.Object)
	}
	s.vendored = seen.Offline && a.Package != "" && kinds.want.Owner == render.OwnerCrossplane
	s.whole, s.compared = trial.Whole, trial.Schema
	if !seen.Looks { // otherwise, only the differing fields are there to compare
		s.schema = once.OnceValue(s.compareSchema)
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
	s.Needs, s.Waits, s.awaits = first.crd, slices.Concat(s.Waits, first.waits), first.on
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
	s.object = func() (*unstructured.Unstructured, error) { return Sent(seen.Inventory.Sync, a.Object) }
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
		Write:      Write{Activates: a.Activates && !seen.Upstream.Definitions[a.ID.Name].Active && !seen.Looks, wants: a.approvable()},
		Digest:     seen.Digest(a.Object),
		Asks:       a.Asks,
	}
	if trial := seen.Trials[a.ID]; a.resolved.references != nil || trial.Live != nil {
		s.hidden = a.resolved.hidden
		s.hidden.Paths = append(slices.Clip(s.hidden.Paths), secretPaths(trial.Live)...)
	}
	if !a.Retained.None() {
		s.Cause, s.Guard, s.Reason = Retain, Final, a.Retained
	}
	if live, exists := seen.Objects[a.ID]; exists {
		s.UID, s.ResourceVersion, s.going = live.GetUID(), live.GetResourceVersion(), live.GetDeletionTimestamp() != nil
	}
	return s
}

// choose sets the action before the guards: create, update or keep.
func (s *Step) choose(a Asked, seen Observed) {
	entry, owned := seen.Inventory.Entries[a.ID]
	live, exists := seen.Objects[a.ID]
	trial, tried := seen.Trials[a.ID]
	switch {
	case a.Paused:
		s.Action = Keep
	case seen.isCatalogue(a), seen.gaveAway(a):
		s.Action = Update // a guard retains it
	case len(a.resolved.missing) > 0 && !exists:
		s.Action = Create
	case !exists:
		s.Action, s.After, s.Err = Create, trial.After, trial.Err
		if owned && entry.UID != "" && !entry.Deleting() && !seen.Inventory.Rebuilt {
			s.Cause = Drift // we applied it, and another writer has deleted it
		}
	case !seen.Refused(a.ID, live).None():
		s.Action, s.Err = Update, ReasonError{seen.Refused(a.ID, live)} // a guard holds it
	case len(trial.Migrates) > 0:
		s.Action, s.Live, s.After, s.Migrates, s.Activates = Update, trial.Live, trial.After, trial.Migrates, false
		s.Reason = ManagedFieldsMigrate.With(trial.Migrates)
	case len(a.resolved.missing) > 0:
		s.Action = Update
	case trial.After == nil && leftHeld(a.Object, live):
		s.Action, s.Err, s.frees, s.Reason = Update, trial.Err, true, FinalizerLeft.With()
	case s.going && trial.Err == nil && trial.After == nil && !s.Activates && !seen.Offline && !seen.Looks:
		s.Action, s.Waits = Create, []Reason{AwaitsOwnEnd.With(WhyDeleting(live))}
		if owned && entry.UID == s.UID && !entry.Deleting() {
			s.Cause = Drift // another writer deletes it
		}
	case !tried && !s.Activates:
		s.Action, s.Unready = Keep, entry.Unready()
		sent, fields := ownership.SentMarks(live), entry.Fields
		if fields == "" {
			fields = diff.OwnFields(live, seen.Terms.Ignore.Paths(a.ID))
		}
		if owned && (sent != entry.Foreign || fields != entry.Fields) && !seen.Offline && !seen.Looks {
			s.Renew, s.Renew.Foreign, s.Renew.Fields = entry, sent, fields // an older version did not record them
		}
	case s.Activates:
		s.Action, s.Live, s.After, s.Err = Update, trial.Live, trial.After, trial.Err
		s.adopt(trial, seen.Mine(a.ID, live))
	case trial.Err == nil && trial.After == nil:
		s.Action, s.Unready = Keep, entry.Unready()
		now := Applied(live, s.Digest, seen.Terms.Ignore.Paths(a.ID)...).Following(entry)
		now.Policy = a.Policy
		if now.UID != entry.UID || now.Digest != entry.Digest || now.Mark != entry.Mark || now.Policy != entry.Policy ||
			now.Foreign != entry.Foreign || now.Fields != entry.Fields || entry.Rebuilt || entry.Releasing {
			s.Renew = now
		}
		if s.Unready {
			s.Renew.Reconcile = entry.Reconcile
		}
	default:
		s.Action, s.Live, s.After, s.Err, s.Takes = Update, trial.Live, trial.After, trial.Err, trial.TakenBy
		s.adopt(trial, seen.Mine(a.ID, live))
		// We have sent exactly this before. If fields are ignored, the update may only change the ownership of fields.
		if owned && entry.Digest == s.Digest && (trial.Sent == nil || trial.Err != nil || len(s.Changes()) > 0) {
			s.Cause = Drift
		}
		if by := seen.ClaimOn(a.ID, live).By; by != "" && !seen.Mine(a.ID, live) {
			s.Reason = And(TakenOver.With(by), s.Reason)
		}
	}
}

// serves reports whether the declared kind may have objects. In a comparison of two commits, a kind that only the second one
// activates has none.
func serves(a Asked, seen Observed) bool {
	return len(a.Because) > 0 && !seen.Offline || isServed(a.ID, a.Definition, seen)
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
		Removal:         Removal{webhooks: webhooksOf(live), protected: slices.Contains(live.GetFinalizers(), ProtectFinalizer)},
		going:           live.GetDeletionTimestamp() != nil,
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

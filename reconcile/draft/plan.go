package draft

import (
	"cmp"
	"errors"
	"slices"
	once "sync"

	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Compute returns the plan for the commit that was passed to Ask. Every prune passes every guard. The order of guards only
// determines which of them is named.
func Compute(seen facts.Observed, guards ...Guard) (plan.Plan, error) {
	drafted, err := decide(seen)
	if err != nil {
		return plan.Plan{}, err
	}
	return expect(await(rule(drafted, guards))), nil
}

// want adds the step for an object that the commit wants, or what is known instead.
func (p *drafted) want(a facts.Asked, seen facts.Observed, kinds *coming) error {
	s, ok, err := stepFor(a, seen, kinds)
	if err != nil {
		return err
	}
	entry, owned := seen.Inventory.Entries[a.ID]
	if takesBack(seen, a) {
		switch live := seen.Objects[a.ID]; {
		case live != nil:
			s = p.pruneInstead(s, live, entry)
		case seen.Unread(a.ID) == nil: // deleted by another writer
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
	case seen.Hides(a.ID) != nil: // its API is optional, and we own the object
		p.unreachable = append(p.unreachable, p.outOfReach(a.ID, seen.Ground))
	case a.Policy.Observes():
		p.Effects = append(p.Effects, notThere(a))
	}
	if owned && (seen.LeavesToPackage(a) || seen.GaveAway(a)) {
		p.Gone = append(p.Gone, a.ID)
	}
	return nil
}

// takesBack reports whether a retained definition is deactivated. A paused policy keeps the definitions that it names.
func takesBack(o facts.Observed, a facts.Asked) bool {
	paused := a.Paused || o.Want.Pauses(a.ID.Name) != ""
	return !a.Retained.None() && !paused && Deactivates(o, o.Want)
}

// unwanted adds steps for owned objects that the commit does not want any more, or forgets the objects. If references set the names
// of a kind, an object whose name has changed is only forgotten, and an object without a name stays.
func (p *drafted) unwanted(wanted map[manifest.ID]bool, renamed, nameless map[schema.GroupKind]bool, seen facts.Observed) {
	var left []string
	uids := wantedUIDs(seen)
	for id, e := range seen.Inventory.Entries {
		live, exists := seen.Objects[id]
		same := uids[uidOf(seen.Live, id)]
		switch {
		case wanted[id], e.Policy == inventory.ObservableAndDeletable && nameless[id.GroupKind()]:
		case seen.Hides(id) != nil && e.Policy != inventory.Observable:
			p.unreachable = append(p.unreachable, p.outOfReach(id, seen.Ground))
		case same != (manifest.ID{}):
			p.Steps = append(p.Steps, prune(id, e, live).KeptAs(same))
		case !exists:
			p.Gone, p.Absent = append(p.Gone, id), append(p.Absent, id)
		case e.IsAnother(live): // ours is gone
			p.Gone = append(p.Gone, id)
		case seen.AsksRelease(id, live).None() && p.keepLeft(id, e, live, wanted, seen):
		case p.remove(id, live, renamed[id.GroupKind()], seen):
			left = append(left, id.Name)
		}
	}
	slices.SortFunc(p.Gone, manifest.ID.Compare)
	if slices.Sort(left); len(left) > 0 {
		p.Notes = append(p.Notes, facts.NoteLeft(left))
	}
}

// remove adds the step that prunes or releases an object, or forgets it. isRenamed is set if a reference sets the names of its kind. It
// reports whether a CRD is left without an owner.
func (p *drafted) remove(id manifest.ID, live *metav1.PartialObjectMetadata, isRenamed bool, seen facts.Observed) (isLeft bool) {
	e := seen.Inventory.Entries[id]
	handedOver := handedOver(p.Plan, id, live, seen.Inventory)
	isForgotten := false
	switch {
	case handedOver && p.Stance.In(plan.Following), e.NeverApplied(live):
		isForgotten = true
	case e.Policy == inventory.Observable, e.Policy == inventory.ObservableAndDeletable && isRenamed:
		isForgotten = true
	}
	if isForgotten && !slices.Contains(live.GetFinalizers(), plan.ProtectFinalizer) {
		p.Gone = append(p.Gone, id)
		return leaves(p.Plan, id)
	}
	stays := handedOver || isForgotten
	if why := seen.Released(id, live); !why.None() && !stays {
		p.release(id, why, seen)
		return false
	}
	gone := prune(id, e, live)
	gone.Serves = isServed(id, id.Name, seen.Upstream)
	if gone.Action = p.parts; stays { // another tool makes it now
		gone.Action = plan.Release
	}
	s, some := Leaving(p.Plan, gone, live)
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
func handedOver(p plan.Plan, id manifest.ID, live metav1.Object, have inventory.Inventory) bool {
	if have.Owner != "" && have.Owner != p.Want.Owner && isOfOwner(id) {
		return true
	}
	if facts.IsInstalled(live) && slices.ContainsFunc(p.Want.Left, func(l render.Left) bool { return l.ID == id }) {
		return true
	}
	if p.Want.Owner != render.OwnerCrossplane || !id.IsCRD() {
		return false
	}
	return facts.IsInstalled(live) || slices.ContainsFunc(p.Want.Definitions, func(d render.DecidedDefinition) bool { return d.Name == id.Name })
}

// isOfOwner reports whether it depends on who makes the CRDs whether a commit wants an object.
func isOfOwner(id manifest.ID) bool {
	switch {
	case id.IsCRD(), crossplane.IsMRD(id), crossplane.IsPackage(id):
		return true
	}
	return id == crossplane.MRAP(id.Name)
}

// leaves reports whether a CRD that is handed over to Crossplane will have no owner, because its definition is not active.
func leaves(p plan.Plan, id manifest.ID) bool {
	return p.Want.Owner == render.OwnerCrossplane && id.IsCRD() &&
		slices.ContainsFunc(p.Want.Definitions, func(d render.DecidedDefinition) bool { return d.Name == id.Name && !d.Active })
}

// stepFor returns the step for one wanted object. It returns false if there is no step, for example for an optional object whose API
// is not served.
func stepFor(a facts.Asked, seen facts.Observed, kinds *coming) (plan.Step, bool, error) {
	live, exists := seen.Objects[a.ID]
	s := stepOf(a, seen)
	if err := seen.Unread(a.ID); err != nil && !a.Paused {
		return unreadable(s, a, seen.Ground, err), true, nil
	}
	if a.Policy.Observes() && !a.Paused {
		if seen.Stance.In(plan.OnCommit) {
			return observeCommit(s, a, seen.Live), true, nil
		}
		return observe(s, a, seen, live), exists && !a.Resolved.Nameless, nil
	}
	choose(&s, a, seen)
	if !s.Applies() || exists && !seen.Refused(a.ID, live).None() {
		return s, true, nil
	}
	s.Err = cmp.Or(s.Err, a.Resolved.Problem)
	trial, of := seen.Trials[a.ID], seen.Inventory.Sync
	s.Sends = func() (*unstructured.Unstructured, error) {
		if trial.Sent != nil {
			return trial.Sent.DeepCopy(), nil
		}
		return demand.Sent(of, a.Object)
	}
	s.Whole, s.Compared, s.Vendored = trial.Whole, trial.Schema, trial.Vendored
	s.Difference = once.OnceValue(s.CompareSchema)
	first, err := needs(s, kinds)
	switch {
	case errors.Is(err, reason.ErrUnserved) && a.Optional:
		return plan.Step{}, false, nil
	case errors.Is(err, reason.ErrUnserved):
		s.Err = cmp.Or(s.Err, seen.Hides(a.ID), err)
	case err != nil:
		return plan.Step{}, false, err
	}
	s.Needs, s.Waits, s.AwaitsAny = first.crd, slices.Concat(s.Waits, first.waits), first.on
	if len(a.Because) > 0 || seen.Upstream.Definitions[a.Definition].Active { // otherwise, Crossplane makes no CRD for it
		s.Err = cmp.Or(s.Err, a.Problem)
	}
	return s, true, nil
}

// unreadable returns the step for an object that may exist but could not be read. It sends nothing.
func unreadable(s plan.Step, a facts.Asked, seen facts.Ground, why error) plan.Step {
	s.Action, s.Err = plan.Create, why
	if _, owned := seen.Inventory.Entries[a.ID]; owned {
		s.Action = plan.Update
	}
	s.Sends = func() (*unstructured.Unstructured, error) { return demand.Sent(seen.Inventory.Sync, a.Object) }
	return s
}

// stepOf returns the step for an object before any decision.
func stepOf(a facts.Asked, seen facts.Observed) plan.Step {
	s := plan.Step{
		ID:         a.ID,
		APIVersion: a.APIVersion,
		Origin:     a.Origin,
		Because:    a.Because,
		Definition: a.Definition != "",
		Policy:     a.Policy,
		Cause:      plan.Commit,
		Serves:     serves(a, seen),
		Write:      plan.Write{Activates: a.Activates && !seen.Upstream.Definitions[a.ID.Name].Active, Wants: demand.Approvable(a)},
		Digest:     seen.Digest(a.Object),
	}
	if trial := seen.Trials[a.ID]; a.Resolved.References != nil || trial.Live != nil {
		s.Hidden = a.Resolved.Hidden.And(seen.Masks[a.ID])
		s.Hidden.Paths = append(slices.Clip(s.Hidden.Paths), facts.SecretPaths(trial.Live)...)
	}
	if !a.Retained.None() {
		s.Cause, s.Guard, s.Reason = plan.Retain, plan.Final, a.Retained
	}
	if live, exists := seen.Objects[a.ID]; exists {
		s.UID, s.ResourceVersion, s.Terminating = live.GetUID(), live.GetResourceVersion(), live.GetDeletionTimestamp() != nil
	}
	return s
}

// choose sets the action before the guards: create, update or keep.
func choose(s *plan.Step, a facts.Asked, seen facts.Observed) {
	live, exists := seen.Objects[a.ID]
	trial, tried := seen.Trials[a.ID]
	switch asWanted := trial.After == nil && trial.Err == nil; {
	case a.Paused:
		s.Action = plan.Keep
	case seen.IsCatalogue(a), seen.GaveAway(a):
		s.Action = plan.Update // a guard retains it
	case !exists:
		create(s, a, seen)
	case !seen.Refused(a.ID, live).None():
		s.Action, s.Err = plan.Update, reason.CodedError{Reason: seen.Refused(a.ID, live)} // a guard holds it
	case len(trial.Migrates) > 0:
		s.Action, s.Live, s.After, s.Migrates, s.Activates = plan.Update, trial.Live, trial.After, trial.Migrates, false
		s.Reason = reason.ManagedFieldsMigrate.With(trial.Migrates)
	case len(a.Resolved.Missing) > 0:
		s.Action = plan.Update
	case trial.After == nil && demand.LeftHeld(a.Object, live):
		s.Action, s.Err, s.Frees, s.Reason = plan.Update, trial.Err, true, reason.FinalizerLeft.With()
	case s.Activates, !asWanted:
		update(s, a, live, seen)
	case s.Terminating && seen.Stance.In(plan.Writing):
		s.Action, s.Waits = plan.Create, []reason.Reason{reason.AwaitsOwnEnd.With(facts.WhyDeleting(live))}
		if entry, owned := seen.Inventory.Entries[a.ID]; owned && entry.UID == s.UID && !entry.Deleting() {
			s.Cause = plan.Drift // another writer deletes it
		}
	default:
		keep(s, a, live, tried, seen)
	}
}

// create chooses for an object that does not exist.
func create(s *plan.Step, a facts.Asked, seen facts.Observed) {
	s.Action = plan.Create
	if len(a.Resolved.Missing) > 0 {
		return
	}
	s.After, s.Err = seen.Trials[a.ID].After, seen.Trials[a.ID].Err
	if entry := seen.Inventory.Entries[a.ID]; entry.UID != "" && !entry.Deleting() && !seen.Inventory.Rebuilt {
		s.Cause = plan.Drift // we applied it, and another writer has deleted it
	}
}

// update chooses for an object that differs, or that activates a definition.
func update(s *plan.Step, a facts.Asked, live metav1.Object, seen facts.Observed) {
	trial, isMine := seen.Trials[a.ID], seen.Mine(a.ID, live)
	s.Action, s.Live, s.After, s.Err = plan.Update, trial.Live, trial.After, trial.Err
	adopt(s, trial, isMine)
	if s.Activates {
		return
	}
	s.Takes = trial.TakenBy
	// If fields are ignored, the update may only change the ownership of fields.
	onlyOwners := trial.Sent != nil && trial.Err == nil && len(s.Changes()) == 0
	entry, owned := seen.Inventory.Entries[a.ID]
	sentBefore := owned && entry.Digest == s.Digest
	if sentBefore && !onlyOwners {
		s.Cause = plan.Drift
	}
	if by := seen.ClaimOn(a.ID, live).By; by != "" && !isMine {
		s.Reason = reason.And(reason.TakenOver.With(by), s.Reason)
	}
}

// keep chooses for an object that is as wanted. If it was not tried, its metadata proves that.
func keep(s *plan.Step, a facts.Asked, live metav1.Object, tried bool, seen facts.Observed) {
	entry, owned := seen.Inventory.Entries[a.ID]
	s.Action, s.Unready = plan.Keep, entry.Unready()
	now, ignored := entry, seen.Terms.Ignore.Paths(a.ID)
	switch {
	case tried:
		now = plan.Applied(live, s.Digest, ignored...).Following(entry)
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
func serves(a facts.Asked, seen facts.Observed) bool {
	if isServed(a.ID, a.Definition, seen.Upstream) || isPresent(seen, a.ID) {
		return true
	}
	return len(a.Because) > 0 && seen.Stance.In(plan.OnCluster)
}

// isServed reports whether the kind that an object declares is served now. definition is the name of the object's definition, if it
// has one.
func isServed(id manifest.ID, definition string, up facts.Upstream) bool {
	return id.IsCRD() || crossplane.IsXRD(id) || up.Definitions[definition].Active
}

// prune returns the step for an owned object that the commit does not want, before the guards.
func prune(id manifest.ID, e inventory.Entry, live *metav1.PartialObjectMetadata) plan.Step {
	return plan.Step{
		Action:          plan.Prune,
		Cause:           plan.Commit,
		ID:              id,
		APIVersion:      live.APIVersion,
		UID:             live.GetUID(),
		ResourceVersion: live.GetResourceVersion(),
		Digest:          e.Digest,
		Removal:         plan.Removal{Webhooks: webhooksOf(live), Protected: slices.Contains(live.GetFinalizers(), plan.ProtectFinalizer)},
		Terminating:     live.GetDeletionTimestamp() != nil,
	}
}

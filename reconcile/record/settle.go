// Package record is the memory of a pass: what the inventory stores before the first write and after the last one.
package record

import (
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// Intent returns the inventory to store before the first write: everything owned, and everything that the plan is about to create
// or adopt. A crash after that leaves no object without an owner.
func Intent(p plan.Plan, have inventory.Inventory) inventory.Inventory {
	next := have
	next.Rebuilt, next.Lost = false, false
	next.Record = applying(p, have.Record)
	recordCommit(p, have.Record.Source, &next.Record)
	if !p.Partial {
		next.Owner, next.Grants = p.Want.Owner, Grants(p, have.Grants)
	}
	next.Entries = maps.Clone(have.Entries)
	if next.Entries == nil {
		next.Entries = map[manifest.ID]inventory.Entry{}
	}
	for id, e := range next.Entries {
		if p.Undeclared != nil && e.Undeclared != p.Undeclared[id] {
			e.Undeclared, e.RemovedBy = p.Undeclared[id], ""
			if e.Undeclared {
				e.RemovedBy = p.Want.Revision
			}
			next.Entries[id] = e
		}
	}
	for _, s := range p.Steps {
		e, owned := next.Entries[s.ID]
		sent := s.Writes() && s.Err == nil // an object with an error is not sent and so does not become ours
		switch {
		case s.Action == plan.Release && sent && owned:
			// If the process is killed before the marks are removed, a later pass continues the release and does not prune.
			e.Releasing = true
		case s.Action == plan.Prune && s.Deleting:
			e = e.Deletes()
		case s.Applies() && sent && !s.Deactivates:
			e = intended(s, e)
		default:
			continue
		}
		next.Entries[s.ID] = e
	}
	locate(p, &next)
	recordDefinitions(p, have, next)
	return next
}

// LearnsSource reports whether the inventory must be stored only for the record of its source. A new commit is a reason only if
// the next one must descend from it. To identify the repository, any older commit of the same history will do.
func LearnsSource(p plan.Plan, have inventory.Inventory) bool {
	was, next := have.Record.Source, Recorded(p, have.Record.Source)
	newCommit := was.Commit != next.Commit && (was.Commit == "" || p.Forwards)
	return have.ResourceVersion != "" && (newCommit || !was.SameSource(next))
}

// LearnsImages reports whether the inventory must be stored because tags of the commit name other images than the ones that it has.
func LearnsImages(p plan.Plan, have inventory.Inventory) bool {
	return len(have.Entries) > 0 && !p.Partial && !slices.Equal(have.Record.Images, inventory.ImagesOf(p.Want))
}

// LearnsUndeclared reports whether the inventory must be stored because the commit now declares an object, or does not any more.
// Objects that the plan forgets or writes do not count, because they are stored anyway.
func LearnsUndeclared(p plan.Plan, have inventory.Inventory) bool {
	if p.Undeclared == nil {
		return false
	}
	for id, e := range have.Entries {
		if e.Undeclared != p.Undeclared[id] {
			return true
		}
	}
	return false
}

// intended returns the entry of an object before a step creates or updates it.
func intended(s plan.Step, e inventory.Entry) inventory.Entry {
	e.Releasing = false
	if s.Action == plan.Create {
		e.UID = "" // the new object will have another UID
	}
	e.Strategy, e.Actuation, e.Reconcile, e.Policy = "Apply", "Pending", inventory.ReconcilePending, s.Policy
	if len(s.Drops) > 0 {
		e.Digest = "" // otherwise, the removal in the next phase would look like drift
	}
	return e
}

// Settled returns the inventory to store after the last write: applied objects with their new marks, without pruned ones. An object
// whose prune failed stays owned, and so does an object that is being deleted.
func Settled(p plan.Plan, have inventory.Inventory, done []plan.Outcome) inventory.Inventory {
	next := Intent(p, have)
	next.Grants = fulfilled(p, next.Grants, done)
	next.Grants = Current(p, next.Grants)
	next.Record = appliedRecord(p, have, done)
	recordCommit(p, have.Record.Source, &next.Record)
	for _, id := range p.Gone {
		delete(next.Entries, id)
	}
	leaves := map[manifest.ID]bool{} // objects that we never owned: of deactivations, and of steps that were not sent
	for _, s := range p.Steps {
		if s.Action == plan.Keep && s.Renew.UID != "" {
			next.Entries[s.ID] = s.Renew
		}
		_, owned := have.Entries[s.ID]
		leaves[s.ID] = (s.Deactivates || s.Err != nil) && !owned
	}
	locate(p, &next)
	for _, o := range done {
		if leaves[o.ID] {
			continue
		}
		if released := o.Action == plan.Release && o.IsOver(); released || o.IsGone() {
			delete(next.Entries, o.ID)
			continue
		}
		next.Entries[o.ID] = settled(o, next.Entries[o.ID], have)
	}
	for _, s := range p.Steps {
		if IsOld(s, next) {
			delete(next.Entries, s.ID)
		}
	}
	TakeLeft(p, &next, done)
	recordDefinitions(p, have, next)
	return next
}

// claimed are the actions that claims are about.
var claimed = []plan.Action{plan.Create, plan.Update, plan.Prune}

// Current returns the grants without the claims that are over although this plan does not carry them out: a process carried them out
// and was killed before it stored that, or the commit wants other content of the object now. Keys show only hashes of both.
func Current(p plan.Plan, grants []inventory.Grant) []inventory.Grant {
	if !slices.ContainsFunc(grants, func(g inventory.Grant) bool { return len(g.Left) > 0 }) {
		return grants
	}
	now := map[string]string{} // the wanted content by object; "" if the object has it
	for _, s := range p.Steps {
		switch object, wants := approval.ObjectOf(s.ClaimOnContent().Key()); {
		case s.Deactivates:
		case isDone(s):
			now[object] = ""
		case slices.Contains(claimed, s.Change().Action):
			now[object] = wants
		}
	}
	for i, g := range grants {
		grants[i].Left = slices.DeleteFunc(slices.Clone(g.Left), func(left string) bool {
			object, wants := approval.ObjectOf(left)
			is, known := now[object]
			return known && is != wants && !strings.HasPrefix(left, string(plan.LeftoverFields)+":")
		})
	}
	return grants
}

// isDone reports whether an object is as the commit wants it.
func isDone(s plan.Step) bool {
	return s.Action == plan.Keep && s.Cause != plan.Retain && s.Would == ""
}

// aside are the requests that apply nothing of the commit.
var aside = []plan.Do{plan.DoMigrate, plan.DoAdopt, plan.DoDisown, plan.DoUnprotect}

// settled returns the entry of an object after an outcome that leaves it in the inventory.
func settled(o plan.Outcome, e inventory.Entry, have inventory.Inventory) inventory.Entry {
	switch {
	case !o.Action.Writes():
	case slices.Contains(aside, o.Did):
		return setAside(o, e, have)
	case o.Err == nil:
		e = applied(o, e)
	}
	return states[o.Action][resultOf(o)].of(e)
}

// setAside returns the entry of an object after a request that applied nothing of the commit.
func setAside(o plan.Outcome, e inventory.Entry, have inventory.Inventory) inventory.Entry {
	if before, owned := have.Entries[o.ID]; owned {
		before.Digest, e = e.Digest, before
	}
	if o.Did == plan.DoAdopt && o.Err == nil { // the object may be restored, with another UID
		e.UID = o.UID
	}
	return e
}

// applied returns the entry of an object that was applied.
func applied(o plan.Outcome, e inventory.Entry) inventory.Entry {
	next := inventory.Succeeded(o.UID, o.Digest, o.Mark).Following(e)
	next.Policy, next.Foreign, next.Fields = e.Policy, o.Foreign, o.Fields
	return next
}

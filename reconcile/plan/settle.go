package plan

import (
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Intent returns the inventory to store before the first write: everything owned, and everything that the plan is about to create
// or adopt. A crash after that leaves no object without an owner.
func (p Plan) Intent(have inventory.Inventory) inventory.Inventory {
	next := have
	next.Rebuilt, next.Lost = false, false
	next.Record = p.applying(have.Record)
	next.Record.Source = p.recorded(have.Record.Source)
	if !p.Partial {
		next.Owner, next.Grants = p.Want.Owner, p.grants(have.Grants)
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
		switch {
		case s.Action == Release && owned && s.Writes() && s.Err == nil:
			// If the process is killed before the marks are removed, a later pass continues the release and does not prune.
			e.Releasing = true
		case s.Action == Prune && s.Deleting:
			e = e.Deletes()
		case s.writes() && !s.Waiting() && !s.Deactivates && s.Err == nil: // an object with an error is not sent and so does not become ours
			e = s.intended(e)
		default:
			continue
		}
		next.Entries[s.ID] = e
	}
	p.locate(&next)
	p.recordDefinitions(have, next)
	return next
}

// intended returns the entry of an object before a step creates or updates it.
func (s Step) intended(e inventory.Entry) inventory.Entry {
	e.Releasing = false
	if s.Action == Create {
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
func (p Plan) Settled(have inventory.Inventory, done []Outcome) inventory.Inventory {
	next := p.Intent(have)
	next.Grants = p.fulfilled(next.Grants, done)
	next.Grants = p.current(next.Grants)
	next.Record = p.appliedRecord(have, done)
	next.Record.Source = p.recorded(have.Record.Source)
	for _, id := range p.Gone {
		delete(next.Entries, id)
	}
	leaves := map[manifest.ID]bool{} // objects that we never owned: of deactivations, and of steps that were not sent
	for _, s := range p.Steps {
		if s.Action == Keep && s.Renew.UID != "" {
			next.Entries[s.ID] = s.Renew
		}
		_, owned := have.Entries[s.ID]
		leaves[s.ID] = (s.Deactivates || s.Err != nil) && !owned
	}
	p.locate(&next)
	for _, o := range done {
		if leaves[o.ID] {
			continue
		}
		if o.isOver() && (o.Action == Release || o.Action == Prune && o.Deleting.None()) {
			delete(next.Entries, o.ID)
			continue
		}
		next.Entries[o.ID] = o.settled(next.Entries[o.ID], have)
	}
	for _, s := range p.Steps {
		if s.isOld(next) {
			delete(next.Entries, s.ID)
		}
	}
	p.takeLeft(&next, done)
	p.recordDefinitions(have, next)
	return next
}

// current returns the grants without the claims that are over although this plan does not carry them out: a process carried them out
// and was killed before it stored that, or the commit wants other content of the object now. Keys show only hashes of both.
func (p Plan) current(grants []inventory.Grant) []inventory.Grant {
	if !slices.ContainsFunc(grants, func(g inventory.Grant) bool { return len(g.Left) > 0 }) {
		return grants
	}
	now := map[string]string{} // the wanted content by object; "" if the object has it
	for _, s := range p.Steps {
		done := s.Action == Keep && s.Cause != Retain && s.Would == ""
		would := s.change().action
		if s.Deactivates || !done && would != Create && would != Update && would != Prune {
			continue
		}
		s.Drops = nil // these claims are not about the content
		object, wants := approval.ObjectOf(s.claim("", "").Key())
		if now[object] = wants; done {
			now[object] = ""
		}
	}
	for i, g := range grants {
		grants[i].Left = slices.DeleteFunc(slices.Clone(g.Left), func(left string) bool {
			object, wants := approval.ObjectOf(left)
			is, known := now[object]
			return known && is != wants && !strings.HasPrefix(left, string(leftoverFields)+":")
		})
	}
	return grants
}

// settled returns the entry of an object after an outcome that leaves it in the inventory.
func (o Outcome) settled(e inventory.Entry, have inventory.Inventory) inventory.Entry {
	switch {
	case o.Action == Prune && o.Err == nil: // until it is gone
		return e.Deletes()
	case o.Action == Prune:
		e.Strategy, e.Actuation, e.Reconcile = "Delete", "Failed", "Unknown"
	case o.Action == Release: // as before
	case o.Did == DoMigrate || o.Did == DoAdopt || o.Did == DoDisown || o.Did == DoUnprotect: // nothing of the commit was applied
		if before, owned := have.Entries[o.ID]; owned {
			before.Digest, e = e.Digest, before
		}
	case o.Action == Keep && o.Unknown: // as before
	case o.Action == Keep && o.NotReady.None():
		e.Actuation, e.Reconcile = "Succeeded", "Succeeded"
	case o.Action == Keep:
		e.Reconcile = inventory.ReconcileTimeout
	case o.Err != nil:
		e.Actuation, e.Reconcile = "Failed", "Unknown"
	default:
		applied := inventory.Succeeded(o.UID, o.Digest, o.Mark).Following(e)
		applied.Policy, applied.Foreign, applied.Fields = e.Policy, o.Foreign, o.Fields
		switch {
		case o.Unknown:
			applied.Reconcile = inventory.ReconcilePending
		case !o.NotReady.None():
			applied.Reconcile = inventory.ReconcileTimeout
		}
		return applied
	}
	return e
}

// Applied returns the entry of an object that is as wanted, except for ignored fields.
func Applied(live metav1.Object, digest string, ignored ...diff.Pointer) inventory.Entry {
	e := inventory.Succeeded(live.GetUID(), digest, inventory.Mark(live))
	e.Foreign, e.Fields = ownership.SentMarks(live), diff.OwnFields(live, ignored)
	return e
}

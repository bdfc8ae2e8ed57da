package draft

import (
	"iter"
	"slices"

	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// follows makes steps wait for all dependencies that the commit declares.
func (p *drafted) follows(facts.Observed) { p.after = p.first }

// arrange makes steps wait until the dependencies of their objects exist and are ready.
func (p *drafted) arrange(seen facts.Observed) {
	p.withdraw(seen)
	steps := make(map[manifest.ID]*plan.Step, len(p.Steps))
	for i := range p.Steps {
		steps[p.Steps[i].ID] = &p.Steps[i]
	}
	resolved := make(map[manifest.ID]facts.Resolved, len(p.after))
	for _, a := range seen.Asked {
		if a.Resolved.References != nil {
			resolved[a.ID] = a.Resolved
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if !s.Applies() || resolved[s.ID].Problem != nil {
			continue
		}
		for _, e := range p.after[s.ID] {
			why := comesFirst(*s, e.To, reason.Object.With(e.To), steps[e.To], seen.Known())
			if m, ok := resolved[s.ID].Missing[e.To]; ok {
				why = comesFirst(*s, e.To, m.Field, steps[e.To], seen.Known()).Or(m.Why.Code.With(slices.Concat([]any{m.Field}, m.Why.Values, []any{s.Origin})...))
			}
			if !why.None() {
				wait(s, e.To, why)
			}
		}
	}
}

// changes reports whether another step changes a field that was copied.
func changes(r facts.Resolved, steps map[manifest.ID]plan.Step, seen facts.Live) bool {
	return slices.ContainsFunc(r.References, func(ref facts.Reference) bool {
		s := steps[ref.Source]
		return s.Action == plan.Update && demand.Differs(ref, seen.Sources[ref.Source].Live, s.After)
	})
}

// comesFirst returns what the step has to wait for in a dependency; no reason if there is nothing. first is the step of the
// dependency, or nil. what is the dependency, or a field of it.
func comesFirst(s plan.Step, id manifest.ID, what reason.Reason, first *plan.Step, known question.Known) reason.Reason {
	switch {
	case first.Applies():
		return what
	case first != nil && first.Action == plan.Hold && first.Would != plan.Prune:
		return reason.AwaitsHeld.With(what, string(first.Guard))
	}
	live, is := question.Get(known, question.Ready{Of: id})
	switch {
	case is.Err != nil:
		return reason.AwaitsUnready.With(what, reason.Of(is.Err))
	case !live.Exists && first == nil:
		return reason.AwaitsNowhere.With(what, s.Origin)
	case !live.Exists:
		return reason.AwaitsAbsent.With(what)
	case !live.NotReady.None():
		return reason.AwaitsUnready.With(what, live.NotReady)
	}
	return reason.Reason{}
}

// wait makes a step wait for another object.
func wait(s *plan.Step, id manifest.ID, what reason.Reason) {
	s.Waits = append(slices.Clip(s.Waits), what)
	s.AwaitsAll = append(s.AwaitsAll, id)
}

// prunes returns the prunes of the plan, so that they can be changed.
func (p *drafted) prunes() iter.Seq[*plan.Step] {
	return func(yield func(*plan.Step) bool) {
		for i := range p.Steps {
			if s := &p.Steps[i]; s.Action == plan.Prune && !yield(s) {
				return
			}
		}
	}
}

// mostAwaited is the maximum number of objects in the reasons of a waiting prune.
const mostAwaited = 3

// awaitDependants makes prunes wait for the objects that depend on their objects. The guards have made sure that each of these is
// deleted, updated or released.
func (p *drafted) awaitDependants(seen facts.Observed) {
	c := p.caseOf(seen)
	for s := range p.prunes() {
		for _, by := range c.Dependants(s.ID) {
			switch {
			case by.Action == plan.Prune:
				wait(s, by.ID, reason.AwaitsDependant.With(by.ID))
			case by.Action == plan.Release && by.Owned:
				release := &p.Steps[p.at[by.ID]]
				release.Disowns = append(slices.Clip(release.Disowns), s.UID)
				wait(s, by.ID, reason.AwaitsRelease.With(by.ID))
			case by.LetsGo():
				wait(s, by.ID, reason.AwaitsUpdate.With(by.ID))
			}
		}
	}
}

// awaitUsers makes prunes wait for the objects that would be deleted with their objects, and that the commit does not want either.
func (p *drafted) awaitUsers(seen facts.Observed) {
	c := p.caseOf(seen)
	for s := range p.prunes() {
		awaited := c.GoingWith(*s)
		for n, by := range awaited {
			if n < mostAwaited {
				wait(s, by.ID, reason.AwaitsGone.With(by.ID))
			} else {
				s.AwaitsAll = append(s.AwaitsAll, by.ID)
			}
		}
		if more := len(awaited) - mostAwaited; more > 0 {
			s.Waits = append(slices.Clip(s.Waits), reason.AwaitsMore.With(more))
		}
	}
}

// isOwnedBy reports whether the garbage collector deletes the object of s after the owner.
func (c Case) isOwnedBy(s plan.Step, owner manifest.ID) bool {
	live, of := c.Live(s), c.Seen.Objects[owner]
	if live == nil || of == nil {
		return false
	}
	return slices.ContainsFunc(live.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == of.UID })
}

// LetsGo reports whether the step ends the dependency, with an update or a release. An update leaves owner references as they are.
func (d Dependant) LetsGo() bool {
	switch {
	case d.Err != nil:
		return false
	case d.Still || d.Owned:
		return d.Action == plan.Release
	}
	return d.Action == plan.Release || d.Action == plan.Update
}

// GoingWith returns the steps of objects that would be deleted with the object of a prune, and that the commit does not want
// either. For a deactivation, it also returns the steps of policies that would undo it. All of these come first.
func (c Case) GoingWith(s plan.Step) []plan.Step {
	users, all := c.Users(s.ID)
	if !all {
		users = nil
	}
	if s.Deactivates {
		users = append(users, c.LeavingPolicies(s.ID.Name)...)
	}
	return users
}

// dependantsOf returns the dependants of each object, sorted. It reads dependencies from the commit and, for owned objects, from
// the cluster, where an owner reference is a dependency, too.
func dependantsOf(first demand.Order, seen facts.Observed) map[manifest.ID][]manifest.ID {
	all := map[manifest.ID][]manifest.ID{}
	add := func(by, on manifest.ID) {
		if !slices.Contains(all[on], by) {
			all[on] = append(all[on], by)
		}
	}
	for by, edges := range first {
		for _, e := range edges {
			add(by, e.To)
		}
	}
	owners := map[types.UID]manifest.ID{}
	for id := range seen.Inventory.Entries {
		if live, exists := seen.Objects[id]; exists {
			owners[live.UID] = id
		}
	}
	for by := range seen.Inventory.Entries {
		if live, exists := seen.Objects[by]; exists {
			for _, o := range live.OwnerReferences {
				if owner, ours := owners[o.UID]; ours {
					add(by, owner)
				}
			}
			for _, on := range demand.LiveDependencies(seen, by, live) {
				add(by, on)
				if usage, _, _ := demand.UsageOf(seen.Ground, on); live.GetAnnotations()[plan.ProtectAnnotation] == "true" {
					add(by, usage)
				}
			}
		}
	}
	for _, by := range all {
		slices.SortFunc(by, manifest.ID.Compare)
	}
	return all
}

// indexDependants sets the dependants of the objects that may be pruned, and the index of the steps, which must not move
// afterwards.
func (p *drafted) indexDependants(first demand.Order, seen facts.Observed) {
	if !slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Change().Action == plan.Prune }) {
		return
	}
	p.Dependants = dependantsOf(first, seen)
	p.at = make(map[manifest.ID]int, len(p.Steps))
	for i, s := range p.Steps {
		p.at[s.ID] = i
	}
}

package rounds

import (
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/types"
)

// An Account is the progress of a pass, by object. A Step is what a plan decided, and does not change while it is carried out.
type Account struct {
	Done map[manifest.ID]plan.Outcome // the newest outcome of each step that was sent

	sent   map[manifest.ID]plan.Step // the steps of the outcomes
	phases map[manifest.ID]int       // number of requests that were sent for each step
}

// after returns the account after a plan was sent.
func (a Account) after(send plan.Plan, done []plan.Outcome) Account {
	a.Done, a.sent, a.phases = cloned(a.Done), cloned(a.sent), cloned(a.phases)
	for _, s := range send.Steps {
		if s.Writes() || s.Deleting {
			a.sent[s.ID] = s
		}
	}
	for _, o := range done {
		a.Done[o.ID] = o
		a.phases[o.ID]++
	}
	return a
}

// tried reports whether this pass has already sent this step to the present object.
func (a Account) tried(s plan.Step) bool {
	return a.Done[s.ID].Err != nil || a.goes(s) || a.phases[s.ID] >= mostPhases
}

// goes reports whether an object is being deleted, by this pass or by another writer.
func (a Account) goes(s plan.Step) bool {
	if s.Action == plan.Prune && a.requested(s) {
		return true
	}
	return s.Deleting || s.Terminating && s.Waiting()
}

// requested reports whether this pass carried out all phases of a step for this very object.
func (a Account) requested(s plan.Step) bool {
	o, did := a.Done[s.ID]
	return did && o.IsOver() && a.sent[s.ID].UID == s.UID
}

// follows reports whether a step of a newer plan is a later phase of a step that this pass sent.
func (a Account) follows(s plan.Step) bool {
	o, sent := a.Done[s.ID], a.sent[s.ID]
	switch {
	case !o.More, o.Err != nil, a.phases[s.ID] >= mostPhases: // nothing follows what was sent
		return false
	case s.Action == plan.Hold, (s.Action == plan.Prune) != (sent.Action == plan.Prune): // the newer plan wants something else
		return false
	}
	return s.IsDue()
}

// where returns the objects of the steps for which a function returns true.
func where(steps []plan.Step, is func(plan.Step) bool) map[manifest.ID]bool {
	ids := map[manifest.ID]bool{}
	for _, s := range steps {
		if is(s) {
			ids[s.ID] = true
		}
	}
	return ids
}

// outcomes returns the newest outcome of each step that was sent, sorted by ID.
func (a Account) outcomes() []plan.Outcome {
	return slices.SortedFunc(maps.Values(a.Done), func(a, b plan.Outcome) int { return a.ID.Compare(b.ID) })
}

// unready returns the applied objects that are not known to be ready.
func (a Account) unready() map[manifest.ID]bool {
	ids := map[manifest.ID]bool{}
	for id, o := range a.Done {
		if o.Unknown && o.Err == nil {
			ids[id] = true
		}
	}
	return ids
}

// Deletes reports whether objects whose deletion this pass has requested are not gone yet.
func (a Account) Deletes() bool {
	for _, o := range a.Done {
		if !o.Deleting.None() {
			return true
		}
	}
	return false
}

// appliedUIDs returns the UIDs of the objects that a pass has applied.
func (a Account) appliedUIDs() map[types.UID]manifest.ID {
	uids := map[types.UID]manifest.ID{}
	for id, o := range a.Done {
		if o.UID != "" && o.Action.Writes() {
			uids[o.UID] = id
		}
	}
	return uids
}

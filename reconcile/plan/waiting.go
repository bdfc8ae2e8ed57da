package plan

import (
	"slices"

	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// Coming reports whether a step waits for an object that may come without the action of a user and is not late.
func Coming(p Plan, late map[manifest.ID]bool) bool {
	stuck := map[manifest.ID]bool{}
	for _, s := range p.Steps {
		retainedPolicy := s.Action == Keep && s.Cause == Retain && s.ID == crossplane.MRAP(s.ID.Name)
		if s.Action == Hold || s.Err != nil || retainedPolicy {
			stuck[s.ID] = true
		}
	}
	for _, e := range p.Effects {
		if e.State == Broken {
			stuck[e.On] = true
		}
	}
	isStuck := func(id manifest.ID) bool { return stuck[id] }
	comes := func(s Step) bool { // one of awaits, and all of after
		one := len(s.AwaitsAny) == 0 || len(slices.DeleteFunc(slices.Clone(s.AwaitsAny), isStuck)) > 0
		return one && !slices.ContainsFunc(s.AwaitsAll, isStuck)
	}
	for again := true; again; { // a step that waits for a stuck object is stuck, too
		again = false
		for _, s := range p.Steps {
			if s.Waiting() && !stuck[s.ID] && !comes(s) {
				stuck[s.ID], again = true, true
			}
		}
	}
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		if !s.Waiting() || s.Lingers() {
			return false
		}
		return !late[s.ID] && !stuck[s.ID] // what fails is stuck
	})
}

// Waiting reports whether the step waits for something else. A later plan carries it out.
func (s Step) Waiting() bool { return len(s.Waits) > 0 }

// FailDependants returns the plan with errors on the steps that wait for a failed step, so that they are not sent.
func FailDependants(p Plan, done []Outcome) Plan {
	failed, writes := map[manifest.ID]bool{}, map[manifest.ID]bool{}
	for _, o := range done {
		failed[o.ID] = o.Err != nil
	}
	for _, s := range p.Steps {
		failed[s.ID] = failed[s.ID] || s.Err != nil
		writes[s.ID] = s.Applies()
	}
	p.Steps = slices.Clone(p.Steps)
	for again := true; again; {
		again = false
		for i, s := range p.Steps {
			at := slices.IndexFunc(s.AwaitsAll, func(id manifest.ID) bool { return failed[id] })
			if at < 0 || s.Err != nil {
				continue
			}
			code := reason.DependencyFailed
			switch {
			case s.Action == Prune && writes[s.AwaitsAll[at]]: // the guard Unfinished holds it
				continue
			case s.Action == Prune:
				code = reason.DependantFailed
			}
			p.Steps[i] = s.Failed(code.With(s.AwaitsAll[at]))
			failed[s.ID], again = true, true
		}
	}
	return p
}

package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
)

// inactive notes the update of an inactive definition that breaks. No API serves it, but a policy may activate it later.
func inactive(s plan.Step, _ draft.Case) plan.Ruling {
	switch {
	case s.Serves, !crossplane.DeclaresKind(s.ID), s.Action != plan.Update:
		return allowed
	case len(s.Schema().Breaking()) == 0:
		return allowed
	}
	return noted(reason.InactiveBreaks.With(s.ID.Name))
}

// inactiveEffect notes an inactive definition that breaks or goes, although no step deletes it.
func inactiveEffect(s plan.Step, c draft.Case) plan.Ruling {
	goes := s.Action == plan.Prune || s.Action == plan.Keep
	if goes && !s.Serves && crossplane.DeclaresKind(s.ID) {
		return noted(reason.InactiveBreaks.With(s.ID.Name))
	}
	return inactive(s, c)
}

package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/crossplane"
)

// activates asks to look at definitions that become active although nothing names them in full: later versions of the package may add
// others.
func activates(c draft.Case) []plan.Ruling {
	was := wasActive(c)
	var all []plan.Ruling
	for _, d := range c.Want.Definitions {
		r := looks(reason.ActivatesUnnamed.With(d.Name))
		if slices.ContainsFunc(d.Reasons, func(a activation.Activator) bool { return a.InFull(d.Name) }) {
			r = noted(reason.ActivatesNamed.With(d.Name))
		}
		if r.Of = crossplane.MRD(d.Name); d.Active && !was[d.Name] {
			all = append(all, r)
		}
	}
	return all
}

// staysActive asks to look at definitions that nothing activates any more. They seem to be gone, but Crossplane keeps them active.
func staysActive(c draft.Case) []plan.Ruling {
	goes := map[string]bool{}
	for _, s := range c.Steps {
		goes[s.ID.Name] = goes[s.ID.Name] || s.Deactivates && s.Action == plan.Prune
	}
	was := wasActive(c)
	var all []plan.Ruling
	for _, d := range c.Want.Definitions {
		if !d.Active && was[d.Name] && !goes[d.Name] {
			r := looks(reason.StaysUnnamed.With(d.Name))
			r.Of = crossplane.MRD(d.Name)
			all = append(all, r)
		}
	}
	return all
}

// wasActive returns the definitions that the base of a comparison activates, by name.
func wasActive(c draft.Case) map[string]bool {
	was := map[string]bool{}
	for _, d := range baseOf(c).Definitions {
		was[d.Name] = d.Active
	}
	return was
}

func baseOf(c draft.Case) render.Desired {
	if c.Seen.Base == nil {
		return render.Desired{}
	}
	return *c.Seen.Base
}

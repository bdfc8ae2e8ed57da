package draft

import (
	"slices"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// onEffects returns a rule that rules on a step by its effects.
func onEffects(effects []plan.Effect, rule func(plan.Step) plan.Ruling) func(plan.Step) plan.Ruling {
	of := map[manifest.ID][]plan.Effect{}
	for _, e := range effects {
		if e.Kind == plan.Install && e.Of != (manifest.ID{}) {
			of[e.Of] = append(of[e.Of], e)
		}
	}
	return func(s plan.Step) plan.Ruling { return onAll(of[s.ID], rule) }
}

// onAll returns one ruling for several effects. It names the first effect with the most severe ruling, and counts the others.
func onAll(effects []plan.Effect, rule func(plan.Step) plan.Ruling) plan.Ruling {
	var all plan.Ruling
	more := 0
	for _, e := range effects {
		r := rule(*e.Change)
		all.Amount = all.Amount.Plus(r.Amount)
		if all.Cause == "" || r.Cause == approval.Uncounted {
			all.Cause = r.Cause
		}
		switch {
		case r.Reason.None(), r.Severity < all.Severity:
		case !all.Reason.None() && r.Severity == all.Severity:
			more++
		default:
			all.Severity, all.Reason, more = r.Severity, reason.PackageInstalls.With(e.On.Name, r.Reason), 0
		}
	}
	if more > 0 {
		all.Reason = reason.PackageInstallsMany.With(append(all.Reason.Values, more)...)
	}
	return all
}

// countEffects adds to effects how many custom resources exist of definitions that a package no longer contains.
func (p *drafted) countEffects(seen facts.Observed) {
	effects := slices.Clone(p.Effects)
	p.Effects = effects
	for i, e := range effects {
		if e.Kind == plan.Install && isPresent(seen, e.On) {
			change := *e.Change
			change.Serves, effects[i].Change = true, &change
		}
		if e.Kind != plan.Install || e.Change.Action != plan.Keep {
			continue
		}
		q := question.Dependents{Of: e.On}
		if crossplane.IsMRD(e.On) {
			q.Of = plan.CRD(e.On.Name)
		}
		s := *effects[i].Change
		effects[i].Change = &s
		switch a, is := question.Get(seen.Known(), q); {
		case is.Open:
		case is.Err != nil:
			s.Reason = reason.Both.With(s.Reason, reason.ObjectsNotCounted.With(reason.Of(is.Err)))
		case a.Count > 0:
			s.Serves = true
			s.Reason = reason.Both.With(s.Reason, reason.ObjectsExist.With(a.Count, a.Example))
		default:
			s.Reason = reason.Both.With(s.Reason, reason.NoObjects.With())
		}
	}
}

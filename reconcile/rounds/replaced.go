package rounds

import (
	"slices"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// refreshed returns the plan with its own steps and the observations of a newer plan.
func refreshed(p plan.Plan, now plan.Plan) plan.Plan {
	once := slices.DeleteFunc(slices.Clone(p.Notes), func(f manifest.Finding) bool {
		return f.Rule != plan.RuleLeft && f.Rule != plan.RuleRebuilt || slices.ContainsFunc(now.Notes, func(n manifest.Finding) bool { return n.Message == f.Message })
	})
	p.Want, p.Effects, p.Retained, p.Notes = now.Want, now.Effects, now.Retained, slices.Concat(once, now.Notes)
	return p
}

// replaced returns the plan with its steps replaced by those of a newer one. phases are the objects whose step in the newer plan is a
// later phase of one that was sent.
func replaced(p plan.Plan, by plan.Plan, phases map[manifest.ID]bool) plan.Plan {
	newer := by.ByID()
	p.Steps = slices.Clone(p.Steps)
	for i, s := range p.Steps {
		if n, ok := newer[s.ID]; ok {
			if phases[s.ID] { // keep all phases of an object in one line of the diff
				n = s.WaitingAs(n)
			}
			p.Steps[i] = n
			delete(newer, s.ID)
		}
		if s.Action == plan.Prune && slices.Contains(by.Gone, s.ID) { // it disappeared without our help
			p.Steps[i] = p.Steps[i].Free()
		}
	}
	for _, s := range by.Steps {
		if _, more := newer[s.ID]; more && s.Deactivates && s.Action != plan.Update {
			p.Steps = append(p.Steps, s)
		}
	}
	return p
}

// waiting returns the number of waiting steps.
func waiting(p plan.Plan) int { return len(p.Select(plan.Step.Waiting).Steps) }

package rounds

import (
	"slices"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// withCarried returns the plan with the steps that an earlier plan of the same pass has carried out. A pass plans again if the
// inventory moved. Without these steps, its report would show the objects that it wrote before as unchanged. A step of the later
// plan that still has something to do stays.
func withCarried(p plan.Plan, before plan.Plan, done []plan.Outcome) plan.Plan {
	carried := carried(before, done)
	if len(carried.Steps) == 0 {
		return p
	}
	p.WasActive = before.WasActive
	at := make(map[manifest.ID]int, len(p.Steps))
	p.Steps = slices.Clone(p.Steps)
	for i, s := range p.Steps {
		at[s.ID] = i
	}
	for _, s := range carried.Steps {
		i, exists := at[s.ID]
		switch {
		case !exists:
			p.Steps = append(p.Steps, s)
		case p.Steps[i].Action == plan.Keep && p.Steps[i].Err == nil, p.Steps[i].Deleting:
			p.Steps[i] = s
		}
	}
	slices.SortStableFunc(p.Steps, plan.InOrder)
	return p
}

// carried returns the plan with only the steps that were carried out, according to the outcomes.
func carried(p plan.Plan, done []plan.Outcome) plan.Plan {
	carried := make(map[manifest.ID]bool, len(done))
	for _, o := range done {
		carried[o.ID] = o.Err == nil
	}
	return p.Select(func(s plan.Step) bool { return s.Writes() && carried[s.ID] })
}

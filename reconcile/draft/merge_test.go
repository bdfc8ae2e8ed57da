package draft

import (
	"slices"
	"testing"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// A person reads one reason for a change: that of the first guard that has more than a note. A guard of the phase Merge changes no step,
// and none of these guards rules on a pass.
func TestMergeRulings(t *testing.T) {
	rules := func(name plan.GuardName, phase Phase, severity plan.Severity) Guard {
		return Guard{Name: name, Phase: phase, Rule: Each(func(s plan.Step, _ Case) plan.Ruling {
			return map[bool]plan.Ruling{s.ID.Name == "a": {Judged: plan.Judged{Severity: severity, Reason: reason.Failed.With(string(name))}}}[true]
		})}
	}
	guards := []Guard{
		rules("notes", Merge, plan.Note), rules("looks", Merge, plan.Look), rules("blocks", Merge, plan.Block), rules("installs", MergeEffects, plan.Block),
		{Name: "commit", Phase: Merge, Commit: func(c Case) []plan.Ruling {
			return []plan.Ruling{{Judged: plan.Judged{Severity: plan.Look, Reason: reason.Failed.With("commit")}, Of: c.Bumps[0].By}}
		}},
	}
	steps := func() []plan.Step {
		return []plan.Step{{ID: manifest.ID{Name: "a"}, Action: plan.Update}, {ID: manifest.ID{Name: "b"}, Action: plan.Update}}
	}
	change := plan.Step{ID: manifest.ID{Name: "a"}, Action: plan.Keep}
	p := awaiting{ruled{drafted{Plan: plan.Plan{
		Stance: plan.Comparing, Steps: steps(), Effects: []plan.Effect{{Kind: plan.Install, On: change.ID, Change: &change}, {Kind: plan.Activate}}, Bumps: []plan.Bump{{By: change.ID}},
	}}, guards}}
	p.merge()
	names := func(all []plan.Ruling) (names []plan.GuardName) {
		for _, r := range all {
			names = append(names, r.Guard)
		}
		return names
	}
	for _, tc := range []struct {
		got, want []plan.GuardName
	}{
		{names(p.Steps[0].Rulings), []plan.GuardName{"notes", "looks"}},
		{names(p.Steps[1].Rulings), nil},
		{names(p.Effects[0].Change.Rulings), []plan.GuardName{"installs"}},
		{names(p.Rulings), []plan.GuardName{"commit"}},
	} {
		if !slices.Equal(tc.got, tc.want) {
			t.Errorf("the rulings are by %v, want %v", tc.got, tc.want)
		}
	}
	if p.Steps[0].Action != plan.Update || len(change.Rulings) > 0 || p.Rulings[0].Of != change.ID {
		t.Errorf("%s, %v, %v", p.Steps[0].Action, change.Rulings, p.Rulings)
	}
	d := drafted{Plan: plan.Plan{Steps: steps()}}
	if d.guard(facts.Observed{}, guards); d.Steps[0].Action != plan.Update || len(d.Steps[0].Rulings) > 0 {
		t.Errorf("in a pass: %+v", d.Steps[0])
	}
}

package plan

import (
	"slices"
	"testing"

	"headgate.dev/headgate/render/manifest"
)

// A person reads one reason for a change: that of the first guard that has more than a note. A guard of the phase Merge changes no step,
// and none of these guards rules on a pass.
func TestMergeRulings(t *testing.T) {
	rules := func(name GuardName, phase Phase, severity Severity) Guard {
		return Guard{Name: name, Phase: phase, Rule: Each(func(s Step, _ Case) Ruling {
			return map[bool]Ruling{s.ID.Name == "a": {Severity: severity, Reason: Failed.With(string(name))}}[true]
		})}
	}
	guards := []Guard{
		rules("notes", Merge, Note), rules("looks", Merge, Look), rules("blocks", Merge, Block), rules("installs", MergeEffects, Block),
		{Name: "commit", Phase: Merge, Commit: func(c Case) []Ruling {
			return []Ruling{{Severity: Look, Reason: Failed.With("commit"), Of: c.Bumps[0].By}}
		}},
	}
	steps := func() []Step {
		return []Step{{ID: manifest.ID{Name: "a"}, Action: Update}, {ID: manifest.ID{Name: "b"}, Action: Update}}
	}
	change := Step{ID: manifest.ID{Name: "a"}, Action: Keep}
	p := awaiting{ruled{drafted{Plan: Plan{
		Stance: Comparing, Steps: steps(), Effects: []Effect{{Kind: Install, On: change.ID, Change: &change}, {Kind: Activate}}, Bumps: []Bump{{By: change.ID}},
	}}, guards}}
	p.merge()
	names := func(all []Ruling) (names []GuardName) {
		for _, r := range all {
			names = append(names, r.Guard)
		}
		return names
	}
	for _, tc := range []struct {
		got, want []GuardName
	}{
		{names(p.Steps[0].Rulings), []GuardName{"notes", "looks"}},
		{names(p.Steps[1].Rulings), nil},
		{names(p.Effects[0].Change.Rulings), []GuardName{"installs"}},
		{names(p.Rulings), []GuardName{"commit"}},
	} {
		if !slices.Equal(tc.got, tc.want) {
			t.Errorf("the rulings are by %v, want %v", tc.got, tc.want)
		}
	}
	if p.Steps[0].Action != Update || len(change.Rulings) > 0 || p.Rulings[0].Of != change.ID {
		t.Errorf("%s, %v, %v", p.Steps[0].Action, change.Rulings, p.Rulings)
	}
	d := drafted{Plan: Plan{Steps: steps()}}
	if d.guard(Observed{}, guards); d.Steps[0].Action != Update || len(d.Steps[0].Rulings) > 0 {
		t.Errorf("in a pass: %+v", d.Steps[0])
	}
}

package baseline

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"
)

// ruleUncompared reports inactive definitions that cannot be compared.
const ruleUncompared = "inactive-not-compared"

// redeclared returns the effects on inactive definitions that break or leave the commit, and a finding if some cannot
// be compared. It skips definitions that a step sends or that Crossplane installs: those have steps and effects
// already. It decodes only documents that do more than grow, and keeps none of them.
func (b Baseline) redeclared(want render.Desired) ([]plan.Effect, []manifest.Finding) {
	sent := map[string]bool{}
	for _, o := range b.Base.Objects {
		sent[o.Definition] = true
	}
	after := make(map[string]render.DecidedDefinition, len(want.Definitions))
	for _, d := range want.Definitions {
		after[d.Name] = d
	}
	var effects []plan.Effect
	type pair struct{ was, is render.DecidedDefinition }
	var changed []pair
	for _, was := range b.Base.Definitions {
		if sent[was.Name] || was.Document == nil || b.Base.Owner.Leaves(was.Package) {
			continue
		}
		switch is, declared := after[was.Name]; {
		case !declared:
			effects = append(effects, facts.Undeclared(crossplane.MRD(was.Name)))
		case is.Document != nil && !is.Document.Same(was.Document):
			changed = append(changed, pair{was, is})
		}
	}
	breaks, failed := make([]plan.Effect, len(changed)), make([]error, len(changed))
	manifest.Each(len(changed), func(i int) { breaks[i], failed[i] = redeclaration(changed[i].was, changed[i].is) })
	unknown, example := 0, manifest.Finding{}
	for i, e := range breaks {
		if failed[i] != nil {
			if unknown++; unknown == 1 {
				example = manifest.Finding{Origin: changed[i].is.Origin(), Message: failed[i].Error()}
			}
		}
		if e.Change != nil {
			effects = append(effects, e.DeclaredAt(changed[i].is.Origin()))
		}
	}
	slices.SortFunc(effects, func(a, b plan.Effect) int { return a.On.Compare(b.On) })
	if unknown == 0 {
		return effects, nil
	}
	example.Rule, example.Severity, example.About = ruleUncompared, manifest.Note, manifest.About{}
	example.Message = fmt.Sprintf("%s not compared: %s", manifest.Count(unknown, "inactive definition"), example.Message)
	return effects, []manifest.Finding{want.Placed(example)}
}

// redeclaration returns the effect of replacing one definition by another. The effect has no Change if nothing breaks.
func redeclaration(before, after render.DecidedDefinition) (plan.Effect, error) {
	for _, d := range []render.DecidedDefinition{before, after} {
		if d.IsOutline() {
			return plan.Effect{}, errors.New("the lock keeps no schemas of " + d.Name)
		}
	}
	grows, err := after.Document.LearnBeside(before.Document, "grows 1", func(is, was []byte) (string, error) {
		return strconv.FormatBool(schema.Grows(was, is)), nil
	})
	if err != nil || grows == "true" {
		return plan.Effect{}, err
	}
	if err := cmp.Or(before.Document.Claim(), after.Document.Claim()); err != nil {
		return plan.Effect{}, err
	}
	was, err := before.MRD()
	if err != nil {
		return plan.Effect{}, err
	}
	is, err := after.MRD()
	if err != nil || was.Digest == is.Digest {
		return plan.Effect{}, err
	}
	r, err := replacementOf(was, is)
	if err != nil {
		return plan.Effect{}, err
	}
	e, breaks := facts.NewRedeclaration(is.ID, r.Difference)
	if !breaks {
		return plan.Effect{}, nil
	}
	return e, nil
}

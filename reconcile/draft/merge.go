package draft

import (
	"slices"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// The guards of the phases Merge and MergeEffects rule for the person who decides whether to merge a comparison of two commits. They
// see everything that the other guards left, and change no step: their rulings stay on the steps, and the verdict is a fold over them.

// merge adds the rulings of these guards to a comparison. A change has the first ruling that is more than a note, with the notes before
// it.
func (p *awaiting) merge() {
	c := p.caseOf(p.seen)
	c.Effects, c.Bumps = p.Effects, p.Bumps
	of := map[Phase][]func(plan.Step) plan.Ruling{}
	for _, g := range p.guards {
		switch {
		case g.Commit != nil:
			p.Rulings = append(p.Rulings, ruledBy(g, g.Commit(c))...)
		case g.merges():
			rule := g.Rule(c)
			of[g.Phase] = append(of[g.Phase], func(s plan.Step) plan.Ruling { return ruledBy(g, []plan.Ruling{rule(s)})[0] })
		}
	}
	p.Steps, p.Effects = slices.Clone(p.Steps), slices.Clone(p.Effects)
	for i, s := range p.Steps {
		p.Steps[i].Rulings = firstOf(of[Merge], s)
	}
	for i, e := range p.Effects {
		if e.Change != nil {
			s := *e.Change
			s.Rulings = firstOf(of[MergeEffects], s)
			p.Effects[i].Change = &s
		}
	}
}

// ruledBy returns rulings with the name of their guard.
func ruledBy(g Guard, rulings []plan.Ruling) []plan.Ruling {
	for i := range rulings {
		rulings[i].Guard = g.Name
	}
	return rulings
}

// firstOf returns the rulings on a step until the first that is more than a note.
func firstOf(rules []func(plan.Step) plan.Ruling, s plan.Step) []plan.Ruling {
	for _, rule := range rules {
		r := rule(s)
		if r.Reason.None() {
			continue
		}
		if s.Rulings = append(s.Rulings, r); r.Severity != plan.Note {
			break
		}
	}
	return s.Rulings
}

// merges reports whether the guard rules for the person who decides about a merge.
func (g Guard) merges() bool { return g.Phase == Merge || g.Phase == MergeEffects }

// Installer returns the step that makes Crossplane do what a package changes, because a cluster's guards rule on that step. Without
// one, it returns the change itself.
func (c Case) Installer(of plan.Step) plan.Step {
	e := slices.IndexFunc(c.Effects, func(e plan.Effect) bool { return e.Kind == plan.Install && e.On == of.ID })
	if e < 0 {
		return of
	}
	b := slices.IndexFunc(c.Bumps, func(b plan.Bump) bool { return b.Package == c.Effects[e].Package && b.By != (manifest.ID{}) })
	if b < 0 {
		return of
	}
	if i := slices.IndexFunc(c.Steps, func(s plan.Step) bool { return s.ID == c.Bumps[b].By }); i >= 0 {
		return c.Steps[i]
	}
	return of
}

// isPresent reports whether a comparison knows that the cluster serves the kind of an MRD, which only the new commit activates.
func isPresent(o facts.Observed, mrd manifest.ID) bool {
	if o.Base == nil || !crossplane.IsMRD(mrd) {
		return false
	}
	is, _ := question.Get(question.Known{Answers: o.Answers}, question.Present{Of: plan.CRD(mrd.Name)})
	return is
}

package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/uses"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A compositions compares the Compositions of two commits, including those in packages.
type compositions struct {
	before, after map[manifest.ID]render.Object
	inactive      map[string]bool // definitions that stay inactive
	defined       uses.Definitions
}

func compositionsOf(c draft.Case) compositions {
	base := baseOf(c)
	of := compositions{inDesired(base), inDesired(c.Want), map[string]bool{}, uses.DefinitionsOf(c.Want)}
	was := wasActive(c)
	for _, d := range c.Want.Definitions {
		of.inactive[d.Name] = !d.Active && !was[d.Name] && len(c.Want.Policies) > 0 // without a policy, another commit activates
	}
	return of
}

func inDesired(of render.Desired) map[manifest.ID]render.Object {
	all := map[manifest.ID]render.Object{}
	for _, l := range of.Left {
		if l.Composition != nil {
			all[l.ID] = *l.Composition
		}
	}
	for _, o := range of.Objects {
		if crossplane.IsComposition(o.ID) {
			all[o.ID] = o
		}
	}
	return all
}

// composes rules on Compositions that the commit applies.
func composes(c draft.Case) func(plan.Step) plan.Ruling {
	of := compositionsOf(c)
	return func(s plan.Step) plan.Ruling {
		if !applied(s) || !crossplane.IsComposition(s.ID) {
			return allowed
		}
		switch s.Action {
		case plan.Prune:
			return looks(reason.DeletesComposition.With(s.ID, compositeOf(of.before[s.ID])))
		case plan.Create, plan.Update:
			return of.rule(s.ID)
		}
		return allowed
	}
}

// composesInPackages rules on Compositions that Crossplane installs with packages.
func composesInPackages(c draft.Case) []plan.Ruling {
	of := compositionsOf(c)
	var all []plan.Ruling
	for _, l := range c.Want.Left {
		before, existed := of.before[l.ID]
		if l.Composition == nil || !existed || before.Digest == l.Composition.Digest {
			continue // what comes with a new package is judged with it
		}
		r := of.rule(l.ID)
		if r.Reason.None() {
			r = looks(reason.ChangesComposition.With(l.ID, l.Package))
		}
		r.Of, r.At = l.ID, []manifest.Origin{l.Origin}
		all = append(all, r)
	}
	for _, l := range baseOf(c).Left {
		if _, stays := of.after[l.ID]; l.Composition != nil && !stays {
			r := looks(reason.DeletesComposition.With(l.ID, compositeOf(*l.Composition)))
			r.Of = l.ID
			all = append(all, r)
		}
	}
	return all
}

// rule rules on one Composition: the kinds that it composes.
func (of compositions) rule(id manifest.ID) plan.Ruling {
	after, existed := of.after[id], false
	var was []uses.Name
	if before, is := of.before[id]; is {
		existed, was = true, uses.Composed(before)
	}
	is := uses.Composed(after)
	gains, loses := kindsWithout(is, was), kindsWithout(was, is)
	for _, n := range gains {
		if definition, _ := of.defined.Of(n); !n.Guess && of.inactive[definition] {
			return held(reason.ComposesInactive.With(id, definition))
		}
	}
	switch {
	case !existed:
		return looks(reason.AddsComposition.With(id, compositeOf(after)))
	case len(gains) > 0 && len(loses) > 0:
		return looks(reason.ComposesInstead.With(id, namesOf(gains, loses), namesOf(loses, gains)))
	case len(gains) > 0:
		return looks(reason.ComposesToo.With(id, namesOf(gains, nil)))
	case len(loses) > 0:
		return looks(reason.ComposesNoMore.With(id, namesOf(loses, nil)))
	}
	return allowed
}

// kindsWithout returns the kinds that are not among others.
func kindsWithout(all, others []uses.Name) []uses.Name {
	return slices.DeleteFunc(slices.Clone(all), func(n uses.Name) bool {
		return slices.ContainsFunc(others, func(o uses.Name) bool { return o.GroupKind() == n.GroupKind() })
	})
}

// namesOf returns the names of kinds, with their groups where others have the same name.
func namesOf(all, others []uses.Name) []string {
	var names []string
	for _, n := range all {
		name := n.Kind
		if slices.ContainsFunc(others, func(o uses.Name) bool { return o.Kind == n.Kind }) {
			name = n.GroupKind().String()
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// compositeOf returns the kind of the composite resources of a Composition, or "" if it cannot be read.
func compositeOf(composition render.Object) string {
	u, err := composition.Content()
	if err != nil {
		return ""
	}
	kind, _, _ := unstructured.NestedString(u.Object, "spec", "compositeTypeRef", "kind")
	return kind
}

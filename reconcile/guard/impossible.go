package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/schema"
)

// impossible holds updates of definitions that the API server refuses, so that no approval helps: another scope, a name that cannot
// change, the removal of a version in which objects may be stored, and a CEL rule that does not compile. This covers the updates
// that Crossplane makes when a package is updated. rules are those of the breaking changes that nothing else shows.
func impossible(rules ...schema.Rule) func(plan.Step, draft.Case) plan.Ruling {
	return func(s plan.Step, c draft.Case) plan.Ruling { return impossibleBy(rules, s, c) }
}

func impossibleBy(rules []schema.Rule, s plan.Step, c draft.Case) plan.Ruling {
	if !redefines(s) {
		return allowed
	}
	for _, b := range s.Schema().Breaking() {
		switch {
		case b.Rule == schema.Scope && !neverServed(s.Live):
			return held(reason.ScopeChanges.With(b.From, b.To, s.ID.Kind))
		case b.Rule == schema.Names && !(neverServed(s.Live) && b.Path == "names.kind"):
			return held(reason.NameChanges.With(b.Path, b.From, b.To, s.ID.Kind))
		case b.Rule == schema.Refused && slices.Contains(rules, b.Rule):
			return held(reason.RulesRefused.With(b.Where(), b.What()))
		}
	}
	after, err := s.WillBe()
	if err != nil {
		return allowed // Err holds the reason
	}
	have, are := storedVersions(s, c, after)
	if are.Open || are.Unseen {
		return allowed // until it is known, the guard schema holds the step, which can be approved
	}
	declared, to := versionsOf(after)
	for _, crd := range have {
		gone := slices.DeleteFunc(slices.Clone(crd.versions), func(v string) bool { return slices.Contains(declared, v) })
		if len(gone) > 0 {
			leaves := reason.StoredVersionLeaves
			if _, from := versionsOf(s.Live); slices.Contains(gone, from) { // otherwise objects would be written back in the same version
				leaves = reason.StorageVersionLeaves
			}
			return held(leaves.With(gone, crd.name, to))
		}
	}
	return allowed
}

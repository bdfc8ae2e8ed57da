package guard

import (
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
)

// unjudged asks to look at a change of which no guard of the phase knows the effects.
func unjudged(s plan.Step, c draft.Case) plan.Ruling {
	switch {
	case s.Action == plan.Create && s.Err == nil && crossplane.IsImageConfig(s.ID): // it may replace the images of existing packages
	case !applied(s), s.Action != plan.Update, crossplane.DeclaresKind(s.ID), crossplane.IsMRAP(s.ID), onlyInstalls(s, c):
		return allowed
	}
	return looks(reason.NotJudged.With(s.ID))
}

// onlyInstalls reports whether a step only makes Crossplane install another version of a provider, and either its definitions were
// compared or the image is the same.
func onlyInstalls(s plan.Step, c draft.Case) bool {
	changes := s.Changes()
	if s.ID.Kind != crossplane.Provider || len(changes) != 1 || changes[0].Path != "spec.package" {
		return false
	}
	if slices.ContainsFunc(c.Bumps, func(b plan.Bump) bool { return b.By == s.ID }) {
		return true
	}
	from, _ := crossplane.SplitImage(strings.Trim(changes[0].From, `"`))
	to, _ := crossplane.SplitImage(strings.Trim(changes[0].To, `"`))
	return from == to && slices.ContainsFunc(c.Want.Packages, func(p catalogue.Package) bool { return p.Pulled() && p.Source == to })
}

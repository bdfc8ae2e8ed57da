package guard

import (
	"strings"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// newWildcards asks to look at patterns that activate what later versions of packages add, even if they activate nothing more today.
func newWildcards(c draft.Case) []plan.Ruling {
	before := allGlobs(baseOf(c))
	var all []plan.Ruling
	for _, p := range c.Want.Policies {
		for _, pattern := range p.Patterns {
			if p.Paused || !strings.ContainsAny(pattern.Glob, `*?[\`) || crossplane.Covers(before, pattern.Glob) {
				continue
			}
			r := looks(reason.AddsWildcard.With(pattern.Glob, p.Name))
			r.Of, r.At = crossplane.MRAP(p.Name), []manifest.Origin{pattern.Origin}
			all = append(all, r)
		}
	}
	return all
}

// allGlobs returns the patterns of the policies that count.
func allGlobs(of render.Desired) []string {
	var all []string
	for _, p := range of.Policies {
		if !p.Paused {
			all = append(all, globsOf(p)...)
		}
	}
	return all
}

// isRenamed reports whether other policies of the commit have every pattern of a policy that it deletes.
func isRenamed(s plan.Step, c draft.Case) bool {
	if !crossplane.IsMRAP(s.ID) {
		return false
	}
	now := allGlobs(c.Want)
	for _, p := range baseOf(c).Policies {
		if p.Name != s.ID.Name {
			continue
		}
		for _, pattern := range p.Patterns {
			if !crossplane.Covers(now, pattern.Glob) {
				return false
			}
		}
		return true
	}
	return false
}

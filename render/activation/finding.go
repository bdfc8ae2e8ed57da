package activation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// The rules of findings of this package.
const (
	RuleMalformed    = "pattern-malformed"
	RuleNothing      = "pattern-matches-nothing"
	RuleSingular     = "pattern-singular"
	RuleShadowed     = "pattern-shadowed"
	RulePolicyPaused = "policy-paused"
	RulePaused       = "definition-paused"
	RuleUnrestricted = "policy-cannot-restrict"
)

// findings returns at most one finding for each pattern: it is malformed, matches nothing, or is not needed.
func (ps patterns) findings(c catalogue.Catalogue) []manifest.Finding {
	var found []manifest.Finding
	unknown := map[string]int{} // number of patterns by policy that may match definitions of unread packages
	first := map[string]manifest.Origin{}
	absent := absentPackages(c)
	advice := sync.OnceValue(func() adviser { return adviserOf(c.Definitions) }) // only patterns without matches need it, and most commits have none

	for _, p := range ps.all {
		switch {
		case p.malformed():
			found = append(found, malformed(p))
		case ps.seen[p]:
		case len(c.Definitions) == 0 || len(absent) > 0 && !advice().knowsGroupOf(p.text):
			if unknown[p.policy]++; unknown[p.policy] == 1 {
				first[p.policy] = p.Origin
			}
		default:
			found = append(found, advice().nothing(p))
		}
	}
	for policy, n := range unknown {
		found = append(found, notKnown(policy, n, first[policy], absent))
	}
	return append(found, ps.shadowed()...)
}

func malformed(p *pattern) manifest.Finding {
	return manifest.Finding{
		Rule: RuleMalformed, Severity: manifest.Warning, Origin: p.Origin, About: p.about(),
		Message: fmt.Sprintf("pattern %q of policy %s is malformed: Crossplane ignores it and activates nothing", p.Glob, p.policy),
		Fix:     `close the "[", give the class a member, and let a character follow the "\"`,
	}
}

// fieldOfPatterns is the field of a policy that holds its patterns.
const fieldOfPatterns = "spec.activate"

// about returns what a finding about the pattern is about.
func (p *pattern) about() manifest.About {
	return manifest.About{Object: crossplane.MRAP(p.policy), Field: fieldOfPatterns, Subject: p.Glob}
}

func notKnown(policy string, n int, at manifest.Origin, absent []string) manifest.Finding {
	f := manifest.Finding{
		Rule: RuleNothing, Severity: manifest.Note, Origin: at, About: manifest.About{Object: crossplane.MRAP(policy)},
		Message: fmt.Sprintf("what %s of policy %s matches is not known: this commit declares no definitions", manifest.Count(n, "pattern"), policy),
	}
	if len(absent) > 0 {
		f.Message = fmt.Sprintf("what %s of policy %s matches is not known: this commit does not hold %s", manifest.Count(n, "pattern"), policy, strings.Join(absent, ", "))
	}
	return f
}

// absentPackages returns the Providers that the commit installs without containing their definitions, and other packages that it
// mentions and that could not be read.
func absentPackages(c catalogue.Catalogue) []string {
	held, installed, unread := map[string]bool{}, map[manifest.ID]bool{}, map[string]bool{}
	for _, p := range c.Packages {
		held[p.Name] = true
		installed[p.Installer] = true
		for _, id := range p.Installers {
			installed[id] = true
		}
	}
	var absent []string
	for _, p := range c.Unread {
		unread[p.Source] = true
	}
	for _, o := range c.Objects {
		id := o.ID()
		if id.Group != crossplane.Packages || id.Kind != crossplane.Provider || held[id.Name] || installed[id] {
			continue
		}
		spec, _ := o.Object["spec"].(map[string]any)
		image, _ := spec["package"].(string)
		if !held[crossplane.ImageName(image)] {
			absent = append(absent, "package "+image)
		}
		maps.DeleteFunc(unread, func(source string, _ bool) bool { return strings.HasPrefix(image, source) })
	}
	for _, source := range slices.Sorted(maps.Keys(unread)) {
		absent = append(absent, "package "+source)
	}
	return absent
}

// shadowed finds the patterns that activate nothing more than another pattern. It returns one finding for all patterns that one
// pattern covers in one policy.
func (ps patterns) shadowed() []manifest.Finding {
	type pair struct {
		policy string
		by     *pattern
	}
	var order []pair
	covered := map[pair][]*pattern{}
	for _, p := range ps.all {
		if p.malformed() || !ps.seen[p] {
			continue
		}
		if by := ps.covering(p); by != nil {
			key := pair{p.policy, by}
			if covered[key] == nil {
				order = append(order, key)
			}
			covered[key] = append(covered[key], p)
		}
	}

	var found []manifest.Finding
	for _, key := range order {
		these := covered[key]
		what := fmt.Sprintf("pattern %q of policy %s is not needed: it is covered", these[0].Glob, key.policy)
		if len(these) > 1 {
			what = fmt.Sprintf("%d patterns of policy %s, %q first, are not needed: they are covered", len(these), key.policy, these[0].Glob)
		}
		fix := "take out what is not needed, or narrow the wider pattern"
		if !slices.ContainsFunc(these, func(p *pattern) bool { return p.text != key.by.text }) {
			fix = "take out what is not needed" // none is wider
		}
		found = append(found, manifest.Finding{
			Rule: RuleShadowed, Severity: manifest.Note, Origin: these[0].Origin, About: manifest.About{Object: crossplane.MRAP(key.policy), Field: fieldOfPatterns, Subject: key.by.Glob},
			Message: fmt.Sprintf("%s by %q of policy %s (%s)", what, key.by.Glob, key.by.policy, key.by.Origin),
			Fix:     fix,
		})
	}
	return found
}

// covering returns the first pattern that makes p superfluous, or nil. If patterns cover each other, the first one is
// needed.
func (ps patterns) covering(p *pattern) *pattern {
	if same := ps.exact[p.text]; p.exact && same[0] != p {
		return same[0]
	}
	for _, by := range ps.globs {
		if by != p && by.covers(p.glob) && (by.index < p.index || !p.covers(by.glob)) {
			return by
		}
	}
	return nil
}

func pausedPolicies(policies []catalogue.Policy) []manifest.Finding {
	var found []manifest.Finding
	for _, p := range policies {
		if p.Paused {
			found = append(found, manifest.Finding{
				Rule: RulePolicyPaused, Severity: manifest.Note, Origin: p.Origin, About: manifest.About{Object: crossplane.MRAP(p.Name)},
				Message: fmt.Sprintf("policy %s is paused: its %s activate nothing", p.Name, manifest.Count(len(p.Patterns), "pattern")),
				Fix:     "take out the annotation " + crossplane.PausedAnnotation,
			})
		}
	}
	return found
}

func pausedDefinitions(decisions []Decision) []manifest.Finding {
	var found []manifest.Finding
	for _, d := range decisions {
		if d.Active && d.Paused {
			found = append(found, manifest.Finding{
				Rule: RulePaused, Severity: manifest.Note, Origin: d.Origin(), About: manifest.About{Object: crossplane.MRD(d.Name)},
				Message: fmt.Sprintf("definition %s is active but paused: Crossplane does not make its CRD", d.Name),
				Fix:     "take out the annotation " + crossplane.PausedAnnotation,
			})
		}
	}
	return found
}

// unrestricted finds packages whose definitions are active regardless of policies. A policy that tries to choose among them
// deserves a warning.
func unrestricted(decisions []Decision) []manifest.Finding {
	count := map[*catalogue.Package]struct{ all, named int }{}
	var order []*catalogue.Package
	for _, d := range decisions {
		if len(d.Reasons) == 0 || d.Reasons[0].Cause != NoSafeStart {
			continue
		}
		n := count[d.Package]
		if n.all++; n.all == 1 {
			order = append(order, d.Package)
		}
		if len(d.Reasons) > 1 {
			n.named++
		}
		count[d.Package] = n
	}

	var found []manifest.Finding
	for _, p := range order {
		n := count[p]
		f := manifest.Finding{
			Rule: RuleUnrestricted, Severity: manifest.Note, Origin: p.Origin, About: manifest.About{Subject: p.Name},
			Message: fmt.Sprintf("%s has no safe-start capability: all its %s are active whatever the policies say", p.Name, manifest.Count(n.all, "definition")),
			Fix:     "use a version of the provider that declares the capability SafeStart",
		}
		if 0 < n.named && n.named < n.all {
			f.Severity = manifest.Warning
			f.Message += fmt.Sprintf("; they name %d", n.named)
		}
		found = append(found, f)
	}
	return found
}

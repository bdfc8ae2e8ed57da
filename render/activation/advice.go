package activation

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// An adviser guesses which definitions the author of a pattern without matches had in mind.
type adviser struct {
	names  []string                           // of definitions, sorted
	groups []string                           // of definitions, sorted
	kinds  map[string][]*catalogue.Definition // by lower-case kind, which is the singular
}

func adviserOf(definitions []*catalogue.Definition) adviser {
	a := adviser{kinds: map[string][]*catalogue.Definition{}}
	for _, d := range definitions {
		a.names = append(a.names, d.Name)
		a.groups = append(a.groups, d.Group)
		singular := strings.ToLower(d.Kind)
		a.kinds[singular] = append(a.kinds[singular], d)
	}
	slices.Sort(a.groups)
	a.groups = slices.Compact(a.groups)
	return a
}

// nothing returns the finding about a pattern that matches nothing.
func (a adviser) nothing(p *pattern) manifest.Finding {
	f := manifest.Finding{
		Rule: RuleNothing, Severity: manifest.Warning, Origin: p.Origin, About: p.about(),
		Message: fmt.Sprintf("pattern %q of policy %s matches none of the %s", p.Glob, p.policy, manifest.Count(len(a.names), "definition")),
		Fix:     "take it out, or correct it: a pattern matches the whole of <plural>.<group>",
	}
	for _, m := range mistakes {
		for _, meant := range m.meant(a, p.Glob) {
			if !a.matchesSome(meant) {
				continue
			}
			f.Fix = fmt.Sprintf("write %q: %s", meant, m.because)
			if m.rule != "" {
				f.Rule = m.rule
			}
			return f
		}
	}
	if near := a.nearest(p.glob); near != "" {
		f.Fix = fmt.Sprintf("did you mean %q?", near)
	}
	return f
}

// A mistake is a common mistake in patterns.
type mistake struct {
	rule    string // "" means the usual rule
	because string
	meant   func(a adviser, text string) []string // returns corrected patterns, which are tried in order
}

// mistakes are tried in order: the first with a correction that matches is the author's mistake.
var mistakes = []mistake{
	{"", "spaces count", func(_ adviser, text string) []string {
		return []string{strings.TrimSpace(text)}
	}},
	{"", "names are in lower case", func(_ adviser, text string) []string {
		return []string{strings.ToLower(text)}
	}},
	{"", "a class is negated by ^", func(_ adviser, text string) []string {
		return []string{strings.ReplaceAll(text, "[!", "[^")}
	}},
	{RuleSingular, "a definition is named by the plural", adviser.plurals},
	{"", "the namespaced kinds are in groups with .m.", func(_ adviser, text string) []string {
		return inserted(text, ".m")
	}},
	{"", "the commit has it only in the group without .m.", func(_ adviser, text string) []string {
		return []string{strings.Replace(text, ".m.", ".", 1)}
	}},
	{"", "a pattern matches the whole of <plural>.<group>, and this is a group", func(_ adviser, text string) []string {
		return []string{"*." + text}
	}},
	{"", "a pattern matches the whole of <plural>.<group>", func(_ adviser, text string) []string {
		return []string{text + ".*"}
	}},
}

// plurals returns the pattern with a plural as its first label, if that label is a kind in a group that the rest matches.
func (a adviser) plurals(text string) []string {
	kind, group, _ := strings.Cut(strings.TrimSpace(text), ".")
	rest := globOf(group)
	var meant []string
	for _, d := range a.kinds[strings.ToLower(kind)] {
		if rest.matches(d.Group) {
			meant = append(meant, d.Plural+"."+group)
		}
	}
	return meant
}

// inserted returns text with more inserted before each of its dots, the last dot first.
func inserted(text, more string) []string {
	var all []string
	for i := len(text) - 1; i > 0; i-- {
		if text[i] == '.' {
			all = append(all, text[:i]+more+text[i:])
		}
	}
	return all
}

func (a adviser) matchesSome(text string) bool {
	g := globOf(text)
	return slices.ContainsFunc(a.names, g.matches)
}

// knowsGroupOf reports whether the definitions contain the group at the end of a pattern, or a very similar group. The matches of
// such a pattern are known even if other packages are not.
func (a adviser) knowsGroupOf(text string) bool {
	_, group, _ := strings.Cut(text, ".")
	g := globOf(group)
	return slices.ContainsFunc(a.groups, g.matches)
}

// nearest returns the name, or the pattern for a whole group, with the smallest difference, or "" if nothing is near.
func (a adviser) nearest(g glob) string {
	candidates := a.names
	if !g.exact {
		candidates = nil
		for _, group := range a.groups {
			candidates = append(candidates, "*."+group)
		}
	}
	best, least := "", max(2, len(g.text)/5)+1
	for _, candidate := range candidates {
		if d := difference(g.text, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// difference returns the length of the part in which two strings differ.
func difference(a, b string) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return max(len(a), len(b))
}

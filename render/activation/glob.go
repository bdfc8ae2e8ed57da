package activation

import (
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/render/catalogue"
)

// A glob matches names as filepath.Match does on Linux. Like Crossplane, it treats an error as no match. path.Match
// gives the same answer on every system. The fixed beginning and end of a pattern are compared first, because they
// decide most cases.
type glob struct {
	text           string
	exact          bool // has no special characters, so it matches only itself
	prefix, suffix string
}

func globOf(text string) glob {
	first := strings.IndexAny(text, `*?[\`)
	if first < 0 {
		return glob{text: text, exact: true}
	}
	last := strings.LastIndexAny(text, `*?[]\`)
	return glob{text: text, prefix: text[:first], suffix: text[last+1:]}
}

func (g glob) matches(name string) bool {
	if g.exact {
		return g.text == name
	}
	if !strings.HasPrefix(name, g.prefix) || !strings.HasSuffix(name, g.suffix) {
		return false
	}
	matched, err := path.Match(g.text, name)
	return err == nil && matched
}

// malformed reports whether the pattern is invalid, so that it never matches.
func (g glob) malformed() bool {
	_, err := path.Match(g.text, "")
	return err != nil
}

// covers reports whether g certainly matches every name that other matches. It considers only stars: as a literal, a star in other
// can match only a star in g.
func (g glob) covers(other glob) bool {
	if g.text == other.text {
		return true
	}
	const unknown = `?[]\`
	return !strings.ContainsAny(g.text, unknown) && !strings.ContainsAny(other.text, unknown) && g.matches(other.text)
}

// A pattern is an entry of an unpaused policy.
type pattern struct {
	catalogue.Pattern
	glob
	policy string
	index  int // among all patterns
}

// patterns holds the entries of all unpaused policies, with policies in order of name.
type patterns struct {
	all   []*pattern
	exact map[string][]*pattern
	globs []*pattern
	seen  map[*pattern]bool // has matched something
}

func patternsOf(policies []catalogue.Policy) patterns {
	ps := patterns{exact: map[string][]*pattern{}, seen: map[*pattern]bool{}}
	for _, policy := range policies {
		if policy.Paused {
			continue
		}
		for _, entry := range policy.Patterns {
			p := &pattern{Pattern: entry, glob: globOf(entry.Glob), policy: policy.Name, index: len(ps.all)}
			ps.all = append(ps.all, p)
			switch {
			case p.exact:
				ps.exact[p.text] = append(ps.exact[p.text], p)
			default:
				ps.globs = append(ps.globs, p)
			}
		}
	}
	return ps
}

// matching returns the patterns that match a name, in order, and records that they have matched.
func (ps patterns) matching(name string) []*pattern {
	found := slices.Clone(ps.exact[name])
	for _, p := range ps.globs {
		if p.matches(name) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *pattern) int { return a.index - b.index })
	for _, p := range found {
		ps.seen[p] = true
	}
	return found
}

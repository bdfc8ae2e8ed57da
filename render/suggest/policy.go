package suggest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// PolicyName is the name of the policy that Headgate suggests if no policy of the commit fits.
const PolicyName = "headgate"

// Policy returns a policy with these entries as YAML. Each entry has a comment with the places that need it.
func Policy(name string, lines []Line) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\nspec:\n  activate:\n", crossplane.MRDAPIVersion, crossplane.KindMRAP.Kind, name)
	for _, l := range lines {
		fmt.Fprintf(&b, "  - %s\n", l.Entry())
	}
	return b.String()
}

// Entry returns the line as an item of a YAML list.
func (l Line) Entry() string { return scalar(l.Pattern) + " # " + l.Needs() }

// mostPlaces is the number of places that a comment names.
const mostPlaces = 2

// Needs returns the first places that need the line, as text.
func (l Line) Needs() string { return Places(l.NeededBy) }

// Places returns the first of some places, as text for one line.
func Places(all []manifest.Origin) string {
	var first []string
	for _, at := range all[:min(len(all), mostPlaces)] {
		first = append(first, oneLine(at.String()))
	}
	text := strings.Join(first, ", ")
	if more := len(all) - len(first); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// oneLine quotes a text that would leave a comment.
func oneLine(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return strconv.QuoteToASCII(s)
	}
	return s
}

var plain = regexp.MustCompile(`^[a-z][a-z0-9-]*\.[a-z0-9.-]*[a-z0-9]$`)

// scalar returns a pattern as a YAML scalar.
func scalar(pattern string) string {
	if plain.MatchString(pattern) {
		return pattern
	}
	return strconv.Quote(pattern)
}

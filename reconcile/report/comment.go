package report

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode/utf8"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// Comment is the comment on a pull request, of at most so many bytes: what a reviewer has to
// know, whole however little room there is for examples, and then, folded away, as many of the
// differences as fit. Everything that a commit could have written is quoted.
func Comment(r Report, limit int) string {
	const reserve = 500 // for the words below, and the counts above the differences
	var summary string
	for _, most := range []int{20, 10, 5, 2, 1, 0} {
		summary = comment{r, most}.summary()
		if len(summary)+reserve <= limit {
			break
		}
	}
	folded, left := differences(r, limit-len(summary)-reserve)
	if left > 0 {
		folded += fmt.Sprintf("\n%s not shown: there is no more room here. `headgate preview -o markdown` shows all.\n", moreOf(left, "difference is", "differences are"))
	}
	return summary + folded
}

// A comment is a report with no more than so many examples of one thing.
type comment struct {
	Report
	most int
}

func (c comment) summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### Headgate preview of %s\n\n**%s**\n", code(c.Sync.Name), c.headline())
	fmt.Fprintf(&b, "\n%s\n", c.between())
	if c.Error != "" {
		fmt.Fprintf(&b, "\n%s\n", fenced(clip(c.Error, 4000)))
	}
	c.opens(&b)
	c.leaves(&b)
	c.breaks(&b)
	c.steps(&b, "Held", "A pass leaves these alone until a person acts.", plan.Hold)
	approve(&b, c.Report)
	c.steps(&b, "Fails", "", failing)
	c.found(&b)
	if c.Preview != nil && c.Preview.Memory.Before != c.Preview.Memory.After {
		fmt.Fprintf(&b, "\n#### Memory of an API server\n\n%s: an estimate of what lives there; resident it may be twice as much.\n", capital(c.Preview.Memory.String()))
	}
	return b.String()
}

// headline is the verdict, first in one word.
func (c comment) headline() string {
	does := strings.Join(c.does(), ", ")
	switch trouble := len(c.troubles()); {
	case c.Error != "":
		return "Cannot be rendered."
	case c.Summary.Failed > 0:
		return "Fails: " + does + "."
	case c.Summary.Held > 0:
		return "Held: " + does + "."
	case len(c.Breaking()) > 0:
		return "Breaks: " + does + "."
	case does != "" && trouble > 0:
		return fmt.Sprintf("Changes: %s; %s.", does, moreOf(trouble, "finding", "findings"))
	case does != "":
		return "Changes: " + does + "."
	case trouble > 0:
		return fmt.Sprintf("Nothing of this sync changes; %s.", moreOf(trouble, "finding", "findings"))
	}
	return "Nothing of this sync changes."
}

// between says what was compared, and what is not known.
func (c comment) between() string {
	said := fmt.Sprintf("Of %.12s", c.Revision)
	if c.Preview != nil {
		said += fmt.Sprintf(" against %.12s", c.Preview.Base)
		if !c.Preview.Live {
			said += "; no cluster was asked (`--live` counts what exists)"
		}
	}
	if c.Summary.Definitions > 0 {
		said += ". After the merge: " + c.Summary.String()
	}
	said += "."
	if c.Preview != nil && c.Preview.Moved != "" {
		said += "\n\n" + escape(c.Preview.Moved) + "."
	}
	return said
}

func (c comment) opens(b *strings.Builder) {
	if c.Preview == nil || len(c.Preview.Opens) == 0 {
		return
	}
	fmt.Fprintf(b, "\n#### Becomes active: %d\n\nCannot be undone: Crossplane never makes an active definition inactive again.\n\n", len(c.Preview.Opens))
	c.list(b, len(c.Preview.Opens), func(i int) {
		o := c.Preview.Opens[i]
		fmt.Fprintf(b, "- %s", quoted(o.Name))
		if o.Already {
			b.WriteString(" (is active in the cluster already)")
		}
		b.WriteByte('\n')
		for j, reason := range o.Because {
			if j == 3 {
				fmt.Fprintf(b, "  - and %d more reasons\n", len(o.Because)-j)
				break
			}
			fmt.Fprintf(b, "  - %s\n", quoted(strings.TrimPrefix(Because(reason), "active: ")))
		}
	})
}

func (c comment) leaves(b *strings.Builder) {
	pruned := c.of(plan.Prune)
	if c.Preview != nil && len(c.Preview.Leaves) > 0 {
		fmt.Fprintf(b, "\n#### Stops being wanted, and stays: %d\n\nNothing activates these any more; their CRDs are kept.\n\n", len(c.Preview.Leaves))
		c.list(b, len(c.Preview.Leaves), func(i int) { fmt.Fprintf(b, "- %s\n", quoted(c.Preview.Leaves[i].Name)) })
	}
	if len(pruned) > 0 {
		fmt.Fprintf(b, "\n#### Is deleted: %d\n\n", len(pruned))
		c.list(b, len(pruned), func(i int) { step(b, pruned[i]) })
	}
}

func (c comment) breaks(b *strings.Builder) {
	broken := c.Breaking()
	if len(broken) == 0 {
		return
	}
	fmt.Fprintf(b, "\n#### Schemas that break: %d\n\nObjects or clients that are fine now may be refused, or lose what they say there.\n\n", len(broken))
	c.list(b, len(broken), func(i int) {
		s := broken[i]
		fmt.Fprintf(b, "- %s%s\n", quoted(s.ID.Name), at(s.Origin))
		for j, change := range s.Breaks {
			if j == mostChanges {
				fmt.Fprintf(b, "  - and %d more\n", len(s.Breaks)-j)
				break
			}
			fmt.Fprintf(b, "  - %s\n", quoted(change.String()))
		}
	})
}

// failing are the steps that the API server refuses, or that cannot be made.
const failing plan.Action = "fail"

func (c comment) of(action plan.Action) []Step {
	return slices.DeleteFunc(slices.Clone(c.Steps), func(s Step) bool {
		return (action == failing) != (s.Error != "") || action != failing && s.Action != action
	})
}

func (c comment) steps(b *strings.Builder, title, what string, action plan.Action) {
	steps := c.of(action)
	if len(steps) == 0 {
		return
	}
	fmt.Fprintf(b, "\n#### %s: %d\n\n", title, len(steps))
	if what != "" {
		fmt.Fprintf(b, "%s\n\n", what)
	}
	c.list(b, len(steps), func(i int) { step(b, steps[i]) })
}

func step(b *strings.Builder, s Step) {
	fmt.Fprintf(b, "- %s%s\n", quoted(s.ID.String()), at(s.Origin))
	for _, said := range []string{s.Reason, s.Error} {
		if said != "" {
			fmt.Fprintf(b, "  - %s\n", quoted(said))
		}
	}
}

// at is where an object is declared.
func at(origin *manifest.Origin) string {
	if origin == nil {
		return ""
	}
	return " in " + quoted(origin.String())
}

func (c comment) found(b *strings.Builder) {
	found := slices.Clone(c.Findings)
	slices.SortStableFunc(found, func(a, b manifest.Finding) int { return cmp.Compare(rank(a.Severity), rank(b.Severity)) })
	if len(found) == 0 {
		return
	}
	fmt.Fprintf(b, "\n#### Findings: %d\n\n", len(found))
	c.list(b, len(found), func(i int) {
		f := found[i]
		fmt.Fprintf(b, "- %s", f.Severity)
		if f.Origin.Path != "" {
			fmt.Fprintf(b, " %s", quoted(f.Origin.String()))
		}
		fmt.Fprintf(b, ": %s\n", quoted(f.Message))
		if f.Fix != "" {
			fmt.Fprintf(b, "  - %s\n", quoted(f.Fix))
		}
	})
}

func rank(s manifest.Severity) int {
	return slices.Index([]manifest.Severity{manifest.Error, manifest.Warning, manifest.Note}, s)
}

// list writes the first of a list, and how many more there are.
func (c comment) list(b *strings.Builder, n int, item func(i int)) {
	for i := range min(n, c.most) {
		item(i)
	}
	if n > c.most {
		fmt.Fprintf(b, "- and %d more\n", n-c.most)
	}
}

// differences are the steps that write, each folded away with what it changes, as many as
// there is room for. What differs only in words, or only by fields that nobody has to use, is
// counted: a provider upgrade changes two thousand CRDs so.
func differences(r Report, room int) (folded string, left int) {
	var b strings.Builder
	words, additions := 0, 0
	var shown []Step
	for _, s := range r.Steps {
		switch {
		case s.Error != "", s.Action == plan.Keep, s.Action == plan.Prune, s.Action == plan.Hold && s.Would != plan.Update:
		case s.Words:
			words++
		case s.Action == plan.Update && s.Added > 0 && len(s.Breaks) == 0:
			additions++
			shown = append(shown, s)
		default:
			shown = append(shown, s)
		}
	}
	if words > 0 {
		fmt.Fprintf(&b, "\n%s only in descriptions or in what generators write.\n", moreOf(words, "definition differs", "definitions differ"))
	}
	if additions > 0 {
		fmt.Fprintf(&b, "\n%s fields or versions that nobody has to use; nothing of them breaks.\n", moreOf(additions, "definition gains", "definitions gain"))
	}
	// What only says that it is there comes first, and what nobody has to use last.
	slices.SortStableFunc(shown, func(a, b Step) int {
		return cmp.Or(cmp.Compare(min(len(a.Changes), 1), min(len(b.Changes), 1)), cmp.Compare(a.Added, b.Added))
	})
	if len(shown) > 0 {
		fmt.Fprintf(&b, "\n#### Differences: %d\n\n", len(shown))
	}
	for i, s := range shown {
		block := difference(s)
		if b.Len()+len(block) > room {
			return b.String(), len(shown) - i
		}
		b.WriteString(block)
	}
	return b.String(), 0
}

// mostLines is how many lines of one object are shown.
const mostLines = 40

func difference(s Step) string {
	var lines []string
	line := func(sign, text string) { lines = append(lines, sign+" "+clip(clean(text), 500)) }
	for _, change := range s.Changes {
		if s.isDefinition() && isWords(change.Path) {
			continue
		}
		path := s.brief(change.Path)
		if change.From != "" {
			line("-", path+": "+change.From)
		}
		if change.To != "" {
			line("+", path+": "+change.To)
		}
	}
	if n := len(lines); n > mostLines {
		lines = append(lines[:mostLines], fmt.Sprintf("… and %d more lines", n-mostLines))
	}
	title := fmt.Sprintf("%s <code>%s</code>", s.told(), html.EscapeString(clip(clean(s.ID.String()), mostQuoted)))
	if len(lines) == 0 {
		return "- " + fmt.Sprintf("%s %s", s.told(), quoted(s.ID.String())) + at(s.Origin) + "\n"
	}
	text := strings.Join(lines, "\n")
	fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	return fmt.Sprintf("\n<details><summary>%s</summary>\n\n%sdiff\n%s\n%s\n\n</details>\n", title, fence, text, fence)
}

func (s Step) isDefinition() bool { return s.ID.IsCRD() || s.ID.IsMRD() }

// isWords says whether a change of a definition is one of words.
func isWords(path string) bool {
	return strings.HasSuffix(path, ".description") || strings.HasPrefix(path, "metadata.annotations.controller-gen.kubebuilder.io/")
}

// brief is the path of a change; of a definition without what is the same in all of them.
func (s Step) brief(path string) string {
	if !s.isDefinition() {
		return path
	}
	before, below, ok := strings.Cut(path, ".schema.openAPIV3Schema")
	if !ok {
		return path
	}
	version := strings.TrimSuffix(strings.TrimPrefix(before, "spec.versions["), "]")
	return version + " " + strings.TrimPrefix(strings.ReplaceAll(strings.ReplaceAll(below, ".properties.", "."), ".items.", "[]."), ".")
}

// mostQuoted is how many characters of one thing are quoted.
const mostQuoted = 300

func quoted(s string) string { return code(clip(s, mostQuoted)) }

// clip is at most so many characters of a text.
func clip(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func moreOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

package suggest

import (
	"fmt"
	"slices"
	"strings"
)

// context is the number of unchanged lines around a difference.
const context = 3

// Diff returns the edit as a unified diff with one hunk.
func (e Edit) Diff() string {
	from := "a/" + e.Path
	if e.New {
		from = "/dev/null"
	}
	before, after := linesOf(e.Before), linesOf(e.After)
	same := 0
	for same < len(before) && same < len(after) && before[same] == after[same] {
		same++
	}
	end := 0
	for end < len(before)-same && end < len(after)-same && before[len(before)-1-end] == after[len(after)-1-end] {
		end++
	}
	begin, tail := max(0, same-context), min(end, context)
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ b/%s\n@@ -%s +%s @@\n", from, e.Path, hunk(begin, len(before)-end+tail), hunk(begin, len(after)-end+tail))
	for _, line := range before[begin:same] {
		b.WriteString(marked(" ", line))
	}
	b.WriteString(between(before[same:len(before)-end], after[same:len(after)-end]))
	for _, line := range before[len(before)-end : len(before)-end+tail] {
		b.WriteString(marked(" ", line))
	}
	return b.String()
}

// hunk returns the range of the lines from begin to end as a diff writes it.
func hunk(begin, end int) string {
	if begin == end {
		return fmt.Sprintf("%d,0", begin)
	}
	return fmt.Sprintf("%d,%d", begin+1, end-begin)
}

func linesOf(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	return lines
}

func marked(mark, line string) string {
	if strings.HasSuffix(line, "\n") {
		return mark + line
	}
	return mark + line + "\n\\ No newline at end of file\n"
}

// between returns the differences of lines. An edit only takes lines out and puts others in, so what both have keeps its order.
func between(before, after []string) string {
	var b strings.Builder
	for _, line := range before {
		if i := slices.Index(after, line); i >= 0 {
			for _, added := range after[:i] {
				b.WriteString(marked("+", added))
			}
			after = after[i+1:]
			b.WriteString(marked(" ", line))
			continue
		}
		b.WriteString(marked("-", line))
	}
	for _, added := range after {
		b.WriteString(marked("+", added))
	}
	return b.String()
}

package report

import (
	"fmt"
	"strings"
)

// A room is the space that is left in a comment. The worst things take theirs first.
type room struct{ lines, bytes int }

// takes reports whether a text fits, and takes its space.
func (r *room) takes(text string) bool {
	lines := linesOf(text)
	if lines > r.lines || len(text) > r.bytes {
		return false
	}
	r.lines, r.bytes = r.lines-lines, r.bytes-len(text)
	return true
}

// The maximum number of items of a point, and the number that the worst point has before another one has any room.
const (
	mostItems    = 6
	itemsOfWorst = 4
)

// listed returns points as a list, the worst first. Each point takes as many items as leave a line to every later point, and the first
// one may take more. What does not fit is counted.
func listed(points []point, left room) string {
	var b strings.Builder
	if len(points) > 0 {
		b.WriteByte('\n')
	}
	for i, p := range points {
		later := len(points) - i - 1
		text := "- " + p.text + "\n"
		if left.lines < 2 && later > 0 || !left.takes(text) {
			fmt.Fprintf(&b, "- %s below.\n", moreOf(later+1, "less important point is", "less important points are"))
			break
		}
		least := 0
		if i == 0 {
			least = itemsOfWorst
		}
		b.WriteString(text + p.list(max(least, left.lines-later), &left))
	}
	return b.String()
}

// list returns as many items of a point as fit, and counts the others.
func (p point) list(lines int, left *room) string {
	lines = min(lines, left.lines-1, mostItems)
	shown := len(p.items)
	if shown > lines {
		shown = lines - 1 // one line counts the others
	}
	var b strings.Builder
	for i := range max(shown, 0) {
		if text := "  - " + p.items[i] + "\n"; left.takes(text) {
			b.WriteString(text)
			continue
		}
		shown = i
		break
	}
	if more := fmt.Sprintf("  - and %d more\n", len(p.items)-shown); shown > 0 && shown < len(p.items) && left.takes(more) {
		b.WriteString(more)
	}
	return b.String()
}

// A section is a folded list of similar things with a title.
type section struct {
	title string // "Becomes active: 3"
	intro string // may be empty
	items []item
}

// An item describes one or several things.
type item struct {
	text string
	of   int
}

// head returns the title and the introduction.
func (s section) head() string {
	head := "\n#### " + s.title + "\n"
	if s.intro != "" {
		head += "\n" + s.intro + "\n"
	}
	if len(s.items) > 0 {
		head += "\n"
	}
	return head
}

// counting is the maximum size of a line that counts the items without room.
const counting = len("- and 1000000 more\n")

// written returns sections in a number of bytes. Each has its title. The items of the first section have room before those of the next.
func written(sections []section, bytes int) string {
	for _, s := range sections {
		bytes -= len(s.head()) + counting
	}
	var b strings.Builder
	for _, s := range sections {
		b.WriteString(s.head())
		left := 0
		for _, item := range s.items {
			if left > 0 || len(item.text) > bytes {
				left += item.of
				continue
			}
			bytes -= len(item.text)
			b.WriteString(item.text)
		}
		if left > 0 {
			fmt.Fprintf(&b, "- and %d more\n", left)
		}
	}
	return b.String()
}

// itemsOf returns an item for each group of things that have something in common, the largest group first.
func itemsOf(groups [][]Step, text func(alike []Step) string) []item {
	items := make([]item, len(groups))
	for i, alike := range groups {
		items[i] = item{text(alike), len(alike)}
	}
	return items
}

// each returns an item for each of n things.
func each(n int, text func(i int) string) []item {
	items := make([]item, n)
	for i := range items {
		items[i] = item{text(i), 1}
	}
	return items
}

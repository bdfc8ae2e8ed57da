// Package legible makes texts safe to show: in a terminal, a log, a comment or JSON. A commit, a server or a user may have written them,
// with characters that hide, move or reorder what a person reads, and in any length.
package legible

import (
	"strings"
	"unicode"
)

// Invisible reports whether a character can manipulate a terminal or a page: control characters, and marks such as those for direction.
func Invisible(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

// Line returns a text in one line, without invisible characters.
func Line(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', unicode.In(r, unicode.Zl, unicode.Zp):
			return ' '
		case Invisible(r):
			return -1
		}
		return r
	}, s)
}

const (
	maxLine = 4 << 10  // maximum bytes per line of a Text
	maxText = 64 << 10 // maximum bytes of all lines
)

// Text returns the text of an error or an object's status, which a server may have written. It cleans every line, and limits the length
// for logs and comments.
func Text(s string) string {
	lines := strings.Split(Cut(s, maxText), "\n")
	for i, line := range lines {
		lines[i] = Cut(Line(line), maxLine)
	}
	return strings.Join(lines, "\n")
}

// Short returns a text as one line of at most this many bytes.
func Short(s string, most int) string {
	const dots = len("…")
	line := Line(strings.ToValidUTF8(s, ""))
	if len(line) > most {
		return Cut(line, most-dots)
	}
	return line
}

// Cut returns the first bytes of a text that is longer, and an ellipsis. It does not divide a character.
func Cut(s string, most int) string {
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

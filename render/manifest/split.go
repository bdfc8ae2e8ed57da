package manifest

import (
	"bytes"
	"errors"
)

// A part is one document of a stream: stream[start:end] decodes on its own. It
// holds content: empty and comment-only documents have no part.
type part struct {
	start, end int
	line       int // of stream[start], from 1
	first      int // of the first content
}

var errAfterEnd = errors.New("content after the document end marker '...': begin the next document with '---'")

// split finds the documents of a YAML stream as libyaml does: a marker stands at the
// beginning of a line, whatever surrounds it, because inside a quoted scalar or a
// flow collection it is an error and a block scalar is indented. An error is at the
// line that is returned.
func split(stream []byte) ([]part, int, error) {
	var (
		parts      []part
		begins     = finder{stream: stream, marker: []byte("---")}
		ends       = finder{stream: stream, marker: []byte("...")}
		line       = lines{stream: stream}
		start      int  // of the document at hand
		content    int  // where its content may begin: behind directives and marker
		directives bool // it begins with directives and waits for its marker
	)
	for {
		if content == start {
			start += skipBOM(stream[start:])
			content = start
		}
		next := min(begins.from(content), ends.from(content))
		first := content + blank(stream[content:next])
		dashes := next < len(stream) && stream[next] == '-'

		if content == start && first < next && stream[first] == '%' && atLineStart(stream, first) {
			directives = true
		}
		if directives && dashes {
			directives = false // the document is still to come, and begins with them
		} else {
			if first < next {
				parts = append(parts, part{start: start, end: next, line: line.of(start), first: line.of(first)})
			}
			directives, start = false, next
		}
		if next == len(stream) {
			return parts, 0, nil
		}

		content = next + len("---")
		behind, alone := restOfLine(stream, content)
		if !alone && !dashes {
			return nil, line.of(next), errAfterEnd
		}
		if alone && start == next {
			start, content = behind, behind
		}
	}
}

// restOfLine reports whether nothing but a comment follows in the line of stream[i],
// and where the next line begins.
func restOfLine(stream []byte, i int) (next int, alone bool) {
	next = i + blankLine(stream[i:])
	return next, next == len(stream) || atLineStart(stream, next)
}

// A finder finds the markers of one kind, in order.
type finder struct {
	stream, marker []byte
	next           int
}

// from is where the first marker at or behind i is; the length of the stream
// where there is none.
func (f *finder) from(i int) int {
	f.next = max(f.next, i)
	for f.next < len(f.stream) {
		j := bytes.Index(f.stream[f.next:], f.marker)
		if j < 0 {
			f.next = len(f.stream)
			break
		}
		f.next += j
		if atLineStart(f.stream, f.next) && endsWord(f.stream[f.next+len(f.marker):]) {
			break
		}
		f.next++
	}
	return f.next
}

// blank is how many bytes of blank and comment lines, and of blanks before the
// first content, s begins with.
func blank(s []byte) int {
	i := 0
	for i < len(s) {
		n := blankLine(s[i:])
		if n == 0 {
			break
		}
		i += n
	}
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

// blankLine is the length of the line that s begins with, if that is blank or a
// comment, and else 0. The rest of a line will do.
func blankLine(s []byte) int {
	i := 0
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	if i < len(s) && s[i] == '#' {
		for i < len(s) && lineBreak(s[i:]) == 0 {
			i++
		}
	}
	if i == len(s) {
		return i
	}
	if n := lineBreak(s[i:]); n > 0 {
		return i + n
	}
	return 0
}

// lineBreak is the length of the line break that s begins with: YAML 1.1 knows
// five. 0 means none.
func lineBreak(s []byte) int {
	switch {
	case len(s) == 0:
		return 0
	case s[0] == '\n':
		return 1
	case s[0] == '\r':
		if len(s) > 1 && s[1] == '\n' {
			return 2
		}
		return 1
	case bytes.HasPrefix(s, nextLine):
		return len(nextLine)
	case bytes.HasPrefix(s, lineSeparator), bytes.HasPrefix(s, paragraphSeparator):
		return len(lineSeparator)
	}
	return 0
}

var (
	byteOrderMark      = []byte("\uFEFF")
	nextLine           = []byte("\u0085")
	lineSeparator      = []byte("\u2028")
	paragraphSeparator = []byte("\u2029")
)

// skipBOM is the length of the byte order marks that s begins with. Concatenated
// files have them anywhere a document begins.
func skipBOM(s []byte) int {
	return len(s) - len(bytes.TrimLeft(s, "\uFEFF"))
}

func endsWord(rest []byte) bool {
	return len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t' || lineBreak(rest) > 0
}

func atLineStart(s []byte, i int) bool {
	if i == 0 {
		return true
	}
	switch s[i-1] {
	case '\n', '\r':
		return true
	case 0x85, 0xA8, 0xA9:
		before := s[:i]
		return bytes.HasSuffix(before, nextLine) ||
			bytes.HasSuffix(before, lineSeparator) || bytes.HasSuffix(before, paragraphSeparator)
	case 0xBF:
		return i == skipBOM(s)
	}
	return false
}

// lines counts the lines of a stream the way editors do.
type lines struct {
	stream    []byte
	at, count int
}

// of is the line of stream[i], from 1. Ask in ascending order.
func (l *lines) of(i int) int {
	if i > l.at {
		l.count += countBreaks(l.stream[l.at:i])
		if l.stream[i-1] == '\r' && i < len(l.stream) && l.stream[i] == '\n' {
			l.count-- // the break goes on
		}
		l.at = i
	}
	return l.count + 1
}

// lineIn is the line of s[i], from 1.
func lineIn(s []byte, i int) int { return (&lines{stream: s}).of(i) }

// countBreaks counts line feeds, and carriage returns without one.
func countBreaks(s []byte) int {
	n := bytes.Count(s, []byte("\n"))
	if cr := bytes.Count(s, []byte("\r")); cr > 0 {
		n += cr - bytes.Count(s, []byte("\r\n"))
	}
	return n
}

package manifest

import (
	"bytes"
	"errors"
)

// A part is one document of a stream: stream[start:end] decodes on its own. It has content: empty and comment-only documents have
// no part.
type part struct {
	start, end int
	line       int // the line of stream[start], from 1
	first      int // the line of the first content
}

var errAfterEnd = errors.New("content after the document end marker '...': begin the next document with '---'")

// split finds the documents of a YAML stream as libyaml does: a marker counts at the beginning of every line. That is safe, because
// a marker is an error inside a quoted scalar or a flow collection, and a block scalar is indented. It returns an error with its
// line.
func split(stream []byte) ([]part, int, error) {
	var (
		parts      []part
		begins     = finder{stream: stream, marker: []byte("---")}
		ends       = finder{stream: stream, marker: []byte("...")}
		line       = lines{stream: stream}
		start      int  // of the current document
		content    int  // the first possible start of its content, after directives and marker
		directives bool // it begins with directives, and its marker is still to come
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
			directives = false // the document begins with the directives and is still to come
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

// restOfLine returns where the line after stream[i] begins, and whether only blanks and a comment come before it.
func restOfLine(stream []byte, i int) (next int, alone bool) {
	next = i + blankLine(stream[i:])
	return next, next == len(stream) || atLineStart(stream, next)
}

// A finder finds the markers of one kind, in order.
type finder struct {
	stream, marker []byte
	next           int
}

// from returns the index of the first marker at or after i, or the length of the stream.
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

// blank returns the number of bytes of blank and comment lines at the start of s, plus the blanks before the first content.
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

// blankLine returns the length of the first line of s if it is blank or a comment, or else 0. s may start inside a line.
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

// lineBreak returns the length of the line break at the start of s, or 0. YAML 1.1 has five line breaks.
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

// skipBOM returns the length of the byte order marks at the start of s. Concatenated files may have them at the start of any
// document.
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

// lines counts the lines of a stream as editors do.
type lines struct {
	stream    []byte
	at, count int
}

// of returns the line of stream[i], from 1. Calls must have ascending i.
func (l *lines) of(i int) int {
	if i > l.at {
		l.count += countBreaks(l.stream[l.at:i])
		if l.stream[i-1] == '\r' && i < len(l.stream) && l.stream[i] == '\n' {
			l.count-- // the line break continues
		}
		l.at = i
	}
	return l.count + 1
}

// lineIn returns the line of s[i], from 1.
func lineIn(s []byte, i int) int { return (&lines{stream: s}).of(i) }

// countBreaks counts line feeds, and carriage returns without a line feed.
func countBreaks(s []byte) int {
	n := bytes.Count(s, []byte("\n"))
	if cr := bytes.Count(s, []byte("\r")); cr > 0 {
		n += cr - bytes.Count(s, []byte("\r\n"))
	}
	return n
}

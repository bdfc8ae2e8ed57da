package manifest

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
)

// A lexer knows just enough of YAML to distinguish entries of block collections from lines that continue a scalar. It
// refuses all other syntax.
//
// A line inside a plain scalar may look like an entry, a quote or a block scalar. That is harmless: such a line is indented more
// deeply than the key of that scalar, and so is everything that the lexer skips because of it.
type lexer struct {
	entry entry // of the last line

	// Lines deeper than skip belong to the scalar before them.
	skip int

	// quote is the quote of an open scalar that began on a line with indent quoteIndent. After it is closed, lines deeper than
	// quoteSkip are skipped.
	quote                  byte
	quoteIndent, quoteSkip int
}

// none is deeper than every line, so nothing is skipped.
const none = math.MaxInt

// An entry is the content of a line, if the line is an entry of a block collection.
type entry struct {
	indent     int
	dash       bool // an item of a sequence; the item has the key and value
	key, value scalar
}

// A scalar is a key, or the part of a value that is on the same line.
type scalar struct {
	form form
	text []byte
}

type form uint8

const (
	absent form = iota
	plain       // text may end with a comment
	quoted      // text is the content of the quotes, without escapes
	flow        // text is a flow collection
	other       // text is not known
)

// A class is the kind of a node, determined by its first byte. The lexer supports only one indicator before a blank, the dash, and
// handles it earlier.
type class uint8

const (
	isPlain class = iota
	isIndicator
	isQuote
	isBlock
	isFlow
	isRefused // anchors, aliases, tags, and bytes that no node can begin with
)

var classes = [256]class{
	'?': isIndicator, ':': isIndicator, '-': isIndicator,
	'\'': isQuote, '"': isQuote,
	'|': isBlock, '>': isBlock,
	'[': isFlow, '{': isFlow,
	'&': isRefused, '*': isRefused, '!': isRefused, '%': isRefused, '@': isRefused, '`': isRefused,
	',': isRefused, ']': isRefused, '}': isRefused, '#': isRefused,
}

// classOf returns the class of the text of a node, which is not empty.
func classOf(text []byte) class {
	c := classes[text[0]]
	if c != isIndicator {
		return c
	}
	if len(text) == 1 || text[1] == ' ' {
		return isRefused
	}
	return isPlain
}

// lex reads a line that is not blank, not a comment, and not skipped.
func (l *lexer) lex(line []byte, indent int) bool {
	l.skip = none
	l.entry = entry{indent: indent}

	text, dash := line[indent:], -1
	for text[0] == '-' && (len(text) == 1 || text[1] == ' ') {
		l.entry.dash, dash = true, len(line)-len(text)
		text = text[1:]
		text = text[indentOf(text):]
		if len(text) == 0 || text[0] == '#' {
			return true
		}
	}
	column := len(line) - len(text)

	switch classOf(text) {
	case isPlain:
		colon := plainKey(text)
		if colon < 0 {
			if dash >= 0 {
				l.skip = dash
			}
			l.entry.value = scalar{plain, text}
			return true
		}
		l.entry.key = scalar{plain, bytes.TrimRight(text[:colon], " ")}
		return l.lexValue(text[colon+1:], indent, column)

	case isQuote:
		s, rest, closed := unquote(text)
		if !closed {
			l.openQuote(text[0], indent, none)
			return true
		}
		if len(rest) == 0 || rest[0] != ':' {
			l.entry.value = s
			return ends(rest)
		}
		if len(rest) > 1 && rest[1] != ' ' {
			return false
		}
		l.entry.key = s
		return l.lexValue(rest[1:], indent, column)

	case isBlock:
		l.skip = dash
		l.entry.value.form = other
		return dash >= 0

	case isFlow:
		l.entry.value = scalar{flow, text}
		return isClosed(text)
	}
	return false
}

// lexValue reads the value of a key at a column: the rest of the line.
func (l *lexer) lexValue(text []byte, indent, column int) bool {
	text = text[indentOf(text):]
	if len(text) == 0 || text[0] == '#' {
		return true
	}
	l.skip = column
	switch classOf(text) {
	case isPlain:
		l.entry.value = scalar{plain, text}
		return true
	case isBlock:
		l.entry.value.form = other
		return true
	case isQuote:
		s, rest, closed := unquote(text)
		if !closed {
			l.openQuote(text[0], indent, column)
			return true
		}
		l.entry.value = s
		return ends(rest)
	case isFlow:
		l.entry.value = scalar{flow, bytes.TrimRight(text, " ")}
		return isClosed(text)
	}
	return false
}

// plainKey returns the index of the colon after a plain key, or -1.
func plainKey(text []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(text[at:], ':')
		if i < 0 {
			return -1
		}
		at += i + 1
		if at < len(text) && text[at] != ' ' {
			continue
		}
		key := text[:at-1]
		if i := bytes.IndexByte(key, '#'); i > 0 && bytes.Contains(key, []byte(" #")) {
			return -1 // the colon is in a comment
		}
		return at - 1
	}
}

// unquote reads the quoted scalar at the start of text. The form is other if it contains escapes.
func unquote(text []byte) (s scalar, rest []byte, closed bool) {
	end, escapes := closing(text[1:], text[0])
	if end < 0 {
		return scalar{form: other}, nil, false
	}
	s = scalar{quoted, text[1 : 1+end]}
	if escapes {
		s = scalar{form: other}
	}
	return s, text[end+2:], true
}

// closing returns the index of the quote that closes a scalar, or -1.
func closing(text []byte, quote byte) (end int, escapes bool) {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			escapes = true
			i++
		case text[i] != quote:
		case quote == '\'' && i+1 < len(text) && text[i+1] == '\'':
			escapes = true
			i++
		default:
			return i, escapes
		}
	}
	return -1, escapes
}

func (l *lexer) openQuote(quote byte, indent, skip int) {
	l.entry.value.form = other
	l.quote, l.quoteIndent, l.quoteSkip = quote, indent, skip
}

// closeQuote reads a line of an open quoted scalar. YAML allows such a line to be less indented than its key. The lexer does not,
// because some text only looks quoted.
func (l *lexer) closeQuote(line []byte, indent int) bool {
	if indent <= l.quoteIndent {
		return false
	}
	end, _ := closing(line, l.quote)
	if end < 0 {
		return true
	}
	l.quote, l.skip = 0, l.quoteSkip
	return ends(line[end+1:])
}

// ends reports whether nothing but a comment follows.
func ends(rest []byte) bool {
	n := indentOf(rest)
	return n == len(rest) || n > 0 && rest[n] == '#'
}

// isClosed reports whether text is a flow collection without nested collections, quotes and comments.
func isClosed(text []byte) bool {
	end := 1 + bytes.IndexAny(text[1:], "[]{}\"'#")
	return end > 0 && (text[end] == ']' || text[end] == '}') && indentOf(text[end+1:]) == len(text)-end-1
}

// string returns the string that a whole scalar decodes to. ok is false if it may decode to another type. string reads only one
// line of the scalar: the caller must reject a scalar that continues on the next line.
func (s scalar) string() (string, bool) {
	switch s.form {
	case quoted:
		return string(s.text), true
	case plain:
		text := s.text
		if i := bytes.Index(text, []byte(" #")); i >= 0 {
			text = text[:i]
		}
		text = bytes.TrimRight(text, " ")
		return string(text), resolvesToString(text)
	}
	return "", false
}

// resolvesToString reports whether sigs.k8s.io/yaml, which reads YAML 1.1, certainly decodes a plain scalar as a string.
func resolvesToString(text []byte) bool {
	switch text[0] {
	case '+', '-', '.', '~', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return false // possibly a number, a time or null
	case 'y', 'Y', 'n', 'N', 't', 'T', 'f', 'F', 'o', 'O':
		switch string(bytes.ToLower(text)) {
		case "y", "yes", "n", "no", "true", "false", "on", "off", "null":
			return false
		}
	}
	return true
}

// indentOf returns the number of leading spaces.
func indentOf(line []byte) int {
	const spaces = 0x2020202020202020
	i := 0
	for ; len(line)-i >= 8; i += 8 {
		if other := binary.LittleEndian.Uint64(line[i:]) ^ spaces; other != 0 {
			return i + bits.TrailingZeros64(other)/8
		}
	}
	for i < len(line) && line[i] == ' ' {
		i++
	}
	return i
}

// oneBreak reports whether the line feed is the only line break of YAML 1.1 in the document, and there are no tabs and byte order
// marks. Then lines are what they seem.
func oneBreak(doc []byte) bool {
	if bytes.IndexByte(doc, '\t') >= 0 || bytes.IndexByte(doc, '\r') >= 0 {
		return false
	}
	return isASCII(doc) || !bytes.Contains(doc, nextLine) && !bytes.Contains(doc, byteOrderMark) &&
		!bytes.Contains(doc, lineSeparator) && !bytes.Contains(doc, paragraphSeparator)
}

func isASCII(s []byte) bool {
	var all uint64
	for ; len(s) >= 8; s = s[8:] {
		all |= binary.LittleEndian.Uint64(s)
	}
	for _, b := range s {
		all |= uint64(b)
	}
	return all&0x8080808080808080 == 0
}

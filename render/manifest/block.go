package manifest

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// parseBlocks decodes a document in plain block style, several times as fast as the YAML library. Its contract is that of
// Scan: it answers only for what it surely knows, and its value is then the one of the library. It knows what generators write of
// CRDs: block collections, plain and quoted scalars over one or more lines, literal scalars, and empty flow collections. It
// leaves anchors, tags, comments behind values, floats, dates, and every error to the library.
func parseBlocks(doc []byte, depth int) (value any, ok bool) {
	if len(doc) == 0 || doc[len(doc)-1] != '\n' || !oneBreak(doc) || !printable(doc) {
		return nil, false
	}
	p := blocks{rest: string(doc), depth: depth, keys: map[string]string{}}
	if !p.next() {
		return nil, false
	}
	if p.indent == 0 && strings.TrimRight(p.text, " ") == "---" && !p.next() {
		return nil, false
	}
	value, ok = p.mapping(0)
	return value, ok && p.done
}

// printable reports whether a document holds no bytes that YAML refuses, and is text.
func printable(doc []byte) bool {
	var all uint8
	for _, c := range doc {
		all |= printed[c]
	}
	if all&aControl != 0 || all&inRune == 0 {
		return all == 0
	}
	for _, r := range string(doc) { // an invalid byte is utf8.RuneError
		switch {
		case r >= utf8.RuneSelf && r < 0xa0, r > 0xd7ff && r < 0xe000, r == utf8.RuneError, r == 0xfffe, r == 0xffff:
			return false
		}
	}
	return true
}

// What a byte may be, as bits.
const (
	aControl = 1 << iota // and no line feed
	inRune               // of more bytes than one
)

var printed = func() (of [256]uint8) {
	for c := range of {
		switch {
		case c < ' ' && c != '\n', c == 0x7f:
			of[c] = aControl
		case c >= utf8.RuneSelf:
			of[c] = inRune
		}
	}
	return of
}()

// blocks reads the lines of a document in turn.
type blocks struct {
	rest  string // behind the line
	depth int    // how many levels may follow
	keys  map[string]string

	// The line, without the blanks around it. An item of a sequence is a line of its own behind its dash.
	text   string
	indent int
	done   bool // there is none
}

// line takes the next line off the rest.
func (p *blocks) line() (text string, indent int, ok bool) {
	end := strings.IndexByte(p.rest, '\n')
	if end < 0 {
		return "", 0, false
	}
	text, p.rest = p.rest[:end], p.rest[end+1:]
	for indent < len(text) && text[indent] == ' ' {
		indent++
	}
	return text[indent:], indent, true
}

// next goes to the next line that is neither blank nor a comment. It reports whether there is one.
func (p *blocks) next() bool {
	for {
		text, indent, ok := p.line()
		if !ok {
			p.text, p.indent, p.done = "", -1, true
			return false
		}
		if text == "" || text[0] == '#' {
			continue
		}
		p.text, p.indent = text, indent
		return true
	}
}

// isDash reports whether the line is an item of a sequence.
func (p *blocks) isDash() bool {
	return !p.done && p.text[0] == '-' && (len(p.text) == 1 || p.text[1] == ' ')
}

// node reads a collection that begins with the line.
func (p *blocks) node() (any, bool) {
	if p.isDash() {
		return p.sequence(p.indent)
	}
	return p.mapping(p.indent)
}

// mapping reads the mapping whose first key is in the line.
func (p *blocks) mapping(indent int) (any, bool) {
	if p.depth--; p.depth < 0 {
		return nil, false
	}
	m := map[string]any{}
	for !p.done && p.indent == indent && !p.isDash() {
		if indent == 0 && (strings.HasPrefix(p.text, "---") || strings.HasPrefix(p.text, "...")) {
			return nil, false
		}
		key, value, ok := splitKey(p.text)
		if !ok {
			return nil, false
		}
		if _, twice := m[key]; twice {
			return nil, false
		}
		v, ok := p.value(value, indent, true)
		if !ok {
			return nil, false
		}
		m[p.kept(key)] = v
	}
	p.depth++
	return m, len(m) > 0 && p.indent <= indent
}

// kept returns a key that does not keep the document in memory. Schemas have few keys, many times.
func (p *blocks) kept(key string) string {
	known, ok := p.keys[key]
	if !ok {
		known = strings.Clone(key)
		p.keys[known] = known
	}
	return known
}

// sequence reads the sequence whose first item is in the line.
func (p *blocks) sequence(indent int) (any, bool) {
	if p.depth--; p.depth < 0 {
		return nil, false
	}
	var l []any
	for p.indent == indent && p.isDash() {
		item := strings.TrimLeft(p.text[1:], " ")
		column := indent + len(p.text) - len(item)
		var v any
		var ok bool
		switch {
		case item == "":
			v, ok = p.value("", indent, false)
		case item[0] == '-' && (len(item) == 1 || item[1] == ' '):
			p.text, p.indent = item, column
			v, ok = p.sequence(column)
		default:
			if _, _, isKey := splitKey(item); isKey {
				p.text, p.indent = item, column
				v, ok = p.mapping(column)
			} else {
				v, ok = p.value(item, indent, false)
			}
		}
		if !ok {
			return nil, false
		}
		l = append(l, v)
	}
	p.depth++
	return l, p.indent <= indent
}

// splitKey returns the key of a line and the text of its value. It answers only for keys that are strings.
func splitKey(text string) (key, value string, ok bool) {
	if text[0] == '\'' || text[0] == '"' {
		key, rest, closed := quotedIn(text)
		if !closed || len(rest) == 0 || rest[0] != ':' || len(rest) > 1 && rest[1] != ' ' || len(key) > maxKey {
			return "", "", false
		}
		return key, strings.Trim(rest[1:], " "), true
	}
	end := 0
	for ; ; end++ {
		if end == len(text) || end > maxKey {
			return "", "", false
		}
		if text[end] == ':' && (end+1 == len(text) || text[end+1] == ' ') {
			break
		}
		if text[end] == '#' {
			return "", "", false
		}
	}
	key = strings.TrimRight(text[:end], " ")
	if key == "" || classOf([]byte(key[:min(2, len(key))])) != isPlain || key == "<<" || key == "=" || !isString(key) {
		return "", "", false
	}
	return key, strings.Trim(text[end+1:], " "), true
}

// maxKey is much shorter than the longest key of YAML in one line, which is 1024 characters.
const maxKey = 256

// value reads the value whose text is in the line, or that begins below it, of a collection with an indent. It goes on to the
// line behind it.
func (p *blocks) value(text string, indent int, ofKey bool) (any, bool) {
	if text == "" {
		switch {
		case !p.next(): // the end
			return nil, true
		case p.indent > indent, ofKey && p.indent == indent && p.isDash():
			return p.node()
		}
		return nil, true
	}
	if text[0] == '#' {
		return nil, false
	}
	switch classOf([]byte(text[:min(2, len(text))])) {
	case isPlain:
		return p.plain(text, indent)
	case isQuote:
		return p.quoted(text, indent)
	case isBlock:
		return p.literal(text, indent)
	case isFlow:
		p.next()
		switch text {
		case "{}":
			return map[string]any{}, p.indent <= indent
		case "[]":
			return []any{}, p.indent <= indent
		}
	}
	return nil, false
}

// plain reads a plain scalar.
func (p *blocks) plain(text string, indent int) (any, bool) {
	text = strings.TrimRight(text, " ")
	folded, ok := p.folded(text, indent, func(line string) bool {
		return !strings.Contains(line, ": ") && line[len(line)-1] != ':' && !strings.Contains(line, " #")
	})
	if !ok {
		return nil, false
	}
	if len(folded) > len(text) {
		return folded, isString(folded)
	}
	v, ok := resolve(folded)
	if s, isText := v.(string); isText {
		return strings.Clone(s), ok
	}
	return v, ok
}

// folded reads the lines of a scalar that begins with text, up to the line behind it.
func (p *blocks) folded(text string, indent int, good func(line string) bool) (string, bool) {
	if !good(text) {
		return "", false
	}
	var b strings.Builder
	for empty := 0; ; {
		line, deep, ok := p.line()
		if !ok {
			p.text, p.indent, p.done = "", -1, true
			break
		}
		if line == "" {
			empty++
			continue
		}
		if deep <= indent || line[0] == '#' {
			p.text, p.indent = line, deep
			if line[0] == '#' {
				p.next()
			}
			break
		}
		line = strings.TrimRight(line, " ")
		if !good(line) {
			return "", false
		}
		if b.Len() == 0 {
			b.Grow(2*len(text) + len(line))
			b.WriteString(text)
		}
		breakLines(&b, empty)
		b.WriteString(line)
		empty = 0
	}
	if b.Len() == 0 {
		return text, true
	}
	return b.String(), true
}

// breakLines writes what the break of a folded line becomes, with empty lines behind it.
func breakLines(b *strings.Builder, empty int) {
	if empty == 0 {
		b.WriteByte(' ')
	}
	for range empty {
		b.WriteByte('\n')
	}
}

// quoted reads a quoted scalar.
func (p *blocks) quoted(text string, indent int) (any, bool) {
	if s, rest, closed := quotedIn(text); closed {
		p.next()
		return strings.Clone(s), rest == "" && p.indent <= indent
	}
	if text[0] == '"' {
		return nil, false // lines may end in a backslash
	}
	// The first line, without its quote, and the lines up to the closing quote.
	var b strings.Builder
	first := strings.TrimRight(text[1:], " ")
	if !closesNot(first) {
		return nil, false
	}
	b.WriteString(first)
	for empty := 0; ; {
		line, deep, ok := p.line()
		if !ok || line != "" && deep <= indent {
			return nil, false
		}
		if line == "" {
			empty++
			continue
		}
		breakLines(&b, empty)
		empty = 0
		if end, _ := closing([]byte(line), '\''); end >= 0 {
			b.WriteString(line[:end])
			p.next()
			return strings.ReplaceAll(b.String(), "''", "'"), strings.TrimRight(line[end+1:], " ") == "" && p.indent <= indent
		}
		b.WriteString(strings.TrimRight(line, " "))
	}
}

// closesNot reports whether the quotes in a line of a single-quoted scalar come in pairs.
func closesNot(line string) bool {
	end, _ := closing([]byte(line), '\'')
	return end < 0
}

// quotedIn reads the quoted scalar of one line that text begins with.
func quotedIn(text string) (s, rest string, closed bool) {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			return escapedIn(text)
		case text[i] != quote:
		case quote == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++
		default:
			s = text[1:i]
			if quote == '\'' {
				s = strings.ReplaceAll(s, "''", "'")
			}
			return s, strings.TrimRight(text[i+1:], " "), true
		}
	}
	return "", "", false
}

// escapedIn reads a double-quoted scalar with the escapes that JSON has, too, but for those of numbers.
func escapedIn(text string) (s, rest string, closed bool) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return b.String(), strings.TrimRight(text[i+1:], " "), true
		case '\\':
			i++
			at := -1
			if i < len(text) {
				at = strings.IndexByte(`"\/ntr`, text[i])
			}
			if at < 0 {
				return "", "", false
			}
			b.WriteByte("\"\\/\n\t\r"[at])
		default:
			b.WriteByte(text[i])
		}
	}
	return "", "", false
}

// literal reads a literal block scalar.
func (p *blocks) literal(header string, indent int) (any, bool) {
	var clip string
	switch header {
	case "|":
		clip = "\n"
	case "|-":
	default:
		return nil, false
	}
	deepest, ok := p.firstIndent()
	if !ok || deepest <= indent {
		return nil, false
	}
	var b strings.Builder
	for empty := 0; ; {
		line, deep, ok := p.line()
		if ok && line == "" {
			if deep > deepest {
				return nil, false // these blanks belong to the text
			}
			empty++
			continue
		}
		if !ok || deep < deepest {
			if p.text, p.indent, p.done = line, deep, !ok; !ok {
				p.indent = -1
			} else if line[0] == '#' {
				p.next()
			}
			b.WriteString(clip)
			return b.String(), p.indent <= indent
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		for range empty {
			b.WriteByte('\n')
		}
		empty = 0
		for range deep - deepest {
			b.WriteByte(' ')
		}
		b.WriteString(line)
	}
}

// firstIndent returns the indent of the next line that is not empty. It has no answer if a line before it holds blanks, which may
// be deeper.
func (p *blocks) firstIndent() (int, bool) {
	rest := p.rest
	defer func() { p.rest = rest }()
	for {
		line, indent, ok := p.line()
		if !ok || line != "" || indent > 0 {
			return indent, ok && line != ""
		}
	}
}

// resolve returns the value of a plain scalar in one line.
func resolve(text string) (any, bool) {
	switch text {
	case "true":
		return true, true
	case "false":
		return false, true
	case "null", "~":
		return nil, true
	}
	if n, ok := integerIn(text); ok {
		return n, true
	}
	return text, isString(text)
}

// integerIn reads a decimal integer as JSON has it.
func integerIn(text string) (int64, bool) {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || len(digits) > 18 || digits[0] == '0' && len(text) > 1 {
		return 0, false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// isString reports whether a plain scalar is surely a string.
func isString(text string) bool {
	if resolvesToString([]byte(text)) {
		return true
	}
	switch text[0] {
	case '~', 'y', 'Y', 'n', 'N', 't', 'T', 'f', 'F', 'o', 'O':
		return false
	}
	// No number and no time holds one of these letters.
	return strings.ContainsAny(text, "ghjklmpqrsuvwyGHJKLMPQRSUVWY")
}

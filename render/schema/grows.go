package schema

import (
	"bytes"
	"slices"
	"strings"
)

// Grows reports whether the YAML text of a new definition is known to be that of the old one with more optional fields and other
// descriptions, so that it breaks nothing. It reads lines as generators of CRDs write them, and never decodes the texts, which
// takes a hundred times as long. It returns false for anything else.
func Grows(was, is []byte) bool {
	for _, unusual := range []string{"\r", "\u0085", "\u2028", "\u2029"} { // more line breaks of YAML
		if bytes.Contains(is, []byte(unusual)) || bytes.Contains(was, []byte(unusual)) {
			return false
		}
	}
	if bytes.Contains(was, []byte("x-kubernetes-preserve-unknown-fields")) {
		return false // a new field may refuse a value that was kept
	}
	old, now := text{rest: was, block: none}, text{rest: is, block: none}
	for len(now.rest) > 0 {
		if line := now.line(); bytes.Equal(line, old.line()) && len(old.rest) > 0 {
			old.skip()
			if !now.read() {
				return false
			}
			continue
		}
		if !now.grows(&old) {
			return false
		}
	}
	return len(old.rest) == 0 && now.quote == 0
}

// A section is the meaning of the entries below a key.
type section int

const (
	elsewhere section = iota
	ofDefinition
	ofMetadata
	ofAnnotations
	ofSpec
	ofVersions
	ofVersion
	ofSchemaHolder
	ofSchema
	ofProperties
)

// places maps the entries of a section to the places below them. "" is any entry, and "-" an item.
var places = map[section]map[string]section{
	ofDefinition:   {"metadata": ofMetadata, "spec": ofSpec},
	ofMetadata:     {"annotations": ofAnnotations},
	ofSpec:         {"versions": ofVersions},
	ofVersions:     {"-": ofVersion},
	ofVersion:      {"schema": ofSchemaHolder},
	ofSchemaHolder: {"openAPIV3Schema": ofSchema},
	ofSchema:       {"properties": ofProperties, "items": ofSchema, "additionalProperties": ofSchema},
	ofProperties:   {"": ofSchema},
}

func (p section) below(key string) section {
	if p == ofProperties && key != "-" {
		key = ""
	}
	return places[p][key]
}

// A text is YAML that is read line by line.
type text struct {
	rest  []byte
	open  []entry // the entries that contain the next line
	quote byte    // the quote that the next line is inside of
	block int     // the indentation of a key or an item with a value: deeper lines continue the value
}

// none is the block of a line that continues no value.
const none = 1 << 30

// An entry is a key of a mapping or an item of a list.
type entry struct {
	indent int // twice the number of blanks; one more for an item, because a list may be as deep as its key
	of     section
}

// line returns the next line.
func (t *text) line() []byte {
	line, _, _ := bytes.Cut(t.rest, []byte("\n"))
	return line
}

func (t *text) skip() { _, t.rest, _ = bytes.Cut(t.rest, []byte("\n")) }

// depth returns the number of blanks before a line, and none for an empty one.
func depth(line []byte) int {
	if rest := bytes.TrimLeft(line, " "); len(rest) > 0 {
		return len(line) - len(rest)
	}
	return none
}

// keyOf returns the key and the value of a line, and no key unless the line is the entry of a mapping with a plain key.
func keyOf(line []byte) (key, value []byte) {
	n := 0
	for n < len(line) && inKey[line[n]] {
		n++
	}
	switch rest := line[n:]; {
	case n == 0, line[0] == '-':
		return nil, nil
	case string(rest) == ":":
		return line[:n], nil
	case bytes.HasPrefix(rest, []byte(": ")):
		return line[:n], bytes.TrimLeft(rest[1:], " ")
	}
	return nil, nil
}

// inKey lists the characters of plain keys.
var inKey = func() (all [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$./-") {
		all[c] = true
	}
	return all
}()

// value reads the beginning of a value, and reports whether it has a simple form: it ends with its line or its quote, or continues in
// deeper lines.
func (t *text) value(value []byte) bool {
	if len(value) == 0 {
		return true
	}
	switch first := value[0]; first {
	case '"', '\'':
		t.quote = first
		return t.quoted(value[1:])
	case '{', '[':
		return string(value) == "{}" || string(value) == "[]"
	default:
		return strings.IndexByte("\t&*!%@`#?", first) < 0
	}
}

// quoted reads a line inside quotes, and returns false if anything follows their end.
func (t *text) quoted(line []byte) bool {
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && t.quote == '"', line[i] == '\'' && t.quote == '\'' && i+1 < len(line) && line[i+1] == '\'':
			i++
		case line[i] == t.quote:
			t.quote = 0
			return i+1 == len(line)
		}
	}
	return true
}

// read reads the next line. It returns false unless the line is a key, an item or text of a simple form, which ends with the line or
// continues in deeper lines.
func (t *text) read() bool {
	line := t.line()
	t.skip()
	indent := depth(line)
	switch {
	case t.quote != 0:
		return t.quoted(line)
	case indent > t.block, indent == none:
		return true
	}
	rest := line[indent:]
	t.block = none
	for bytes.HasPrefix(rest, []byte("- ")) {
		t.enter(2*indent+1, "-")
		t.block = indent
		indent, rest = indent+2, rest[2:]
	}
	key, value := keyOf(rest)
	if key == nil {
		return t.block != none && t.value(rest) // the value of an item
	}
	t.enter(2*indent, string(key))
	t.block = none
	if len(value) > 0 {
		t.block = indent
	}
	return t.value(value)
}

// enter opens an entry, and closes those that it ends.
func (t *text) enter(indent int, key string) {
	t.leave(indent)
	t.open = append(t.open, entry{indent, t.at().below(key)})
}

func (t *text) leave(indent int) {
	for len(t.open) > 0 && t.open[len(t.open)-1].indent >= indent {
		t.open = t.open[:len(t.open)-1]
	}
}

// at returns the place of the next entry.
func (t *text) at() section {
	if len(t.open) == 0 {
		return ofDefinition
	}
	return t.open[len(t.open)-1].of
}

// grows reads the entry at which the texts differ: a property that only the new one has, or words.
func (t *text) grows(old *text) bool {
	line := t.line()
	indent := depth(line)
	if t.quote != 0 || indent == none || indent > t.block {
		return false
	}
	key, _ := keyOf(line[indent:])
	if key == nil {
		return false
	}
	name := string(key)
	t.leave(2 * indent)
	switch at := t.at(); {
	case at == ofProperties && !slices.Contains(ofObjects, name):
		own := "\n" + strings.Repeat(" ", indent+2) + "default:" // it appears in existing objects
		added := string(t.entry(indent))
		return added != "" && !strings.Contains(added, own) && !strings.Contains(added, "x-kubernetes-validations")
	case at == ofSchema && name == "description", at == ofAnnotations && Generated(name):
		before := old.line()
		if depth(before) != indent || !strings.HasPrefix(string(before[indent:]), name+":") {
			return false
		}
		return t.entry(indent) != nil && old.entry(indent) != nil
	}
	return false
}

// ofObjects lists fields that an object has even if its schema does not declare them.
var ofObjects = []string{"apiVersion", "kind", "metadata"}

// entry reads the entry of a mapping, and returns its text, or nil if that has no simple form.
func (t *text) entry(indent int) []byte {
	all := t.rest
	for first := true; len(t.rest) > 0; first = false {
		next := depth(t.line())
		if !first && t.quote == 0 && next <= indent && !(next == indent && bytes.HasPrefix(t.line()[indent:], []byte("- "))) {
			break
		}
		if !t.read() {
			return nil
		}
	}
	return all[:len(all)-len(t.rest)]
}

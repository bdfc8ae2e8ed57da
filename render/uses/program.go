package uses

import (
	"regexp"
	"strings"

	"headgate.dev/headgate/render/catalogue"
)

// A language decides what is a comment, and which models a program imports.
type language struct {
	comment string // what begins a comment; "" if it is not known
}

func languageNamed(in catalogue.Language) language {
	switch in {
	case catalogue.KCL, catalogue.Python:
		return language{"#"}
	case catalogue.CUE:
		return language{"//"}
	case catalogue.Template:
	}
	return language{}
}

// languageOf returns the language of the program in an input.
func languageOf(input map[string]any) language {
	version, _ := input["apiVersion"].(string)
	kind, _ := input["kind"].(string)
	name := strings.ToLower(version + " " + kind)
	switch {
	case strings.Contains(name, "kcl"):
		return languageNamed(catalogue.KCL)
	case strings.Contains(name, "python"):
		return languageNamed(catalogue.Python)
	case strings.Contains(name, "cue"):
		return languageNamed(catalogue.CUE)
	}
	return language{}
}

// An InText is an object in a text, with the kind that it names.
type InText struct {
	APIVersion, Kind string
	Line             int // from 0
	Indent           int

	Folded bool `json:",omitempty"` // see Name
	Guess  bool `json:",omitempty"`
}

// Computed reports whether a text computes the kind, so that it is not known.
func (f InText) Computed() bool { return strings.Contains(f.APIVersion+f.Kind, "{{") }

func (f InText) name() (Name, bool) {
	name, ok := nameOf(f.APIVersion, f.Kind)
	name.Folded, name.Guess = f.Folded, f.Guess
	return name, ok && !f.Computed()
}

// inProgram finds the kinds that a program names: an apiVersion and a kind with the same brackets around them, and types of generated
// models. It understands no language: a kind that the program computes is not found.
func inProgram(text string, in language) []InText {
	s := scanner{text: text, in: in, open: map[int]InText{}, constants: map[string]string{}}
	for s.at < len(s.text) {
		s.next()
	}
	return append(s.found, inModels(text)...)
}

// A scanner reads a program from its beginning to its end.
type scanner struct {
	text  string
	in    language
	at    int
	line  int
	depth int // of brackets

	open      map[int]InText    // the half of a name that was found last, by depth
	constants map[string]string // texts by variable
	found     []InText
}

// next reads the next token.
func (s *scanner) next() {
	c := s.text[s.at]
	switch {
	case c == '\n':
		s.line++
		s.at++
	case s.in.comment != "" && strings.HasPrefix(s.text[s.at:], s.in.comment):
		s.at += lineEnd(s.text[s.at:])
	case strings.IndexByte("([{", c) >= 0:
		s.depth++
		s.at++
	case strings.IndexByte(")]}", c) >= 0:
		delete(s.open, s.depth)
		s.depth--
		s.at++
	case c == '"' || c == '\'':
		s.quoted()
	case isWord(c):
		n := wordEnd(s.text[s.at:])
		word := s.text[s.at : s.at+n]
		s.at += n
		s.key(word)
	default:
		s.at++
	}
}

// quoted reads a text, which may be a key, or may hold YAML.
func (s *scanner) quoted() {
	text, n, long := quotedAt(s.text[s.at:])
	line := s.line
	s.line += strings.Count(s.text[s.at:s.at+n], "\n")
	s.at += n
	if !long {
		s.key(text)
		return
	}
	for _, f := range InTemplate(text) {
		f.Line += line
		s.found = append(s.found, f)
	}
}

// assigned matches what stands between a key and its value: the end of an index, an optional field, the type of a variable.
var assigned = regexp.MustCompile(`^\]?[ \t]*[?!]?[ \t]*(?::[ \t]*[A-Za-z_][\w.]*(?:\[[^\]\n]*\])?[ \t]*=|[:=])[ \t]*([rRuUbBfF]?)(["'])`)

// refers matches a key with a variable as its value.
var refers = regexp.MustCompile(`^\]?[ \t]*[:=][ \t]*([A-Za-z_]\w*)`)

// key handles a word that may be a key: an apiVersion, a kind, or a variable.
func (s *scanner) key(word string) {
	rest := s.text[s.at:]
	if len(rest) > 200 {
		rest = rest[:200]
	}
	depth := s.depth
	if strings.HasPrefix(rest, "]") {
		depth-- // x["kind"] = "Bucket"
	}
	value, line, ok := "", s.line, false
	if m := assigned.FindStringSubmatchIndex(rest); m != nil {
		begin := s.at + m[4]
		var long bool
		value, _, long = quotedAt(s.text[begin:])
		ok = !long && !isComputed(value, strings.EqualFold(rest[m[2]:m[3]], "f"))
	} else if m := refers.FindStringSubmatch(rest); m != nil {
		value, ok = s.constants[m[1]]
	}
	switch {
	case !ok:
	case word == "apiVersion", word == "api_version":
		s.half(depth, InText{APIVersion: value, Line: line})
	case word == "kind":
		s.half(depth, InText{Kind: value, Line: line})
	default:
		s.constants[word] = value
	}
}

// isComputed reports whether a text holds parts that the program fills in.
func isComputed(value string, formatted bool) bool {
	return strings.Contains(value, "${") || strings.Contains(value, `\(`) || formatted && strings.Contains(value, "{")
}

// half joins an apiVersion and a kind at one depth.
func (s *scanner) half(depth int, h InText) {
	other := s.open[depth]
	switch {
	case h.Kind == "" && other.Kind != "" && other.APIVersion == "":
		s.found = append(s.found, InText{APIVersion: h.APIVersion, Kind: other.Kind, Line: other.Line})
	case h.Kind != "" && other.APIVersion != "":
		s.found = append(s.found, InText{APIVersion: other.APIVersion, Kind: h.Kind, Line: h.Line})
	default:
		s.open[depth] = h
		return
	}
	delete(s.open, depth)
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func wordEnd(s string) int {
	n := 0
	for n < len(s) && isWord(s[n]) {
		n++
	}
	return n
}

func lineEnd(s string) int {
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		return n
	}
	return len(s)
}

// quotedAt returns the text at the beginning of s and its length with the quotes. long is set for a text in three quotes. A text that
// does not end ends with its line.
func quotedAt(s string) (text string, n int, long bool) {
	quote := s[:1]
	if three := strings.Repeat(quote, 3); strings.HasPrefix(s, three) {
		end := strings.Index(s[3:], three)
		if end < 0 {
			return s[3:], len(s), true
		}
		return s[3 : 3+end], end + 6, true
	}
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] != '\n':
			i++
		case s[i] == quote[0]:
			return s[1:i], i + 1, false
		case s[i] == '\n':
			return s[1:i], i, false
		}
	}
	return s[1:], len(s), false
}

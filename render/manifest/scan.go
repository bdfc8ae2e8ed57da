package manifest

import (
	"bytes"
)

// Scan returns the header of a document without decoding it. ok is true only for plain block style. The header then agrees with the
// decoder, if the document can be decoded: Scan does not check that.
func Scan(doc []byte) (Header, bool) {
	if !oneBreak(doc) {
		return Header{}, false
	}
	s := scanner{open: [3]block{{in: root}}}
	s.lexer.skip = none
	for len(doc) > 0 {
		var line []byte
		if end := bytes.IndexByte(doc, '\n'); end >= 0 {
			line, doc = doc[:end], doc[end+1:]
		} else {
			line, doc = doc, nil
		}
		indent := indentOf(line)
		switch {
		case indent == len(line):
		case s.quote != 0:
			if !s.closeQuote(line, indent) {
				return Header{}, false
			}
		case indent > s.skip:
			if s.taken { // the scalar continues after its first line
				return Header{}, false
			}
		case line[indent] == '#':
		case indent == 0 && isMarker(line, "---"):
			if s.begun || !ends(line[len("---"):]) {
				return Header{}, false
			}
			s.begun, s.skip = true, none
		case indent == 0 && isMarker(line, "..."):
			return Header{}, false
		case !s.lex(line, indent) || !s.take():
			return Header{}, false
		}
	}
	return s.header, s.open[0].had && s.quote == 0
}

func isMarker(line []byte, marker string) bool {
	return bytes.HasPrefix(line, []byte(marker)) && (len(line) == len(marker) || line[len(marker)] == ' ')
}

// A scanner follows the mappings that contain the header.
type scanner struct {
	lexer

	header    Header
	annotated map[string]bool // every annotation key so far
	seen      place           // every wanted key so far
	taken     bool            // the last entry was a scalar that belongs to the header
	begun     bool            // a marker or a key came before

	// The open mappings, outermost first: open[0] to open[depth].
	open  [3]block
	depth int
}

// A block is an open mapping that belongs to the header.
type block struct {
	in     place
	column int  // the column of its keys; unknown before the first key
	had    bool // it has had a key
	holds  bool // the value of its last key is not needed and may continue
}

// A place is a wanted key, or the mapping that is its value. Places are bits of a set.
type place uint16

const (
	root place = 1 << iota
	metadata
	annotations
	spec
	names

	apiVersion
	kind
	metadataName
	metadataNamespace
	specGroup
	specScope
	specState
	namesKind
	namesPlural

	mappings = metadata | annotations | spec | names
)

// wanted returns the place of a key in a mapping, or 0.
func wanted(in place, key []byte) place {
	switch in {
	case root:
		switch string(key) {
		case "apiVersion":
			return apiVersion
		case "kind":
			return kind
		case "metadata":
			return metadata
		case "spec":
			return spec
		}
	case metadata:
		switch string(key) {
		case "name":
			return metadataName
		case "namespace":
			return metadataNamespace
		case "annotations":
			return annotations
		}
	case spec:
		switch string(key) {
		case "group":
			return specGroup
		case "names":
			return names
		case "scope":
			return specScope
		case "state":
			return specState
		}
	case names:
		switch string(key) {
		case "kind":
			return namesKind
		case "plural":
			return namesPlural
		}
	}
	return 0
}

func (h *Header) field(p place) *string {
	switch p {
	case apiVersion:
		return &h.APIVersion
	case kind:
		return &h.Kind
	case metadataName:
		return &h.Name
	case metadataNamespace:
		return &h.Namespace
	case specGroup:
		return &h.Spec.Group
	case specScope:
		return &h.Spec.Scope
	case specState:
		return &h.Spec.State
	case namesKind:
		return &h.Spec.Kind
	default: // namesPlural, the last of the places that are scalars
		return &h.Spec.Plural
	}
}

// take adds the entry of the lexer. It reports whether the position in the document is still known.
func (s *scanner) take() bool {
	s.taken, s.begun = false, true
	e := &s.entry

	depth := s.depth
	if depth > 0 && !s.open[depth].had {
		if e.indent > s.open[depth-1].column {
			s.open[depth].column = e.indent
		} else {
			depth-- // it is empty
		}
	}
	for e.indent < s.open[depth].column {
		depth--
	}
	in := &s.open[depth]
	switch {
	case e.indent > in.column: // inside the value of the last key
		return depth == s.depth && in.holds
	case e.dash: // also inside: a sequence may have the same indent as its key
		s.depth = depth
		return in.holds
	case e.key.form != plain && e.key.form != quoted:
		return false
	}
	s.depth, in.had, in.holds = depth, true, false
	return s.takeKey(in)
}

func (s *scanner) takeKey(in *block) bool {
	key, value := s.entry.key, s.entry.value
	if key.form == plain && string(key.text) == "<<" {
		return false
	}
	if in.in == annotations {
		return s.takeAnnotation()
	}

	p := wanted(in.in, key.text)
	if p&s.seen != 0 {
		return false
	}
	s.seen |= p
	switch {
	case p == 0:
		in.holds = true
		return true
	case p&mappings == 0:
		text, ok := value.string()
		*s.header.field(p), s.taken = text, true
		return ok
	case value.form == absent:
		s.depth++
		s.open[s.depth] = block{in: p}
		return true
	default:
		return value.form == flow && string(value.text) == "{}"
	}
}

func (s *scanner) takeAnnotation() bool {
	key, isString := s.entry.key.string()
	value, ok := s.entry.value.string()
	if !isString || !ok {
		return false
	}
	if s.annotated == nil {
		s.annotated = make(map[string]bool)
	}
	if s.annotated[key] {
		return false
	}
	s.header.annotate(key, value)
	s.annotated[key], s.taken = true, true
	return true
}

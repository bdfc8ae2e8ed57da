package manifest

import (
	"encoding/binary"
	"slices"
)

// An outline is a file without the bodies of its documents, as a Memo stores it.
type outline struct {
	size      int64 // of the file
	parts     int
	documents []outlined
}

// An outlined document is a part of its file, or an item of the List in that part.
type outlined struct {
	header Header
	line   int // the line on which it begins
	part   part
	item   int // its index in the List, counting nested Lists; notItem if it is not in a List
	nodes  int // as countNodes counts them; for a List, the nodes of its first item
}

const notItem = -1

// holdsSecret reports whether a document of the file is a Secret.
func (o outline) holdsSecret() bool {
	return slices.ContainsFunc(o.documents, func(d outlined) bool { return d.header.Kind == "Secret" })
}

// encode writes an outline in the only form that decodeOutline accepts.
func (o outline) encode() string {
	b := appendNumber(nil, int(o.size))
	b = appendNumber(b, o.parts)
	b = appendNumber(b, len(o.documents))
	for i := range o.documents {
		d := &o.documents[i]
		for _, n := range []int{d.line, d.part.start, d.part.end, d.part.line, d.part.first, d.item - notItem, d.nodes} {
			b = appendNumber(b, n)
		}
		for _, field := range d.header.fields() {
			b = appendText(b, *field)
		}
		for _, flag := range d.header.flags() {
			b = appendFlag(b, *flag)
		}
	}
	return string(b)
}

// fields returns the texts of a header.
func (h *Header) fields() [9]*string {
	return [9]*string{
		&h.APIVersion, &h.Kind, &h.Namespace, &h.Name,
		&h.Spec.Group, &h.Spec.Kind, &h.Spec.Plural, &h.Spec.Scope, &h.Spec.State,
	}
}

// flags returns the other fields of a header.
func (h *Header) flags() [4]*bool { return [4]*bool{&h.Local, &h.Paused, &h.Hook, &h.Unsynced} }

func appendNumber(b []byte, n int) []byte {
	return binary.AppendUvarint(b, uint64(n)) //nolint:gosec // none is negative
}

func appendText(b []byte, s string) []byte { return append(appendNumber(b, len(s)), s...) }

func appendFlag(b []byte, flag bool) []byte {
	if flag {
		return append(b, 1)
	}
	return append(b, 0)
}

// decodeOutline reads the output of encode, and nothing else. The headers share strings with from. The documents reuse spare if
// they fit.
func decodeOutline(from string, spare []outlined) (outline, bool) {
	s := spool{rest: from}
	o := outline{size: int64(s.number()), parts: s.number()}
	n := s.number()
	if n > len(s.rest) {
		return outline{}, false
	}
	o.documents = slices.Grow(spare[:0], n)[:n]
	for i := range o.documents {
		d := &o.documents[i]
		for _, field := range []*int{&d.line, &d.part.start, &d.part.end, &d.part.line, &d.part.first, &d.item, &d.nodes} {
			*field = s.number()
		}
		d.item += notItem
		for _, field := range d.header.fields() {
			*field = s.text()
		}
		for _, flag := range d.header.flags() {
			*flag = s.flag()
		}
		if d.part.start > d.part.end || int64(d.part.end) > o.size {
			s.broken = true
		}
	}
	return o, !s.broken && s.rest == ""
}

// A spool is the rest of an encoded outline.
type spool struct {
	rest   string
	broken bool // set if the input is not a valid encoding
}

func (s *spool) number() int {
	var n uint64
	for i := 0; i < len(s.rest) && i < 7; i++ { // 7 bytes hold 49 bits: no number is larger
		b := s.rest[i]
		n |= uint64(b&0x7F) << (7 * i)
		if b < 0x80 {
			s.broken = s.broken || b == 0 && i > 0 // there is a shorter encoding
			s.rest = s.rest[i+1:]
			return int(n) //nolint:gosec // it has 49 bits
		}
	}
	s.rest, s.broken = "", true
	return 0
}

func (s *spool) text() string {
	n := s.number()
	if n > len(s.rest) {
		s.rest, s.broken = "", true
		return ""
	}
	text := s.rest[:n]
	s.rest = s.rest[n:]
	return text
}

func (s *spool) flag() bool {
	n := s.number()
	s.broken = s.broken || n > 1
	return n == 1
}

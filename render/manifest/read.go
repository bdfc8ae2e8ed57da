package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Read returns the documents of one file: see Reader.Read.
func Read(files fs.FS, name string, limits Limits) ([]*Document, error) {
	return NewReader(files, limits, nil).Read(name)
}

// A Reader reads files of one commit and counts them towards the limits for all files together. It is safe for concurrent use if
// the files are.
type Reader struct {
	files     fs.FS
	limits    Limits
	memo      Memo
	form      string // the part of a key with the limits that affect the result of reading a file
	bytes     atomic.Int64
	documents atomic.Int64
	nodes     atomic.Int64
	claimed   sync.Map // documents whose nodes are already counted
}

// NewReader returns a reader that has not counted anything. memo may be nil. It is used for files with a method Hash(name) (string,
// error), which identifies their content.
func NewReader(files fs.FS, limits Limits, memo Memo) *Reader {
	limits = limits.orDefault()
	return &Reader{files: files, limits: limits, memo: memo, form: fmt.Sprintf(" %d %d %d ", limits.FileBytes, limits.Depth, limits.Nodes)}
}

// Read returns the documents of a file in order, the items of a List in its place. It omits empty and comment-only documents. A
// document that is no Kubernetes manifest, because it is no mapping or lacks a kind or an apiVersion, has the zero Header: count it
// as skipped. So has JSON that cannot be decoded and does not look like a manifest.
//
// The header comes from the Memo, or from Scan where Scan answers; every other document
// is decoded here, and an error if it is broken. The bytes of a file are kept only if it
// holds several documents.
func (r *Reader) Read(name string) ([]*Document, error) {
	c := r.content(name)
	if o, ok := c.recall(nil); ok {
		return c.counted(o)
	}
	return c.readAnew()
}

// ordering is a file system that reads files faster in a certain order. Order sorts names in that order.
type ordering interface{ Order(names []string) }

// ReadAll reads files as Read does, as many at the same time as there are processors. It calls done for each file with its index in
// names, in any order, but one call at a time.
func (r *Reader) ReadAll(names []string, done func(i int, documents []*Document, err error)) {
	type unread struct {
		*content

		at int
	}
	anew := map[string]unread{}
	var unknown []string
	var spare []outlined
	for i, name := range names {
		c := r.content(name)
		if o, ok := c.recall(spare); ok {
			spare = o.documents
			documents, err := c.counted(o)
			done(i, documents, err)
			continue
		}
		anew[name] = unread{c, i}
		unknown = append(unknown, name)
	}
	if files, ok := r.files.(ordering); ok && len(unknown) > 1 {
		files.Order(unknown)
	}
	var mu sync.Mutex
	Each(len(unknown), func(i int) {
		one := anew[unknown[i]]
		documents, err := one.readAnew()
		mu.Lock()
		defer mu.Unlock()
		done(one.at, documents, err)
	})
}

func (r *Reader) content(name string) *content {
	return &content{Reader: r, path: name, key: r.key(name)}
}

// counted returns the documents of a stored outline. It counts them like any others.
func (c *content) counted(o outline) ([]*Document, error) {
	if err := c.countBytes(c.path, o.size); err != nil {
		return nil, err
	}
	if err := c.countDocuments(c.path, len(o.documents)); err != nil {
		return nil, err
	}
	return c.documents(o), nil
}

func (c *content) readAnew() ([]*Document, error) {
	o, err := c.outline()
	if err != nil {
		return nil, err
	}
	c.remember(o)
	return c.documents(o), nil
}

// Inline returns the documents of YAML inside a file, which counts as part of that file. name is for errors.
func (r *Reader) Inline(name string, text string) ([]*Document, error) {
	c := &content{Reader: r, path: name, kept: []byte(text)}
	o, err := c.outlineOf(c.kept, func(int) error { return nil })
	if err != nil {
		return nil, err
	}
	return c.documents(o), nil
}

// Limits returns the limits of the reader.
func (r *Reader) Limits() Limits { return r.limits }

// Bytes returns the bytes of a file that is not a manifest. They count towards the limits. They are not stored in the Memo, because
// they may be secret.
func (r *Reader) Bytes(name string) ([]byte, error) {
	var whole []byte
	err := readFile(r.files, name, r.limits.FileBytes, func(raw []byte) error {
		whole = bytes.Clone(raw)
		return r.countBytes(name, int64(len(raw)))
	})
	return whole, err
}

// RecallBytes is Bytes for files that every render reads and that are not secret. With a Memo, it does not read a file again.
func (r *Reader) RecallBytes(name string) ([]byte, error) {
	c := r.content(name)
	known, err := c.learn(" bytes", func() (whole string, err error) {
		err = readFile(r.files, name, r.limits.FileBytes, func(raw []byte) error {
			whole = string(raw)
			return nil
		})
		return whole, err
	})
	if err == nil {
		err = r.countBytes(name, int64(len(known)))
	}
	return []byte(known), err
}

// Spent is the amount that was counted towards the limits for all files together.
type Spent struct{ Bytes, Documents int64 }

// Spent returns the amount that this reader has counted.
func (r *Reader) Spent() Spent { return Spent{r.bytes.Load(), r.documents.Load()} }

// Minus returns the difference.
func (s Spent) Minus(other Spent) Spent {
	return Spent{s.Bytes - other.Bytes, s.Documents - other.Documents}
}

// Spend counts an amount that the reader saved because of a Memo. It returns false if that exceeds the limits.
func (r *Reader) Spend(s Spent) bool {
	return r.bytes.Add(s.Bytes) <= r.limits.TotalBytes && r.documents.Add(s.Documents) <= int64(r.limits.Documents)
}

func (r *Reader) countBytes(name string, n int64) error {
	if r.bytes.Add(n) > r.limits.TotalBytes {
		return LimitError{Path: name, Bytes: r.limits.TotalBytes}
	}
	return nil
}

func (r *Reader) countDocuments(name string, n int) error {
	if n > 0 && r.documents.Add(int64(n)) > int64(r.limits.Documents) {
		return LimitError{Path: name, Documents: r.limits.Documents}
	}
	return nil
}

// outline reads the file.
func (c *content) outline() (o outline, err error) {
	err = readFile(c.files, c.path, c.limits.FileBytes, func(raw []byte) error {
		if err := c.countBytes(c.path, int64(len(raw))); err != nil {
			return err
		}
		o, err = c.outlineOf(raw, func(n int) error { return c.countDocuments(c.path, n) })
		if o.parts > 1 {
			c.kept = bytes.Clone(raw)
		}
		return err
	})
	return o, err
}

func (c *content) outlineOf(raw []byte, count func(documents int) error) (outline, error) {
	parts, line, err := partsOf(raw, isJSON(c.path))
	if err != nil {
		return outline{}, Origin{Path: c.path, Line: line}.failed("cannot read", err)
	}
	o := outline{size: int64(len(raw)), parts: len(parts)}
	for _, p := range parts {
		found, err := section{content: c, part: p}.outline(raw[p.start:p.end])
		if err == nil {
			err = count(len(found))
		}
		if err != nil {
			return outline{}, err
		}
		o.documents = append(o.documents, found...)
	}
	return o, nil
}

// documents returns the documents of an outline.
func (c *content) documents(o outline) []*Document {
	c.keep = o.parts > 1 || c.kept != nil
	documents := make([]*Document, len(o.documents))
	all := make([]Document, len(o.documents))
	var in *list
	for i := range o.documents {
		d := &o.documents[i]
		s := section{content: c, part: d.part}
		all[i] = Document{Origin: Origin{Path: c.path, Line: d.line}, Header: d.header, body: s, nodes: d.nodes, reader: c.Reader}
		documents[i] = &all[i]
		if d.item == notItem {
			continue
		}
		if in == nil || in.part != d.part {
			in = &list{section: s, origin: Origin{Path: c.path, Line: d.part.first}}
		}
		documents[i].body = item{list: in, n: d.item}
	}
	return documents
}

// outline returns the only document of a section, or the items if it is a List.
func (s section) outline(raw []byte) ([]outlined, error) {
	d := outlined{line: s.part.first, part: s.part, item: notItem, nodes: countNodes(raw)}
	if !isJSON(s.path) {
		header, ok := Scan(raw)
		if ok && !strings.HasSuffix(header.Kind, "List") {
			d.header = header.ofManifest()
			return []outlined{d}, nil
		}
	}
	v, err := s.decodeBytes(raw)
	if err != nil && isJSON(s.path) && (!mentionsManifest(raw) || isLog(raw)) {
		return []outlined{d}, nil // the settings of an editor or a compiler, which may contain comments
	}
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return []outlined{d}, nil
	}
	d.header = headerOf(m).ofManifest()

	var node *yaml.Node // parsed only for Lists
	origin := func(at []any) Origin {
		if node == nil {
			node = new(yaml.Node)
			if yaml.Unmarshal(raw, node) != nil { // another library decodes the document
				*node = yaml.Node{}
			}
		}
		return originIn(find(node, at), s.part.line, Origin{Path: s.path, Line: d.line})
	}
	items, isList, err := elementsOf(m, d.header, origin)
	if err != nil || !isList {
		return []outlined{d}, err
	}
	var all []outlined
	for n, e := range items {
		all = append(all, outlined{header: e.header, line: origin(e.at).Line, part: s.part, item: n, nodes: d.nodes})
		d.nodes = 0
	}
	return all, nil
}

// mentionsManifest reports whether undecodable text may be meant as a manifest: it contains two of the keys that every manifest
// has.
func mentionsManifest(raw []byte) bool {
	raw = bytes.ToLower(raw)
	n := 0
	for _, key := range []string{"apiversion", "kind", "metadata"} {
		if bytes.Contains(raw, []byte(key)) {
			n++
		}
	}
	return n > 1
}

// isLog reports whether JSON is a sequence of several values, none of which is meant as a manifest.
func isLog(raw []byte) bool {
	values := json.NewDecoder(bytes.NewReader(raw))
	for n := 0; ; n++ {
		var v any
		switch err := values.Decode(&v); {
		case errors.Is(err, io.EOF):
			return n > 1
		case err != nil:
			return false
		}
		if m, ok := v.(map[string]any); ok && m["apiVersion"] != nil && m["kind"] != nil {
			return false
		}
	}
}

// partsOf finds the documents of a file. It returns an error with its line.
func partsOf(raw []byte, isJSON bool) ([]part, int, error) {
	if line, err := text(raw); err != nil {
		return nil, line, err
	}
	if !isJSON {
		return split(raw)
	}
	start := skipBOM(raw)
	first := len(raw) - len(bytes.TrimLeft(raw[start:], " \t\r\n"))
	if first == len(raw) {
		return nil, 0, nil
	}
	return []part{{start: start, end: len(raw), line: 1, first: lineIn(raw, first)}}, 0, nil
}

// text returns an error with its line if a file is not text.
func text(raw []byte) (int, error) {
	if bytes.HasPrefix(raw, []byte("\xFF\xFE")) || bytes.HasPrefix(raw, []byte("\xFE\xFF")) {
		return 1, errors.New("it is UTF-16: save it as UTF-8")
	}
	if i := bytes.IndexByte(raw, 0); i >= 0 {
		return lineIn(raw, i), errors.New("it holds a NUL byte, so it is not text")
	}
	if utf8.Valid(raw) {
		return 0, nil
	}
	valid := 0
	for r, n := utf8.DecodeRune(raw); r != utf8.RuneError || n != 1; r, n = utf8.DecodeRune(raw[valid:]) {
		valid += n
	}
	return lineIn(raw, valid), errors.New("it is not UTF-8: save it as UTF-8")
}

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// Read returns the documents of one file: see Reader.Read.
func Read(files fs.FS, name string, limits Limits) ([]*Document, error) {
	return NewReader(files, limits).Read(name)
}

// A Reader reads files of one commit and counts them against the limits that hold
// for all files together. Safe for concurrent use if the files are.
type Reader struct {
	files     fs.FS
	limits    Limits
	bytes     atomic.Int64
	documents atomic.Int64
}

// NewReader returns a reader that has counted nothing yet.
func NewReader(files fs.FS, limits Limits) *Reader {
	return &Reader{files: files, limits: limits.orDefault()}
}

// Read returns the documents of a file in order, the items of a List in its place.
// Empty and comment-only documents are left out. A document that is no Kubernetes
// manifest, because it is no mapping or lacks a kind or an apiVersion, has the zero
// Header: count it as skipped.
//
// The header comes from Scan where Scan answers; every other document is decoded
// here, and an error if it is broken. The bytes of a file are kept only if it holds
// several documents.
func (r *Reader) Read(name string) ([]*Document, error) {
	var documents []*Document
	err := readFile(r.files, name, r.limits.FileBytes, func(raw []byte) (err error) {
		documents, err = r.documentsOf(name, raw)
		return err
	})
	return documents, err
}

// Inline returns the documents of YAML that is a value of a file, and counted with it. Name
// is what errors call it.
func (r *Reader) Inline(name string, text string) ([]*Document, error) {
	raw := []byte(text)
	parts, line, err := partsOf(raw, false)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot read: %w", Origin{Path: name, Line: line}, err)
	}
	var documents []*Document
	for _, p := range parts {
		s := section{path: name, part: p, limits: r.limits, kept: raw[p.start:p.end]}
		found, err := s.documents(s.kept)
		if err != nil {
			return nil, err
		}
		documents = append(documents, found...)
	}
	return documents, nil
}

// Limits are what the reader counts against.
func (r *Reader) Limits() Limits { return r.limits }

// Bytes returns the bytes of a file that is no manifest, which count as all others do.
func (r *Reader) Bytes(name string) ([]byte, error) {
	var content []byte
	err := readFile(r.files, name, r.limits.FileBytes, func(raw []byte) error {
		content = bytes.Clone(raw)
		return r.count(name, raw)
	})
	return content, err
}

func (r *Reader) count(name string, raw []byte) error {
	if r.bytes.Add(int64(len(raw))) > r.limits.TotalBytes {
		return fmt.Errorf("%s: cannot read: the files of the commit are larger than the limit of %d bytes together", name, r.limits.TotalBytes)
	}
	return nil
}

func (r *Reader) documentsOf(name string, raw []byte) ([]*Document, error) {
	if err := r.count(name, raw); err != nil {
		return nil, err
	}
	isJSON := path.Ext(name) == ".json"
	parts, line, err := partsOf(raw, isJSON)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot read: %w", Origin{Path: name, Line: line}, err)
	}

	var kept []byte
	if len(parts) > 1 {
		kept = bytes.Clone(raw)
	}
	var documents []*Document
	for _, p := range parts {
		s := section{path: name, part: p, json: isJSON, limits: r.limits, files: r.files}
		if kept != nil {
			s.kept = kept[p.start:p.end]
		}
		found, err := s.documents(raw[p.start:p.end])
		if err != nil {
			return nil, err
		}
		documents = append(documents, found...)
		if r.documents.Add(int64(len(found))) > int64(r.limits.Documents) {
			return nil, fmt.Errorf("%s: cannot read: the commit holds more than the limit of %d documents", name, r.limits.Documents)
		}
	}
	return documents, nil
}

// documents are the one document of a section, or the items of the List that it is.
func (s section) documents(raw []byte) ([]*Document, error) {
	d := &Document{Origin: Origin{Path: s.path, Line: s.part.first}, body: s}
	if !s.json {
		header, ok := Scan(raw)
		if ok && !strings.HasSuffix(header.Kind, "List") {
			d.Header = header.ofManifest()
			return []*Document{d}, nil
		}
	}
	v, err := s.decodeBytes(raw)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return []*Document{d}, nil
	}
	d.Header = headerOf(m).ofManifest()
	return unwrap(d, m)
}

// partsOf finds the documents of a file. An error is at the line that is returned.
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

// text says why a file is no text, and in which line.
func text(raw []byte) (int, error) {
	if bytes.HasPrefix(raw, []byte("\xFF\xFE")) || bytes.HasPrefix(raw, []byte("\xFE\xFF")) {
		return 1, errors.New("it is UTF-16: save it as UTF-8")
	}
	if i := bytes.IndexByte(raw, 0); i >= 0 {
		return lineIn(raw, i), errors.New("it holds a NUL byte, so it is no text")
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

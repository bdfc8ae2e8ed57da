package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// A Stream is YAML, or one JSON value, that is not a file of its own.
type Stream struct {
	Name string // for errors
	File string // the file that contains it, whose hash is the key for the Memo; "" if there is none
	Hash string // the key for the Memo if there is no File
	Open func() (io.ReadCloser, error)
}

// Stream returns the documents of a stream, as Read does for a file. It opens the stream once: now, or, if a Memo has its outline,
// when a document must be decoded. The stream may be larger than a file: the size limit of a file applies to each document. The
// content stays in memory, compressed.
func (r *Reader) Stream(from Stream) ([]*Document, error) {
	name, key := from.Name, r.key(from.File)
	if from.Hash != "" {
		key = r.keyOf(from.Hash, isJSON(name))
	}
	c := &content{Reader: r, path: name, key: key, stream: &stream{file: cmp.Or(from.File, name), open: from.Open, limit: r.limits.FileBytes}}
	if o, ok := c.recall(nil); ok {
		if err := r.countBytes(name, o.size); err != nil {
			return nil, err
		}
		if err := r.countDocuments(name, len(o.documents)); err != nil {
			return nil, err
		}
		return c.documents(o), nil
	}
	var o outline
	err := c.stream.read(name, func(raw []byte, line int) error {
		if err := r.countBytes(name, int64(len(raw))); err != nil {
			return err
		}
		if line == 1 && isJSONObject(raw) {
			c.path += ".json"
		}
		parts, at, err := partsOf(raw, isJSON(c.path))
		if err != nil {
			return Origin{Path: c.path, Line: line + at - 1}.failed("cannot read", err)
		}
		for _, p := range parts {
			p.line, p.first = p.line+line-1, p.first+line-1
			bytes := raw[p.start:p.end]
			p.start, p.end = p.start+int(o.size), p.end+int(o.size)
			found, err := section{content: c, part: p}.outline(bytes)
			if err == nil {
				err = r.countDocuments(name, len(found))
			}
			if err != nil {
				return err
			}
			o.parts++
			o.documents = append(o.documents, found...)
		}
		o.size += int64(len(raw))
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.remember(o)
	return c.documents(o), nil
}

func isJSONObject(raw []byte) bool {
	first := bytes.TrimLeft(raw, " \t\r\n")
	return bytes.HasPrefix(first, []byte("{")) && json.Valid(first)
}

// A stream can be read only from its beginning. Its content is kept in chunks of whole documents.
type stream struct {
	file  string // the file that contains it
	open  func() (io.ReadCloser, error)
	limit int64 // of a chunk

	mu     sync.Mutex
	chunks []chunk // nil until the stream is read
}

// A chunk is a part of a stream.
type chunk struct {
	start, end int
	kept       []byte
	packed     bool
}

// read reads the stream. It passes every chunk, and the line at which it begins, to use.
func (s *stream) read(name string, use func(raw []byte, line int) error) (err error) {
	in, err := s.open()
	if err != nil {
		return fmt.Errorf("%s: cannot read: %w", s.file, err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	cut := cutter{in: bufio.NewReaderSize(in, 64<<10), limit: s.limit}
	var chunks []chunk
	at := 0
	for {
		raw, err := cut.next()
		if err != nil {
			return Origin{Path: name, Line: cut.line}.failed("cannot read", err)
		}
		if len(raw) == 0 {
			break
		}
		if err := use(raw, cut.line); err != nil {
			return err
		}
		c := pack(raw)
		c.start, c.end = at, at+len(raw)
		chunks, at = append(chunks, c), c.end
	}
	s.chunks = chunks
	return nil
}

// lend passes the bytes of a part, which is in one chunk, to use, which must not keep them.
func (s *stream) lend(name string, p part, use func([]byte) error) error {
	chunks, err := s.all(name)
	if err != nil {
		return err
	}
	i, _ := slices.BinarySearchFunc(chunks, p.start, func(c chunk, at int) int { return c.end - at - 1 })
	if i == len(chunks) || p.end > chunks[i].end {
		return fmt.Errorf("%s: cannot read: it has changed since it was first read", name)
	}
	return chunks[i].lend(func(raw []byte) error { return use(raw[p.start-chunks[i].start : p.end-chunks[i].start]) })
}

// all returns the chunks. It reads the stream if only its outline came from a Memo.
func (s *stream) all(name string) ([]chunk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chunks != nil {
		return s.chunks, nil
	}
	err := s.read(name, func([]byte, int) error { return nil })
	return s.chunks, err
}

// worthPacking is the minimum size of a chunk that is kept compressed.
const worthPacking = 4 << 10

// pack returns a chunk with the given bytes.
func pack(raw []byte) chunk {
	plain := chunk{kept: bytes.Clone(raw)}
	if len(raw) < worthPacking {
		return plain
	}
	var out bytes.Buffer
	packer, _ := packers.Get().(*flate.Writer) // the pool contains nothing else
	defer packers.Put(packer)
	packer.Reset(&out)
	if _, err := packer.Write(raw); err != nil {
		return plain
	}
	if err := packer.Close(); err != nil {
		return plain
	}
	return chunk{kept: bytes.Clone(out.Bytes()), packed: true}
}

var packers = sync.Pool{New: func() any {
	packer, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the compression level is valid
	}
	return packer
}}

// lend passes the bytes to use, which must not keep them.
func (c chunk) lend(use func([]byte) error) error {
	if !c.packed {
		return use(c.kept)
	}
	buffer, _ := buffers.Get().(*bytes.Buffer) // the pool contains nothing else
	defer buffers.Put(buffer)
	buffer.Reset()
	if _, err := buffer.ReadFrom(flate.NewReader(bytes.NewReader(c.kept))); err != nil {
		return err
	}
	return use(buffer.Bytes())
}

// A cutter cuts a stream at document markers. Every piece is a valid stream, and all pieces together have the documents of the
// whole stream.
type cutter struct {
	in     *bufio.Reader
	limit  int64
	line   int          // the line at which the piece begins
	piece  bytes.Buffer // the last one
	marker []byte       // the start of the next piece: the part of its first line that was already read
	inside bool         // the rest of that line is still unread
}

// next returns the next piece, which is valid until the next call; it is empty at the end.
func (c *cutter) next() ([]byte, error) {
	c.line += countBreaks(c.piece.Bytes())
	if c.line == 0 {
		c.line = 1
	}
	c.piece.Reset()
	c.piece.Write(c.marker)
	c.marker = nil
	directives := false // the next marker belongs to directives
	for {
		text, err := c.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		begins := !c.inside
		c.inside = err != nil
		if begins && beginsDocument(text) {
			if !directives && c.piece.Len() > 0 {
				c.marker = bytes.Clone(text)
				return c.piece.Bytes(), nil
			}
			directives = false
		}
		if begins && bytes.HasPrefix(bytes.TrimLeft(text, "\uFEFF"), []byte("%")) {
			directives = true
		}
		c.piece.Write(text)
		if int64(c.piece.Len()) > c.limit {
			return nil, fmt.Errorf("a document is larger than the limit of %d bytes", c.limit)
		}
		if errors.Is(err, io.EOF) {
			return c.piece.Bytes(), nil
		}
	}
}

// beginsDocument reports whether a line certainly begins a document, unless directives come before it.
func beginsDocument(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && len(rest) > 0 && strings.IndexByte(" \t\r\n", rest[0]) >= 0
}

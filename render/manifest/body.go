package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"sync"

	"go.yaml.in/yaml/v3"
)

// A body is the content of a document, undecoded if possible.
type body interface {
	decode() (any, error) // maps, slices, strings, int64, float64, bool, nil
	recall() (any, error) // the same value, from the Memo if possible

	// tree returns the syntax tree for the places of fields. Its node lines count from 1, which corresponds to the returned line.
	tree() (node *yaml.Node, line int, err error)

	// learn returns an answer that depends only on this body. It calls ask only once for the same content if there is a Memo.
	learn(what string, ask func() (string, error)) (string, error)

	// identity identifies the content without reading it; "" if it is not known.
	identity() string
}

// A content is a file of a commit, which is read whenever it is needed.
type content struct {
	*Reader

	path   string
	key    string  // the key for the Memo; "" without a Memo
	stream *stream // set if the content is not a file of its own

	mu   sync.Mutex
	keep bool   // the file has several documents, or is not a file
	kept []byte // the content, if keep is set, once it was needed
}

// read passes the bytes to use, which must not keep them.
func (c *content) read(use func([]byte) error) error {
	if !c.keep {
		return readFile(c.files, c.path, c.limits.FileBytes, use)
	}
	raw, err := c.whole()
	if err != nil {
		return err
	}
	return use(raw)
}

// whole returns the file's content, which stays in memory.
func (c *content) whole() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept != nil {
		return c.kept, nil
	}
	err := readFile(c.files, c.path, c.limits.FileBytes, func(raw []byte) error {
		c.kept = bytes.Clone(raw)
		return nil
	})
	return c.kept, err
}

// A section is a part of a file.
type section struct {
	*content

	part part
}

// read passes the bytes to use, which must not keep them.
func (s section) read(use func([]byte) error) error {
	if s.stream != nil {
		return s.stream.lend(s.path, s.part, use)
	}
	return s.content.read(func(raw []byte) error {
		if len(raw) < s.part.end {
			return fmt.Errorf("%s: cannot read: the file has changed since it was first read", s.path)
		}
		return use(raw[s.part.start:s.part.end])
	})
}

func (s section) decode() (v any, err error) {
	err = s.read(func(raw []byte) error {
		v, err = s.decodeBytes(raw)
		return err
	})
	return v, err
}

func (s section) recall() (v any, err error) {
	known, err := s.learn("plain 2", func() (string, error) {
		if v, err = s.decode(); err != nil {
			return "", err
		}
		j, err := json.Marshal(v)
		return string(j), err
	})
	if err != nil || v != nil {
		return v, err
	}
	return s.recalled([]byte(known))
}

func (s section) tree() (node *yaml.Node, line int, err error) {
	err = s.read(func(raw []byte) error {
		nodes := countNodes(raw)
		if err := s.checkNodes(nodes); err != nil {
			return err
		}
		defer acquireNodes(nodes)()
		node = new(yaml.Node)
		return yaml.Unmarshal(raw, node)
	})
	return node, s.part.line, err
}

func (s section) identity() string {
	if s.key == "" {
		return ""
	}
	return s.key + " " + strconv.Itoa(s.part.start)
}

func (s section) learn(what string, ask func() (string, error)) (string, error) {
	return s.content.learn(" "+strconv.Itoa(s.part.start)+" "+what, ask)
}

// buffers holds buffers for reading files; few files are larger than their initial size.
var buffers = sync.Pool{New: func() any { return bytes.NewBuffer(make([]byte, 0, 128<<10)) }}

// readFile passes the bytes of a file to use, which must not keep them.
func readFile(files fs.FS, path string, limit int64, use func([]byte) error) (err error) {
	cannot := func(why error) error {
		if p, ok := errors.AsType[*fs.PathError](why); ok {
			why = p.Err // the message already contains the path
		}
		return fmt.Errorf("%s: cannot read: %w", path, why)
	}
	file, err := files.Open(path)
	if err != nil {
		return cannot(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()

	buffer, _ := buffers.Get().(*bytes.Buffer) // the pool contains nothing else
	defer buffers.Put(buffer)
	buffer.Reset()
	n, err := buffer.ReadFrom(io.LimitReader(file, limit+1))
	if err != nil {
		return cannot(err)
	}
	if IsPointer(buffer.Bytes()) {
		return Origin{Path: path, Line: 1}.failed("cannot read", errPointer)
	}
	if n > limit {
		return cannot(fmt.Errorf("it is larger than the limit of %d bytes for one file", limit))
	}
	return use(buffer.Bytes())
}

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

// A body is what a document holds, undecoded if possible.
type body interface {
	decode() (any, error) // maps, slices, strings, int64, float64, bool, nil
	recall() (any, error) // the same, from the Memo if that has it, which it then will

	// tree is the syntax tree that place was read from: the nodes count lines from
	// the one that is returned as 1.
	tree() (node *yaml.Node, line int, err error)

	// learn asks what depends on nothing but this body, once for every content.
	learn(what string, ask func() (string, error)) (string, error)

	// identity names the content without reading it; "" if that is not known.
	identity() string
}

// A content is what a file of a commit holds, read as often as it is needed.
type content struct {
	*Reader

	path   string
	key    string  // what it is remembered by; "" where nothing is
	stream *stream // where it is no file of its own

	mu   sync.Mutex
	keep bool   // it holds several documents, or is no file
	kept []byte // if so, once it was needed
}

// read lends the bytes to use, which must not keep them.
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

// whole is the file, which stays in memory.
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

// A section is one part of a file.
type section struct {
	*content

	part part
}

// read lends the bytes to use, which must not keep them.
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
		if err := s.few(nodes); err != nil {
			return err
		}
		defer turn(nodes)()
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

// buffers are lent to one reader at a time; few files are larger.
var buffers = sync.Pool{New: func() any { return bytes.NewBuffer(make([]byte, 0, 128<<10)) }}

// readFile lends the bytes of a file to use, which must not keep them.
func readFile(files fs.FS, path string, limit int64, use func([]byte) error) (err error) {
	cannot := func(why error) error {
		if p, ok := errors.AsType[*fs.PathError](why); ok {
			why = p.Err // the path is already there
		}
		return fmt.Errorf("%s: cannot read: %w", path, why)
	}
	file, err := files.Open(path)
	if err != nil {
		return cannot(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()

	buffer, _ := buffers.Get().(*bytes.Buffer) // the pool holds nothing else
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

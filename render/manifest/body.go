package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
)

// A body is what a document holds, undecoded if possible.
type body interface {
	decode() (any, error) // maps, slices, strings, int64, float64, bool, nil

	// tree is the syntax tree that place was read from: the nodes count lines from
	// the one that is returned as 1.
	tree() (node *yaml.Node, line int, err error)
}

// An item is one element of a List.
type item struct {
	value map[string]any
	list  body
	at    []any // the path to it in the list
}

func (i item) decode() (any, error) { return runtime.DeepCopyJSON(i.value), nil }

func (i item) tree() (*yaml.Node, int, error) {
	node, line, err := i.list.tree()
	return find(node, i.at), line, err
}

// A section is part of a file, in memory or yet to be read.
type section struct {
	path   string
	part   part
	json   bool
	limits Limits
	kept   []byte // if the file holds several documents
	files  fs.FS  // if not
}

func (s section) decode() (v any, err error) {
	err = s.read(func(raw []byte) error {
		v, err = s.decodeBytes(raw)
		return err
	})
	return v, err
}

func (s section) tree() (node *yaml.Node, line int, err error) {
	err = s.read(func(raw []byte) error {
		node = new(yaml.Node)
		return yaml.Unmarshal(raw, node)
	})
	return node, s.part.line, err
}

// read lends the bytes to use, which must not keep them.
func (s section) read(use func([]byte) error) error {
	if s.kept != nil {
		return use(s.kept)
	}
	return readFile(s.files, s.path, s.limits.FileBytes, func(raw []byte) error {
		if len(raw) < s.part.end {
			return fmt.Errorf("%s: cannot read: the file has changed since it was first read", s.path)
		}
		return use(raw[s.part.start:s.part.end])
	})
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
	if n > limit {
		return cannot(fmt.Errorf("it is larger than the limit of %d bytes for one file", limit))
	}
	return use(buffer.Bytes())
}

package xpkg

import (
	"fmt"
	"io"
	"sync/atomic"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A budget limits the number of bytes that several readers may read together.
type budget struct {
	all  int64
	left atomic.Int64
}

func newBudget(bytes int64) *budget {
	b := &budget{all: bytes}
	b.left.Store(bytes)
	return b
}

// reader returns a reader of r that fails once the budget is spent.
func (b *budget) reader(r io.Reader) io.Reader { return spending{r, b} }

type spending struct {
	io.Reader
	*budget
}

func (s spending) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if s.left.Add(-int64(n)) < 0 {
		return 0, fmt.Errorf("it takes more than the limit of %d bytes", s.all)
	}
	return n, err
}

type readCloser struct {
	io.Reader
	io.Closer
}

// bounded returns a file whose reads all spend the budget.
func bounded(file func() (io.ReadCloser, error), b *budget) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		f, err := file()
		if err != nil {
			return nil, err
		}
		return readCloser{b.reader(f), f}, nil
	}
}

// A boundedImage is an image whose unpacked layers spend the budget.
type boundedImage struct {
	v1.Image
	*budget
}

func (i boundedImage) Layers() ([]v1.Layer, error) {
	layers, err := i.Image.Layers()
	for n, layer := range layers {
		layers[n] = boundedLayer{layer, i.budget}
	}
	return layers, err
}

type boundedLayer struct {
	v1.Layer
	*budget
}

func (l boundedLayer) Uncompressed() (io.ReadCloser, error) {
	return bounded(l.Layer.Uncompressed, l.budget)()
}

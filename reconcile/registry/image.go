package registry

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
)

// An image gives access to an image in the cache. Only the needed parts are there.
type image struct {
	cache    cache
	raw      []byte
	manifest v1.Manifest
}

func imageOf(c cache, raw []byte, m v1.Manifest) (v1.Image, error) {
	return partial.CompressedToImage(image{c, raw, m})
}

func (i image) RawManifest() ([]byte, error)        { return i.raw, nil }
func (i image) MediaType() (types.MediaType, error) { return i.manifest.MediaType, nil }
func (i image) RawConfigFile() ([]byte, error) {
	raw, err := i.cache.read(i.manifest.Config.Digest.String(), metadata)
	if bytes.Count(raw, []byte("{")) > maxItems {
		return nil, fmt.Errorf("it holds more than %d items", maxItems)
	}
	return raw, err
}

func (i image) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	for _, l := range i.manifest.Layers {
		if l.Digest == digest {
			return layer{i.cache, l}, nil
		}
	}
	return nil, fmt.Errorf("it has no layer %s", digest)
}

// A layer is a layer of an image in the cache.
type layer struct {
	cache cache
	is    v1.Descriptor
}

func (l layer) Digest() (v1.Hash, error)            { return l.is.Digest, nil }
func (l layer) Size() (int64, error)                { return l.is.Size, nil }
func (l layer) MediaType() (types.MediaType, error) { return l.is.MediaType, nil }

// maxWindow is the maximum memory for a zstd frame. Level 21, of 22, uses as much.
const maxWindow = 64 << 20

// Compressed returns the layer as it is stored. It decompresses zstd itself, because other readers would use as much
// memory as the layer demands, up to half a gigabyte.
func (l layer) Compressed() (io.ReadCloser, error) {
	stored, err := l.cache.open(l.is.Digest.String())
	if err != nil {
		return nil, err
	}
	begin := bufio.NewReader(stored)
	if magic, _ := begin.Peek(len(zstdMagic)); string(magic) != zstdMagic {
		return pair{begin, stored.Close}, nil
	}
	unpack, err := zstd.NewReader(begin, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, errors.Join(err, stored.Close())
	}
	content := bufio.NewReader(unpack)
	closed := func() error {
		unpack.Close()
		return stored.Close()
	}
	if magic, _ := content.Peek(len(zstdMagic)); string(magic) == zstdMagic || strings.HasPrefix(string(magic), gzipMagic) {
		return nil, errors.Join(errors.New("it is compressed twice"), closed())
	}
	return pair{content, closed}, nil
}

const (
	zstdMagic = "\x28\xb5\x2f\xfd"
	gzipMagic = "\x1f\x8b"
)

// A pair reads from one reader and closes several closers.
type pair struct {
	io.Reader

	close func() error
}

func (p pair) Close() error { return p.close() }

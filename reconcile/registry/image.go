package registry

import (
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// An image that is in the cache, as far as it was needed.
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
	return i.cache.read(i.manifest.Config.Digest.String(), metadata)
}

func (i image) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	for _, l := range i.manifest.Layers {
		if l.Digest == digest {
			return layer{i.cache, l}, nil
		}
	}
	return nil, fmt.Errorf("it has no layer %s", digest)
}

// A layer of an image in the cache.
type layer struct {
	cache cache
	is    v1.Descriptor
}

func (l layer) Digest() (v1.Hash, error)            { return l.is.Digest, nil }
func (l layer) Size() (int64, error)                { return l.is.Size, nil }
func (l layer) MediaType() (types.MediaType, error) { return l.is.MediaType, nil }
func (l layer) Compressed() (io.ReadCloser, error)  { return l.cache.open(l.is.Digest.String()) }

// Package xpkg finds the YAML of a Crossplane package in its image, as Crossplane does. It does not trust the image.
// Package catalogue interprets the YAML.
package xpkg

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// The limits of an image.
const (
	maxRead     = 8 << 30  // bytes that are read from a file in total; a file is read several times
	maxContent  = 1 << 30  // bytes of all layers of a file, unpacked
	maxEntries  = 100_000  // files in a tarball, or in all layers
	maxNames    = 16 << 20 // bytes of the names of these files
	maxMetadata = 4 << 20  // bytes of a metadata file
)

// MaxLayers is the maximum number of layers of an image.
const MaxLayers = 256

const (
	annotation = "io.crossplane.xpkg" // of a layer
	base       = "base"               // the layer with the package
	streamName = "package.yaml"
)

// Open opens the YAML of an .xpkg file, an image in a tarball. It may call file several times. The stream ends with an
// error if it is longer than limit or does not match the digests of the image.
func Open(file func() (io.ReadCloser, error), limit int64) (io.ReadCloser, error) {
	file = bounded(file, newBudget(maxRead))
	if err := inspect(file); err != nil {
		return nil, err
	}
	img, err := tarball.Image(file, nil)
	if err != nil {
		return nil, fmt.Errorf("it is not an image in a tarball: %w", err)
	}
	// A tarball has no annotations: the build writes them into the config instead.
	return open(img, limit, func(layer v1.Descriptor, config *v1.ConfigFile) bool {
		return isBase(layer) || config.Config.Labels[annotation+":"+layer.Digest.String()] == base
	})
}

// Of opens the YAML of an image of a registry, as Open does: from the layer of the package or, if there is no such layer, from all
// layers together.
func Of(img v1.Image, limit int64) (io.ReadCloser, error) {
	return open(img, limit, func(layer v1.Descriptor, _ *v1.ConfigFile) bool { return isBase(layer) })
}

// Needed returns the layers that Of reads: the layer of the package, which is the first with the annotation, or all layers if none
// has it.
func Needed(layers []v1.Descriptor) []v1.Descriptor {
	if i := slices.IndexFunc(layers, isBase); i >= 0 {
		return layers[i : i+1]
	}
	return layers
}

func isBase(layer v1.Descriptor) bool { return layer.Annotations[annotation] == base }

func open(img v1.Image, limit int64, isPackage func(v1.Descriptor, *v1.ConfigFile) bool) (io.ReadCloser, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return nil, fmt.Errorf("its manifest cannot be read: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("its config cannot be read: %w", err)
	}
	if n := len(manifest.Layers); n > MaxLayers || n != len(config.RootFS.DiffIDs) {
		return nil, fmt.Errorf("it has %d layers, and its config names %d; at most %d are read", n, len(config.RootFS.DiffIDs), MaxLayers)
	}
	for i, descriptor := range manifest.Layers {
		if !isPackage(descriptor, config) {
			continue
		}
		layer, err := img.LayerByDigest(descriptor.Digest)
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", i, err)
		}
		content, err := layer.Uncompressed()
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", i, err)
		}
		return newStream(content, limit, config.RootFS.DiffIDs[i].Hex)
	}
	if err := inspectLayers(boundedImage{img, newBudget(maxContent)}); err != nil {
		return nil, err
	}
	return newStream(mutate.Extract(boundedImage{img, newBudget(maxContent)}), limit, "")
}

// inspectLayers counts the files of all layers, because an extraction keeps every name in memory.
func inspectLayers(img boundedImage) error {
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	n, names := 0, 0
	for i, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
		entries := tar.NewReader(content)
		for err == nil {
			var header *tar.Header
			if header, err = entries.Next(); err != nil {
				break
			}
			n++
			names += len(header.Name) + len(header.Linkname)
			err = fewNames(n, names)
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if err = errors.Join(err, content.Close()); err != nil {
			return fmt.Errorf("layer %d: its content cannot be read: %w", i, err)
		}
	}
	return nil
}

// fewNames returns an error if there are too many files, or if their names are too long.
func fewNames(entries, names int) error {
	switch {
	case entries > maxEntries:
		return fmt.Errorf("it holds more than %d files", maxEntries)
	case names > maxNames:
		return fmt.Errorf("the names of its files are longer than %d bytes together", maxNames)
	}
	return nil
}

// inspect checks every entry of a tarball before it is used: links and devices are refused, and metadata must be small.
func inspect(file func() (io.ReadCloser, error)) (err error) {
	f, err := file()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	sizes := map[string]int64{}
	entries := tar.NewReader(f)
	names := 0
	for n := 0; ; n++ {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = check(header, n)
		}
		if err == nil {
			names += len(header.Name)
			err = fewNames(n, names)
		}
		if err == nil {
			err = notZstd(entries)
		}
		if err != nil {
			return fmt.Errorf("it is not an image in a tarball: %w", err)
		}
		name := path.Clean(header.Name)
		if _, twice := sizes[name]; twice && header.Typeflag == tar.TypeReg {
			return fmt.Errorf("it is not an image in a tarball: it contains %q twice", name)
		}
		sizes[name] = header.Size
	}
	if sizes["manifest.json"] > maxMetadata {
		return fmt.Errorf("its manifest is larger than %d bytes", maxMetadata)
	}
	manifest, err := tarball.LoadManifest(file)
	if err != nil {
		return fmt.Errorf("it is not an image in a tarball: %w", err)
	}
	for _, image := range manifest {
		if len(image.Layers) > MaxLayers {
			return fmt.Errorf("it has %d layers, more than the limit of %d", len(image.Layers), MaxLayers)
		}
		if sizes[path.Clean(image.Config)] > maxMetadata {
			return fmt.Errorf("its config is larger than %d bytes", maxMetadata)
		}
	}
	return nil
}

// notZstd refuses a file that is compressed with zstd, of which a few bytes make a reader take half a gigabyte of memory.
// Crossplane builds tarballs with gzip.
func notZstd(file io.Reader) error {
	var magic [4]byte
	if n, _ := io.ReadFull(file, magic[:]); n == len(magic) && magic == [4]byte{0x28, 0xb5, 0x2f, 0xfd} {
		return errors.New("a layer is compressed with zstd; build it with 'crossplane xpkg build'")
	}
	return nil
}

// check refuses an invalid entry of an archive.
func check(header *tar.Header, n int) error {
	name := path.Clean(header.Name)
	switch {
	case n >= maxEntries:
		return fmt.Errorf("it holds more than %d files", maxEntries)
	case name == "..", strings.HasPrefix(name, "../"), path.IsAbs(name), strings.ContainsAny(name, "\\\x00"):
		return fmt.Errorf("%q points outside of it", header.Name)
	case header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir:
		return fmt.Errorf("%q is neither a file nor a directory", header.Name)
	}
	return nil
}

// A stream reads the YAML from a layer, and then the rest of the layer.
type stream struct {
	content io.Reader // the layer
	entries *tar.Reader
	close   func() error
	sum     hash.Hash // hash of the layer; nil if there are several layers
	want    string    // the expected digest of the layer
	n       int       // entries so far
	ended   error     // the result of all further reads
}

// newStream finds the YAML in the content of one or several layers. want is the digest of a single layer.
func newStream(layer io.ReadCloser, limit int64, want string) (io.ReadCloser, error) {
	s := &stream{content: layer, close: layer.Close, want: want}
	if want != "" {
		s.sum = sha256.New()
		s.content = io.TeeReader(newBudget(maxContent).reader(layer), s.sum)
	}
	s.entries = tar.NewReader(s.content)
	header, err := s.find()
	switch {
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("it holds no %s, so it is not a package", streamName)
	case err != nil:
	case header.Typeflag != tar.TypeReg:
		err = fmt.Errorf("its %s is not a file", streamName)
	case header.Size > limit:
		err = fmt.Errorf("its %s is larger than the limit of %d bytes", streamName, limit)
	}
	if err != nil {
		return nil, errors.Join(err, layer.Close())
	}
	return s, nil
}

// find returns the next entry with the name of the YAML file, or io.EOF at the end.
func (s *stream) find() (*tar.Header, error) {
	for {
		header, err := s.entries.Next()
		switch {
		case errors.Is(err, io.EOF):
			_, err = io.Copy(io.Discard, s.content) // read on after the last entry: a failed extraction returns its error there
			if err == nil {
				return nil, io.EOF
			}
			fallthrough
		case err != nil:
			return nil, fmt.Errorf("its content cannot be read: %w", err)
		}
		s.n++
		if s.sum != nil || s.n > maxEntries { // the layer of a package contains nothing else
			if err := check(header, s.n); err != nil {
				return nil, err
			}
		}
		if path.Base(header.Name) == streamName {
			return header, nil
		}
	}
}

func (s *stream) Read(p []byte) (int, error) {
	if s.ended != nil {
		return 0, s.ended
	}
	n, err := s.entries.Read(p)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		s.ended = s.end()
	default:
		s.ended = fmt.Errorf("its %s cannot be read: %w", streamName, err)
	}
	return n, s.ended
}

// end returns io.EOF if a single layer has the expected digest and contains one package.
func (s *stream) end() error {
	if s.sum == nil {
		return io.EOF
	}
	switch header, err := s.find(); {
	case err == nil:
		return fmt.Errorf("it holds two of %s, the second as %q", streamName, header.Name)
	case !errors.Is(err, io.EOF):
		return err
	}
	if hex.EncodeToString(s.sum.Sum(nil)) != s.want {
		return errors.New("its layer is not the one that its config names: it is damaged or was changed")
	}
	return io.EOF
}

func (s *stream) Close() error { return s.close() }

package artifact

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// A target receives the files of an archive. A zip archive is one file that can be read in any order, also after it was removed.
type target struct {
	*zip.Writer

	isDir map[string]bool // by path; false is a file
}

// unpack writes the files of an archive to another one. Files and directories are all that an artifact may hold, and each file once.
func unpack(archive io.Reader, to io.Writer, limits Limits) error {
	into := target{zip.NewWriter(to), map[string]bool{".": true}}
	zipped, err := gzip.NewReader(archive)
	if err != nil {
		return errors.New("is no tar.gz archive")
	}
	entries := tar.NewReader(&counter{zipped, limits.Total})
	content := &counter{entries, limits.Total} // a sparse file has more bytes than the archive
	for n := 0; ; n++ {
		h, err := entries.Next()
		switch {
		case err == io.EOF:
			return into.Close()
		case errors.Is(err, errTooLarge):
			return fmt.Errorf("has more than %d bytes of files", limits.Total)
		case err != nil:
			return errors.New("is no valid archive")
		case n == limits.Entries:
			return fmt.Errorf("has more than %d files", limits.Entries)
		}
		if err := into.write(content, h); errors.Is(err, errTooLarge) {
			return fmt.Errorf("has more than %d bytes of files", limits.Total)
		} else if err != nil {
			return err
		}
	}
}

// write writes one entry.
func (t target) write(content io.Reader, h *tar.Header) error {
	name := path.Clean(strings.TrimPrefix(h.Name, "./"))
	if !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00") || len(name) > 4096 {
		return fmt.Errorf("has a file outside of it, %.100q", h.Name)
	}
	switch h.Typeflag {
	case tar.TypeXGlobalHeader:
		return nil
	case tar.TypeDir:
		return t.directory(name)
	case tar.TypeReg:
	default:
		return fmt.Errorf("has %.100q, which is neither a file nor a directory", name)
	}
	if err := t.directory(path.Dir(name)); err != nil {
		return err
	}
	if _, exists := t.isDir[name]; exists {
		return twice(name)
	}
	t.isDir[name] = false
	file, err := t.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, valid{content})
	return err
}

// directory writes a directory, and those above it.
func (t target) directory(name string) error {
	isDir, exists := t.isDir[name]
	switch {
	case exists && !isDir:
		return twice(name)
	case exists:
		return nil
	}
	if err := t.directory(path.Dir(name)); err != nil {
		return err
	}
	t.isDir[name] = true
	_, err := t.Create(name + "/")
	return err
}

func twice(name string) error { return fmt.Errorf("has %.100q twice", name) }

// valid is a reader of an archive. Its errors do not quote the archive.
type valid struct{ io.Reader }

func (v valid) Read(p []byte) (int, error) {
	n, err := v.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errTooLarge) {
		err = errors.New("is no valid archive")
	}
	return n, err
}

// errTooLarge is the error of a counter.
var errTooLarge = errors.New("too large")

// A counter is a reader of a limited number of bytes.
type counter struct {
	io.Reader

	left int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

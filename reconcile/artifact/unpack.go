package artifact

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// unpack writes the files of an archive below root. Files and directories are all that an artifact may hold, and each file once.
func unpack(archive io.Reader, root *os.Root, limits Limits) error {
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
			return nil
		case errors.Is(err, errTooLarge):
			return fmt.Errorf("has more than %d bytes of files", limits.Total)
		case err != nil:
			return errors.New("is no valid archive")
		case n == limits.Entries:
			return fmt.Errorf("has more than %d files", limits.Entries)
		}
		if err := write(content, h, root); errors.Is(err, errTooLarge) {
			return fmt.Errorf("has more than %d bytes of files", limits.Total)
		} else if err != nil {
			return err
		}
	}
}

// write writes one entry.
func write(content io.Reader, h *tar.Header, root *os.Root) error {
	name := path.Clean(strings.TrimPrefix(h.Name, "./"))
	if !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00") || len(name) > 4096 {
		return fmt.Errorf("has a file outside of it, %.100q", h.Name)
	}
	switch h.Typeflag {
	case tar.TypeXGlobalHeader:
		return nil
	case tar.TypeDir:
		return wrong(name, root.MkdirAll(name, 0o700))
	case tar.TypeReg:
	default:
		return fmt.Errorf("has %.100q, which is neither a file nor a directory", name)
	}
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return wrong(name, err)
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return wrong(name, err)
	}
	_, err = io.Copy(file, content)
	if isOurs := errors.Is(err, errTooLarge); err != nil && !isOurs {
		err = errors.New("is no valid archive")
	}
	return errors.Join(err, file.Close())
}

// wrong describes why an entry cannot be written.
func wrong(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("has %.100q twice", name)
	}
	return fmt.Errorf("cannot be unpacked at %.100q", name)
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

package manifest

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// corpus calls each with the package metadata and the CRDs of every archive in the corpus.
func corpus(tb testing.TB, each func(archive, name string, raw []byte)) {
	tb.Helper()
	_ = os.Getenv("HEADGATE_CORPUS_STATE") // the test cache tracks this variable, but no file outside the module
	directory := os.Getenv("HEADGATE_CORPUS")
	if directory == "" {
		directory = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	archives, err := filepath.Glob(filepath.Join(directory, "*.tar.gz"))
	if err != nil || len(archives) == 0 {
		tb.Skipf("the corpus is absent: no archives in %s; set HEADGATE_CORPUS to the directory that holds them", directory)
	}
	for _, archive := range archives {
		if err := unpack(archive, func(name string, raw []byte) {
			each(filepath.Base(archive), name, raw)
		}); err != nil {
			tb.Fatalf("%s: cannot unpack: %v", archive, err)
		}
	}
}

func unpack(archive string, each func(name string, raw []byte)) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for entries := tar.NewReader(unzipped); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !entry.FileInfo().Mode().IsRegular() || !fs.ValidPath(entry.Name) {
			continue
		}
		if entry.Name != "crossplane.yaml" && !(strings.HasPrefix(entry.Name, "crds/") && strings.HasSuffix(entry.Name, ".yaml")) {
			continue
		}
		raw, err := io.ReadAll(entries)
		if err != nil {
			return err
		}
		each(entry.Name, raw)
	}
}

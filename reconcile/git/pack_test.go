package git

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// Every user with push permission can send packs. Reading a pack must end and stay within the memory limit. If go-git can read the
// object, too, the results must be equal.
func FuzzPack(f *testing.F) {
	index := idxfile.NewMemoryIndex()
	for i, byID := range []bool{false, true} {
		repo := newFixture(f)
		repo.ref("refs/heads/main", repo.commit(repo.files(texts(12))))
		repo.repack(byID)
		packs, err := filepath.Glob(filepath.Join(repo.dir, "objects", "pack", "*.pack"))
		if err != nil || len(packs) != 1 {
			f.Fatalf("packs: %v, %v", packs, err)
		}
		whole, err := os.ReadFile(packs[0])
		if err != nil {
			f.Fatal(err)
		}
		if i == 0 {
			idx, err := os.ReadFile(packs[0][:len(packs[0])-len("pack")] + "idx")
			if err != nil {
				f.Fatal(err)
			}
			if err := idxfile.NewDecoder(bytes.NewReader(idx)).Decode(index); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(whole)
		for _, at := range []int{12, 13, 14, len(whole) / 2, len(whole) - 30} {
			broken := bytes.Clone(whole)
			broken[at] ^= 0x55
			f.Add(broken)
		}
	}
	const limit = 1 << 20
	f.Fuzz(func(t *testing.T, data []byte) {
		files := memfs.New()
		if err := writeTo(files, data); err != nil {
			t.Fatal(err)
		}
		file, err := files.Open("pack")
		if err != nil {
			t.Fatal(err)
		}
		ours := &pack{index: index, file: file, recent: &recent{}}
		entries, err := index.EntriesByOffset()
		if err != nil {
			t.Fatal(err)
		}
		for {
			e, err := entries.Next()
			if err == io.EOF { //nolint:errorlint // go-git's own iterators end so
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := ours.read(int64(e.Offset), limit)
			if err != nil {
				continue
			}
			if len(got.data) > limit {
				t.Errorf("%d bytes are read, and the limit is %d", len(got.data), limit)
			}
			kind, theirs, ok := byGoGit(files, index, int64(e.Offset))
			if ok && (kind != got.kind || !bytes.Equal(theirs, got.data)) {
				t.Errorf("at %d: %s %q, and go-git reads %s %q", e.Offset, got.kind, got.data, kind, theirs)
			}
		}
	})
}

// byGoGit reads the object with go-git, if possible.
func byGoGit(files billy.Filesystem, index idxfile.Index, offset int64) (kind plumbing.ObjectType, data []byte, ok bool) {
	defer func() {
		if recover() != nil { // go-git panics on some invalid packs
			ok = false
		}
	}()
	file, err := files.Open("pack")
	if err != nil {
		return 0, nil, false
	}
	defer file.Close()
	object, err := packfile.NewPackfile(index, files, file, 0).GetByOffset(offset)
	if err != nil || object.Size() > 1<<20 {
		return 0, nil, false
	}
	r, err := object.Reader()
	if err != nil {
		return 0, nil, false
	}
	defer r.Close()
	data, err = io.ReadAll(r)
	return object.Type(), data, err == nil
}

func writeTo(files billy.Filesystem, data []byte) error {
	file, err := files.Create("pack")
	if err != nil {
		return err
	}
	if _, err := file.Write(data); err != nil {
		return err
	}
	return file.Close()
}

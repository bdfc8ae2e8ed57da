package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/render"
)

func fetch(tb testing.TB, f *fixture, tree plumbing.Hash) render.Input {
	tb.Helper()
	f.ref("refs/heads/main", f.commit(tree))
	in, err := (&Repository{URL: f.dir}).Fetch(tb.Context(), "main")
	if err != nil {
		tb.Fatal(err)
	}
	return in
}

type hasher interface {
	Hash(path string) (string, error)
}

func blobID(data []byte) string {
	sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(data), data))
	return hex.EncodeToString(sum[:])
}

// A tree must be a valid file system, however its objects are stored.
func TestTree(t *testing.T) {
	cases := map[string]struct {
		reason string
		pack   func(f *fixture)
	}{
		"Loose":     {reason: "Objects may be separate files.", pack: func(*fixture) {}},
		"OFSDeltas": {reason: "Deltas may refer to their base by its offset.", pack: func(f *fixture) { f.repack(false) }},
		"REFDeltas": {reason: "Deltas may refer to their base by its ID.", pack: func(f *fixture) { f.repack(true) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			files := texts(30)
			files["empty"], files["deep/er/and/deeper"] = "", "d"
			files["big"] = strings.Repeat("0123456789", 20_000)
			f.ref("refs/heads/main", f.commit(f.files(files)))
			tc.pack(f)
			in, err := (&Repository{URL: f.dir}).Fetch(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			if err := fstest.TestFS(in.Files, slices.Collect(maps.Keys(files))...); err != nil {
				t.Errorf("%s\n%v", tc.reason, err)
			}
			if diff := cmp.Diff(files, everything(t, in.Files)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			for path, text := range files {
				info, err := fs.Stat(in.Files, path)
				if err != nil || info.Size() != int64(len(text)) {
					t.Errorf("%s\n%s: want size %d, got %v, %v", tc.reason, path, len(text), info, err)
				}
				id, err := in.Files.(hasher).Hash(path)
				if err != nil || id != blobID([]byte(text)) {
					t.Errorf("%s\nHash(%s): %s, %v", tc.reason, path, id, err)
				}
			}
		})
	}
}

func TestTreeModes(t *testing.T) {
	f := newFixture(t)
	b := f.blob("text")
	in := fetch(t, f, f.tree(
		item{"40000", "dir", f.files(map[string]string{"x": "x"})},
		item{"100644", "file", b},
		item{"100664", "group", b},
		item{"120000", "link", f.blob("/etc/passwd")},
		item{"160000", "module", f.commit(f.files(nil))},
		item{"100755", "run", b},
		item{"100000", "odd", b},
		item{"777", "strange", b},
	))
	want := map[string]struct {
		Mode fs.FileMode
		Read string // or why not
	}{
		"dir":     {fs.ModeDir | 0o555, "is a directory"},
		"file":    {0o444, "text"},
		"group":   {0o444, "text"},
		"link":    {fs.ModeSymlink | 0o444, "is a symbolic link, and those are not followed"},
		"module":  {fs.ModeIrregular | 0o444, "is a submodule, and those are not followed"},
		"odd":     {0o444, "text"},
		"run":     {0o555, "text"},
		"strange": {fs.ModeIrregular | 0o444, "is a submodule, and those are not followed"},
	}
	list, err := fs.ReadDir(in.Files, ".")
	if err != nil {
		t.Fatal(err)
	}
	got := maps.Clone(want)
	clear(got)
	for _, e := range list {
		g := want[e.Name()]
		info, err := e.Info()
		if err != nil {
			t.Error(err)
			continue
		}
		g.Mode = info.Mode()
		data, err := fs.ReadFile(in.Files, e.Name())
		g.Read = string(data)
		if err != nil {
			g.Read = errors.Unwrap(err).Error()
		}
		if _, hashed := in.Files.(hasher).Hash(e.Name()); (hashed == nil) != (err == nil) {
			t.Errorf("Hash(%s): %v", e.Name(), hashed)
		}
		if f, err := in.Files.Open(e.Name()); err == nil {
			_ = f.Close()
		} else if e.IsDir() || e.Type().IsRegular() {
			t.Error(err)
		}
		got[e.Name()] = g
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A directory with an invalid entry is refused as a whole, because a file that is left out would look deleted.
func TestTreeRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		names  []string
		want   string
	}{
		"Up":        {reason: "The name \\\"..\\\" would lead out of the directory.", names: []string{".."}, want: "not allowed"},
		"Here":      {reason: "The name \\\".\\\" means the directory itself.", names: []string{"."}, want: "not allowed"},
		"Git":       {reason: "Git never stores an entry named .git.", names: []string{".git"}, want: "not allowed"},
		"GitUpper":  {reason: "Some file systems ignore upper and lower case.", names: []string{".GIT"}, want: "not allowed"},
		"Slash":     {reason: "A name must not contain a path.", names: []string{"a/../../b"}, want: "not allowed"},
		"Empty":     {reason: "A name must not be empty.", names: []string{""}, want: "empty"},
		"Twice":     {reason: "Two entries with the same name are ambiguous.", names: []string{"a", "a"}, want: "two entries"},
		"NotUTF8":   {reason: "Package render skips such a file, or refuses it.", names: []string{"a\xff"}},
		"Backslash": {reason: "On Linux, a backslash is an ordinary character.", names: []string{`a\b`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			b := f.blob("b")
			var items []item
			for _, n := range tc.names {
				items = append(items, item{"100644", n, b})
			}
			in := fetch(t, f, f.tree(item{"40000", "d", f.tree(items...)}))
			_, err := fs.ReadDir(in.Files, "d")
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nwant error %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// A few objects can form a tree of any size: every directory contains the next one ten times.
func TestTreeBomb(t *testing.T) {
	f := newFixture(t)
	h := f.files(map[string]string{"x": "x"})
	for range 10 {
		var items []item
		for i := range 10 {
			items = append(items, item{"40000", fmt.Sprint(i), h})
		}
		h = f.tree(items...)
	}
	f.ref("refs/heads/main", f.commit(h))
	in, err := (&Repository{URL: f.dir, Limits: Limits{Entries: 500}}).Fetch(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	err = fs.WalkDir(in.Files, ".", func(_ string, _ fs.DirEntry, err error) error { return err })
	if err == nil || !strings.Contains(err.Error(), "more than 500") {
		t.Errorf("want an error, got %v", err)
	}
}

// A delta of a few hundred bytes can expand to a tree with millions of entries. They must be counted before they take memory.
func TestTreeIsCountedFirst(t *testing.T) {
	f := newFixture(t)
	b := f.blob("b")
	f.ref("refs/heads/main", f.commit(f.tree(item{"40000", "d", f.tree(slices.Repeat([]item{{"100644", "same", b}}, 501)...)})))
	in, err := (&Repository{URL: f.dir, Limits: Limits{Entries: 501}}).Fetch(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	// The root has one entry. Decoding the directory would find two entries of one name.
	if _, err := fs.ReadDir(in.Files, "d"); err == nil || !strings.Contains(err.Error(), "more than 501") {
		t.Errorf("want an error about the number of entries, got %v", err)
	}
}

// A tree that is in many directories takes memory once.
func TestTreeIsShared(t *testing.T) {
	f := newFixture(t)
	h := f.files(map[string]string{"x": "x"})
	in := fetch(t, f, f.tree(item{"40000", "a", h}, item{"40000", "b", h}))
	for _, dir := range []string{"a", "b"} {
		if list, err := fs.ReadDir(in.Files, dir); err != nil || len(list) != 1 {
			t.Fatalf("%s: got %v, %v", dir, list, err)
		}
	}
	files := in.Files.(*tree)
	if files.folders["a"] != files.folders["b"] {
		t.Error("a tree is decoded twice")
	}
	if want := 2 + 1 + 1; files.listed != want {
		t.Errorf("a limit bounds what a walk visits: want %d entries, got %d", want, files.listed)
	}
}

// The result of ReadFile belongs to the caller.
func TestReadFileCopies(t *testing.T) {
	f := newFixture(t)
	in := fetch(t, f, f.files(map[string]string{"a": "abc"}))
	f.repack(false)
	for range 2 {
		data, err := fs.ReadFile(in.Files, "a")
		if err != nil || string(data) != "abc" {
			t.Fatalf("got %q, %v", data, err)
		}
		data[0] = 'X'
	}
}

// FuzzTree checks that every listed path of an arbitrary tree object is valid, except that names may not be UTF-8, and that every readable file has the
// ID that Hash returns.
func FuzzTree(f *testing.F) {
	f.Add([]byte("100644 a\x0012345678901234567890"))
	f.Add([]byte("40000 ..\x0012345678901234567890120000 b\x0012345678901234567890"))
	f.Add([]byte("100644 .git\x00BBBBBBBBBBBBBBBBBBBB100755 x/y\x00BBBBBBBBBBBBBBBBBBBB"))
	f.Add([]byte("160000 m\xff\x00BBBBBBBBBBBBBBBBBBBB100644 ok\x00BBBBBBBBBBBBBBBBBBBB"))
	repo := newFixture(f)
	blob, below := repo.blob("text"), repo.files(map[string]string{"x": "x"})
	store, err := openLocal(repo.dir, 1<<20)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		// A fuzzer cannot guess IDs: these texts stand for a blob and a tree that exist.
		data = bytes.ReplaceAll(data, []byte("BBBBBBBBBBBBBBBBBBBB"), blob[:])
		data = bytes.ReplaceAll(data, []byte("TTTTTTTTTTTTTTTTTTTT"), below[:])
		o, decoded := &plumbing.MemoryObject{}, &object.Tree{}
		o.SetType(plumbing.TreeObject)
		_, _ = o.Write(data)
		if decoded.Decode(o) != nil {
			return
		}
		files := &tree{objects: store, limit: 1000, paths: 1 << 20}
		nodes, err := store.list(decoded.Entries)
		if err != nil {
			return
		}
		files.folders = map[string]*listing{".": {nodes: nodes}}
		_ = fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
			if !validPath(path) {
				t.Errorf("%q is not a valid path", path)
			}
			if err != nil || d.IsDir() {
				return nil //nolint:nilerr // objects may be missing
			}
			data, err := files.ReadFile(path)
			if err != nil {
				return nil //nolint:nilerr // likewise
			}
			if id, err := files.Hash(path); err != nil || id != blobID(data) {
				t.Errorf("%q: Hash tells %s, %v; the content is %s", path, id, err, blobID(data))
			}
			return nil
		})
	})
}

func zipped(text string) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.Bytes()
}

// signed appends the checksum of a pack.
func signed(pack []byte) []byte {
	sum := sha1.Sum(pack)
	return append(slices.Clip(pack), sum[:]...)
}

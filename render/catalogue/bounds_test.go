package catalogue_test

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures/bombs"
	"headgate.dev/headgate/render/catalogue"
)

// An endless is a tree in which every directory has the same entries. A commit can contain such a tree with two objects.
type endless struct{ entries []fs.DirEntry }

type named struct {
	name string
	dir  bool
}

func (n named) Name() string               { return n.name }
func (n named) IsDir() bool                { return n.dir }
func (n named) Type() fs.FileMode          { return n.Mode().Type() }
func (n named) Info() (fs.FileInfo, error) { return n, nil }
func (n named) Size() int64                { return 0 }
func (n named) ModTime() time.Time         { return time.Time{} }
func (n named) Sys() any                   { return nil }
func (n named) Mode() fs.FileMode {
	if n.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

func (e endless) Open(name string) (fs.File, error) { return opened{e, name}, nil }

type opened struct {
	endless
	name string
}

func (o opened) Stat() (fs.FileInfo, error) {
	base := o.name[strings.LastIndexByte(o.name, '/')+1:]
	for _, e := range o.entries {
		if e.Name() == base && !e.IsDir() {
			return named{base, false}, nil
		}
	}
	if strings.HasPrefix(base, "d") || base == "." {
		return named{base, true}, nil
	}
	return nil, fs.ErrNotExist
}
func (o opened) Read([]byte) (int, error)                { return 0, io.EOF }
func (o opened) Close() error                            { return nil }
func (o opened) ReadDir(int) ([]fs.DirEntry, error)      { return o.entries, nil }
func (e endless) Lstat(name string) (fs.FileInfo, error) { return e.Stat(name) }
func (e endless) ReadLink(string) (string, error)        { return "", fs.ErrInvalid }

func (e endless) Stat(name string) (fs.FileInfo, error) {
	info, err := opened{e, name}.Stat()
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return info, nil
}

// A tree of a few kilobytes in a pack can be endless to a walk. The walk must refuse it before it stores the paths.
func TestWalkEnds(t *testing.T) {
	bombs.Bound(t, 2<<30)
	files := func(n, length int, ext string) (all []fs.DirEntry) {
		for i := range n {
			all = append(all, named{fmt.Sprintf("f%06d%s%s", i, strings.Repeat("x", length), ext), false})
		}
		return all
	}
	for name, tc := range map[string]struct {
		reason  string
		entries []fs.DirEntry
		want    string
	}{
		"Deep":      {"The depth is limited, because every directory keeps its full path.", []fs.DirEntry{named{"d", true}}, "more than the limit of 100 directories are nested"},
		"LongNames": {"The length of a path is limited, because a Git tree does not limit names.", []fs.DirEntry{named{"d" + strings.Repeat("x", 3000), true}}, "the path is longer than the limit of 4096 bytes"},
		"Many":      {"The number of files is limited, because the same Git tree may occur in many directories.", append([]fs.DirEntry{named{"d1", true}, named{"d2", true}}, files(30_000, 0, ".txt")...), "there are more than the limit of 1000000 files and directories"},
		"ManyLong":  {"The length of all paths together is limited, because all are kept in memory.", append([]fs.DirEntry{named{"d1", true}, named{"d2", true}}, files(20_000, 400, ".txt")...), "the paths of all files together are longer than the limit of 67108864 bytes"},
		// Inside a package, examples are only counted.
		"InExamples": {"Limits apply to skipped directories, too.", []fs.DirEntry{named{"crossplane.yaml", false}, named{"dexamples", true}}, "directories are nested"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(endless{tc.entries}, ".", catalogue.Options{})
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 10_000 {
				t.Errorf("%s\nRead: %.300v\nwant %s", tc.reason, err, tc.want)
			}
		})
	}
}

package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
)

// A Directory is a Source of the files on disk, without a commit.
type Directory struct {
	Root string // the root of the tree
	Path string // the directory with the manifests; "" is the root
}

// Fetch opens the directory. It has no revisions, so ref is "".
func (d Directory) Fetch(_ context.Context, ref string) (render.Input, error) {
	if ref != "" {
		return render.Input{}, fmt.Errorf("%s: cannot read %q: a plain directory has no branches, tags or commits", d.Root, ref)
	}
	dir, err := below(d.Path)
	if err != nil {
		return render.Input{}, fmt.Errorf("%s: %w", d.Root, err)
	}
	root, err := os.OpenRoot(d.Root)
	if err != nil {
		return render.Input{}, fmt.Errorf("cannot read directory %s: %w", d.Root, reason(err))
	}
	files := plain{root} // The finalizer closes root, because files are read later.
	if err := directory(files, dir); err != nil {
		return render.Input{}, fmt.Errorf("%s: %w", d.Root, err)
	}
	return render.Input{Files: files, Path: dir, Source: d.Source()}, nil
}

// reason returns an error of package os without its operation and path.
func reason(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// below cleans the path of a directory in a tree.
func below(dir string) (string, error) {
	clean := path.Clean(strings.TrimPrefix(dir, "./"))
	if dir == "" {
		clean = "."
	}
	if !fs.ValidPath(clean) || strings.ContainsAny(dir, "\\\x00") {
		return "", fmt.Errorf("cannot read path %q: it is not inside of the repository; write it relative to the root, with no .. in it", dir)
	}
	return clean, nil
}

// directory checks that dir is a directory. If not, the error describes what it is.
func directory(files fs.FS, dir string) error {
	info, err := fs.Stat(files, dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("path %q is a symbolic link, and those are not followed; name the directory it points to", dir)
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("path %q is a submodule or a special file, and those are not read", dir)
	case err == nil:
		return fmt.Errorf("path %q is a file; name the directory it is in", dir)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("path %q: %w", dir, reason(err))
	}
	up, missing := path.Dir(dir), path.Base(dir)
	list, err := fs.ReadDir(files, up)
	for err != nil && up != "." {
		up, missing = path.Dir(up), path.Base(up)
		list, err = fs.ReadDir(files, up)
	}
	if err != nil {
		return fmt.Errorf("path %q: %w", dir, reason(err))
	}
	var names []string
	for _, e := range list {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	where := fmt.Sprintf("%q has", up)
	if up == "." {
		where = "the root has"
	}
	if len(names) == 0 {
		return fmt.Errorf("there is no directory %q; %s no directories", dir, where)
	}
	return fmt.Errorf("there is no directory %q; %s: %s", dir, where, nearest(missing, names))
}

// plain is a directory on disk as a tree. It is confined to the directory, omits .git and follows no links. It has no
// hashes, because a file may change before it is read.
type plain struct{ root *os.Root }

var _ fs.StatFS = plain{}

// Stat describes a file, a directory or a symbolic link itself. It checks every parent directory, because os.Root
// follows links that stay inside.
func (p plain) Stat(name string) (_ fs.FileInfo, err error) {
	defer wrapPath("stat", name, &err)
	if !validPath(name) {
		return nil, fs.ErrInvalid
	}
	for i, letter := range name {
		if letter != '/' {
			continue
		}
		info, err := p.lstat(name[:i])
		if err == nil && !info.IsDir() {
			err = fs.ErrNotExist
		}
		if err != nil {
			return nil, err
		}
	}
	return p.lstat(name)
}

// Lstat does what Stat does.
func (p plain) Lstat(name string) (fs.FileInfo, error) { return p.Stat(name) }

// ReadLink returns the target of a symbolic link.
func (p plain) ReadLink(name string) (_ string, err error) {
	defer wrapPath("readlink", name, &err)
	if _, err := p.Stat(name); err != nil { // of its parents
		return "", err
	}
	target, err := p.root.Readlink(name)
	return filepath.ToSlash(target), reason(err)
}

func (p plain) lstat(name string) (fs.FileInfo, error) {
	if strings.EqualFold(path.Base(name), ".git") {
		return nil, fs.ErrNotExist
	}
	info, err := p.root.Lstat(name)
	return info, reason(err)
}

// Open opens a file or a directory.
func (p plain) Open(name string) (_ fs.File, err error) {
	defer wrapPath("open", name, &err)
	info, err := p.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		list, err := p.list(name)
		if err != nil {
			return nil, err
		}
		return &folder{info, name, list}, nil
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errors.New("is a symbolic link, and those are not followed")
	case !info.Mode().IsRegular(): // opening a pipe would block
		return nil, errors.New("is a special file, and those are not read")
	default:
		return p.root.Open(name)
	}
}

func (p plain) list(name string) ([]fs.DirEntry, error) {
	dir, err := p.root.Open(name) // not its FS, which requires UTF-8
	if err != nil {
		return nil, err
	}
	list, err := dir.ReadDir(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	kept := list[:0]
	for _, e := range list {
		if strings.EqualFold(e.Name(), ".git") {
			continue
		}
		if err := checkName(e.Name()); err != nil {
			return nil, err
		}
		kept = append(kept, e)
	}
	return kept, nil
}

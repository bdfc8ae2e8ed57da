package kustomize

import (
	"errors"
	"io/fs"
	"path"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// The parts of a view. A file may be in several of them: decoded and as raw bytes.
const (
	inCommit = "/commit/" // kustomizations and resources, with their paths
	inPatch  = "/patch/"
	inYAML   = "/yaml/" // configuration: schemas, replacements and the like
	inRaw    = "/raw/"  // the contents of ConfigMaps and Secrets
)

// A view is the file system that kustomize sees: the vetted files, in memory. Methods that would change files do nothing.
type view struct {
	filesys.FileSystem
	files map[string][]byte
	dirs  map[string]bool
}

func newView() view {
	return view{FileSystem: filesys.MakeEmptyDirInMemory(), files: map[string][]byte{}, dirs: map[string]bool{}}
}

func (v view) add(name string, content []byte) {
	v.files[name] = content
	for dir := path.Dir(name); !v.dirs[dir]; dir = path.Dir(dir) {
		v.dirs[dir] = true
	}
}

func (v view) has(name string) bool {
	_, ok := v.files[name]
	return ok
}

func (v view) size(name string) int64 { return int64(len(v.files[name])) }

// CleanedAbs splits a name into a directory and a file.
func (v view) CleanedAbs(name string) (dir filesys.ConfirmedDir, file string, err error) {
	name = path.Join("/", name)
	switch {
	case v.dirs[name]:
		return filesys.ConfirmedDir(name), "", nil
	case v.has(name):
		return filesys.ConfirmedDir(path.Dir(name)), path.Base(name), nil
	}
	return "", "", fs.ErrNotExist
}

// ReadFile reads a file.
func (v view) ReadFile(name string) ([]byte, error) {
	name = path.Join("/", name)
	if content, ok := v.files[name]; ok {
		return content, nil
	}
	if v.dirs[name] {
		return nil, errors.New("a directory")
	}
	return nil, fs.ErrNotExist
}

// IsDir reports whether there is a directory with this name.
func (v view) IsDir(name string) bool { return v.dirs[path.Join("/", name)] }

// Exists reports whether there is a file or directory with this name.
func (v view) Exists(name string) bool { return v.IsDir(name) || v.has(path.Join("/", name)) }

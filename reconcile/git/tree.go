package git

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
	"weak"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// A tree holds the files of a commit and reads them from its objects on demand. It lists symbolic links and
// submodules, but does not open them. Names may not be UTF-8, unlike in package fs. It is safe for concurrent use.
type tree struct {
	objects *objects
	root    plumbing.Hash
	limit   int   // maximum entries of all listed directories
	paths   int64 // maximum bytes of their names and of the directories' paths

	mu      sync.RWMutex
	folders map[string]*listing // by path
	listed  int
	named   int64
}

// maxPath is the maximum length of a path, as on Linux. The paths of nested directories take quadratic memory in their depth.
const maxPath = 4096

var (
	_ fs.ReadFileFS = (*tree)(nil)
	_ fs.StatFS     = (*tree)(nil)
)

// A listing holds the nodes of a directory, sorted by name.
type listing struct {
	nodes []node
	next  atomic.Int32 // the probable index of the next name, because callers ask in order
}

func (l *listing) find(name string) (node, bool) {
	i := int(l.next.Load())
	if i >= len(l.nodes) || l.nodes[i].name != name {
		var ok bool
		i, ok = slices.BinarySearchFunc(l.nodes, name, func(n node, name string) int { return cmp.Compare(n.name, name) })
		if !ok {
			return node{}, false
		}
	}
	l.next.Store(int32(i + 1)) //nolint:gosec // the limit of entries is far below
	return l.nodes[i], true
}

// A node is an entry of a directory: a file or a directory of the tree.
type node struct {
	objects *objects
	name    string
	mode    fs.FileMode
	hash    plumbing.Hash
}

func (n node) Name() string               { return n.name }
func (n node) IsDir() bool                { return n.mode.IsDir() }
func (n node) Type() fs.FileMode          { return n.mode.Type() }
func (n node) Mode() fs.FileMode          { return n.mode }
func (n node) ModTime() time.Time         { return time.Time{} } // Git stores no times
func (n node) Sys() any                   { return nil }
func (n node) Info() (fs.FileInfo, error) { return n.stat() }
func (n node) String() string             { return fs.FormatDirEntry(n) }

// A status is a node with its size.
type status struct {
	node
	size int64
}

func (s status) Size() int64    { return s.size }
func (s status) String() string { return fs.FormatFileInfo(s) }

func (n node) stat() (fs.FileInfo, error) {
	if !n.mode.IsRegular() {
		return status{n, 0}, nil
	}
	size, err := n.objects.size(n.hash)
	return status{n, size}, err
}

// plain returns an error if n cannot be read as a file.
func (n node) plain() error {
	switch {
	case n.mode.IsRegular():
		return nil
	case n.mode.IsDir():
		return errors.New("is a directory")
	case n.mode&fs.ModeSymlink != 0:
		return errors.New("is a symbolic link, and those are not followed")
	default:
		return errors.New("is a submodule, and those are not followed")
	}
}

// wrapPath adds an operation and its path to an error.
func wrapPath(op, name string, err *error) {
	if e := (*fs.PathError)(nil); *err != nil && !(errors.As(*err, &e) && e.Path == name) {
		*err = &fs.PathError{Op: op, Path: name, Err: *err}
	}
}

// Open opens a file or a directory.
func (t *tree) Open(name string) (_ fs.File, err error) {
	defer wrapPath("open", name, &err)
	n, err := t.find(name)
	if err != nil {
		return nil, err
	}
	if n.IsDir() {
		list, err := t.folder(name)
		if err != nil {
			return nil, err
		}
		return &folder{status{n, 0}, name, entries(list.nodes)}, nil
	}
	data, err := n.read()
	if err != nil {
		return nil, err
	}
	return &file{bytes.NewReader(data), status{n, int64(len(data))}}, nil
}

// ReadFile reads a file.
func (t *tree) ReadFile(name string) (_ []byte, err error) {
	defer wrapPath("read", name, &err)
	n, err := t.find(name)
	if err != nil {
		return nil, err
	}
	data, err := n.read()
	return bytes.Clone(data), err
}

// Stat describes a file or directory, and a symbolic link itself.
func (t *tree) Stat(name string) (_ fs.FileInfo, err error) {
	defer wrapPath("stat", name, &err)
	n, err := t.find(name)
	if err != nil {
		return nil, err
	}
	return n.stat()
}

// Lstat does what Stat does.
func (t *tree) Lstat(name string) (fs.FileInfo, error) { return t.Stat(name) }

// ReadLink returns the target of a symbolic link.
func (t *tree) ReadLink(name string) (_ string, err error) {
	defer wrapPath("readlink", name, &err)
	n, err := t.find(name)
	if err != nil {
		return "", err
	}
	if n.mode&fs.ModeSymlink == 0 {
		return "", fs.ErrInvalid
	}
	size, err := n.objects.size(n.hash)
	if err == nil && size > maxPath {
		err = fmt.Errorf("the target is longer than %d bytes", maxPath)
	}
	if err != nil {
		return "", err
	}
	target, err := n.blob()
	return string(target), err
}

// Hash returns the hexadecimal Git ID of a file without reading the file.
func (t *tree) Hash(name string) (string, error) {
	n, err := t.find(name)
	if err == nil {
		err = n.plain()
	}
	if err != nil {
		wrapPath("hash", name, &err)
		return "", err
	}
	var digits [2 * len(n.hash)]byte // on the stack, because every render does this for every file
	hex.Encode(digits[:], n.hash[:])
	return string(digits[:]), nil
}

// Order sorts the names of files in the order in which reading is fastest: each next to the object from which it differs least.
func (t *tree) Order(names []string) {
	ids := make([]plumbing.Hash, len(names))
	for i, name := range names {
		if n, err := t.find(name); err == nil {
			ids[i] = n.hash
		}
	}
	lines := t.objects.lineages(ids)
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(lines[a], lines[b]) })
	was := slices.Clone(names)
	for i, from := range order {
		names[i] = was[from]
	}
}

// read reads a file. The caller must not change the bytes.
func (n node) read() ([]byte, error) {
	if err := n.plain(); err != nil {
		return nil, err
	}
	return n.blob()
}

// blob returns the content of a file, or the target of a symbolic link.
func (n node) blob() ([]byte, error) {
	kind, data, err := n.objects.read(n.hash)
	if err == nil && kind != plumbing.BlobObject {
		err = fmt.Errorf("object %s is a %s", n.hash, kind)
	}
	return data, err
}

// validPath is fs.ValidPath, but allows names that are not UTF-8: a commit may have them, and package render decides about them.
func validPath(name string) bool {
	return fs.ValidPath(name) || !utf8.ValidString(name) && fs.ValidPath(strings.ToValidUTF8(name, "_"))
}

func (t *tree) find(name string) (node, error) {
	if !validPath(name) {
		return node{}, fs.ErrInvalid
	}
	if len(name) > maxPath {
		return node{}, fmt.Errorf("the path is longer than %d bytes", maxPath)
	}
	if name == "." {
		return node{t.objects, ".", fs.ModeDir | 0o555, t.root}, nil
	}
	dir, base := ".", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		dir, base = name[:i], name[i+1:]
	}
	list, err := t.folder(dir)
	if err != nil {
		return node{}, err
	}
	n, ok := list.find(base)
	if !ok {
		return node{}, fs.ErrNotExist
	}
	return n, nil
}

// folder lists a directory. It reads its object on the first call.
func (t *tree) folder(name string) (*listing, error) {
	t.mu.RLock()
	known, ok := t.folders[name]
	t.mu.RUnlock()
	if ok {
		return known, nil
	}
	n, err := t.find(name)
	if err != nil {
		return nil, err
	}
	if !n.IsDir() {
		return nil, fs.ErrNotExist
	}
	list, err := t.decode(n.hash)
	if err != nil {
		return nil, fmt.Errorf("cannot list tree %s: %w", n.hash, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if have, ok := t.folders[name]; ok {
		return have, nil
	}
	if err := t.allows(len(list.nodes)); err != nil {
		return nil, err
	}
	t.listed += len(list.nodes)
	t.named += int64(len(name))
	for i := range list.nodes {
		t.named += int64(len(list.nodes[i].name))
	}
	if t.named > t.paths {
		return nil, fmt.Errorf("the names of the files and directories of the commit have more than %d bytes", t.paths)
	}
	if t.folders == nil {
		t.folders = map[string]*listing{}
	}
	t.folders[name] = list
	return list, nil
}

// decode returns the listing of a tree object.
func (t *tree) decode(h plumbing.Hash) (*listing, error) {
	return t.objects.listing(h, func(entries int) error {
		t.mu.RLock()
		defer t.mu.RUnlock()
		return t.allows(entries)
	})
}

// allows returns an error if the commit has too many files and directories with these entries. The caller holds mu.
func (t *tree) allows(entries int) error {
	if entries > t.limit-t.listed {
		return fmt.Errorf("the commit has more than %d files and directories", t.limit)
	}
	return nil
}

// A shelf is the place of the listing of a tree, which all commits share that have the tree.
type shelf struct {
	mu   sync.Mutex // held while the tree is decoded
	list weak.Pointer[listing]
}

// listing returns the listing of a tree, like tree. A listing is kept for as long as a commit uses it.
func (o *objects) listing(h plumbing.Hash, allow func(entries int) error) (*listing, error) {
	place, _ := o.shelves.LoadOrStore(h, new(shelf))
	s, _ := place.(*shelf)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.list.Value(); known != nil {
		return known, nil
	}
	entries, err := o.tree(h, allow)
	var nodes []node
	if err == nil {
		nodes, err = o.list(entries)
	}
	if err != nil {
		o.shelves.CompareAndDelete(h, s)
		return nil, err
	}
	list := &listing{nodes: nodes}
	s.list = weak.Make(list)
	runtime.AddCleanup(list, func(s *shelf) { o.shelves.CompareAndDelete(h, s) }, s)
	return list, nil
}

// list converts the entries of a tree object to nodes. It refuses a directory that no honest commit has: Headgate
// might take a silently omitted entry for deleted.
func (o *objects) list(entries []object.TreeEntry) ([]node, error) {
	nodes := make([]node, 0, len(entries))
	for _, e := range entries {
		if err := checkName(e.Name); err != nil {
			return nil, err
		}
		nodes = append(nodes, node{o, e.Name, permission(e.Mode), e.Hash})
	}
	slices.SortFunc(nodes, func(a, b node) int { return cmp.Compare(a.name, b.name) })
	for i := 1; i < len(nodes); i++ {
		if nodes[i].name == nodes[i-1].name {
			return nil, fmt.Errorf("two entries have the name %q", nodes[i].name)
		}
	}
	return nodes, nil
}

// permission converts the mode of an entry to one of package fs. A submodule is irregular.
func permission(m filemode.FileMode) fs.FileMode {
	switch m {
	case filemode.Dir:
		return fs.ModeDir | 0o555
	case filemode.Symlink:
		return fs.ModeSymlink | 0o444
	case filemode.Executable:
		return 0o555
	case filemode.Regular:
		return 0o444
	default:
		return fs.ModeIrregular | 0o444
	}
}

func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.EqualFold(name, ".git") || strings.Contains(name, "/") {
		return fmt.Errorf("the name %q is not allowed", name)
	}
	return nil
}

func entries(nodes []node) []fs.DirEntry {
	list := make([]fs.DirEntry, len(nodes))
	for i := range nodes {
		list[i] = &nodes[i]
	}
	return list
}

// A file is an open file.
type file struct {
	*bytes.Reader
	info status
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *file) Close() error               { return nil }

// A folder is an open directory.
type folder struct {
	info fs.FileInfo
	path string
	left []fs.DirEntry
}

func (f *folder) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *folder) Close() error               { return nil }
func (f *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.path, Err: errors.New("is a directory")}
}

// ReadDir returns the next n entries, or all remaining ones if n is not positive.
func (f *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(f.left)
	} else if len(f.left) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(f.left))
	list := f.left[:n]
	f.left = f.left[n:]
	return list, nil
}

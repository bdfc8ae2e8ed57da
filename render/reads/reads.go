// Package reads records what is read of a tree of files, so that another tree is known to give the same results without reading it
// again. It records questions and answers: the entries of a directory, the hash of a file, and that a path does not exist. What the
// files mean is for the reader.
package reads

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
)

// Hashed is a tree of files that knows the hash of a file without reading it. Stat describes a symbolic link itself.
type Hashed interface {
	fs.StatFS
	Hash(name string) (string, error)
}

// Files are the files of a tree that record every question about them. They are safe for concurrent use if the tree is.
type Files struct {
	tree Hashed

	mu      sync.Mutex
	answers map[question]string
}

// A question is what was asked about a path.
type question struct {
	about subject
	path  string
}

// A subject is what can be asked about a path.
type subject byte

// The subjects of questions.
const (
	content subject = iota // the hash of a file
	entries                // the names and types in a directory
	kind                   // the mode of a path; for a file also its hash, because its size depends on that
	target                 // the path that a link names
)

// Of returns the files of a tree that records what is read of it, or the tree itself if it has no hashes.
func Of(tree fs.FS) fs.FS {
	known, ok := tree.(Hashed)
	if _, already := tree.(*Files); already || !ok {
		return tree
	}
	return &Files{tree: known, answers: map[question]string{}}
}

// A Record holds the questions about a tree, each with its answer, sorted by path. The zero value has none.
type Record struct{ read []answered }

// An answered question.
type answered struct {
	question
	answer string
}

// Record returns what was read so far.
func (f *Files) Record() Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	read := make([]answered, 0, len(f.answers))
	for q, answer := range f.answers {
		read = append(read, answered{q, answer})
	}
	slices.SortFunc(read, func(a, b answered) int { return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.about, b.about)) })
	return Record{read}
}

// Same reports whether a tree gives the same answer to every recorded question. Then whoever read the recorded tree would read the
// same of this one. If not, it returns the first path with another answer.
func (r Record) Same(tree fs.FS) (changed string, same bool) {
	asked, ok := tree.(Hashed)
	if !ok {
		return ".", false
	}
	for _, q := range r.read {
		if answer(asked, q.question) != q.answer {
			return q.path, false
		}
	}
	return "", true
}

// Open opens a file or a directory.
func (f *Files) Open(name string) (fs.File, error) {
	opened, err := f.tree.Open(name)
	directory, ok := opened.(fs.ReadDirFile)
	if err != nil || !ok {
		f.ask(content, name)
		return opened, err
	}
	f.ask(entries, name)
	return folder{directory, f, name}, nil
}

// ReadFile reads a file.
func (f *Files) ReadFile(name string) ([]byte, error) {
	f.ask(content, name)
	return fs.ReadFile(f.tree, name)
}

// ReadDir lists a directory.
func (f *Files) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(f.tree, name)
	f.learn(question{entries, name}, entriesOf(list, err))
	return f.recorded(name, list), err
}

// Stat describes a file or directory, and a symbolic link itself.
func (f *Files) Stat(name string) (fs.FileInfo, error) {
	f.ask(kind, name)
	return f.tree.Stat(name)
}

// Lstat does what Stat does.
func (f *Files) Lstat(name string) (fs.FileInfo, error) { return f.Stat(name) }

// ReadLink returns the target of a symbolic link.
func (f *Files) ReadLink(name string) (string, error) {
	f.ask(target, name)
	return fs.ReadLink(f.tree, name)
}

// Hash returns the hash of a file without reading it.
func (f *Files) Hash(name string) (string, error) {
	hash, err := f.tree.Hash(name)
	f.learn(question{content, name}, hashOf(hash, err))
	return hash, err
}

// Order sorts the names of files in the order in which reading is fastest, if the tree knows it.
func (f *Files) Order(names []string) {
	if tree, ok := f.tree.(interface{ Order(names []string) }); ok {
		tree.Order(names)
	}
}

// recorded returns the entries of a directory, which record that they are asked for more than their names and types.
func (f *Files) recorded(directory string, list []fs.DirEntry) []fs.DirEntry {
	all := make([]fs.DirEntry, len(list))
	for i, e := range list {
		all[i] = entry{e, f, directory}
	}
	return all
}

// An entry is an entry of a directory.
type entry struct {
	fs.DirEntry

	files     *Files
	directory string
}

func (e entry) Info() (fs.FileInfo, error) {
	e.files.ask(kind, path.Join(e.directory, e.Name()))
	return e.DirEntry.Info()
}

// A folder is an open directory.
type folder struct {
	fs.ReadDirFile

	files *Files
	name  string
}

func (f folder) ReadDir(n int) ([]fs.DirEntry, error) {
	list, err := f.ReadDirFile.ReadDir(n)
	return f.files.recorded(f.name, list), err
}

// ask records a question about a path with its answer.
func (f *Files) ask(about subject, name string) {
	q := question{about, name}
	f.mu.Lock()
	_, known := f.answers[q]
	f.mu.Unlock()
	if !known {
		f.learn(q, answer(f.tree, q))
	}
}

func (f *Files) learn(q question, answer string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[q] = answer
}

// answer returns the answer of a tree to a question. An error is an answer, too.
func answer(tree Hashed, q question) string {
	switch q.about {
	case content:
		return hashOf(tree.Hash(q.path))
	case entries:
		return entriesOf(fs.ReadDir(tree, q.path))
	case target:
		return hashOf(fs.ReadLink(tree, q.path))
	default:
		info, err := tree.Stat(q.path)
		switch {
		case err != nil:
			return failure(err)
		case info.Mode().IsRegular():
			return info.Mode().String() + " " + hashOf(tree.Hash(q.path))
		}
		return info.Mode().String()
	}
}

func hashOf(hash string, err error) string {
	if err != nil {
		return failure(err)
	}
	return hash
}

// entriesOf returns a hash of the entries of a directory, because a record of many directories is kept.
func entriesOf(list []fs.DirEntry, err error) string {
	if err != nil {
		return failure(err)
	}
	sum := sha256.New()
	for _, e := range list {
		fmt.Fprintf(sum, "%s %q\n", e.Type(), e.Name())
	}
	return string(sum.Sum(nil))
}

// failure returns an error as an answer, without the operation that failed.
func failure(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return "error: " + err.Error()
}

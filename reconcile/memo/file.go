package memo

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A File stores values from one process to the next. It is read in place and replaced as a whole, so that processes need not wait
// for each other; the last writer wins. Damaged content is forgotten. The file may be deleted at any time.
//
// magic · length and sum of the index · index · bodies
//
// The index holds every key with its value, or with length and sum for a body. Bodies follow in the same order, and
// are read on request.
type File struct {
	path string

	mu      sync.Mutex
	entries map[string]entry
	from    *os.File // the file with the bodies, or nil
	aside   *os.File // temporary file for new bodies until Close writes all of them, or nil
	end     int64    // end of aside
	learnt  bool     // there are new values to write
}

const (
	magic    = "headgate memo 1\n" // a new format needs a new number
	head     = len(magic) + 8 + len(sum{})
	oldest   = 8         // entries above this age are dropped
	largest  = 192 << 20 // maximum size of a file; values that do not fit are computed again
	together = 512 << 20 // maximum size of all files in a directory; the oldest are deleted
	suffix   = ".memo"
	writing  = "writing-" // prefix of incomplete files
)

// Open opens the file in a directory for values under a name. The name must include everything that a value depends
// on, especially the version of the program. Unreadable content is forgotten.
func Open(dir string, name ...string) *File {
	id := sumOf(name...)
	f := &File{path: filepath.Join(dir, hex.EncodeToString(id[:])+suffix), entries: map[string]entry{}}
	from, err := os.Open(f.path)
	if err != nil {
		return f
	}
	if index, size, ok := indexOf(from); ok {
		if entries, ok := entriesOf(index, size); ok {
			f.entries, f.from = entries, from
			return f
		}
	}
	_ = from.Close()
	return f
}

// indexOf reads the index of a file, if its sum is correct.
func indexOf(from *os.File) (index []byte, size int64, ok bool) {
	info, err := from.Stat()
	if err != nil {
		return nil, 0, false
	}
	size = info.Size()
	start := make([]byte, head)
	if _, err := from.ReadAt(start, 0); err != nil || string(start[:len(magic)]) != magic {
		return nil, 0, false
	}
	length := binary.BigEndian.Uint64(start[len(magic):])
	if length > uint64(size) { //nolint:gosec // no size is negative
		return nil, 0, false
	}
	index = make([]byte, length)
	if _, err := from.ReadAt(index, int64(head)); err != nil {
		return nil, 0, false
	}
	return index, size, sumOf(string(index)) == sum(start[head-len(sum{}):])
}

// Recall returns the value of a key.
func (f *File) Recall(key string) (value string, ok bool) {
	f.mu.Lock()
	e, ok := f.entries[key]
	if ok && !e.used {
		e.used = true
		f.entries[key] = e
	}
	from := f.of(e)
	f.mu.Unlock()
	if !ok || !e.isElsewhere() {
		return e.value, ok
	}
	raw := make([]byte, e.length)
	if _, err := from.ReadAt(raw, e.at); err == nil {
		value = string(raw)
	}
	if sumOf(key, value) == e.sum {
		return value, true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.entries, key) // damaged; it is computed and stored again
	return "", false
}

// of returns the file that holds a body.
func (f *File) of(e entry) *os.File {
	if e.aside {
		return f.aside
	}
	return f.from
}

// Remember stores a value.
func (f *File) Remember(key, value string) {
	e := entry{value: value, used: true}
	if e.isBody() {
		e.sum = sumOf(key, value)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.isBody() && f.setAside(value) == nil {
		e = entry{at: f.end, length: len(value), sum: e.sum, aside: true, used: true}
		f.end += int64(len(value))
	}
	f.entries[key] = e
	f.learnt = true
}

// setAside appends a body to the temporary file: the bodies of two commits of a provider need more memory than the
// rest of a preview.
func (f *File) setAside(value string) error {
	if f.aside == nil {
		dir := filepath.Dir(f.path)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		to, err := os.CreateTemp(dir, writing)
		if err != nil {
			return err
		}
		_ = os.Remove(to.Name()) // The open file needs no name. Where the removal fails, sweep deletes it later.
		f.aside = to
	}
	_, err := f.aside.WriteAt([]byte(value), f.end)
	return err
}

// Close writes new values. After an error, they only have to be computed again.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	if f.learnt {
		err = f.write()
		f.learnt = false
	} else if info, lost := os.Stat(f.path); lost == nil && time.Since(info.ModTime()) > time.Hour {
		now := time.Now()
		err = os.Chtimes(f.path, now, now) // marks the file as used, because sweep deletes the oldest
	}
	clear(f.entries)
	return errors.Join(err, f.release())
}

// release closes the files with bodies.
func (f *File) release() error {
	var err error
	for _, file := range []*os.File{f.from, f.aside} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	f.from, f.aside, f.end = nil, nil, 0
	return err
}

// write replaces the file.
func (f *File) write() (err error) {
	dir := filepath.Dir(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	to, err := os.CreateTemp(dir, writing)
	if err != nil {
		return err
	}
	err = errors.Join(f.writeTo(to), to.Close(), f.release())
	if err == nil {
		err = os.Rename(to.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(to.Name()))
	}
	return sweep(dir)
}

func (f *File) writeTo(to io.Writer) error {
	keys, index := f.index()
	sum := sumOf(string(index))
	w := bufio.NewWriter(to)
	start := binary.BigEndian.AppendUint64([]byte(magic), uint64(len(index)))
	for _, part := range [][]byte{start, sum[:], index} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	for _, key := range keys {
		e := f.entries[key]
		var err error
		switch {
		case e.isElsewhere(): // the index has its sum already
			_, err = io.Copy(w, io.NewSectionReader(f.of(e), e.at, int64(e.length)))
		case e.isBody():
			_, err = w.WriteString(e.value)
		}
		if err != nil {
			return err
		}
	}
	return w.Flush()
}

// index returns the index of the file to write, and the keys in the same order: recently used values first, and among
// these small ones first, until the file is full.
func (f *File) index() (keys []string, index []byte) {
	for key, e := range f.entries {
		if e.used {
			e.age = 0
		} else {
			e.age++
		}
		f.entries[key] = e
		if e.age <= oldest {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		one, other := f.entries[a], f.entries[b]
		return cmp.Or(cmp.Compare(one.age, other.age), cmp.Compare(one.bodies(), other.bodies()), cmp.Compare(a, b))
	})
	left := largest
	for i, key := range keys {
		e := f.entries[key]
		if left -= len(key) + e.size(); left < 0 {
			return keys[:i], index
		}
		index = e.append(index, key)
	}
	return keys, index
}

// sweep deletes the oldest files of a directory until the rest is within the limit, and the temporary files of killed processes.
func sweep(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var files []fs.FileInfo
	for _, e := range list {
		info, err := e.Info()
		switch {
		case err != nil: // another process deleted it
		case strings.HasPrefix(e.Name(), writing) && time.Since(info.ModTime()) > time.Hour:
			_ = os.Remove(filepath.Join(dir, e.Name()))
		case filepath.Ext(e.Name()) == suffix:
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	left := int64(together)
	for _, info := range files {
		if left -= info.Size(); left < 0 {
			err = errors.Join(err, os.Remove(filepath.Join(dir, info.Name())))
		}
	}
	return err
}

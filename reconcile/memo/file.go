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

// A File remembers from one process to the next. It is read where it stands and replaced
// as a whole, so that processes need not wait for each other; the last one wins. Whatever
// is wrong with it is forgotten. It may be deleted at any time.
//
//	magic · length and sum of what follows: the index · bodies
//
// The index holds every key, with its value or, of a body, with its length and sum; bodies
// follow in the same order, and are read when they are asked for.
type File struct {
	path string

	mu      sync.Mutex
	entries map[string]entry
	from    *os.File // that bodies are read from; nil where there is none
	aside   *os.File // that holds bodies which were learnt until all is written; nil where there are none
	end     int64    // end of its content
	learnt  bool     // there are new values to write
}

const (
	magic    = "headgate memo 1\n" // another format is another number
	head     = len(magic) + 8 + len(sum{})
	oldest   = 8         // age of an entry; after that it is dropped
	largest  = 192 << 20 // bytes of one file: what does not fit is learnt again
	together = 512 << 20 // bytes of all files of a directory: the oldest go
	suffix   = ".memo"
	writing  = "writing-" // a file that is not whole yet begins so
)

// Open opens the file in a directory for values under a name. The name must hold everything that a value depends on,
// above all the version of the program. Unreadable content is forgotten.
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

// indexOf reads the index of a file, if it is as it was written.
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

// Recall returns what was remembered under a key.
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
	delete(f.entries, key) // damaged; it is written again with what is learnt of it
	return "", false
}

// of is the file that a body is in.
func (f *File) of(e entry) *os.File {
	if e.aside {
		return f.aside
	}
	return f.from
}

// Remember remembers a value.
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

// setAside appends a body to the ones that were learnt before: two commits of a provider
// are more than the rest of a preview has in memory.
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
		_ = os.Remove(to.Name()) // it has no need of a name; where it must have one, sweep finds it
		f.aside = to
	}
	_, err := f.aside.WriteAt([]byte(value), f.end)
	return err
}

// Close writes new values. An error costs nothing but time later.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	if f.learnt {
		err = f.write()
		f.learnt = false
	} else if info, lost := os.Stat(f.path); lost == nil && time.Since(info.ModTime()) > time.Hour {
		now := time.Now()
		err = os.Chtimes(f.path, now, now) // the oldest go
	}
	clear(f.entries)
	return errors.Join(err, f.release())
}

// release closes the files that bodies were in.
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
		case e.isElsewhere(): // its sum goes with it
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

// index returns the index of the file to write, and the keys in its order: used values first, small ones before large
// ones, until the file is full.
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

// sweep deletes the oldest files of a directory until the others are not too large
// together, and what processes left that were killed.
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

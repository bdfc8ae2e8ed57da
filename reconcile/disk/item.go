package disk

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// The files and directories beside an item. The lock stays when the item is removed, because others may wait for it.
const (
	lock  = ".lock"
	trash = ".old"  // an item that is being removed
	fresh = ".new"  // one that is being made in place of the item
	moved = ".full" // the item, while the new one takes its place
)

// silence is the time after which a file that was not written to the end belongs to a killed process.
const silence = time.Minute

// An item is a part of the cache that is removed as a whole.
type item struct {
	path  string
	bytes int64
	used  time.Time
	isDir bool
}

// Use records that an item is used now, if it exists.
func Use(path string) {
	now := time.Now()
	_ = os.Chtimes(path+lock, now, now)
}

// Remove removes a directory and everything beside it but the lock, which the caller holds. It renames the directory first, because others
// read without a lock. If it is killed, the next call removes the rest.
func Remove(path string) error {
	if err := errors.Join(os.RemoveAll(path+trash), os.RemoveAll(path+fresh), os.RemoveAll(path+moved)); err != nil {
		return err
	}
	if err := os.Rename(path, path+trash); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(path + trash)
}

// remove removes an item unless it is being written. It reports whether it is gone.
func (i item) remove() bool {
	if !i.isDir {
		return os.Remove(i.path) == nil
	}
	return i.locked(func() error { return Remove(i.path) })
}

// locked calls do unless others hold the lock. It reports whether do had no error.
func (i item) locked(do func() error) bool {
	l := flock.New(i.path + lock)
	defer l.Close()
	free, err := l.TryLock()
	return err == nil && free && do() == nil
}

// A survey counts what is in a directory.
type survey struct {
	tidy  bool // remove what killed processes left
	bytes int64
	items map[string]*item
}

// read counts a directory and everything below it. Others may remove what it reads.
func (s *survey) read(dir string) {
	list := infos(dir)
	locks := map[string]bool{}
	for _, e := range list {
		if name, is := strings.CutSuffix(e.Name(), lock); is {
			locks[name] = true
		}
	}
	s.bytes += block
	for _, info := range list {
		path := filepath.Join(dir, info.Name())
		name := strings.TrimSuffix(info.Name(), filepath.Ext(info.Name()))
		switch {
		case info.IsDir() && locks[name]:
			s.add(filepath.Join(dir, name), path)
		case info.IsDir():
			s.read(path)
		case filepath.Base(filepath.Dir(dir)) == "sha256" && (len(name) == 2*sha256.Size || time.Since(info.ModTime()) > silence):
			s.addItem(item{path: path, bytes: taken(info), used: info.ModTime()})
		default:
			s.bytes += taken(info)
		}
	}
}

// add counts a directory of an item.
func (s *survey) add(name, path string) {
	used := time.Time{}
	if info, err := os.Stat(name + lock); err == nil {
		used = info.ModTime()
	}
	one := item{path: name, used: used, isDir: true}
	if s.tidy {
		one.locked(func() error { return errors.Join(os.RemoveAll(name+trash), os.RemoveAll(name+fresh)) })
	}
	one.bytes = sizeOf(path)
	s.addItem(one)
}

func (s *survey) addItem(one item) {
	s.bytes += one.bytes
	if s.items == nil {
		s.items = map[string]*item{}
	}
	if known := s.items[one.path]; known != nil {
		known.bytes += one.bytes
		return
	}
	s.items[one.path] = &one
}

// sorted returns the items, the one that was not used for the longest time first.
func (s *survey) sorted() []item {
	var all []item
	for _, one := range s.items {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b item) int { return a.used.Compare(b.used) })
	return all
}

// sizeOf returns what a file or a directory takes; 0 for what does not exist.
func sizeOf(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return sizeIn(path, info)
}

func sizeIn(path string, info fs.FileInfo) int64 {
	bytes := taken(info)
	if info.IsDir() {
		for _, one := range infos(path) {
			bytes += sizeIn(filepath.Join(path, one.Name()), one)
		}
	}
	return bytes
}

// infos lists a directory. It lists again if something is gone before it was looked at, because that may have another name now: a pack
// is renamed when all of it was received.
func infos(dir string) (all []fs.FileInfo) {
	for range 100 {
		list, _ := os.ReadDir(dir)
		all = make([]fs.FileInfo, 0, len(list))
		for _, e := range list {
			if info, err := e.Info(); err == nil {
				all = append(all, info)
			}
		}
		if len(all) == len(list) {
			break
		}
	}
	return all
}

// taken returns what a file takes on disk.
func taken(info fs.FileInfo) int64 {
	if info.IsDir() {
		return block
	}
	return (info.Size() + block - 1) / block * block
}

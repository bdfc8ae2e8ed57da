package git

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// objects reads the object store of a repository on disk, from many goroutines
// at once. What it opened stays readable when somebody repacks or deletes it.
type objects struct {
	dirs    []string // the directory "objects" and those that it borrows from
	id      os.FileInfo
	limit   int64 // bytes of one object
	recent  *recent
	damaged atomic.Bool // something was read that Git did not write

	scanning sync.Mutex
	packs    atomic.Pointer[[]indexed]
}

type indexed struct {
	*pack
	path  string
	index *idxfile.MemoryIndex
}

// openObjects opens the store in dir.
func openObjects(dir string, limit int64) (*objects, error) {
	id, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	o := &objects{dirs: borrowed(dir, nil), id: id, limit: limit, recent: &recent{limit: recentBytes}}
	return o, o.scan()
}

// current tells whether the directory is still the one that was opened.
func (o *objects) current() bool {
	now, err := os.Stat(o.dirs[0])
	return err == nil && os.SameFile(now, o.id)
}

// borrowed follows the alternates of a store.
func borrowed(dir string, dirs []string) []string {
	dirs = append(dirs, dir)
	list, err := os.ReadFile(filepath.Join(dir, "info", "alternates"))
	if err != nil {
		return dirs // most have none
	}
	for line := range strings.Lines(string(list)) {
		next := strings.TrimSpace(line)
		if next == "" || strings.HasPrefix(next, "#") {
			continue
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(dir, next)
		}
		if next = filepath.Clean(next); !slices.Contains(dirs, next) {
			dirs = borrowed(next, dirs)
		}
	}
	return dirs
}

// scan opens the packs that are there now.
func (o *objects) scan() error {
	o.scanning.Lock()
	defer o.scanning.Unlock()
	var have []indexed
	if old := o.packs.Load(); old != nil {
		have = *old
	}
	var now []indexed
	for _, dir := range o.dirs {
		paths, err := filepath.Glob(filepath.Join(glob.Replace(dir), "pack", "pack-*.pack"))
		if err != nil {
			return err
		}
		for _, path := range paths {
			if i := slices.IndexFunc(have, func(p indexed) bool { return p.path == path }); i >= 0 {
				now = append(now, have[i])
				continue
			}
			p, idx, err := openPack(path, o.limit, o.recent)
			if errors.Is(err, fs.ErrNotExist) { // repacked in this moment
				continue
			}
			if err != nil {
				o.note(err)
				return err
			}
			now = append(now, indexed{p, path, idx})
		}
	}
	o.packs.Store(&now)
	return nil
}

var glob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

func (o *objects) note(err error) {
	if errors.Is(err, errDamaged) {
		o.damaged.Store(true)
	}
}

// A spot is where an object is: in a pack, or else in a file of its own.
type spot struct {
	pack *pack
	at   int64
	file string
}

func (o *objects) find(h plumbing.Hash) (spot, error) {
	for range 2 {
		for _, p := range *o.packs.Load() {
			at, ok, err := p.offset(h)
			if err != nil || ok {
				o.note(err)
				return spot{pack: p.pack, at: at}, err
			}
		}
		name := h.String()
		for _, dir := range o.dirs {
			file := filepath.Join(dir, name[:2], name[2:])
			if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() {
				return spot{file: file}, nil
			}
		}
		if err := o.scan(); err != nil { // it may have been packed since
			return spot{}, err
		}
	}
	return spot{}, fmt.Errorf("cannot read object %s: %w", h, plumbing.ErrObjectNotFound)
}

func (o *objects) has(h plumbing.Hash) (bool, error) {
	_, err := o.find(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return false, nil
	}
	return err == nil, err
}

// read reads an object. The caller does not change the bytes.
func (o *objects) read(h plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	s, err := o.find(h)
	if err != nil {
		return 0, nil, err
	}
	if s.pack == nil {
		kind, size, r, err := o.loose(s.file)
		if err != nil {
			return 0, nil, err
		}
		defer r.close()
		if size > o.limit {
			return 0, nil, fmt.Errorf("cannot read object %s: it has %d bytes, the limit is %d", h, size, o.limit)
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(r, data); err != nil {
			return 0, nil, fmt.Errorf("cannot read object %s: %w: %w", h, errDamaged, err)
		}
		return kind, data, nil
	}
	kind, data, err := s.pack.object(s.at)
	if errors.Is(err, errNoBase) {
		err = fmt.Errorf("cannot read object %s: %w: %w", h, errDamaged, err)
	}
	o.note(err)
	return kind, data, err
}

// size tells the size of an object without reading it.
func (o *objects) size(h plumbing.Hash) (int64, error) {
	s, err := o.find(h)
	if err != nil {
		return 0, err
	}
	if s.pack == nil {
		_, size, r, err := o.loose(s.file)
		if err != nil {
			return 0, err
		}
		r.close()
		return size, nil
	}
	size, err := s.pack.length(s.at)
	o.note(err)
	return size, err
}

type loose struct {
	*objfile.Reader
	file *os.File
}

func (l loose) close() {
	_ = l.Close()
	_ = l.file.Close()
}

func (o *objects) loose(path string) (plumbing.ObjectType, int64, loose, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, loose{}, err
	}
	r, err := objfile.NewReader(f)
	if err != nil {
		return 0, 0, loose{}, errors.Join(fmt.Errorf("%s: cannot read it: %w: %w", path, errDamaged, err), f.Close())
	}
	kind, size, err := r.Header()
	if err == nil && size < 0 {
		err = objfile.ErrNegativeSize
	}
	if err != nil {
		loose{r, f}.close()
		return 0, 0, loose{}, fmt.Errorf("%s: cannot read it: %w: %w", path, errDamaged, err)
	}
	return kind, size, loose{r, f}, nil
}

// startingWith lists the objects whose id starts so; prefix has at least two digits.
func (o *objects) startingWith(prefix string) []plumbing.Hash {
	prefix = strings.ToLower(prefix)
	first, err := hex.DecodeString(prefix[:2])
	if err != nil {
		return nil
	}
	whole, _ := hex.DecodeString(prefix[:len(prefix)&^1])
	var found []plumbing.Hash
	add := func(h plumbing.Hash) {
		if strings.HasPrefix(h.String(), prefix) && !slices.Contains(found, h) {
			found = append(found, h)
		}
	}
	for _, p := range *o.packs.Load() {
		bucket := p.index.FanoutMapping[first[0]]
		if bucket < 0 || bucket >= len(p.index.Names) {
			continue
		}
		for names := p.index.Names[bucket]; len(names) >= hashSize; names = names[hashSize:] {
			if bytes.HasPrefix(names, whole) {
				add(plumbing.Hash(names[:hashSize]))
			}
		}
	}
	for _, dir := range o.dirs {
		files, _ := os.ReadDir(filepath.Join(dir, prefix[:2])) // most do not exist
		for _, f := range files {
			if name := prefix[:2] + f.Name(); plumbing.IsHash(name) {
				add(plumbing.NewHash(name))
			}
		}
	}
	return found
}

// commit reads the commit with an id, or the one that a tag with this id leads to.
func (o *objects) commit(h plumbing.Hash) (*object.Commit, error) {
	for range 10 {
		kind, _, err := o.read(h)
		switch {
		case err != nil:
			return nil, err
		case kind == plumbing.CommitObject:
			return object.GetCommit(decoding{objects: o}, h)
		case kind != plumbing.TagObject:
			return nil, fmt.Errorf("%s is a %s and no commit", h, kind)
		}
		t, err := object.GetTag(decoding{objects: o}, h)
		if err != nil {
			return nil, fmt.Errorf("cannot read tag %s: %w: %w", h, errDamaged, err)
		}
		h = t.Target
	}
	return nil, fmt.Errorf("%s is a tag of a tag of a tag and so on", h)
}

// decoding lets go-git decode what objects reads.
type decoding struct {
	*objects
	storer.EncodedObjectStorer // nil: go-git's decoders of commits and tags only read
}

func (d decoding) EncodedObject(want plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	kind, data, err := d.read(h)
	if err != nil {
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return nil, plumbing.ErrObjectNotFound // go-git compares with ==
		}
		return nil, err
	}
	if want != plumbing.AnyObject && want != kind {
		return nil, plumbing.ErrObjectNotFound
	}
	o := &plumbing.MemoryObject{}
	o.SetType(kind)
	_, err = o.Write(data)
	return o, err
}

package git

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// errDamaged is wrapped by what a reader says of objects that are not what Git wrote.
var errDamaged = errors.New("damaged data")

const (
	remembered = 24 * cache.MiByte
	maxStores  = 10 // one may borrow from another that borrows, and from itself by mistake
)

// objects are what a repository on disk stores and borrows. go-git reads them
// for one at a time; objects are safe for concurrent use.
type objects struct {
	storer.EncodedObjectStorer // nil: go-git's decoders of objects only read

	files   billy.Filesystem // the Git directory
	id      os.FileInfo      // of its root
	limit   int64            // bytes of one object
	recent  *bases
	damaged atomic.Bool // something was read that Git did not write

	mu     sync.Mutex
	stores []*filesystem.Storage // its own first
}

// bases remembers the objects that deltas change: a delta is read with its base,
// and neighbours share bases. What was asked for is read once and not remembered.
type bases struct {
	cache.Object
	last plumbing.EncodedObject
}

// Put remembers all objects but the last one.
func (b *bases) Put(o plumbing.EncodedObject) {
	if b.last != nil {
		b.Object.Put(b.last)
	}
	b.last = o
}

func (b *bases) done() { b.last = nil }

func openObjects(files billy.Filesystem, limit int64) (*objects, error) {
	id, err := os.Stat(files.Root())
	if err != nil {
		return nil, err
	}
	o := &objects{files: files, id: id, limit: limit, recent: &bases{Object: cache.NewObjectLRU(remembered)}}
	o.open(files)
	return o, nil
}

// open adds a store and those that it borrows from. Files are closed by their
// finalizers, because trees that were handed out may still read them.
func (o *objects) open(files billy.Filesystem) {
	o.stores = append(o.stores, filesystem.NewStorageWithOptions(files, o.recent, filesystem.Options{
		KeepDescriptors:      true,
		LargeObjectThreshold: o.limit, // above it, only the size is read
	}))
	lent, err := dotgit.NewWithOptions(files, dotgit.Options{AlternatesFS: osfs.New("/")}).Alternates()
	if err != nil {
		return // most borrow nothing, and what is missing is said when it is read
	}
	for _, d := range lent {
		if len(o.stores) < maxStores {
			o.open(d.Fs())
		}
	}
}

func (o *objects) reopen() {
	o.stores = nil
	o.open(o.files)
}

// current tells whether the directory is still the one that was opened.
func (o *objects) current() bool {
	now, err := os.Stat(o.files.Root())
	return err == nil && os.SameFile(now, o.id)
}

// whole checks that no pack was cut short and every index is readable. It tells how many packs there are.
func (o *objects) whole() (packs int, err error) {
	err = o.locked(func() error {
		list, err := o.stores[0].ObjectPacks()
		for _, h := range list {
			f, err := o.files.Open(o.files.Join("objects", "pack", "pack-"+h.String()+".pack"))
			if err != nil {
				return err
			}
			p := packfile.NewPackfile(nil, nil, f, 0)
			id, err := p.ID()
			if err = errors.Join(err, p.Close()); err != nil || id != h {
				return fmt.Errorf("%w: pack %s is not complete", errDamaged, h)
			}
		}
		if packs = len(list); err != nil {
			return err
		}
		err = o.stores[0].HasEncodedObject(plumbing.ZeroHash) // looks into every index
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return nil
		}
		return err
	})
	if gone(err) { // a pack or an index without the other
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return packs, err
}

// locked calls do, which uses the stores, and remembers if it finds damage.
func (o *objects) locked(do func() error) (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() {
		if p := recover(); p != nil { // go-git has panicked on what an attacker wrote
			err = fmt.Errorf("%v", p)
		}
		system := (*fs.PathError)(nil)
		if err == nil || gone(err) || errors.As(err, &system) {
			return
		}
		if !errors.Is(err, errDamaged) {
			err = fmt.Errorf("%w: %w", errDamaged, err)
		}
		o.damaged.Store(true)
	}()
	return do()
}

// gone tells whether something is not there, or not any more.
func gone(err error) bool {
	return errors.Is(err, plumbing.ErrObjectNotFound) || errors.Is(err, dotgit.ErrPackfileNotFound) || errors.Is(err, fs.ErrNotExist)
}

// find calls found with the store that has an object.
func (o *objects) find(h plumbing.Hash, found func(*filesystem.Storage) error) error {
	err := o.locked(func() error {
		for again := false; ; again = true {
			for _, s := range o.stores {
				var err error
				if len(o.stores) > 1 { // go-git would look into every index again for what is borrowed
					err = s.HasEncodedObject(h)
				}
				if err == nil {
					err = found(s)
				}
				if !gone(err) {
					return err
				}
			}
			if again {
				o.damaged.Store(true) // if this is a clone of ours: it had all
				return plumbing.ErrObjectNotFound
			}
			o.reopen() // it may have been packed, or sent, since
		}
	})
	if err != nil {
		return fmt.Errorf("cannot read object %s: %w", h, err)
	}
	return nil
}

// has tells whether an object is there, as far as was seen when the stores were opened.
func (o *objects) has(h plumbing.Hash) (ok bool, err error) {
	err = o.locked(func() error {
		for _, s := range o.stores {
			if err := s.HasEncodedObject(h); !gone(err) {
				ok = err == nil
				return err
			}
		}
		return nil
	})
	return ok, err
}

// size tells the size of an object without reading it.
func (o *objects) size(h plumbing.Hash) (size int64, err error) {
	err = o.find(h, func(s *filesystem.Storage) error {
		size, err = s.EncodedObjectSize(h)
		return err
	})
	return size, err
}

// read reads an object, into bytes that are the caller's.
func (o *objects) read(h plumbing.Hash) (kind plumbing.ObjectType, data []byte, err error) {
	var size int64
	err = o.find(h, func(s *filesystem.Storage) error {
		defer o.recent.done()
		found, err := s.EncodedObject(plumbing.AnyObject, h)
		if err != nil {
			return err
		}
		if kind, size = found.Type(), found.Size(); size > o.limit {
			return nil
		}
		r, err := found.Reader()
		if err != nil {
			return err
		}
		defer r.Close()
		data = make([]byte, size)
		_, err = io.ReadFull(r, data)
		return err
	})
	if size > o.limit {
		err = fmt.Errorf("cannot read object %s: it has %d bytes, the limit is %d", h, size, o.limit)
	}
	return kind, data, err
}

// EncodedObject lets go-git decode what read reads.
func (o *objects) EncodedObject(want plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	kind, data, err := o.read(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) || err == nil && want != plumbing.AnyObject && want != kind {
		return nil, plumbing.ErrObjectNotFound // go-git compares with ==
	}
	if err != nil {
		return nil, err
	}
	m := &plumbing.MemoryObject{}
	m.SetType(kind)
	_, err = m.Write(data)
	return m, err
}

// commit reads the commit with an id, or the one that a tag with this id leads to.
func (o *objects) commit(h plumbing.Hash) (*object.Commit, error) {
	for range 10 {
		found, err := object.GetObject(o, h)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", h, err)
		}
		switch found := found.(type) {
		case *object.Commit:
			return found, nil
		case *object.Tag:
			h = found.Target
		default:
			return nil, fmt.Errorf("%s is a %s and no commit", h, found.Type())
		}
	}
	return nil, fmt.Errorf("%s is a tag of a tag of a tag and so on", h)
}

// tree lists what a tree has.
func (o *objects) tree(h plumbing.Hash) (_ []object.TreeEntry, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	t, err := object.GetTree(o, h)
	if err != nil {
		return nil, err
	}
	return t.Entries, nil
}

// startingWith finds the commit whose id starts so, zero if there is none.
func (o *objects) startingWith(prefix string) (plumbing.Hash, error) {
	if plumbing.IsHash(prefix) {
		h := plumbing.NewHash(prefix)
		ok, err := o.has(h)
		if !ok {
			h = plumbing.ZeroHash
		}
		return h, err
	}
	prefix = strings.ToLower(prefix)
	whole, err := hex.DecodeString(prefix[:len(prefix)&^1])
	if err != nil {
		return plumbing.ZeroHash, err
	}
	var near, found []plumbing.Hash
	err = o.locked(func() error {
		for _, s := range o.stores {
			list, err := s.HashesWithPrefix(whole)
			if err != nil {
				return err
			}
			near = append(near, list...)
		}
		return nil
	})
	if err != nil {
		return plumbing.ZeroHash, err
	}
	for _, h := range near {
		if !strings.HasPrefix(h.String(), prefix) || slices.Contains(found, h) {
			continue
		}
		kind, _, err := o.read(h)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if kind == plumbing.CommitObject {
			found = append(found, h)
		}
	}
	switch len(found) {
	case 0:
		return plumbing.ZeroHash, nil
	case 1:
		return found[0], nil
	default:
		return plumbing.ZeroHash, fmt.Errorf("cannot tell which commit %q is: %d start so; write more digits", prefix, len(found))
	}
}

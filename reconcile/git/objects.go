package git

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// maxHeader bounds the part of a commit or a tag before its message: parents and signatures. go-git takes quadratic
// time in the number of lines to decode it.
const maxHeader = 256 << 10

// headerError is the error for a commit or a tag with a larger header.
type headerError int

func (e headerError) Error() string {
	return fmt.Sprintf("it has %d bytes before its message, and the limit is %d; make the commit or tag again, with one signature", int(e), maxHeader)
}

// Permanent reports true: the object does not change.
func (headerError) Permanent() bool { return true }

// errDamaged is wrapped by errors about objects that differ from what Git wrote.
var errDamaged = errors.New("damaged data")

// maxStores bounds the number of stores, because a store may borrow from another that borrows, or by mistake from itself.
const maxStores = 10

// objects gives access to the objects of a repository on disk, including borrowed ones. It is safe for concurrent use.
type objects struct {
	storer.EncodedObjectStorer // nil, because go-git's decoders only read objects

	files   billy.Filesystem // the Git directory
	id      os.FileInfo      // identifies the opened directory
	limit   int64            // maximum size of an object
	recent  *recent
	damaged atomic.Bool // a reader found data that Git did not write
	partial bool        // git left out objects when it cloned, to fetch them when it needs them
	firsts  sync.Map    // root commit, by commit

	shelves  sync.Map // *shelf of a tree, by its ID
	descents sync.Map // whether the first commit descends from the second, by pair

	mu     sync.RWMutex
	stores []*store // the repository's own store first
}

func openObjects(files billy.Filesystem, limit int64) (*objects, error) {
	id, err := os.Stat(files.Root())
	if err != nil {
		return nil, err
	}
	o := &objects{files: files, id: id, limit: limit, recent: &recent{}}
	o.stores = o.openStores()
	return o, nil
}

// reopen opens the stores again, unless the directory was removed or replaced: then what was opened can still be read. Finalizers close
// the old files, because others may still read them.
func (o *objects) reopen() {
	stores := o.openStores()
	_, _ = stores[0].packs() // before the directory may be removed
	if !o.current() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stores = stores
}

// openStores opens the repository's own store, and those from which it borrows.
func (o *objects) openStores() []*store {
	var stores []*store
	var open func(files billy.Filesystem)
	open = func(files billy.Filesystem) {
		stores = append(stores, openStore(files, o.recent))
		lent, err := dotgit.NewWithOptions(files, dotgit.Options{AlternatesFS: osfs.New("/")}).Alternates()
		if err != nil {
			return // most repositories borrow nothing; otherwise reading a missing object returns an error
		}
		for _, d := range lent {
			if len(stores) < maxStores {
				open(d.Fs())
			}
		}
	}
	open(o.files)
	return stores
}

func (o *objects) open() []*store {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.stores
}

// current reports whether the directory is still the one that was opened.
func (o *objects) current() bool {
	now, err := os.Stat(o.files.Root())
	return err == nil && os.SameFile(now, o.id)
}

// whole checks that no pack is truncated and that every index is readable. It returns the number of packs.
func (o *objects) whole() (packs int, err error) {
	err = o.guarded(func() error {
		own := o.open()[0]
		list, err := own.dir.ObjectPacks()
		for _, h := range list {
			f, err := own.dir.ObjectPack(h)
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
		_, err = own.packs()
		return err
	})
	if gone(err) { // a pack or an index without its counterpart
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return packs, err
}

// guarded calls do, which reads objects, and records damage.
func (o *objects) guarded(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil { // go-git has panicked on what an attacker wrote
			err = fmt.Errorf("%v", p)
		}
		system := (*fs.PathError)(nil)
		if err == nil || gone(err) || errors.As(err, &system) || errors.As(err, new(sizeError)) {
			return
		}
		if !errors.Is(err, errDamaged) {
			err = fmt.Errorf("%w: %w", errDamaged, err)
		}
		o.damaged.Store(true)
	}()
	return do()
}

// gone reports whether an error means that something does not exist.
func gone(err error) bool {
	return errors.Is(err, plumbing.ErrObjectNotFound) || errors.Is(err, dotgit.ErrPackfileNotFound) || errors.Is(err, fs.ErrNotExist)
}

// find calls found with one store after another until one has the object.
func (o *objects) find(h plumbing.Hash, found func(*store) error) error {
	err := o.guarded(func() error {
		for again := false; ; again = true {
			for _, s := range o.open() {
				if err := found(s); !gone(err) {
					return err
				}
			}
			if again {
				o.damaged.Store(true) // if this is one of Headgate's clones, which are complete
				return plumbing.ErrObjectNotFound
			}
			o.reopen() // another process may have packed or fetched the object
		}
	})
	if gone(err) && o.partial {
		return errPartial
	}
	if err != nil {
		return fmt.Errorf("cannot read object %s: %w", h, err)
	}
	return nil
}

// errPartial means that an object is missing because the clone is partial.
var errPartial error = partialError{}

type partialError struct{}

func (partialError) Error() string {
	return "it is missing, because this is a partial clone (git clone --filter), and Headgate fetches nothing on demand: clone without --filter (filter: of actions/checkout), or run git fetch --refetch --no-filter"
}

// Is reports whether callers that look for missing objects mean this error.
func (partialError) Is(target error) bool { return target == plumbing.ErrObjectNotFound }

// has reports whether an object exists in the stores as they were opened.
func (o *objects) has(h plumbing.Hash) (ok bool, err error) {
	err = o.guarded(func() error {
		for _, s := range o.open() {
			if ok, err = s.has(h); ok || err != nil {
				return err
			}
		}
		return nil
	})
	return ok, err
}

// size returns the size of an object without reading it.
func (o *objects) size(h plumbing.Hash) (size int64, err error) {
	err = o.find(h, func(s *store) error {
		size, err = s.size(h)
		return err
	})
	return size, err
}

// read reads an object. The caller must not change the bytes.
func (o *objects) read(h plumbing.Hash) (kind plumbing.ObjectType, data []byte, err error) {
	var v value
	err = o.find(h, func(s *store) error {
		v, err = s.read(h, o.limit)
		return err
	})
	if errors.As(err, new(sizeError)) {
		err = fmt.Errorf("%w, the limit is %d", err, o.limit)
	}
	return v.kind, v.data, err
}

// lineages returns for each object how it is stored: the number of its pack, then the offsets of its delta bases,
// then its own. Reading objects with a common prefix together, in order, is fastest. The result is empty for objects
// that are not packed or not readable.
func (o *objects) lineages(ids []plumbing.Hash) [][]int64 {
	lines := make([][]int64, len(ids))
	numbers := map[*pack]int64{}
	bases := map[*pack]map[int64]int64{}
	_ = o.guarded(func() error { // reading the object returns the error
		for i, h := range ids {
			for _, s := range o.open() {
				p, offset, err := s.find(h)
				if err != nil || p == nil {
					continue
				}
				if bases[p] == nil {
					numbers[p], bases[p] = int64(len(numbers)), map[int64]int64{}
				}
				lines[i] = append([]int64{numbers[p]}, p.lineage(offset, bases[p])...)
				break
			}
		}
		return nil
	})
	return lines
}

// EncodedObject makes objects available to go-git's decoders.
func (o *objects) EncodedObject(want plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	kind, data, err := o.read(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) && !o.partial || err == nil && want != plumbing.AnyObject && want != kind {
		return nil, plumbing.ErrObjectNotFound // go-git compares with ==
	}
	if err != nil {
		return nil, err
	}
	if kind == plumbing.CommitObject || kind == plumbing.TagObject {
		if head, _, _ := bytes.Cut(data, []byte("\n\n")); len(head) > maxHeader {
			return nil, headerError(len(head))
		}
	}
	m := &plumbing.MemoryObject{}
	m.SetType(kind)
	_, err = m.Write(data)
	return m, err
}

// commit reads the commit with an ID, or the commit of a tag with this ID.
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
			return nil, fmt.Errorf("%s is a %s and %w", h, found.Type(), errNoCommit)
		}
	}
	return nil, fmt.Errorf("%s has too many nested tags", h)
}

// tree returns the entries of a tree. It calls allow with their number before it decodes them, because a few hundred bytes
// of deltas can expand to millions of entries.
func (o *objects) tree(h plumbing.Hash, allow func(entries int) error) (_ []object.TreeEntry, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	kind, data, err := o.read(h)
	if err != nil {
		return nil, err
	}
	if err := allow(countEntries(data)); err != nil {
		return nil, err
	}
	raw, t := &plumbing.MemoryObject{}, &object.Tree{}
	raw.SetType(kind)
	if _, err := raw.Write(data); err != nil {
		return nil, err
	}
	if err := t.Decode(raw); err != nil {
		return nil, fmt.Errorf("cannot decode object %s, which is a %s: %w", h, kind, err)
	}
	return t.Entries, nil
}

// countEntries returns the number of entries of a tree object. Each is a mode and a name, a zero byte, and an ID.
func countEntries(data []byte) (n int) {
	for len(data) > 0 {
		_, rest, _ := bytes.Cut(data, []byte{0})
		data = rest[min(len(rest), len(plumbing.Hash{})):]
		n++
	}
	return n
}

// startingWith finds the commit whose ID has a prefix. It returns the zero hash if there is none.
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
	err = o.guarded(func() error {
		for _, s := range o.open() {
			list, err := s.startingWith(whole)
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
		return plumbing.ZeroHash, fmt.Errorf("commit %q is ambiguous: %d commits start with it; write more digits", prefix, len(found))
	}
}

package git

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// A store holds the objects of one Git directory: loose ones, and packs. The error for a missing object is
// plumbing.ErrObjectNotFound. A store is safe for concurrent use.
type store struct {
	dir   *dotgit.DotGit
	packs func() ([]*pack, error) // reads the packs on the first call

	opening sync.Mutex // for loose objects, because dotgit caches what it opens
}

func openStore(files billy.Filesystem, recent *recent) *store {
	s := &store{dir: dotgit.New(files)}
	s.packs = sync.OnceValues(func() ([]*pack, error) {
		names, err := s.dir.ObjectPacks()
		if err != nil {
			return nil, err
		}
		var all []*pack
		for _, name := range names {
			p, err := openPack(s.dir, name, recent)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
		return all, nil
	})
	return s
}

// find returns the pack that holds an object, and its offset. The pack is nil for a loose object.
func (s *store) find(h plumbing.Hash) (*pack, int64, error) {
	packs, err := s.packs()
	if err != nil {
		return nil, 0, err
	}
	for _, p := range packs {
		if offset, err := p.index.FindOffset(h); !errors.Is(err, plumbing.ErrObjectNotFound) {
			return p, offset, err
		}
	}
	return nil, 0, nil
}

// has reports whether an object exists.
func (s *store) has(h plumbing.Hash) (bool, error) {
	p, _, err := s.find(h)
	if err != nil || p != nil {
		return err == nil, err
	}
	f, err := s.open(h)
	if gone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// open opens a loose object.
func (s *store) open(h plumbing.Hash) (billy.File, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	return s.dir.Object(h)
}

// size returns the size of an object.
func (s *store) size(h plumbing.Hash) (size int64, err error) {
	p, offset, err := s.find(h)
	switch {
	case err != nil:
		return 0, err
	case p != nil:
		return p.size(offset)
	}
	err = s.loose(h, func(_ plumbing.ObjectType, n int64, _ io.Reader) error {
		size = n
		return nil
	})
	return size, err
}

// read reads an object. The caller must not change the bytes. The error is a sizeError if the object exceeds the limit.
func (s *store) read(h plumbing.Hash, limit int64) (v value, err error) {
	p, offset, err := s.find(h)
	switch {
	case err != nil:
		return value{}, err
	case p != nil:
		return p.read(offset, limit)
	}
	err = s.loose(h, func(kind plumbing.ObjectType, size int64, r io.Reader) error {
		if size > limit {
			return sizeError(size)
		}
		var out bytes.Buffer
		out.Grow(int(min(size, 1<<20)) + bytes.MinRead) // the buffer grows if necessary
		_, err := out.ReadFrom(io.LimitReader(r, size+1))
		v = value{kind: kind, data: out.Bytes()}
		return err
	})
	return v, err
}

// loose calls use with an object that is not in a pack.
func (s *store) loose(h plumbing.Hash, use func(kind plumbing.ObjectType, size int64, r io.Reader) error) (err error) {
	f, err := s.open(h)
	if gone(err) {
		return plumbing.ErrObjectNotFound
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, err := objfile.NewReader(f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	kind, size, err := r.Header()
	if err != nil {
		return err
	}
	return use(kind, size, r)
}

// startingWith lists the objects whose IDs start with some bytes.
func (s *store) startingWith(prefix []byte) ([]plumbing.Hash, error) {
	found, err := s.dir.ObjectsWithPrefix(prefix)
	if err != nil {
		return nil, err
	}
	packs, err := s.packs()
	if err != nil {
		return nil, err
	}
	for _, p := range packs {
		entries, err := p.index.Entries()
		if err != nil {
			return nil, err
		}
		for {
			e, err := entries.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			if bytes.HasPrefix(e.Hash[:], prefix) {
				found = append(found, e.Hash)
			}
		}
	}
	return found, nil
}

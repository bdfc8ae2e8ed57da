package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/gofrs/flock"

	"headgate.dev/headgate/reconcile/disk"
	"headgate.dev/headgate/reconcile/git/remote"
)

const (
	maxHaves = 1024 // commits that a fetch offers to the server as known
	ownRefs  = "refs/headgate/"
)

// errReplaced means that a fetch replaced the clone, or found it replaced. The caller opens it again.
var errReplaced = errors.New("the clone was removed or replaced meanwhile, mostly because others need the room: it is tried again; raise --cache-size if this comes back")

// A clone is a bare repository on disk with the full histories of the refs that were requested. Packs are added under a
// lock and never changed, so they are read without one.
type clone struct {
	dir    string
	limits Limits
	server remote.Server // without the address
	budget *disk.Budget  // may be nil

	fetched bool // see Repository.Fetched
	*tips

	mu      sync.Mutex
	store   *objects // nil before it is opened
	trusted bool     // the server has accepted these credentials once
}

// A session is a conversation with a server, and the refs that it listed.
type session struct {
	*remote.Session
	refs
}

// list starts a session. The caller closes it.
func list(ctx context.Context, from remote.Server) (*session, error) {
	s, err := from.List(ctx)
	if err != nil {
		return nil, err
	}
	return &session{s, refs{s.Head, s.Main, s.Names, s.Peeled}}, nil
}

// close ends a session, if there is one.
func (s *session) close() {
	if s != nil {
		s.Close()
	}
}

// explain adds advice to an error of a fetch.
func (s *session) explain(ctx context.Context, err error) error {
	if ctx.Err() == nil && isOurs(err) {
		return fmt.Errorf("cannot fetch: %w", err)
	}
	return s.Explain(ctx, err)
}

// isOurs reports whether this package wrote the text of an error, so that it quotes nothing of the server.
func isOurs(err error) bool {
	_, refused := errors.AsType[packError](err)
	return refused || slices.ContainsFunc([]error{errPack, errDamaged, errReplaced}, func(own error) bool { return errors.Is(err, own) })
}

// at returns the server with an address.
func (c *clone) at(at remote.Address) remote.Server {
	server := c.server
	server.At = at
	return server
}

// resolve finds the commit that ref names, with one request if nothing is new.
func (c *clone) resolve(ctx context.Context, at remote.Address, ref string) (found, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Time)
	defer cancel()
	from := c.at(at)
	if !c.fetched {
		disk.Use(c.dir)
	}
	for tries := 1; ; tries++ {
		o, trusted, err := c.open()
		trusted = trusted || c.fetched
		var h plumbing.Hash
		var follows line
		if err == nil {
			h, follows, err = c.find(ctx, from, o, trusted, ref)
		}
		var commit *object.Commit
		if err == nil {
			commit, err = o.commit(h)
			if errors.Is(err, plumbing.ErrObjectNotFound) { // the server once sent this commit with its whole history
				err = fmt.Errorf("%w: %w", errDamaged, err)
			}
		}
		if errors.Is(err, fs.ErrNotExist) && (o == nil || !o.current()) { // others removed it while it was opened or written
			err = fmt.Errorf("%w: %w", errReplaced, err)
		}
		switch {
		case tries == 3, c.fetched:
			return found{o, commit, h, follows}, err
		case errors.Is(err, errReplaced): // the next open notices the replacement
		case !errors.Is(err, errDamaged):
			return found{o, commit, h, follows}, err
		default:
			if err := c.discard(ctx); err != nil {
				return found{}, err
			}
		}
	}
}

// find returns the ID of the object that ref names, and fetches the object if it is missing.
func (c *clone) find(ctx context.Context, from remote.Server, o *objects, trusted bool, ref string) (plumbing.Hash, line, error) {
	if plumbing.IsHash(ref) && trusted {
		if h, err := o.startingWith(ref); err != nil || !h.IsZero() {
			return h, detached, err
		}
	}
	if c.fetched {
		return plumbing.ZeroHash, detached, fmt.Errorf("%w %q was fetched", errUnknownRef, ref)
	}
	var s *session // nil if others have requested the list
	defer func() { s.close() }()
	names, err := c.get(ctx, func() (names refs, err error) {
		if s, err = list(ctx, from); err != nil {
			return refs{}, err
		}
		return s.refs, nil
	})
	if err != nil {
		return plumbing.ZeroHash, detached, err
	}
	if s == nil {
		if h, ok := o.listed(names, ref); ok {
			return h, names.line(ref, false), nil
		}
		done, err := take(ctx, c.fetching)
		if err != nil {
			return plumbing.ZeroHash, detached, err
		}
		defer done()
		if h, ok := o.listed(names, ref); ok {
			return h, names.line(ref, false), nil
		}
		if s, err = list(ctx, from); err != nil {
			return plumbing.ZeroHash, detached, err
		}
	}
	c.mu.Lock()
	c.trusted = true
	c.mu.Unlock()
	if plumbing.IsHash(ref) {
		h, err := c.byID(ctx, o, s, ref)
		return h, detached, err
	}
	h, err := s.find(ref)
	if errors.Is(err, errUnknownRef) && abbreviated.MatchString(ref) {
		h, err = c.byID(ctx, o, s, ref)
		return h, detached, err
	}
	if err != nil {
		return plumbing.ZeroHash, detached, err
	}
	return h, s.line(ref, false), c.fetch(ctx, o, s, h)
}

// listed returns the object that a ref names in a list, if it exists here.
func (o *objects) listed(names refs, ref string) (plumbing.Hash, bool) {
	if plumbing.IsHash(ref) {
		return plumbing.ZeroHash, false
	}
	h, err := names.find(ref)
	if err != nil {
		return h, false
	}
	missing, err := o.missing([]plumbing.Hash{h})
	return h, err == nil && len(missing) == 0
}

// byID finds a commit by its full or abbreviated ID.
func (c *clone) byID(ctx context.Context, o *objects, s *session, id string) (plumbing.Hash, error) {
	h, err := o.startingWith(id)
	if err != nil || !h.IsZero() {
		return h, err
	}
	want := s.objects(func(_ string, h plumbing.Hash) bool { return strings.HasPrefix(h.String(), strings.ToLower(id)) })
	if len(want) == 0 && plumbing.IsHash(id) && s.ByID() {
		err = c.fetch(ctx, o, s, plumbing.NewHash(id))
		if ok, _ := o.has(plumbing.NewHash(id)); ok || ctx.Err() != nil {
			return plumbing.NewHash(id), err
		}
		// A server may announce this capability and refuse the request.
	}
	if len(want) == 0 {
		want = s.objects(func(name string, _ plumbing.Hash) bool {
			return strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/")
		})
	}
	if err := c.fetch(ctx, o, s, want...); err != nil {
		return plumbing.ZeroHash, err
	}
	if h, err = o.startingWith(id); err == nil && h.IsZero() {
		err = fmt.Errorf("%w %q; %s", errUnknownRef, id, s.others(id))
	}
	return h, err
}

// list requests the refs of the server.
func (c *clone) list(ctx context.Context, at remote.Address) (refs, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Time)
	defer cancel()
	from := c.at(at)
	s, err := list(ctx, from)
	if err != nil {
		return refs{}, err
	}
	defer s.close()
	return s.refs, nil
}

// forget removes the reference to a commit that was fetched by its ID. The objects stay until the clone is replaced.
func (c *clone) forget(ctx context.Context, commit plumbing.Hash) error {
	o, _, err := c.open()
	if err != nil {
		return err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return filesystem.NewStorage(o.files, cache.NewObjectLRU(0)).RemoveReference(plumbing.ReferenceName(ownRefs + commit.String()))
}

// open returns the store. It opens the store again if the directory was replaced.
func (c *clone) open() (o *objects, trusted bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store != nil && c.store.damaged.Load() {
		return nil, false, errDamaged
	}
	if c.store != nil && c.store.current() {
		return c.store, c.trusted, nil
	}
	// A previous process may have been killed in replace. The rename fails if the clone exists or there is nothing to restore.
	_ = os.Rename(c.full(), c.dir)
	if err := os.MkdirAll(filepath.Join(c.dir, "objects", "pack"), 0o700); err != nil {
		return nil, false, err
	}
	if c.store, err = openObjects(osfs.New(c.dir), c.limits.Object); err != nil {
		return nil, false, err
	}
	_, err = c.store.whole()
	return c.store, c.trusted, err
}

// lock prevents changes to the clone by other processes and goroutines. The file is next to the directory, because
// the directory may be deleted in the meantime.
func (c *clone) lock(ctx context.Context) (unlock func(), err error) {
	l := flock.New(c.dir + ".lock")
	_, err = l.TryLockContext(ctx, 20*time.Millisecond)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("cannot lock %s: another process fetches: %w", l.Path(), ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("cannot lock %s: %w", l.Path(), err)
	}
	return func() { _ = l.Close() }, nil
}

// discard deletes the clone.
func (c *clone) discard(ctx context.Context) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	replaced := c.store != nil && !c.store.current() // another process found the damage, too
	c.store = nil
	if replaced {
		return nil
	}
	return disk.Remove(c.dir)
}

// drop closes the files of the clone when its readers have ended, because the clone was removed.
func (c *clone) drop() {
	if c.mu.TryLock() { // otherwise it is being opened, and notices that
		c.store = nil
		c.mu.Unlock()
	}
}

// fetch receives the given objects and everything that they refer to, unless they exist.
func (c *clone) fetch(ctx context.Context, o *objects, s *session, want ...plumbing.Hash) error {
	missing, err := o.missing(want)
	if err != nil || len(missing) == 0 {
		return err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if !o.current() {
		return errReplaced
	}
	packs, err := o.whole()
	if err != nil {
		return err
	}
	if missing, err = o.missing(want); err != nil || len(missing) == 0 { // another process was faster
		return err
	}
	// A fetch of the whole history may exceed a limit or take too long, although a fetch of its newest part does not.
	// Then the existing clone is still usable: it accepts as many packs again before the next attempt.
	if packs > 0 && packs%c.limits.packs == 0 {
		_ = c.replace(ctx, s, want)
		if !o.current() {
			return errReplaced
		}
	}
	if ctx.Err() != nil {
		return s.Explain(ctx, ctx.Err())
	}
	err = c.add(ctx, o, s, want, missing)
	if full, is := errors.AsType[disk.FullError](err); is && full.Large && packs > 0 {
		return errors.Join(err, disk.Remove(c.dir)) // the packs of many fetches are larger than one of everything
	}
	return err
}

// full returns the temporary path of a clone while its replacement takes its place.
func (c *clone) full() string { return c.dir + ".full" }

// replace makes a new clone in a temporary directory, which replaces the current one on success. The caller holds the lock.
func (c *clone) replace(ctx context.Context, s *session, want []plumbing.Hash) error {
	if end, ok := ctx.Deadline(); ok { // leave time for a fetch into the old clone
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	beside := &clone{dir: c.dir + ".new", limits: c.limits, server: s.Server, budget: c.budget, tips: newTips()}
	if err := errors.Join(os.RemoveAll(beside.dir), os.RemoveAll(c.full())); err != nil { // left by a killed process
		return err
	}
	defer os.RemoveAll(beside.dir)
	// A separate session, because each session has a limit on what it may receive.
	own, err := list(ctx, s.Server)
	if err != nil {
		return err
	}
	defer own.close()
	o, _, err := beside.open()
	if err != nil {
		return err
	}
	if err := beside.add(ctx, o, own, want, want); err != nil {
		return err
	}
	if err := os.Rename(c.dir, c.full()); err != nil {
		return err
	}
	for tries := 1; ; tries++ {
		if err = os.Rename(beside.dir, c.dir); err == nil {
			return os.RemoveAll(c.full())
		}
		// Another process opened the clone in the meantime: it created an empty one or restored the old one.
		if tries == 3 || os.RemoveAll(c.dir) != nil {
			return err
		}
	}
}

// add receives the missing objects that the given ones need. The caller holds the lock.
func (c *clone) add(ctx context.Context, o *objects, s *session, want, missing []plumbing.Hash) error {
	// A separate store: this takes long, and other goroutines read meanwhile.
	store := filesystem.NewStorage(o.files, cache.NewObjectLRU(0))
	head := plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.Main)
	if err := errors.Join(store.Init(), store.SetReference(head)); err != nil { // so that the git program can read the clone
		return err
	}
	have, err := o.refs()
	if err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	if err := c.sweep(); err != nil { // what a killed process received would count as part of the repository
		return err
	}
	share, ctx := c.budget.Begin(ctx, c.dir)
	defer share.End()
	sent, err := s.Pack(ctx, missing, o.haves(have))
	if err != nil {
		return share.Explain(err)
	}
	err = c.receive(ctx, sent, share)
	if err = errors.Join(err, sent.Close(), c.sweep()); err != nil {
		return share.Explain(s.explain(ctx, err))
	}
	if missing, err := o.missing(want); err != nil || len(missing) > 0 {
		return errors.Join(err, fmt.Errorf("cannot fetch %s: the server did not send it", missing))
	}
	for _, h := range want {
		name := plumbing.ReferenceName(ownRefs + h.String())
		err = errors.Join(err, store.SetReference(plumbing.NewHashReference(name, h)))
	}
	return err
}

// missing returns the objects that do not exist, without duplicates. It looks twice, the second time in reopened stores.
func (o *objects) missing(want []plumbing.Hash) ([]plumbing.Hash, error) {
	for again := false; ; again = true {
		var list []plumbing.Hash
		for _, h := range want {
			ok, err := o.has(h)
			if err != nil {
				return nil, err
			}
			if !ok && !slices.Contains(list, h) {
				list = append(list, h)
			}
		}
		if len(list) == 0 || again {
			return list, nil
		}
		o.reopen()
	}
}

// haves returns existing commits: those that were fetched and their nearest ancestors, because after a force push the
// server may only have the ancestors.
func (o *objects) haves(have refs) []plumbing.Hash {
	var list []plumbing.Hash
	for next := have.objects(nil); len(next) > 0 && len(list) < maxHaves; next = next[1:] {
		commit, err := o.commit(next[0])
		if err != nil || slices.Contains(list, commit.Hash) {
			continue // unknown commits are not offered
		}
		list = append(list, commit.Hash)
		next = append(next, commit.ParentHashes...)
	}
	return list
}

// sweep removes temporary files of failed fetches and killed processes.
func (c *clone) sweep() error {
	dir := filepath.Join(c.dir, "objects", "pack")
	list, err := os.ReadDir(dir)
	for _, f := range list {
		if strings.HasPrefix(f.Name(), "tmp_") {
			err = errors.Join(err, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	return err
}

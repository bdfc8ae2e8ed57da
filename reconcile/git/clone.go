package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/gofrs/flock"
)

const (
	maxPacks = 100  // every fetch adds one, and nobody repacks: after so many, clone anew
	maxHaves = 1024 // commits that are offered to a server as known
	ownRefs  = "refs/headgate/"
)

// A clone is a bare repository on disk with full histories of what was asked
// for. Packs are added under a lock and never changed, so they are read without.
type clone struct {
	dir    string
	limits Limits
	remote remote

	mu      sync.Mutex
	store   *objects // nil: not opened yet
	trusted bool     // the server let us in once
}

// resolve finds the commit that ref names, with one request if nothing is new.
func (c *clone) resolve(ctx context.Context, ref string) (*objects, *object.Commit, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Time)
	defer cancel()
	for tries := 1; ; tries++ {
		o, trusted, err := c.open()
		if err != nil && !errors.Is(err, errDamaged) {
			return nil, nil, err
		}
		var commit *object.Commit
		if err == nil {
			o, commit, err = c.try(ctx, o, trusted, ref)
		}
		if !errors.Is(err, errDamaged) || tries == 3 {
			return o, commit, err
		}
		if err := c.discard(ctx); err != nil {
			return nil, nil, err
		}
	}
}

func (c *clone) try(ctx context.Context, o *objects, trusted bool, ref string) (*objects, *object.Commit, error) {
	if o.damaged.Load() {
		return nil, nil, errDamaged
	}
	full := len(ref) == 2*hashSize && plumbing.IsHash(ref)
	if full && trusted {
		if ids, err := o.commits(ref); err != nil || len(ids) > 0 {
			return o.opened(plumbing.NewHash(ref), err)
		}
	}
	s, err := c.remote.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	c.trust()
	if full {
		return c.byID(ctx, o, s, ref)
	}
	name, h, err := s.find(ref)
	if errors.Is(err, errUnknownRef) && abbreviated.MatchString(ref) {
		return c.byID(ctx, o, s, ref)
	}
	if err != nil {
		return nil, nil, err
	}
	if name == defaultBranch {
		name = s.branch // "" where the server does not tell
	}
	if name == "" {
		name = ownRefs + defaultBranch
	}
	return o.opened(h, c.fetch(ctx, o, s, map[string]plumbing.Hash{name: h}))
}

// byID finds a commit by its id, or by the first digits of it.
func (c *clone) byID(ctx context.Context, o *objects, s *session, id string) (*objects, *object.Commit, error) {
	ids, err := o.commits(id)
	if err != nil {
		return nil, nil, err
	}
	if len(ids) == 0 {
		want := s.startingWith(id)
		if len(want) == 0 && len(id) == 2*hashSize && s.byID() {
			want[ownRefs+id] = plumbing.NewHash(id)
		}
		if len(want) == 0 {
			want = s.everything()
		}
		err := c.fetch(ctx, o, s, want)
		if _, direct := want[ownRefs+id]; direct && err != nil && ctx.Err() == nil {
			err = c.fetch(ctx, o, s, s.everything()) // not every server that says it can will
		}
		if err != nil {
			return nil, nil, err
		}
		if ids, err = o.commits(id); err != nil {
			return nil, nil, err
		}
	}
	if len(ids) == 0 {
		return nil, nil, fmt.Errorf("%w %q; %s", errUnknownRef, id, s.others(id))
	}
	return o.opened(ids[0], nil)
}

// startingWith lists the refs whose object's id starts so.
func (r refs) startingWith(id string) map[string]plumbing.Hash {
	found := map[string]plumbing.Hash{}
	for name, h := range r.names {
		if strings.HasPrefix(h.String(), strings.ToLower(id)) {
			found[name] = h
		}
	}
	return found
}

// everything lists all branches and tags.
func (r refs) everything() map[string]plumbing.Hash {
	found := map[string]plumbing.Hash{}
	for name, h := range r.names {
		if strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") {
			found[name] = h
		}
	}
	return found
}

// opened reads the commit that was found.
func (o *objects) opened(h plumbing.Hash, err error) (*objects, *object.Commit, error) {
	if err != nil {
		return nil, nil, err
	}
	commit, err := o.commit(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) { // the server sent it and all before it, once
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return o, commit, err
}

// open returns the store, again if the directory was replaced.
func (c *clone) open() (o *objects, trusted bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	dir := filepath.Join(c.dir, "objects")
	if err := os.MkdirAll(filepath.Join(dir, "pack"), 0o700); err != nil {
		return nil, false, err
	}
	if c.store == nil || !c.store.current() {
		c.store = nil
		if c.store, err = openObjects(dir, c.limits.Object); err != nil {
			return nil, false, err
		}
	}
	return c.store, c.trusted, nil
}

func (c *clone) trust() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trusted = true
}

// lock keeps other processes, and others in this one, from changing the clone.
// The file is beside the directory, which may be deleted meanwhile.
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

// discard deletes the clone. What others have open stays readable for them.
func (c *clone) discard(ctx context.Context) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	replaced := c.store != nil && !c.store.current() // by another process that saw the damage too
	c.store = nil
	if replaced {
		return nil
	}
	trash, err := os.MkdirTemp(filepath.Dir(c.dir), filepath.Base(c.dir)+".old-*")
	if err != nil {
		return err
	}
	if err := os.Rename(c.dir, filepath.Join(trash, "git")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return errors.Join(err, os.Remove(trash))
	}
	return os.RemoveAll(trash)
}

// fetch receives what leads to the given refs, unless it is there.
func (c *clone) fetch(ctx context.Context, o *objects, s *session, want map[string]plumbing.Hash) error {
	missing, err := o.missing(want)
	if err != nil || len(missing) == 0 {
		return err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if !o.current() || len(*o.packs.Load()) > maxPacks {
		return fmt.Errorf("%w: %s was replaced or is full", errDamaged, c.dir)
	}
	if missing, err = o.missing(want); err != nil || len(missing) == 0 { // another process was faster
		return err
	}
	if err := c.prepare(); err != nil {
		return err
	}
	tips, err := c.tips()
	if err != nil {
		return err
	}
	r, err := s.pack(ctx, missing, o.haves(slices.Collect(maps.Values(tips))))
	if err != nil {
		return err
	}
	err = receive(ctx, filepath.Join(c.dir, "objects", "pack"), r, c.limits.Object)
	if err = errors.Join(err, r.Close()); err != nil {
		// The text alone: it is the answer that is damaged and not the clone.
		return errors.New(s.explain(ctx, err).Error())
	}
	if err := o.scan(); err != nil {
		return err
	}
	if missing, err := o.missing(want); err != nil || len(missing) > 0 {
		return errors.Join(err, fmt.Errorf("cannot fetch %s: the server did not send it", missing[0]))
	}
	for name := range tips {
		if _, ok := s.names[name]; !ok && !strings.HasPrefix(name, ownRefs) {
			delete(tips, name) // a deleted branch
		}
	}
	maps.Copy(tips, want)
	return c.record(tips)
}

// missing lists the objects that the store does not have, each once.
func (o *objects) missing(want map[string]plumbing.Hash) ([]plumbing.Hash, error) {
	var list []plumbing.Hash
	for _, name := range slices.Sorted(maps.Keys(want)) {
		ok, err := o.has(want[name])
		if err != nil {
			return nil, err
		}
		if !ok && !slices.Contains(list, want[name]) {
			list = append(list, want[name])
		}
	}
	return list, nil
}

// haves lists commits of the store: the tips and the first of their ancestors,
// because after a force push the server may know those only.
func (o *objects) haves(tips []plumbing.Hash) []plumbing.Hash {
	seen := map[plumbing.Hash]bool{}
	var list []plumbing.Hash
	for next := tips; len(next) > 0 && len(list) < maxHaves; {
		var before []plumbing.Hash
		for _, h := range next {
			if seen[h] || len(list) == maxHaves {
				continue
			}
			seen[h] = true
			commit, err := o.commit(h)
			if err != nil {
				continue // what is not known is not offered
			}
			list = append(list, commit.Hash)
			before = append(before, commit.ParentHashes...)
		}
		next = before
	}
	slices.SortFunc(list, func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(list)
}

// prepare makes the clone one that git itself can read, and removes what a killed process left.
func (c *clone) prepare() error {
	left, err := filepath.Glob(filepath.Join(glob.Replace(c.dir), "objects", "pack", arriving+"*"))
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(c.dir, "refs"), 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"HEAD":   "ref: refs/heads/main\n",
		"config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
	} {
		if path := filepath.Join(c.dir, name); !exists(path) {
			if err := install(path, []byte(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// tips reads what was fetched before, by the name it had.
func (c *clone) tips() (map[string]plumbing.Hash, error) {
	tips := map[string]plumbing.Hash{}
	f, err := os.Open(filepath.Join(c.dir, "packed-refs"))
	if errors.Is(err, os.ErrNotExist) {
		return tips, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if id, name, ok := strings.Cut(lines.Text(), " "); ok && plumbing.IsHash(id) {
			tips[name] = plumbing.NewHash(id)
		}
	}
	return tips, nil
}

// record writes all tips as one file: as files of their own, a branch "a" would
// be in the way of a later "a/b".
func (c *clone) record(tips map[string]plumbing.Hash) error {
	var b strings.Builder
	b.WriteString("# pack-refs with: sorted \n")
	for _, name := range slices.Sorted(maps.Keys(tips)) {
		fmt.Fprintf(&b, "%s %s\n", tips[name], name)
	}
	return install(filepath.Join(c.dir, "packed-refs"), []byte(b.String()))
}

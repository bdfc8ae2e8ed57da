// Package git is a Source: a commit of a repository as an fs.FS, read from Git objects without a checkout and without
// the git program. A plain directory is a Source too. Package render interprets the files; package forge knows the
// forges.
//
//	ref ─list─► id ─receive─► pack ─► objects ─► tree (fs.FS)
//	     one request   if new        on disk     read on demand
package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"headgate.dev/headgate/reconcile/disk"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/git/remote"
	"headgate.dev/headgate/reconcile/git/signing"
	"headgate.dev/headgate/reconcile/network"
	"headgate.dev/headgate/reconcile/scratch"
	"headgate.dev/headgate/render"
)

type (
	// Auth holds the credentials for a repository.
	Auth = remote.Auth
	// An UnreachableError means that the server of a repository gave no answer that Headgate knows.
	UnreachableError = remote.UnreachableError
	// Keys are texts with public keys, which sign commits and tags.
	Keys = signing.Keys
)

// A Repository is a source of commits. It is safe for concurrent use. Do not copy or change it after its first use.
type Repository struct {
	// URL is a local path, or starts with file://, http://, https:// or ssh://. Headgate reads a local repository, with or
	// without a worktree, in place and does not clone it.
	URL string

	// Path is the directory below which Headgate reads manifests; "" is the root.
	Path string

	// Cache is the directory for bare clones of remote repositories, which processes may share. "" means a temporary
	// one that Close removes.
	Cache string

	Auth Auth // for https, ssh, and http on this machine; takes precedence over credentials in URL
	// Credentials returns the current credentials before every Fetch. They take precedence over Auth.
	Credentials func(ctx context.Context) (Auth, error)

	// Fetched limits the Repository to commits that were already fetched into Cache, by their IDs. It sends no
	// requests and changes nothing.
	Fetched bool

	// Shared lets this Repository share a clone, and the lists of its refs, with others; nil shares nothing.
	Shared *Shared

	// Budget bounds the clones in Cache, which it may remove while nothing is fetched into them; nil bounds nothing.
	Budget *disk.Budget

	Plain     network.Plain     // hosts that get credentials without TLS
	Verify    Verification      // the signatures that Fetch requires
	Limits    Limits            // zero values are defaults
	Transport http.RoundTripper // nil is network.Default

	mu   sync.Mutex
	temp scratch.Dir
	from backend // nil before the first use
	tip  tip
}

// A found commit is the target of a ref, with the store that holds it.
type found struct {
	*objects

	commit *object.Commit
	named  plumbing.Hash // the object that the ref names: the commit or a tag
	line   line          // what the ref follows
}

// A backend reads commits from a clone or from a local repository.
type backend interface {
	resolve(ctx context.Context, at remote.Address, ref string) (found, error)
	list(ctx context.Context, at remote.Address) (refs, error)
	forget(ctx context.Context, commit plumbing.Hash) error
	version(age time.Duration) (changes int, recent bool)
}

// Limits bound the cost of reading a repository. Zero values are replaced by defaults.
type Limits struct {
	Bytes    int64         // received by one Fetch; 2 GiB
	Time     time.Duration // spent by one Fetch on the network; 10 minutes
	Silence  time.Duration // for the list of refs, or without data from the server; a fifth of Time, at least 2 minutes, at most Time
	Objects  int           // received by one Fetch; 20 million, which is twice as many as Linux has
	Unpacked int64         // bytes of the objects and deltas that one Fetch receives; 256 GiB
	Object   int64         // bytes of one object; 100 MiB, as on GitHub
	Entries  int           // files and directories listed of one commit; a million
	Paths    int64         // bytes of the paths of listed directories; 64 MiB
	Refs     int           // branches, tags and other refs on the server; half a million
	RefBytes int64         // bytes of the list of refs; 32 MiB

	packs int // packs in a clone. Every fetch adds one, and Headgate does not repack: at this number, it clones again; 100
}

// MaxObject is the default of Limits.Object.
const MaxObject = 100 << 20

func (l Limits) orDefault() Limits {
	limit := cmp.Or(l.Time, 10*time.Minute)
	return Limits{
		Bytes:    cmp.Or(l.Bytes, 2<<30),
		Time:     limit,
		Silence:  min(limit, cmp.Or(l.Silence, max(2*time.Minute, limit/5))),
		Objects:  cmp.Or(l.Objects, 20<<20),
		Unpacked: cmp.Or(l.Unpacked, 256<<30),
		Object:   cmp.Or(l.Object, MaxObject),
		Entries:  cmp.Or(l.Entries, 1_000_000),
		Paths:    cmp.Or(l.Paths, 64<<20),
		Refs:     cmp.Or(l.Refs, 500_000),
		RefBytes: cmp.Or(l.RefBytes, 32<<20),
		packs:    cmp.Or(l.packs, 100),
	}
}

// server returns the limits for the conversation with a server.
func (l Limits) server() remote.Limits {
	return remote.Limits{Bytes: l.Bytes, RefBytes: l.RefBytes, Refs: l.Refs, Silence: l.Silence}
}

// Name returns a name of the repository that is the same for every spelling of its URL.
func (r *Repository) Name() string { return remoteID(r.URL, "") }

// Fetch returns the commit that ref names: a branch, a tag, a full or abbreviated commit ID, a full ref name, or ""
// for the default branch; or an ancestor of it, as in main~2 or HEAD^2; or a range of tags, as in semver:>=1.2. Its files are read on demand, until Close.
// The error is an UnverifiedError if the commit lacks a required signature.
func (r *Repository) Fetch(ctx context.Context, ref string) (_ render.Input, err error) {
	dir, err := below(r.Path)
	if err != nil {
		return render.Input{}, fmt.Errorf("%s: %w", remote.WithoutCredentials(r.URL), err)
	}
	tag := ""
	if r.Verify.Tag && !isRange(ref) {
		if tag, err = tagOf(ref); err != nil {
			return render.Input{}, fmt.Errorf("%s: %w", remote.WithoutCredentials(r.URL), err)
		}
		ref = tag
	}
	at, f, err := r.resolve(ctx, ref)
	if err != nil {
		return render.Input{}, err
	}
	if err := r.Verify.check(ctx, at, f, cmp.Or(tag, f.line.tag)); err != nil {
		return render.Input{}, err
	}
	store, commit := f.objects, f.commit
	limits := r.Limits.orDefault()
	files := &tree{objects: store, root: commit.TreeHash, limit: limits.Entries, paths: limits.Paths}
	if err := directory(files, dir); err != nil {
		return render.Input{}, fmt.Errorf("%s: cannot read commit %.7s: %w", at, commit.Hash, err)
	}
	return render.Input{Revision: commit.Hash.String(), Files: files, Path: dir, Source: r.identify(at, f, dir)}, nil
}

// Resolve fetches the commit that ref names and returns its full ID.
func (r *Repository) Resolve(ctx context.Context, ref string) (string, error) {
	_, f, err := r.resolve(ctx, ref)
	if err != nil {
		return "", err
	}
	return f.commit.Hash.String(), nil
}

// A tip is the commit of a ref in a version of the refs.
type tip struct {
	from    backend // nil if it is not known
	ref     string
	version int
	commit  string
}

// Tip is Resolve for a caller that asks often: while the refs stay as they were at the last call, and were listed within the age that
// ctx allows, it only compares numbers, and reads no credentials.
func (r *Repository) Tip(ctx context.Context, ref string) (string, error) {
	r.mu.Lock()
	last := r.tip
	r.mu.Unlock()
	if last.from != nil && last.ref == ref {
		if version, recent := last.from.version(engine.Age(ctx)); recent && version == last.version {
			return last.commit, nil
		}
	}
	_, from, _, err := r.ask(ctx, ref)
	if err != nil {
		return "", err
	}
	before, _ := from.version(0)
	commit, err := r.Resolve(ctx, ref)
	if after, _ := from.version(0); err == nil && after == before {
		r.mu.Lock()
		r.tip = tip{from, ref, after, commit}
		r.mu.Unlock()
	}
	return commit, err
}

// Branch returns the short name of the branch in ref, such as "main", also if ref goes back from it. It returns "" if
// ref names a tag or a commit.
func (r *Repository) Branch(ctx context.Context, ref string) (_ string, err error) {
	at, from, asked, err := r.ask(ctx, ref)
	if err != nil {
		return "", err
	}
	defer finish(at, &err)
	all, err := from.list(ctx, at)
	return all.branch(asked.ref), err
}

// Forget releases a commit that was fetched by its ID. It does nothing for a local repository.
func (r *Repository) Forget(ctx context.Context, commit string) (err error) {
	at, from, _, err := r.ask(ctx, "")
	if err != nil {
		return err
	}
	defer finish(at, &err)
	return from.forget(ctx, plumbing.NewHash(commit))
}

// MergeBase returns the commit where the histories of two refs diverged, the youngest if there are several.
func (r *Repository) MergeBase(ctx context.Context, a, b string) (_ string, err error) {
	_, first, err := r.resolve(ctx, a)
	if err != nil {
		return "", err
	}
	at, other, err := r.resolve(ctx, b) // the store of b also has a
	if err != nil {
		return "", err
	}
	defer finish(at, &err)
	one, err := other.objects.commit(first.commit.Hash)
	if err != nil {
		return "", err
	}
	bases, err := one.MergeBase(other.commit)
	if err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) {
		return "", fmt.Errorf("cannot find the merge base of %q and %q: %w", a, b, err)
	}
	if len(bases) == 0 {
		return "", fmt.Errorf("cannot find the merge base of %q and %q: they have no common history here; if the clone is shallow, %s", a, b, fetchRest)
	}
	return slices.MaxFunc(bases, byDate).Hash.String(), nil
}

func byDate(a, b *object.Commit) int {
	return cmp.Or(a.Committer.When.Compare(b.Committer.When), cmp.Compare(a.Hash.String(), b.Hash.String()))
}

// Clones returns the directory with the clone of a remote repository, for another process that reads it with Fetched.
func (r *Repository) Clones() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cache()
}

// cache returns Cache, or a temporary directory. The caller holds the lock.
func (r *Repository) cache() (_ string, err error) {
	if r.Cache == "" && r.temp.Path == "" {
		r.temp, err = scratch.New("git")
	}
	return cmp.Or(r.Cache, r.temp.Path), err
}

// Plain returns the URL of a repository without the credentials in it.
func Plain(raw string) string { return remote.WithoutCredentials(raw) }

// Close removes the temporary cache. Files that were fetched cannot be read afterwards.
func (r *Repository) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.temp.Path == "" {
		return nil
	}
	err := r.temp.Remove()
	r.temp, r.from = scratch.Dir{}, nil
	return err
}

// resolve finds a commit with the store that holds it. Its errors start with the repository and contain no credentials.
func (r *Repository) resolve(ctx context.Context, ref string) (at remote.Address, f found, err error) {
	at, from, asked, err := r.ask(ctx, ref)
	if err != nil {
		return at, found{}, err
	}
	defer finish(at, &err)
	if f, err = from.resolve(ctx, at, asked.ref); err == nil {
		f.commit, err = asked.from(f.objects, f.commit)
	}
	return at, f, err
}

// ask prepares a request for a ref.
func (r *Repository) ask(ctx context.Context, ref string) (at remote.Address, from backend, asked revision, err error) {
	auth := r.Auth
	if r.Credentials != nil {
		if auth, err = r.Credentials(ctx); err != nil {
			return at, nil, asked, err
		}
	}
	if at, err = remote.Parse(r.URL, auth, r.Plain); err != nil {
		return at, nil, asked, err
	}
	defer finish(at, &err)
	if asked, err = parseRevision(ref); err != nil {
		return at, nil, asked, err
	}
	if err = allowed(asked.ref); err != nil {
		return at, nil, asked, err
	}
	from, err = r.open(at)
	return at, from, asked, err
}

// finish turns a panic into an error, because go-git has panicked on hostile data. It adds the repository to the
// error and removes credentials.
func finish(at remote.Address, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %s", errDamaged, network.Quote(fmt.Sprint(p)))
	}
	if *err != nil {
		*err = at.Describe(*err)
	}
}

func (r *Repository) open(at remote.Address) (_ backend, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.from != nil {
		return r.from, nil
	}
	limits := r.Limits.orDefault()
	place := at.Dir
	if place == "" {
		cache, err := r.cache()
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(cache, 0o700); err != nil {
			return nil, err
		}
		place = filepath.Join(cache, at.Key())
	}
	made := func() (backend, error) {
		if at.Dir == "" {
			return &clone{dir: place, limits: limits, budget: r.Budget, fetched: r.Fetched, server: remote.Server{Limits: limits.server(), Transport: r.Transport}, tips: newTips()}, nil
		}
		o, err := openLocal(at.Dir, limits.Object)
		return local{o, newTips()}, err
	}
	if r.Shared == nil {
		r.from, err = made()
		return r.from, err
	}
	return r.Shared.backend(sharedKey{place, at.Hash(), limits, r.Fetched, r.Transport}, made) // not kept: other credentials have another one
}

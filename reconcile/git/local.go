package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-billy/v5/util"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"headgate.dev/headgate/reconcile/git/remote"
)

// openLocal opens the repository in a directory to read it in place, while other processes may write to it. It does
// not use go-git's PlainOpen, which refuses repositories with an extension that does not matter to a reader, such as
// the one of git sparse-checkout.
func openLocal(dir string, limit int64) (*objects, error) {
	files, err := locate(dir)
	if err != nil {
		return nil, err
	}
	if err := supported(files); err != nil {
		return nil, err
	}
	o, err := openObjects(files, limit)
	if err == nil {
		o.partial = isPartial(files)
	}
	return o, err
}

// isPartial reports whether git cloned with a filter.
func isPartial(files billy.Filesystem) bool {
	config, err := util.ReadFile(files, "config")
	return err == nil && promisor.Match(config)
}

// locate finds the Git directory of dir: dir itself, dir/.git, or the target of a file dir/.git. A linked worktree
// has two: one with HEAD and one with everything else.
func locate(dir string) (billy.Filesystem, error) {
	if !exists(dir) {
		return nil, errors.New("no such directory")
	}
	git := dir
	if to, err := pointer(filepath.Join(dir, ".git"), "gitdir: "); err == nil {
		git = to
	} else if exists(filepath.Join(dir, ".git")) {
		git = filepath.Join(dir, ".git")
	}
	files, common := osfs.New(git), git
	if to, err := pointer(filepath.Join(git, "commondir"), ""); err == nil {
		files, common = dotgit.NewRepositoryFilesystem(files, osfs.New(to)), to
	}
	if exists(filepath.Join(git, "HEAD")) && exists(filepath.Join(common, "objects")) {
		return files, nil
	}
	for up := filepath.Dir(dir); up != filepath.Dir(up); up = filepath.Dir(up) {
		if exists(filepath.Join(up, ".git")) {
			return nil, fmt.Errorf("not a Git repository, but %s is: use that, with a path", up)
		}
	}
	return nil, errors.New("not a Git repository")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// pointer reads a path from a file.
func pointer(file, prefix string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	to := strings.TrimSpace(strings.TrimPrefix(string(raw), prefix))
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(file), to)
	}
	return filepath.Clean(to), nil
}

var (
	sha256Format = regexp.MustCompile(`(?im)^\s*objectformat\s*=\s*"?sha256`)
	reftable     = regexp.MustCompile(`(?im)^\s*refstorage\s*=\s*"?reftable`)
	promisor     = regexp.MustCompile(`(?im)^\s*(promisor\s*=\s*"?(true|yes|on|1)|partialclone(filter)?\s*=)`)
)

// supported refuses repository formats that Headgate would misread.
func supported(files billy.Filesystem) error {
	config, err := util.ReadFile(files, "config")
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case sha256Format.Match(config):
		return errors.New("cannot read a repository of SHA-256 objects")
	case reftable.Match(config):
		return errors.New("cannot read a repository that stores refs as reftable; run git refs migrate --ref-format=files")
	}
	return nil
}

// refs lists the refs of a repository on disk.
func (o *objects) refs() (refs, error) {
	s := filesystem.NewStorage(o.files, nil) // a separate store, because it reads no objects
	iter, err := s.IterReferences()
	if err != nil {
		return refs{}, fmt.Errorf("cannot list branches and tags: %w", err)
	}
	r := refs{names: map[string]plumbing.Hash{}}
	err = iter.ForEach(func(ref *plumbing.Reference) (err error) {
		to := ref
		if ref.Type() == plumbing.SymbolicReference { // only in this case, because it reads all packed refs
			to, err = storer.ResolveReference(s, ref.Name())
		}
		switch {
		case errors.Is(err, plumbing.ErrReferenceNotFound):
			return nil // a branch without commits
		case err != nil:
			return err
		case ref.Name() == plumbing.HEAD:
			r.head = to.Hash()
			r.main, _ = strings.CutPrefix(ref.Target().String(), "refs/heads/")
		default:
			r.names[ref.Name().String()] = to.Hash()
		}
		return nil
	})
	return r, err
}

// A local is a repository that Headgate reads in place.
type local struct {
	*objects
	*tips
}

func (l local) resolve(ctx context.Context, _ remote.Address, ref string) (found, error) {
	h, follows, err := l.find(ctx, ref)
	if err != nil {
		return found{}, err
	}
	c, err := l.commit(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) && !l.partial {
		err = fmt.Errorf("cannot read %q: %s is missing here; %s", ref, h, l.missing("git fetch it"))
	}
	return found{l.objects, c, h, follows}, err
}

func (l local) list(context.Context, remote.Address) (refs, error) { return l.objects.refs() }

// forget does nothing: the repository belongs to the user.
func (l local) forget(context.Context, plumbing.Hash) error { return nil }

func (l local) find(ctx context.Context, ref string) (plumbing.Hash, line, error) {
	if plumbing.IsHash(ref) {
		return plumbing.NewHash(ref), detached, nil
	}
	names, err := l.get(ctx, l.objects.refs)
	if err != nil {
		return plumbing.ZeroHash, line{}, err
	}
	h, unknown := names.find(ref)
	if errors.Is(unknown, errUnknownRef) && abbreviated.MatchString(ref) {
		if h, err = l.startingWith(ref); err != nil || !h.IsZero() {
			return h, detached, err
		}
	}
	if errors.Is(unknown, errUnknownRef) && l.isShallow() {
		unknown = fmt.Errorf("%w; %s", unknown, l.missing(""))
	}
	return h, names.line(ref, true), unknown
}

// missing returns advice for a commit that the clone lacks: fetch the rest if the clone is shallow.
func (l local) missing(otherwise string) string {
	if l.isShallow() {
		return "the clone is shallow: " + fetchRest
	}
	return otherwise
}

// isShallow reports whether the clone has only the newest commits.
func (l local) isShallow() bool {
	info, err := l.files.Stat("shallow")
	return err == nil && info.Size() > 0
}

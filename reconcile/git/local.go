package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// A local repository is read where it is. Others may write to it meanwhile.
type local struct {
	git     string // where HEAD is
	common  string // where refs and objects are; differs in a linked worktree
	objects *objects
}

func openLocal(dir string, limit int64) (*local, error) {
	l, err := locate(dir)
	if err != nil {
		return nil, err
	}
	if err := l.supported(); err != nil {
		return nil, err
	}
	l.objects, err = openObjects(filepath.Join(l.common, "objects"), limit)
	return l, err
}

// locate finds the Git directory of dir: dir itself, dir/.git, or where a file dir/.git points.
func locate(dir string) (*local, error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("no such directory")
	}
	git := filepath.Join(dir, ".git")
	info, err := os.Stat(git)
	switch {
	case err != nil:
		git = dir
	case !info.IsDir():
		if git, err = pointer(git, "gitdir:"); err != nil {
			return nil, err
		}
	}
	common := git
	if to, err := pointer(filepath.Join(git, "commondir"), ""); err == nil {
		common = to
	}
	if !exists(filepath.Join(git, "HEAD")) || !exists(filepath.Join(common, "objects")) {
		for up := filepath.Dir(dir); up != filepath.Dir(up); up = filepath.Dir(up) {
			if exists(filepath.Join(up, ".git")) {
				return nil, fmt.Errorf("not a Git repository, but %s is: use that, with a path", up)
			}
		}
		return nil, errors.New("not a Git repository")
	}
	return &local{git: git, common: common}, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// pointer reads a file that holds a path.
func pointer(file, prefix string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	to, ok := strings.CutPrefix(strings.TrimSpace(string(raw)), prefix)
	if !ok {
		return "", fmt.Errorf("%s: cannot find the repository: the file has no %q", file, prefix)
	}
	if to = strings.TrimSpace(to); !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(file), to)
	}
	return filepath.Clean(to), nil
}

var (
	sha256Format = regexp.MustCompile(`(?im)^\s*objectformat\s*=\s*"?sha256`)
	reftable     = regexp.MustCompile(`(?im)^\s*refstorage\s*=\s*"?reftable`)
)

// supported refuses formats that would be misread.
func (l *local) supported() error {
	config, err := os.ReadFile(filepath.Join(l.common, "config"))
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

func (l *local) refs() (refs, error) {
	files := osfs.New(l.git)
	if l.git != l.common {
		files = dotgit.NewRepositoryFilesystem(files, osfs.New(l.common))
	}
	s := filesystem.NewStorage(files, cache.NewObjectLRU(0))
	iter, err := s.IterReferences()
	if err != nil {
		return refs{}, fmt.Errorf("cannot list branches and tags: %w", err)
	}
	r := refs{names: map[string]plumbing.Hash{}}
	err = iter.ForEach(func(ref *plumbing.Reference) (err error) {
		to := ref
		if ref.Type() == plumbing.SymbolicReference { // only then: it reads all packed refs
			to, err = storer.ResolveReference(s, ref.Name())
		}
		switch {
		case errors.Is(err, plumbing.ErrReferenceNotFound):
			return nil // a branch without commits
		case err != nil:
			return err
		case ref.Name() == plumbing.HEAD:
			r.head = to.Hash()
		default:
			r.names[ref.Name().String()] = to.Hash()
		}
		return nil
	})
	return r, err
}

func (l *local) resolve(ref string) (*objects, *object.Commit, error) {
	h, err := l.find(ref)
	if err != nil {
		return nil, nil, err
	}
	c, err := l.objects.commit(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, nil, fmt.Errorf("cannot read %q: %s is missing here; git fetch it", ref, h)
	}
	return l.objects, c, err
}

func (l *local) find(ref string) (plumbing.Hash, error) {
	if len(ref) == 2*hashSize && plumbing.IsHash(ref) {
		return plumbing.NewHash(ref), nil
	}
	names, err := l.refs()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	_, h, err := names.find(ref)
	if !errors.Is(err, errUnknownRef) || !abbreviated.MatchString(ref) {
		return h, err
	}
	ids, other := l.objects.commits(ref)
	if other != nil {
		return h, other
	}
	if len(ids) == 0 {
		return h, err
	}
	return ids[0], nil
}

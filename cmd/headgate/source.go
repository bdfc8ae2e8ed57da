package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/reconcile/memo"
	"headgate.dev/headgate/reconcile/network"
	"headgate.dev/headgate/reconcile/target"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/spf13/cobra"
)

const aboutSource = `SOURCE is a directory, read as it is. With --repo, Headgate reads a commit of that Git repository,
by default the newest of the default branch; with --ref alone, a commit of the repository around
SOURCE.`

// sourceFlags holds the flags that locate the commit.
type sourceFlags struct {
	verb            string // the name of the command, for advice
	repo, ref, path string

	cache   string
	noCache bool
	offline bool
	plain   network.Plain

	trustFlags
}

// trustFlags holds the flags with trusted signers, in addition to the keys in Secrets.
type trustFlags struct {
	keys map[string]string
	root string
}

func (f *trustFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringToStringVar(&f.keys, "verification-key", nil, "verify signatures with this public key if an ImageConfig names the Secret: `SECRET/KEY=FILE`; may be given several times")
	flags.StringVar(&f.root, "trusted-root", "", "verify signatures of identities, and entries of transparency logs, with this `file`, as the trusted_root.json of sigstore")
	checkFirst(cmd, f.check)
}

// check returns an error if a file of a flag does not exist. Otherwise, Headgate would notice only when it verifies a signature.
func (f *trustFlags) check() error {
	for _, secret := range slices.Sorted(maps.Keys(f.keys)) {
		if namespace, key, ok := strings.Cut(secret, "/"); !ok || namespace == "" || key == "" {
			return usagef("--verification-key %s=%s: name the Secret and its key before the =, as in cosign/cosign.pub=FILE", secret, f.keys[secret])
		}
		if err := isFile(f.keys[secret]); err != nil {
			return usagef("--verification-key %s=%s: %w", secret, f.keys[secret], err)
		}
	}
	if f.root == "" {
		return nil
	}
	if err := isFile(f.root); err != nil {
		return usagef("--trusted-root %s: %w", f.root, err)
	}
	return nil
}

// checkFirst makes a verb check flags before it does anything, after its existing checks.
func checkFirst(cmd *cobra.Command, check func() error) {
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if before != nil {
			if err := before(cmd, args); err != nil {
				return err
			}
		}
		return check()
	}
}

func (f *sourceFlags) addTo(cmd *cobra.Command) {
	f.verb = cmd.Name()
	flags := cmd.Flags()
	flags.StringVar(&f.repo, "repo", "", "read from this Git `repository`: an http(s) or ssh URL, or a path")
	addPlain(cmd, &f.plain)
	flags.StringVar(&f.ref, "ref", "", "branch, tag or commit, or the newest tag in a range of versions, as in 'semver:>=1.2'")
	values(cmd, "ref", refs)
	flags.StringVar(&f.path, "path", "", "read only what is below this `directory` of SOURCE or of the repository")
	flags.StringVar(&f.cache, "cache-dir", "", "keep clones of repositories, packages, and the results of reading them in this `directory` (default: the user's cache)")
	flags.BoolVar(&f.noCache, "no-cache", false, "keep nothing on disk")
	f.trustFlags.addTo(cmd)
	flags.BoolVar(&f.offline, "offline", false, "contact no registry; use only packages that were pulled before")
}

// addPlain adds the flag for hosts without TLS.
func addPlain(cmd *cobra.Command, to *network.Plain) {
	cmd.Flags().StringSliceVar((*[]string)(to), "plain-http", nil, "send credentials to this `host` without TLS, as git.example.org or git.example.org:3000; may be given several times")
}

// given reports whether the command line, or the environment, names a source.
func (f *sourceFlags) given(args []string) bool {
	return len(args) > 0 || f.repo != ""
}

// source returns the source of the commit, and the commit's ref.
func (t *terminal) source(f *sourceFlags, args []string) (reconcile.Source, string, error) {
	directory := "."
	if len(args) > 0 {
		directory = args[0]
	}
	switch {
	case f.repo != "" && len(args) > 0:
		return nil, "", usagef("SOURCE (%s) and --repo exclude each other; --path names a directory of the repository", args[0])
	case f.repo != "":
		if err := checkRepository(f.repo); err != nil {
			return nil, "", err
		}
		return t.repository(f, f.repo, f.path), f.ref, nil
	case isURL(directory), hosted.MatchString(directory) && !isExistingDirectory(directory):
		return nil, "", usagef("SOURCE is a directory; name a repository with --repo %s", cmp.Or(v1alpha1.SSHURL(directory), overHTTPS(directory)))
	case f.ref != "":
		root, below, err := enclosing(directory)
		if err != nil {
			return nil, "", err
		}
		return t.repository(f, root, filepath.ToSlash(filepath.Join(below, f.path))), f.ref, nil
	}
	if err := isDirectory(f.verb, directory); err != nil {
		return nil, "", err
	}
	return git.Directory{Root: directory, Path: f.path}, "", nil
}

// isCommit reports whether the repository around the working directory has a commit of that name.
func isCommit(name string) bool {
	root, _, err := enclosing(".")
	if err != nil {
		return false
	}
	r := &git.Repository{URL: root}
	defer func() { _ = r.Close() }()
	_, err = r.Resolve(context.Background(), name)
	return err == nil
}

// directories is a source whose refs are directories.
type directories struct{ path string }

func (d directories) Fetch(ctx context.Context, ref string) (render.Input, error) {
	return git.Directory{Root: ref, Path: d.path}.Fetch(ctx, "")
}

// compared returns the source of both sides of a comparison.
func (t *terminal) compared(f *sourceFlags, sides []string) (reconcile.Source, error) {
	both, err := sidesOf(f.repo, sides)
	switch base, head := both[0].directory, both[1].directory; {
	case err != nil:
		return nil, err
	case !base && !head:
		return t.commits(f)
	case base != head:
		return nil, usagef("%s and %s: one is a directory and the other a commit; compare two of a kind", sides[0], sides[1])
	case f.repo != "" || f.ref != "":
		return nil, usagef("--repo and --ref name commits, and %s is a directory", sides[0])
	}
	for _, side := range sides {
		if err := isDirectory("diff", side); err != nil {
			return nil, err
		}
	}
	return directories{f.path}, nil
}

// isPath reports whether an argument is written as a path, so that it is not mistaken for a branch.
func isPath(arg string) bool {
	return arg == "." || arg == ".." || filepath.IsAbs(arg) || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../")
}

// commits returns the source of two commits: the repository of --repo, or the one that contains the working directory.
func (t *terminal) commits(f *sourceFlags) (reconcile.Source, error) {
	if f.ref != "" {
		return nil, usagef("--ref and BASE HEAD exclude each other")
	}
	if f.repo == "" {
		root, below, err := enclosing(".")
		if err != nil {
			return nil, err
		}
		return t.repository(f, root, filepath.ToSlash(filepath.Join(below, f.path))), nil
	}
	if err := checkRepository(f.repo); err != nil {
		return nil, err
	}
	return t.repository(f, f.repo, f.path), nil
}

func (t *terminal) repository(f *sourceFlags, repo, path string) reconcile.Source {
	r := &git.Repository{
		URL:   repo,
		Path:  path,
		Cache: f.clones(),
		Plain: f.plain,
		Credentials: func(context.Context) (git.Auth, error) {
			return target.Credentials(v1alpha1.Source{Repo: repo}, t.getenv)
		},
	}
	t.atEnd = append(t.atEnd, r.Close)
	return r
}

// memo returns the memo for the files of a source. It is stored on disk for later processes. The files of a directory may change at
// any time, so the memo of a directory covers only packages.
func (t *terminal) memo(f *sourceFlags, source reconcile.Source) manifest.Memo {
	dir := f.kept("memo")
	if dir == "" {
		return nil
	}
	var repo, path string
	switch s := source.(type) {
	case *git.Repository:
		repo, path = s.URL, s.Path
	case git.Directory:
		repo, path = s.Root, s.Path
	}
	if !isURL(repo) {
		repo, _ = filepath.Abs(repo) // without a working directory, nothing else can be read either
	}
	m := memo.Open(dir, thisProgram(), repo, path)
	t.atEnd = append(t.atEnd, func() error {
		if err := m.Close(); err != nil {
			slog.Warn("cannot store the memo", "error", err)
		}
		return nil
	})
	return m
}

// kept returns the cache directory with this name, or "" if nothing is kept on disk.
func (f *sourceFlags) kept(what string) string {
	if f.noCache {
		return ""
	}
	dir := f.cache
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "" // the user has no home directory
		}
		dir = filepath.Join(user, "headgate")
	}
	return filepath.Join(dir, what)
}

// clones returns the directory of clones; "" means a temporary one.
func (f *sourceFlags) clones() string { return f.kept("git") }

// enclosing returns the root of the repository that contains a directory, and the path of the directory below that root.
func enclosing(directory string) (root, below string, err error) {
	start, err := filepath.Abs(directory)
	if err != nil {
		return "", "", err
	}
	if _, err := os.Stat(start); err != nil {
		return "", "", err
	}
	for root := start; ; root = filepath.Dir(root) {
		if isRepository(root) {
			below, err := filepath.Rel(root, start)
			return root, below, err
		}
		if root == filepath.Dir(root) {
			return "", "", fmt.Errorf("%s is in no Git repository; name one with --repo", directory)
		}
	}
}

// isRepository reports whether a directory is the top of a work tree, or a bare
// repository.
func isRepository(directory string) bool {
	if _, err := os.Stat(filepath.Join(directory, ".git")); !errors.Is(err, fs.ErrNotExist) {
		return err == nil
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(directory, name)); err != nil {
			return false
		}
	}
	return true
}

func isURL(s string) bool {
	return strings.Contains(s, "://") || v1alpha1.SSHURL(s) != ""
}

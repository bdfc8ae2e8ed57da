package git

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/util"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"headgate.dev/headgate/reconcile/git/remote"
	"headgate.dev/headgate/render"
)

// errNoCommit is wrapped by errors about objects that are no commits.
var errNoCommit = errors.New("no commit")

// The prefixes of a render.SourceID for a repository without a remote, and for files without a repository.
const (
	byCommit    = "commit:"
	byDirectory = "directory:"
)

// remoteID returns the host and path in the URL of a remote, without scheme, user, port and .git, so that ssh and
// https URLs are equal. base is the directory to which a path is relative.
func remoteID(raw, base string) string {
	host, at := "", raw
	switch {
	case strings.Contains(raw, "://"):
		u, err := url.Parse(raw)
		if err != nil {
			return ""
		}
		host, at = strings.ToLower(u.Hostname()), u.Path
		if u.Scheme == "file" && host == "localhost" {
			host = ""
		}
	case remote.IsSCP(raw): // user@host:path
		before, _, _ := strings.Cut(raw, "/")
		if user := strings.LastIndex(before, "@") + 1; strings.Contains(before[user:], ":") { // otherwise the @ is part of the path
			raw = raw[user:]
		}
		var literal bool
		if host, at, literal = strings.Cut(raw, "]:"); literal { // [address]:path or [host:port]:path
			host = strings.TrimPrefix(host, "[")
		} else {
			host, at, _ = strings.Cut(raw, ":")
		}
		if host = strings.ToLower(host); net.ParseIP(host) == nil {
			host, _, _ = strings.Cut(host, ":")
		}
	case !filepath.IsAbs(raw):
		at = filepath.ToSlash(filepath.Join(base, raw))
	}
	at = path.Clean("/" + at)
	if trimmed := strings.TrimSuffix(strings.TrimSuffix(at, ".git"), "/"); trimmed != "" {
		at = trimmed
	}
	if host != "" && net.ParseIP(host) != nil && strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + at
}

// Origin returns the URL of the remote of the repository with a work tree, and the branch that this remote calls its default one. Each is
// "" if the repository does not show it.
func Origin(top string) (at, branch string) {
	files, err := locate(top)
	if err != nil {
		return "", ""
	}
	for _, ref := range []string{"refs/remotes/origin/HEAD", "HEAD"} {
		raw, err := util.ReadFile(files, ref)
		if name, ok := strings.CutPrefix(strings.TrimSpace(string(raw)), "ref: "); ok && err == nil && branch == "" {
			branch = strings.TrimPrefix(strings.TrimPrefix(name, "refs/remotes/origin/"), "refs/heads/")
		}
	}
	return remoteOf(files), branch
}

// Names returns the names of the branches and tags of the repository with a work tree, for a person to choose from. It returns none if
// the repository cannot be read.
func Names(top string) []string {
	files, err := locate(top)
	if err != nil {
		return nil
	}
	all, err := filesystem.NewStorage(files, cache.NewObjectLRUDefault()).IterReferences()
	if err != nil {
		return nil
	}
	var names []string
	for {
		ref, err := all.Next()
		if err != nil {
			break
		}
		if name := ref.Name(); name.IsBranch() || name.IsTag() || name.IsRemote() {
			names = append(names, name.Short())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// remoteOf returns the URL of a repository's remote: origin, or the first one by name. It is "" without a remote.
func remoteOf(files billy.Filesystem) string {
	f, err := files.Open("config")
	if err != nil {
		return ""
	}
	defer f.Close()
	read := config.New()
	if err := config.NewDecoder(f).Decode(read); err != nil {
		return ""
	}
	remotes := map[string]string{}
	var names []string
	for _, one := range read.Section("remote").Subsections {
		if at := one.Option("url"); at != "" {
			remotes[one.Name] = at
			names = append(names, one.Name)
		}
	}
	if at := remotes["origin"]; at != "" || len(names) == 0 {
		return at
	}
	return remotes[slices.Min(names)]
}

// first returns the root commit of a commit's history along first parents. It returns the zero hash if the root is
// missing, as in a shallow clone.
func (o *objects) first(of plumbing.Hash) plumbing.Hash {
	if known, ok := o.firsts.Load(of); ok {
		found, _ := known.(plumbing.Hash)
		return found
	}
	for next := of; ; {
		c, err := o.commit(next)
		if err != nil {
			return plumbing.ZeroHash
		}
		if len(c.ParentHashes) == 0 {
			o.firsts.Store(of, c.Hash)
			return c.Hash
		}
		next = c.ParentHashes[0]
	}
}

// reaches reports whether a commit is one of the given commits or an ancestor of them. If it does not find the
// commit, it returns the error of an unreadable commit, which may hide the searched one. An unreadable commit takes
// precedence over a missing one.
func (o *objects) reaches(from []plumbing.Hash, commit plumbing.Hash) (found bool, err error) {
	defer func() {
		if p := recover(); p != nil { // go-git has panicked on what an attacker wrote
			found, err = false, fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	seen := make(map[plumbing.Hash]bool, len(from))
	for next := slices.Clone(from); len(next) > 0; {
		h := next[0] // nearest first, because most searched commits are near
		next = next[1:]
		if seen[h] {
			continue
		}
		seen[h] = true
		c, unread := o.commit(h)
		switch {
		case errors.Is(unread, errNoCommit): // a tag of a file
		case unread != nil && (err == nil || gone(err)):
			err = unread
		case unread != nil:
		case c.Hash == commit:
			return true, nil
		default:
			next = append(next, c.ParentHashes...)
		}
	}
	return false, err
}

// contains returns a function that searches a commit in the history of head, and of every branch and tag of a
// repository on disk.
func (o *objects) contains(head plumbing.Hash) func(string) (bool, error) {
	return func(commit string) (bool, error) {
		if !plumbing.IsHash(commit) {
			return false, nil
		}
		of := plumbing.NewHash(commit)
		if ok, err := o.has(of); !ok || err != nil {
			return false, err
		}
		all, err := o.refs()
		if err != nil {
			return false, err
		}
		from := []plumbing.Hash{head}
		for _, h := range all.names {
			from = append(from, h)
		}
		found, err := o.reaches(from, of)
		if gone(err) { // the history is shallow
			err = nil
		}
		return found, err
	}
}

// descends returns a function that reports whether head is a given commit or descends from it. It only remembers
// complete answers: a shallow clone may get more history, and a server may recover.
func (o *objects) descends(head plumbing.Hash) func(string) (bool, error) {
	return func(commit string) (bool, error) {
		if !plumbing.IsHash(commit) {
			return false, nil
		}
		key := [2]plumbing.Hash{head, plumbing.NewHash(commit)}
		if was, ok := o.descents.Load(key); ok {
			found, _ := was.(bool)
			return found, nil
		}
		found, err := o.reaches([]plumbing.Hash{head}, key[1])
		if err != nil {
			if gone(err) && (local{objects: o}).isShallow() {
				err = fmt.Errorf("%w; the clone is shallow: %s", err, fetchRest)
			}
			return false, fmt.Errorf("cannot read the history of commit %.12s: %w", head, err)
		}
		o.descents.Store(key, found)
		return found, nil
	}
}

// related returns a function that reports whether one of head and a given commit descends from the other.
func (o *objects) related(head plumbing.Hash) func(string) (bool, error) {
	return func(commit string) (bool, error) {
		if is, err := o.descends(head)(commit); is || err != nil || !plumbing.IsHash(commit) {
			return is, err
		}
		later := plumbing.NewHash(commit)
		if ok, err := o.has(later); !ok || err != nil {
			return false, err
		}
		return o.descends(later)(head.String())
	}
}

// identify identifies a repository on disk. base is the directory to which the path of its remote may be relative.
func (o *objects) identify(head plumbing.Hash, follows line, base string) render.SourceID {
	id := o.at(head, follows)
	if at := remoteOf(o.files); at != "" {
		id.Repository = remoteID(at, base)
	}
	if id.Repository == "" && !head.IsZero() {
		if first := o.first(head); !first.IsZero() {
			id.Repository = byCommit + first.String()
		}
	}
	return id
}

// at returns the identity of a commit without its repository.
func (o *objects) at(head plumbing.Hash, follows line) render.SourceID {
	id := render.SourceID{Ref: follows.ref, Branch: follows.branch, Contains: o.contains(head), Descends: o.descends(head), Related: o.related(head)}
	if !head.IsZero() {
		id.Commit = head.String()
	}
	return id
}

// identify identifies the source of a fetched commit.
func (r *Repository) identify(at remote.Address, f found, dir string) (id render.SourceID) {
	defer func() {
		if recover() != nil { // go-git has panicked on what an attacker wrote
			id = render.SourceID{}
		}
	}()
	if at.Dir == "" {
		id = f.objects.at(f.commit.Hash, f.line)
		id.Repository = remoteID(at.String(), "")
	} else if id = f.identify(f.commit.Hash, f.line, at.Dir); id.Repository == "" {
		id.Repository = byDirectory + filepath.ToSlash(resolved(at.Dir))
	}
	id.Path = inside(dir)
	return id
}

// inside returns a path in a repository in the form of a render.SourceID.
func inside(dir string) string {
	if dir = path.Clean(filepath.ToSlash(dir)); dir == "." {
		return ""
	}
	return dir
}

// resolved returns a path without symbolic links.
func resolved(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		dir = target
	}
	return dir
}

// Source identifies the directory: by the repository that contains it, or otherwise by its path.
func (d Directory) Source() (id render.SourceID) {
	whole := resolved(filepath.Join(d.Root, filepath.FromSlash(d.Path)))
	alone := render.SourceID{Repository: byDirectory + filepath.ToSlash(whole)}
	defer func() {
		if recover() != nil { // go-git has panicked on what an attacker wrote
			id = alone
		}
	}()
	for top := whole; ; top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			below, err := filepath.Rel(top, whole)
			if id = identifyAt(top); err != nil || id.Repository == "" {
				return alone
			}
			id.Path = inside(below)
			return id
		}
		if top == filepath.Dir(top) {
			return alone
		}
	}
}

// identifyAt identifies the repository with a work tree as far as it can read it.
func identifyAt(top string) render.SourceID {
	files, err := locate(top)
	if err != nil {
		return render.SourceID{}
	}
	if supported(files) != nil { // the config with the remote is readable all the same
		if at := remoteOf(files); at != "" {
			return render.SourceID{Repository: remoteID(at, top)}
		}
		return render.SourceID{}
	}
	o, err := openObjects(files, Limits{}.orDefault().Object)
	if err != nil {
		return render.SourceID{}
	}
	all, err := o.refs()
	if err != nil {
		all = refs{}
	}
	return o.identify(all.head, all.line("", true), top)
}

// IsNameless reports whether only its path identifies a source. Another directory may get this path later, and the
// same files may get another path.
func IsNameless(id render.SourceID) bool { return strings.HasPrefix(id.Repository, byDirectory) }

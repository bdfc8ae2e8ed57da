package kustomize

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// local returns the file or directory of the commit for a path relative to dir, as kustomize resolves it.
func (v *vetting) local(dir, given string) (name string, isDir bool, err error) {
	name = path.Join(dir, given)
	switch {
	case given == "":
		return "", false, errors.New("is empty")
	case strings.HasPrefix(given, "/"), strings.HasPrefix(given, "~"):
		return "", false, fmt.Errorf("%s is an absolute path: name a file of the commit, relative to this one", given)
	case isRemote(given):
		return "", false, fmt.Errorf("%s is not in the commit, and nothing is fetched: copy it into the repository", withoutSecrets(given))
	case name == "..", strings.HasPrefix(name, "../"):
		return "", false, fmt.Errorf("%s leads out of the commit", given)
	case !fs.ValidPath(name):
		return "", false, fmt.Errorf("%q is not a path", given)
	}
	return v.entry(name)
}

// entry reports whether a name in the commit is a file or a directory. No part of the path may be a symbolic link.
func (v *vetting) entry(name string) (_ string, isDir bool, err error) {
	if name == "." {
		return name, true, nil
	}
	steps := strings.Split(name, "/")
	for i := range steps {
		here := path.Join(steps[:i+1]...)
		info, err := fs.Lstat(v.files, here)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", false, fmt.Errorf("this commit has no %s", name)
		case err != nil:
			return "", false, fmt.Errorf("%s: %w", here, withoutPath(err))
		case info.Mode()&fs.ModeSymlink != 0:
			return "", false, fmt.Errorf("%s is a symbolic link, which is not followed: name the file itself", here)
		case info.IsDir():
			isDir = true
		case info.Mode().IsRegular() && i == len(steps)-1:
			return name, false, nil
		case info.Mode().IsRegular():
			return "", false, fmt.Errorf("%s is no directory", here)
		default:
			return "", false, fmt.Errorf("%s is a submodule, which is not followed", here)
		}
	}
	return name, isDir, nil
}

// withoutPath returns an error of a file system without its path, which the message already contains.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// scpLike matches what kustomize treats as user@host:path, even without a colon.
var scpLike = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*@`)

// isRemote reports whether kustomize would download a path. It only selects the message: every other path is changed to begin with
// a dot, which kustomize never downloads.
func isRemote(given string) bool {
	lower := strings.ToLower(given)
	for _, prefix := range []string{"git::", "http:", "https:", "file:", "ssh:", "github.com/", "github.com:"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	return strings.Contains(given, "://") || scpLike.MatchString(given)
}

// withoutSecrets returns a URL without the parts that may contain a token: user and query.
func withoutSecrets(given string) string {
	given, _, _ = strings.Cut(given, "?")
	scheme, rest, ok := strings.Cut(given, "://")
	if !ok {
		return scpLike.ReplaceAllString(given, "")
	}
	host, below, _ := strings.Cut(rest, "/")
	if i := strings.LastIndex(host, "@"); i >= 0 {
		host = host[i+1:]
	}
	return scheme + "://" + strings.TrimSuffix(host+"/"+below, "/")
}

// dotted returns a path in a form that kustomize always treats as a local path.
func dotted(given string) string {
	given = path.Clean(given)
	if given == ".." || strings.HasPrefix(given, "../") {
		return given
	}
	return "./" + given
}

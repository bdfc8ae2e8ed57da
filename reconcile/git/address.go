package git

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"headgate.dev/headgate/reconcile/network"
)

// An address is the parsed URL of a repository. It prints without credentials.
type address struct {
	dir  string   // for a local repository
	url  *url.URL // for a remote repository, without credentials
	auth Auth
}

func (a address) String() string {
	if a.dir != "" {
		return a.dir
	}
	return a.url.String()
}

// key returns the directory name for the clone of a repository. No URL can choose the name.
func (a address) key() string {
	sum := sha256.Sum256([]byte(strings.TrimRight(a.url.String(), "/")))
	return hex.EncodeToString(sum[:16])
}

var (
	helper  = regexp.MustCompile(`^[A-Za-z0-9+.-]+::`)
	scpLike = regexp.MustCompile(`^[^/]+:`)
)

// parse parses the URL of a repository. It refuses URLs that are not supported, could run a program or leak credentials.
func parse(raw string, auth Auth, plain network.Plain) (address, error) {
	switch {
	case raw == "":
		return address{}, errors.New("cannot read a repository: its URL is empty")
	case strings.ContainsAny(raw, "\x00\r\n"):
		return address{}, errors.New("cannot read a repository: its URL has a control character")
	case strings.HasPrefix(raw, "-"):
		return address{}, fmt.Errorf("cannot read repository %q: it looks like an option; start a path with ./", withoutCredentials(raw))
	case helper.MatchString(raw):
		return address{}, fmt.Errorf("cannot read repository %q: remote helpers are not run; use https:// or ssh://", withoutCredentials(raw))
	case !strings.Contains(raw, "://") && scpLike.MatchString(raw):
		return address{}, fmt.Errorf("cannot read repository %q: write ssh://USER@HOST/PATH, or start a path with ./", withoutCredentials(raw))
	case !strings.Contains(raw, "://"):
		dir, err := filepath.Abs(raw)
		return address{dir: dir}, err
	}
	u, err := url.Parse(raw)
	if err != nil { // err may quote a password
		return address{}, fmt.Errorf("cannot read repository %q: it is not a valid URL", withoutCredentials(raw))
	}
	if u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return address{}, fmt.Errorf("cannot read repository %q: its URL has a query or a fragment; leave it out", withoutCredentials(raw))
	}
	if u.Scheme == "ssh" {
		return parseSSH(u, auth, withoutCredentials(raw))
	}
	auth = auth.or(u.User)
	u.User = nil
	switch u.Scheme {
	case "file":
		if u.Host != "" && u.Host != "localhost" {
			return address{}, fmt.Errorf("cannot read repository %q: a file URL names no host; write file:///path", withoutCredentials(raw))
		}
		if !filepath.IsAbs(u.Path) {
			return address{}, fmt.Errorf("cannot read repository %q: its path is not absolute; write file:///path", withoutCredentials(raw))
		}
		return address{dir: filepath.Clean(u.Path)}, nil
	case "http", "https":
		if u.Hostname() == "" || strings.Trim(u.Path, "/") == "" {
			return address{}, fmt.Errorf("cannot read repository %q: the URL names no host or no repository", withoutCredentials(raw))
		}
		if err := plain.Check(u); err != nil && auth.given() {
			return address{}, fmt.Errorf("%s: %w", u, err)
		}
		return address{url: u, auth: auth}, nil
	default:
		return address{}, fmt.Errorf("cannot read repository %q: %s is not supported; use https:// or ssh://", withoutCredentials(raw), u.Scheme)
	}
}

// withoutCredentials removes possible credentials from a URL that cannot be parsed: everything before an @ and after
// a question mark.
func withoutCredentials(raw string) string {
	raw, _, _ = strings.Cut(raw, "?")
	raw, _, _ = strings.Cut(raw, "#")
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		scheme, rest = "", raw
	} else {
		scheme += "://"
	}
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		rest = rest[i+1:]
	}
	return scheme + rest
}

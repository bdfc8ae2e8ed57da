package forge

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
)

// A Kind is the kind of API that a forge has.
type Kind string

// The kinds of forges. Forgejo is a Gitea for all that is asked of it here.
const (
	KindGitHub Kind = "github"
	KindGitea  Kind = "gitea"
)

// A Repository is where on a forge commits live.
type Repository struct {
	Kind  Kind   // empty where the host does not tell
	Base  string // of the forge, as "https://example.org" or "https://example.org/git"
	Owner string
	Name  string
}

// String is "owner/name".
func (r Repository) String() string { return r.Owner + "/" + r.Name }

// scp is the form "git@host:owner/name.git".
var scp = regexp.MustCompile(`^(?:[^@/\s]+@)?([^:/\s]+):([^/\s].*)$`)

// RepositoryOf finds a repository by the URL that it is cloned from: https, http, ssh
// or the short form of ssh. A forge that is cloned from over ssh is taken to answer on
// https of the same host; set Base where that is not so. Credentials in the URL are
// left behind.
func RepositoryOf(cloned string) (Repository, error) {
	cloned = strings.TrimSpace(cloned)
	if m := scp.FindStringSubmatch(cloned); m != nil && !strings.Contains(cloned, "://") {
		cloned = "ssh://" + m[1] + "/" + m[2]
	}
	u, err := url.Parse(cloned)
	if err != nil || u.Host == "" {
		// Its error repeats the URL, and with it what stands before the host.
		return Repository{}, fmt.Errorf("repository URL %q: want https://host/owner/name or git@host:owner/name", plain(cloned))
	}
	base := url.URL{Scheme: "https", Host: strings.ToLower(u.Host)}
	switch u.Scheme {
	case "https":
	case "http":
		base.Scheme = "http"
	case "ssh", "git", "git+ssh", "ssh+git":
		base.Host = hostOf(strings.ToLower(u.Hostname())) // the port is that of ssh
	default:
		return Repository{}, fmt.Errorf("repository URL %q: a %s URL is on no forge", plain(cloned), u.Scheme)
	}
	if base.Host == "www.github.com" || base.Host == "ssh.github.com" {
		base.Host = "github.com"
	}
	if kindOf(base.Hostname()) != "" {
		base.Scheme = "https" // no token goes to a public host in the clear
	}
	path := strings.Split(strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git"), "/")
	if len(path) < 2 {
		return Repository{}, fmt.Errorf("repository URL %q: its path has no owner and name", plain(cloned))
	}
	r := Repository{Kind: kindOf(base.Hostname()), Owner: path[len(path)-2], Name: path[len(path)-1]}
	if before := path[:len(path)-2]; len(before) > 0 {
		base.Path = "/" + strings.Join(before, "/")
	}
	r.Base = base.String()
	return r, r.check()
}

// hostOf puts the brackets back on an IPv6 address.
func hostOf(host string) string {
	if ip := net.ParseIP(host); ip != nil && strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// kindOf knows the public hosts. Others have to be told.
func kindOf(host string) Kind {
	switch {
	case host == "github.com", strings.HasSuffix(host, ".ghe.com"):
		return KindGitHub
	case host == "codeberg.org", host == "gitea.com":
		return KindGitea
	}
	return ""
}

var segment = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func (r Repository) check() error {
	for _, s := range []string{r.Owner, r.Name} {
		if !segment.MatchString(s) || s == "." || s == ".." {
			return fmt.Errorf("repository %q: %q is no name on a forge", plain(r.String()), plain(s))
		}
	}
	if u, err := url.Parse(r.Base); err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("repository %s: want its forge as https://host", r)
	}
	return nil
}

// api is where the REST API of the repository's forge is, with a slash at its end.
func (r Repository) api() string {
	base := strings.TrimSuffix(r.Base, "/")
	u, _ := url.Parse(base) // check has parsed it
	switch {
	case r.Kind == KindGitea:
		return base + "/"
	case kindOf(u.Hostname()) == KindGitHub:
		return u.Scheme + "://api." + u.Host + "/"
	}
	return base + "/api/v3/" // GitHub Enterprise Server
}

// originOf is scheme and host of a URL.
func originOf(of string) string {
	u, err := url.Parse(of)
	if err != nil {
		return "the forge"
	}
	return u.Scheme + "://" + u.Host
}

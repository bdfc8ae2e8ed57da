package forge

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// A Repository is a repository on a forge.
type Repository struct {
	Kind  Kind   // empty if the URL does not show it
	Base  string // URL of the forge, as "https://example.org" or "https://example.org/git"
	Owner string // may have several segments, as in "group/subgroup"
	Name  string
}

// String returns "owner/name".
func (r Repository) String() string { return r.Owner + "/" + r.Name }

// scp matches the form "git@host:owner/name.git".
var scp = regexp.MustCompile(`^(?:[^@/\s]+@)?([^:/\s]+):([^/\s].*)$`)

// RepositoryOf returns the repository for a clone URL: https, http, ssh or the short form of ssh. For ssh it assumes
// that the forge serves https on the same host; set Base otherwise. It drops credentials in the URL. An empty kind is
// derived from the URL if possible.
func RepositoryOf(cloned string, kind Kind) (Repository, error) {
	cloned = strings.TrimSpace(cloned)
	if m := scp.FindStringSubmatch(cloned); m != nil && !strings.Contains(cloned, "://") {
		cloned = "ssh://" + m[1] + "/" + m[2]
	}
	u, err := url.Parse(cloned)
	if err != nil || u.Host == "" {
		// the error quotes the URL, including any credentials before the host
		return Repository{}, fmt.Errorf("repository URL %q: want https://host/owner/name or git@host:owner/name", plain(cloned))
	}
	base, path := url.URL{Scheme: "https", Host: strings.ToLower(u.Host)}, segments(u.Path)
	switch u.Scheme {
	case "https":
	case "http":
		base.Scheme = "http"
	case "ssh", "git", "git+ssh", "ssh+git":
		base.Host = hostOf(strings.ToLower(u.Hostname())) // the port is for ssh
	default:
		return Repository{}, fmt.Errorf("repository URL %q: a %s URL is on no forge", plain(cloned), u.Scheme)
	}
	if alias, ok := aliasOf(base.Host); ok {
		base.Host = alias.host
		if alias.prefix != "" && path[0] == alias.prefix {
			path = path[1:]
		}
	}
	r, err := repositoryAt(base, path, kind)
	if err != nil {
		return Repository{}, fmt.Errorf("repository URL %q: %w", plain(cloned), err)
	}
	return r, nil
}

// RepositoryAt returns the repository with a path such as "owner/name" on the forge at an http(s) URL.
func RepositoryAt(base, path string, kind Kind) (Repository, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return Repository{}, fmt.Errorf("URL of a forge %q: want https://host", plain(base))
	}
	on := url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host), Path: strings.TrimRight(u.Path, "/")}
	if alias, ok := aliasOf(on.Host); ok {
		on.Host = alias.host
	}
	r, err := repositoryAt(on, segments(path), kind)
	if err != nil {
		return Repository{}, fmt.Errorf("repository %q on %s: %w", plain(path), originOf(on.String()), err)
	}
	return r, nil
}

func segments(path string) []string {
	return strings.Split(strings.TrimSuffix(strings.Trim(path, "/"), ".git"), "/")
}

// repositoryAt splits a path into the part of the forge, the owner and the name.
func repositoryAt(base url.URL, path []string, kind Kind) (Repository, error) {
	if publicKind(base.Hostname()) != "" {
		base.Scheme = "https" // no token is sent to a public host without TLS
	}
	n := len(path)
	if n < 2 {
		return Repository{}, errors.New("its path has no owner and name")
	}
	kind = cmp.Or(kind, publicKind(base.Hostname()), suggestedKind(base.Hostname(), path))
	below, owner, name := path[:n-2], path[n-2:n-1], path[n-1]
	if f := kind.forge(); f.split != nil {
		below, owner = f.split(&base, path)
	}
	if len(below) > 0 {
		base.Path += "/" + strings.Join(below, "/")
	}
	r := Repository{Kind: kind, Base: base.String(), Owner: strings.Join(owner, "/"), Name: name}
	return r, r.check()
}

// hostOf adds the brackets of an IPv6 address again.
func hostOf(host string) string {
	if ip := net.ParseIP(host); ip != nil && strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

func aliasOf(host string) (alias, bool) {
	for _, f := range forges {
		if a, ok := f.aliases[host]; ok {
			return a, true
		}
	}
	return alias{}, false
}

// publicKind returns the kind of forge whose public service is at a host, or "".
func publicKind(host string) Kind {
	for _, f := range forges {
		if f.public != nil && f.public(host) {
			return f.Kind
		}
	}
	return ""
}

// suggestedKind returns the kind of forge that the host name or the path suggests, or "".
func suggestedKind(host string, path []string) Kind {
	first, _, _ := strings.Cut(host, ".")
	for _, f := range forges {
		if slices.Contains(f.labels, first) {
			return f.Kind
		}
	}
	for _, f := range forges {
		if f.suggests != nil && f.suggests(path) {
			return f.Kind
		}
	}
	return ""
}

// segment matches what most forges allow as an owner or a name.
var segment = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func (r Repository) check() error {
	f := r.Kind.forge()
	allowed, names := cmp.Or(f.segment, segment), []string{r.Owner, r.Name}
	if f.nested {
		names = strings.Split(r.String(), "/")
	}
	for _, s := range names {
		if !allowed.MatchString(s) || s == "." || s == ".." {
			return fmt.Errorf("repository %q: %q is not a name on a forge", plain(r.String()), plain(s))
		}
	}
	if u, err := url.Parse(r.Base); err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("repository %s: want its forge as https://host", r)
	}
	return nil
}

// api returns the URL of the REST API of the repository's forge. It ends in a slash.
func (r Repository) api() string {
	f := r.Kind.forge()
	base := strings.TrimSuffix(r.Base, "/")
	u, _ := url.Parse(base) // check has parsed it
	if f.publicAPI != "" && f.public(u.Hostname()) {
		return u.Scheme + "://api." + u.Host + f.publicAPI
	}
	return base + f.apiPath
}

// page returns the URL of the repository's web page.
func (r Repository) page() string {
	base := strings.TrimSuffix(r.Base, "/") + "/"
	if f := r.Kind.forge(); f.page != nil {
		return f.page(base, r)
	}
	return base + r.String()
}

// escaped returns a path with all characters escaped that a URL cannot contain.
func escaped(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// originOf returns the scheme and host of a URL.
func originOf(of string) string {
	u, err := url.Parse(of)
	if err != nil {
		return "the forge"
	}
	return u.Scheme + "://" + u.Host
}

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

// A Kind is the kind of API that a forge has.
type Kind string

// The kinds of forges. Forgejo is a Gitea for all that is asked of it here.
const (
	KindGitHub              Kind = "github"
	KindGitLab              Kind = "gitlab"
	KindGitea               Kind = "gitea"
	KindBitbucket           Kind = "bitbucket" // Cloud
	KindBitbucketDataCenter Kind = "bitbucket-data-center"
	KindAzureDevOps         Kind = "azure-devops" // Services, and Server
)

func (k Kind) isBitbucket() bool { return k == KindBitbucket || k == KindBitbucketDataCenter }

// A Repository is where on a forge commits live.
type Repository struct {
	Kind  Kind   // empty where the URL does not tell
	Base  string // of the forge, as "https://example.org" or "https://example.org/git"
	Owner string // "group/subgroup" on GitLab, "organisation/project" on Azure DevOps
	Name  string
}

// String is "owner/name".
func (r Repository) String() string { return r.Owner + "/" + r.Name }

// scp is the form "git@host:owner/name.git".
var scp = regexp.MustCompile(`^(?:[^@/\s]+@)?([^:/\s]+):([^/\s].*)$`)

// aliases are hosts that public forges have for browsers and for ssh.
var aliases = map[string]string{
	"www.github.com": "github.com", "ssh.github.com": "github.com",
	"altssh.gitlab.com": "gitlab.com", "altssh.bitbucket.org": "bitbucket.org",
	"ssh.dev.azure.com": "dev.azure.com", "vs-ssh.visualstudio.com": "dev.azure.com",
}

// RepositoryOf finds a repository by the URL that it is cloned from: https, http, ssh
// or the short form of ssh. A forge that is cloned from over ssh is taken to answer on
// https of the same host; set Base where that is not so. Credentials in the URL are
// left behind. A kind that is empty is told by the URL, where it can be.
func RepositoryOf(cloned string, kind Kind) (Repository, error) {
	cloned = strings.TrimSpace(cloned)
	if m := scp.FindStringSubmatch(cloned); m != nil && !strings.Contains(cloned, "://") {
		cloned = "ssh://" + m[1] + "/" + m[2]
	}
	u, err := url.Parse(cloned)
	if err != nil || u.Host == "" {
		// Its error repeats the URL, and with it what stands before the host.
		return Repository{}, fmt.Errorf("repository URL %q: want https://host/owner/name or git@host:owner/name", plain(cloned))
	}
	base, path := url.URL{Scheme: "https", Host: strings.ToLower(u.Host)}, segments(u.Path)
	switch u.Scheme {
	case "https":
	case "http":
		base.Scheme = "http"
	case "ssh", "git", "git+ssh", "ssh+git":
		base.Host = hostOf(strings.ToLower(u.Hostname())) // the port is that of ssh
	default:
		return Repository{}, fmt.Errorf("repository URL %q: a %s URL is on no forge", plain(cloned), u.Scheme)
	}
	if alias, ok := aliases[base.Host]; ok {
		base.Host = alias
		if alias == "dev.azure.com" && path[0] == "v3" { // of its ssh
			path = path[1:]
		}
	}
	r, err := place(base, path, kind)
	if err != nil {
		return Repository{}, fmt.Errorf("repository URL %q: %w", plain(cloned), err)
	}
	return r, nil
}

// RepositoryAt is the repository of a path, as "owner/name", on the forge at an http(s) URL.
func RepositoryAt(base, path string, kind Kind) (Repository, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return Repository{}, fmt.Errorf("URL of a forge %q: want https://host", plain(base))
	}
	on := url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host), Path: strings.TrimRight(u.Path, "/")}
	if alias, ok := aliases[on.Host]; ok {
		on.Host = alias
	}
	r, err := place(on, segments(path), kind)
	if err != nil {
		return Repository{}, fmt.Errorf("repository %q on %s: %w", plain(path), originOf(on.String()), err)
	}
	return r, nil
}

func segments(path string) []string {
	return strings.Split(strings.TrimSuffix(strings.Trim(path, "/"), ".git"), "/")
}

// place tells what of a path is the forge's, what the owner's and what the name.
func place(base url.URL, path []string, kind Kind) (Repository, error) {
	if kindOf(base.Hostname()) != "" {
		base.Scheme = "https" // no token goes to a public host in the clear
	}
	n := len(path)
	if n < 2 {
		return Repository{}, errors.New("its path has no owner and name")
	}
	kind = cmp.Or(kind, kindOf(base.Hostname()), guess(base.Hostname(), path))
	below, owner, name := path[:n-2], path[n-2:n-1], path[n-1]
	switch {
	case kind == KindGitLab: // groups hold groups
		below, owner = nil, path[:n-1]
	case kind == KindBitbucketDataCenter && n > 2 && path[n-3] == "scm":
		below = path[:n-3]
	case kind == KindBitbucketDataCenter && n > 3 && path[n-4] == "projects" && path[n-2] == "repos":
		below, owner = path[:n-4], path[n-3:n-2]
	case kind == KindAzureDevOps: // collections and projects
		if base.Path != "" {
			path = append(segments(base.Path), path...)
			base.Path = ""
		}
		below, owner = nil, path[:len(path)-1]
		if last := len(owner) - 1; owner[last] == "_git" {
			owner = owner[:last]
		}
		if project := len(owner) - 1; project < 0 || project < 1 && base.Host == "dev.azure.com" {
			owner = append(slices.Clip(owner), name) // the repository that a project has from its start
		}
	}
	if len(below) > 0 {
		base.Path += "/" + strings.Join(below, "/")
	}
	r := Repository{Kind: kind, Base: base.String(), Owner: strings.Join(owner, "/"), Name: name}
	return r, r.check()
}

// hostOf puts the brackets back on an IPv6 address.
func hostOf(host string) string {
	if ip := net.ParseIP(host); ip != nil && strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// kindOf knows the public hosts.
func kindOf(host string) Kind {
	switch {
	case host == "github.com", strings.HasSuffix(host, ".ghe.com"):
		return KindGitHub
	case host == "gitlab.com":
		return KindGitLab
	case host == "codeberg.org", host == "gitea.com":
		return KindGitea
	case host == "bitbucket.org":
		return KindBitbucket
	case host == "dev.azure.com", strings.HasSuffix(host, ".visualstudio.com"):
		return KindAzureDevOps
	}
	return ""
}

// guess knows hosts that are named for what they are, and paths that one forge alone has.
// Others have to be told.
func guess(host string, path []string) Kind {
	n := len(path)
	switch first, _, _ := strings.Cut(host, "."); {
	case first == "gitlab":
		return KindGitLab
	case first == "gitea", first == "forgejo":
		return KindGitea
	case path[n-2] == "_git":
		return KindAzureDevOps
	case n > 2 && path[n-3] == "scm":
		return KindBitbucketDataCenter
	}
	return ""
}

var (
	segment = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	// personal is a segment, or the project of a user of Bitbucket Data Center.
	personal = regexp.MustCompile(`^~?[A-Za-z0-9._-]+$`)
	// spaced is what Azure DevOps allows of the names of projects and repositories, or less.
	spaced = regexp.MustCompile(`^[\pL\pN._()&-][\pL\pN._()& -]*$`)
)

func (r Repository) check() error {
	allowed, names := segment, []string{r.Owner, r.Name}
	switch r.Kind {
	case KindGitLab:
		names = strings.Split(r.String(), "/")
	case KindBitbucketDataCenter:
		allowed = personal
	case KindAzureDevOps:
		allowed, names = spaced, strings.Split(r.String(), "/")
	}
	for _, s := range names {
		if !allowed.MatchString(s) || s == "." || s == ".." {
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
	public := r.Kind != "" && kindOf(u.Hostname()) == r.Kind
	switch r.Kind {
	case KindGitea, KindAzureDevOps:
		return base + "/"
	case KindGitLab:
		return base + "/api/v4/"
	case KindBitbucketDataCenter:
		return base + "/rest/"
	case KindBitbucket:
		if public {
			return u.Scheme + "://api." + u.Host + "/2.0/"
		}
		return base + "/2.0/"
	}
	if public {
		return u.Scheme + "://api." + u.Host + "/"
	}
	return base + "/api/v3/" // GitHub Enterprise Server
}

// page is where a browser finds the repository.
func (r Repository) page() string {
	base := strings.TrimSuffix(r.Base, "/") + "/"
	switch r.Kind {
	case KindBitbucketDataCenter:
		return base + "projects/" + r.Owner + "/repos/" + r.Name
	case KindAzureDevOps:
		return base + escaped(r.Owner) + "/_git/" + escaped(r.Name)
	}
	return base + r.String()
}

// escaped is a path with what a URL cannot have.
func escaped(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// originOf is scheme and host of a URL.
func originOf(of string) string {
	u, err := url.Parse(of)
	if err != nil {
		return "the forge"
	}
	return u.Scheme + "://" + u.Host
}

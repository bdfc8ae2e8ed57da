package remote

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"headgate.dev/headgate/reconcile/network"
)

// An Address is the parsed URL of a repository. It prints without credentials.
type Address struct {
	Dir  string   // of a local repository; "" for one on a server
	url  *url.URL // of a repository on a server, without credentials
	auth Auth
}

func (a Address) String() string {
	if a.url == nil {
		return a.Dir
	}
	return a.url.String()
}

// Key returns the directory name for the clone of a repository. No URL can choose the name.
func (a Address) Key() string {
	sum := sha256.Sum256([]byte(strings.TrimRight(a.url.String(), "/")))
	return hex.EncodeToString(sum[:16])
}

// Hash returns a hash of the credentials, for a caller that must not keep them.
func (a Address) Hash() [sha256.Size]byte { return a.auth.hash() }

// Describe returns an error about the repository. It has no credentials, and names where they are if it is about them.
func (a Address) Describe(err error) error {
	auth := a.auth
	if a.url != nil && a.url.Scheme == "ssh" {
		auth.Username = "" // the name of a user is no secret there
	}
	return auth.redact(fmt.Errorf("%s: %w%s", a, err, a.auth.where(err)))
}

var (
	helper  = regexp.MustCompile(`^[A-Za-z0-9+.-]+::`)
	scpLike = regexp.MustCompile(`^[^/]+:`)
)

// IsSCP reports whether a text has the form HOST:PATH, which git also accepts.
func IsSCP(raw string) bool { return !strings.Contains(raw, "://") && scpLike.MatchString(raw) }

// unsupported lists texts that git accepts, and that could run a program or mean something else than they seem to.
var unsupported = []struct {
	is  func(raw string) bool
	why string
}{
	{func(raw string) bool { return strings.HasPrefix(raw, "-") }, "it looks like an option; start a path with ./"},
	{helper.MatchString, "remote helpers are not run; use https:// or ssh://"},
	{IsSCP, "write ssh://USER@HOST/PATH, or start a path with ./"},
}

// schemes holds the function that reads the URLs of each supported scheme.
var schemes = map[string]func(*url.URL, Auth, network.Plain) (Address, error){
	"file": ofFile, "http": ofWeb, "https": ofWeb, "ssh": ofSSH,
}

// Parse parses the URL of a repository. It refuses URLs that are not supported, could run a program or leak credentials.
func Parse(raw string, auth Auth, plain network.Plain) (Address, error) {
	switch {
	case raw == "":
		return Address{}, errors.New("cannot read a repository: its URL is empty")
	case strings.ContainsAny(raw, "\x00\r\n"):
		return Address{}, errors.New("cannot read a repository: its URL has a control character")
	}
	at, err := parse(raw, auth, plain)
	if err != nil {
		return Address{}, fmt.Errorf("cannot read repository %q: %w", WithoutCredentials(raw), err)
	}
	return at, nil
}

func parse(raw string, auth Auth, plain network.Plain) (Address, error) {
	for _, form := range unsupported {
		if form.is(raw) {
			return Address{}, errors.New(form.why)
		}
	}
	if !strings.Contains(raw, "://") {
		dir, err := filepath.Abs(raw)
		return Address{Dir: dir}, err
	}
	u, err := url.Parse(raw)
	if err != nil { // err may quote a password
		return Address{}, errors.New("it is not a valid URL")
	}
	if u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return Address{}, errors.New("its URL has a query or a fragment; leave it out")
	}
	read := schemes[u.Scheme]
	if read == nil {
		return Address{}, fmt.Errorf("%s is not supported; use https:// or ssh://", u.Scheme)
	}
	return read(u, auth, plain)
}

func ofFile(u *url.URL, _ Auth, _ network.Plain) (Address, error) {
	if u.Host != "" && u.Host != "localhost" {
		return Address{}, errors.New("a file URL names no host; write file:///path")
	}
	if !filepath.IsAbs(u.Path) {
		return Address{}, errors.New("its path is not absolute; write file:///path")
	}
	return Address{Dir: filepath.Clean(u.Path)}, nil
}

func ofWeb(u *url.URL, auth Auth, plain network.Plain) (Address, error) {
	auth = auth.or(u.User)
	u.User = nil
	if err := complete(u); err != nil {
		return Address{}, err
	}
	if err := plain.Check(u); err != nil && auth.given() {
		return Address{}, err
	}
	return Address{url: u, auth: auth}, nil
}

// ofSSH reads the URL of a repository on an ssh server. No program of ssh runs, but others may copy the URL to one.
func ofSSH(u *url.URL, auth Auth, _ network.Plain) (Address, error) {
	auth.Username = cmp.Or(u.User.Username(), "git")
	if _, secret := u.User.Password(); secret {
		return Address{}, errors.New("its URL holds a password, which ssh does not use; leave it out")
	}
	u.User = nil
	if err := complete(u); err != nil {
		return Address{}, err
	}
	if strings.HasPrefix(u.Hostname(), "-") || strings.HasPrefix(auth.Username, "-") {
		return Address{}, errors.New("its host or user looks like an option")
	}
	if strings.ContainsFunc(u.Path+auth.Username, unicode.IsControl) {
		return Address{}, errors.New("its URL has a control character")
	}
	return Address{url: u, auth: auth}, nil
}

// complete returns an error if a URL lacks a part.
func complete(u *url.URL) error {
	if u.Hostname() == "" || strings.Trim(u.Path, "/") == "" {
		return errors.New("the URL names no host or no repository")
	}
	return nil
}

// WithoutCredentials removes possible credentials from a URL that cannot be parsed: everything before an @ and after
// a question mark.
func WithoutCredentials(raw string) string {
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

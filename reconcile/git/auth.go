package git

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport/http"
)

// Auth holds the credentials for a repository. A token is a Password; most forges accept any Username with it. Auth prints without
// its values.
type Auth struct {
	Username string `json:"-"`
	Password string `json:"-"` // over ssh, the passphrase of Identity

	Identity   string `json:"-"` // a private key for ssh, in PEM
	KnownHosts string `json:"-"` // lines of a known_hosts file, without which no ssh server is trusted
}

// given reports whether there is something to send to a server over http.
func (a Auth) given() bool { return a.Username != "" || a.Password != "" }

// Format prints only whether there are credentials, with any verb.
func (a Auth) Format(s fmt.State, _ rune) {
	if a == (Auth{}) {
		_, _ = io.WriteString(s, "no credentials")
		return
	}
	_, _ = io.WriteString(s, "credentials")
}

// or returns a, or the credentials in a URL if a is empty.
func (a Auth) or(user *url.Userinfo) Auth {
	if a.given() || user == nil {
		return a
	}
	a.Username = user.Username()
	a.Password, _ = user.Password()
	return a
}

func (a Auth) basic() *http.BasicAuth {
	return &http.BasicAuth{Username: cmp.Or(a.Username, "x-access-token"), Password: a.Password}
}

// redact removes credentials from an error, including those that a library or a server put there.
func (a Auth) redact(err error) error {
	secret := a.Password
	if secret == "" {
		secret = a.Username // only a token, as in https://token@host
	}
	if secret == "" {
		return err
	}
	b := a.basic()
	clean := strings.NewReplacer(
		base64.StdEncoding.EncodeToString([]byte(b.Username+":"+b.Password)), "…",
		url.QueryEscape(secret), "…", url.PathEscape(secret), "…", secret, "…",
	).Replace(err.Error())
	if clean == err.Error() {
		return err
	}
	return errors.New(clean)
}

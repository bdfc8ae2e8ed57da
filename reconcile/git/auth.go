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

// Auth is how a repository is opened over https. A token is a Password; its
// Username is what the forge wants, and most want nothing in particular. It
// prints without its values.
type Auth struct {
	Username string `json:"-"`
	Password string `json:"-"`
}

// Format prints whether there are credentials, with any verb.
func (a Auth) Format(s fmt.State, _ rune) {
	if a == (Auth{}) {
		_, _ = io.WriteString(s, "no credentials")
		return
	}
	_, _ = io.WriteString(s, "credentials")
}

// or returns a, or else what a URL contains.
func (a Auth) or(user *url.Userinfo) Auth {
	if a != (Auth{}) || user == nil {
		return a
	}
	password, _ := user.Password()
	return Auth{Username: user.Username(), Password: password}
}

func (a Auth) basic() *http.BasicAuth {
	return &http.BasicAuth{Username: cmp.Or(a.Username, "x-access-token"), Password: a.Password}
}

// redact removes credentials from an error, also if a library or a server put them there.
func (a Auth) redact(err error) error {
	secret := a.Password
	if secret == "" {
		secret = a.Username // a token alone, as in https://token@host
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

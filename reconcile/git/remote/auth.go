package remote

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
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

	CA          string `json:"-"` // certificates in PEM, which sign servers in addition to those of the system
	Certificate string `json:"-"` // a client certificate for https, in PEM
	Key         string `json:"-"` // of Certificate
	Proxy       string `json:"-"` // the URL of a proxy for https, with its credentials; "" for that of the environment

	From      string `json:"-"` // where all but Proxy was read, for messages, such as "the Secret team/repo"
	ProxyFrom string `json:"-"` // where Proxy was read
}

// secret reports whether a server gets something that others must not get.
func (a Auth) secret() bool { return a.given() || a.Certificate != "" }

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

// hash returns a hash of all credentials, wherever they are from.
func (a Auth) hash() [sha256.Size]byte {
	all, err := json.Marshal([]string{a.Username, a.Password, a.Identity, a.KnownHosts, a.CA, a.Certificate, a.Key, a.Proxy})
	if err != nil {
		panic(err) // strings are always encoded
	}
	return sha256.Sum256(all)
}

// where returns where the credential was read that an error is about, in parentheses; "" if the error is about none, or it is not known.
func (a Auth) where(err error) string {
	about, _ := errors.AsType[refusedError](err)
	from := map[part]string{ofCredentials: a.From, ofProxy: a.ProxyFrom}[about.of]
	if from == "" {
		return ""
	}
	return " (in " + from + ")"
}

// redact removes credentials from an error, including those that a library or a server put there.
func (a Auth) redact(err error) error {
	if proxy, invalid := a.proxy(); invalid == nil && proxy != nil && proxy.User != nil {
		err = Auth{}.or(proxy.User).redact(err)
	}
	secret := cmp.Or(a.Password, a.Username) // only a token, as in https://token@host
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

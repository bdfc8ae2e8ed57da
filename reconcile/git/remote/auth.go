package remote

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport/http"

	"headgate.dev/headgate/reconcile/network"
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
}

// secret reports whether a server gets something that others must not get.
func (a Auth) secret() bool { return a.given() || a.Certificate != "" }

// own returns a transport for a server that needs other settings than the rest; nil if it needs none.
func (a Auth) own() (*network.Own, error) {
	if a.CA == "" && a.Certificate == "" && a.Proxy == "" {
		return nil, nil
	}
	roots, err := a.roots()
	if err != nil {
		return nil, err
	}
	certificates, err := a.certificates()
	if err != nil {
		return nil, err
	}
	proxy, err := a.proxy()
	if err != nil {
		return nil, err
	}
	return network.With(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: certificates}, proxy), nil
}

// roots returns the certificates that sign servers; nil for those of the system only.
func (a Auth) roots() (*x509.CertPool, error) {
	if a.CA == "" {
		return nil, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil { // the system has none
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM([]byte(a.CA)) {
		return nil, refused("the CA holds no certificate in PEM")
	}
	return roots, nil
}

// certificates returns the client certificate, if there is one.
func (a Auth) certificates() ([]tls.Certificate, error) {
	if a.Certificate == "" {
		return nil, nil
	}
	pair, err := tls.X509KeyPair([]byte(a.Certificate), []byte(a.Key))
	if err != nil { // it may quote the key
		return nil, refused("the client certificate and its key cannot be read; they must be PEM, and belong together")
	}
	return []tls.Certificate{pair}, nil
}

// proxy parses the URL of the proxy; nil for none.
func (a Auth) proxy() (*url.URL, error) {
	if a.Proxy == "" {
		return nil, nil
	}
	u, err := url.Parse(a.Proxy) // the error quotes the password
	if err != nil || u.Hostname() == "" || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) {
		return nil, refused("the address of the proxy is no URL with http, https or socks5")
	}
	return u, nil
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

// hash returns a hash of all credentials.
func (a Auth) hash() [sha256.Size]byte {
	all, err := json.Marshal([]string{a.Username, a.Password, a.Identity, a.KnownHosts, a.CA, a.Certificate, a.Key, a.Proxy})
	if err != nil {
		panic(err) // strings are always encoded
	}
	return sha256.Sum256(all)
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

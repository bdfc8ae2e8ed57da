package target

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/git"
)

// The default keys of Secrets.
const (
	passwordKey = "password"
	usernameKey = "username"
	tokenKey    = "token"
	caKey       = "ca.crt"

	certificateKey    = "tls.crt"
	certificateKeyKey = "tls.key"

	privateKeyKey = "privateKey"

	identityKey   = "identity"
	knownHostsKey = "known_hosts"
)

// A secret is a reference to a Secret in a Sync.
type secret struct {
	field     string // the field of the Sync
	namespace string
	ref       v1alpha1.SecretRef
	read      func(ctx context.Context, name string) (map[string][]byte, error)
	tell      func(value string) // receives every value before it is used; may be nil
}

// follow returns the value of a key, and all keys. Its errors name the field, but contain no value.
func (s secret) follow(ctx context.Context, key string) (string, map[string][]byte, error) {
	if s.ref.Key != "" {
		key = s.ref.Key
	}
	data, err := s.read(ctx, s.ref.Name)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", s.field, err)
	}
	value := strings.TrimSpace(string(data[key]))
	if value == "" {
		return "", data, s.lacks(key, data)
	}
	return value, data, nil
}

func (s secret) lacks(key string, data map[string][]byte) error {
	return fmt.Errorf("%s: the Secret %s/%s has nothing under the key %q; it has %s", s.field, s.namespace, s.ref.Name, key, keys(data))
}

func keys(data map[string][]byte) string {
	if len(data) == 0 {
		return "no keys"
	}
	return strings.Join(slices.Sorted(maps.Keys(data)), ", ")
}

func (s secret) hide(value string) string {
	if s.tell != nil && value != "" {
		s.tell(value)
	}
	return value
}

// credentials returns the credentials of a repository.
func (s secret) credentials(ctx context.Context) (git.Auth, error) {
	password, data, err := s.follow(ctx, passwordKey)
	a := git.Auth{
		Username: strings.TrimSpace(string(data[usernameKey])), Password: s.hide(password),
		CA: string(data[caKey]), Certificate: string(data[certificateKey]), From: s.name(),
	}
	if err != nil && (s.ref.Key != "" || a.CA == "" && a.Certificate == "") { // these need no password
		return git.Auth{}, err
	}
	if a.Certificate == "" {
		return a, nil
	}
	if a.Key = s.hide(strings.TrimSpace(string(data[certificateKeyKey]))); a.Key == "" {
		return git.Auth{}, s.lacks(certificateKeyKey, data)
	}
	return a, nil
}

// name returns the Secret for a message.
func (s secret) name() string { return fmt.Sprintf("the Secret %s/%s", s.namespace, s.ref.Name) }

// proxy returns the URL of a proxy, with its credentials.
func (s secret) proxy(ctx context.Context) (string, error) {
	address, data, err := s.follow(ctx, "address")
	if err != nil {
		return "", err
	}
	u, err := url.Parse(address)
	if err != nil || u.User != nil { // the error quotes the address
		return "", fmt.Errorf("%s: the Secret %s/%s has no plain URL under the key %q; put the credentials of the proxy into username and password", s.field, s.namespace, s.ref.Name, "address")
	}
	user, password := strings.TrimSpace(string(data[usernameKey])), strings.TrimSpace(string(data[passwordKey]))
	if user != "" || password != "" {
		u.User = url.UserPassword(user, s.hide(password))
	}
	return u.String(), nil
}

// through adds a proxy to credentials.
func (s *secret) through(credentials func(context.Context) (git.Auth, error), otherwise git.Auth) func(context.Context) (git.Auth, error) {
	if s == nil {
		return credentials
	}
	return func(ctx context.Context) (a git.Auth, err error) {
		if a = otherwise; credentials != nil {
			a, err = credentials(ctx)
		}
		if err == nil {
			a.Proxy, err = s.proxy(ctx)
			a.ProxyFrom = s.name()
		}
		return a, err
	}
}

// deployKey returns the credentials of a repository over ssh.
func (s secret) deployKey(ctx context.Context) (git.Auth, error) {
	identity, data, err := s.follow(ctx, identityKey)
	if err != nil {
		return git.Auth{}, err
	}
	known := string(data[knownHostsKey])
	if strings.TrimSpace(known) == "" {
		return git.Auth{}, s.lacks(knownHostsKey, data)
	}
	return git.Auth{Identity: s.hide(identity), KnownHosts: known, Password: s.hide(strings.TrimSpace(string(data[passwordKey]))), From: s.name()}, nil
}

// token returns the token of a forge, or the secret of a webhook.
func (s secret) token(ctx context.Context) (string, error) {
	token, _, err := s.follow(ctx, tokenKey)
	return s.hide(token), err
}

// keys returns the public keys under the key of the reference or, without one, under all keys.
func (s secret) keys(ctx context.Context) (git.Keys, error) {
	data, err := s.read(ctx, s.ref.Name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.field, err)
	}
	var all git.Keys
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if s.ref.Key == "" || s.ref.Key == key {
			all = append(all, string(data[key]))
		}
	}
	switch {
	case len(data) == 0:
		return nil, fmt.Errorf("%s: the Secret %s/%s has no keys; add public keys to it", s.field, s.namespace, s.ref.Name)
	case len(all) == 0:
		return nil, fmt.Errorf("%s: the Secret %s/%s has nothing under the key %q; it has %s", s.field, s.namespace, s.ref.Name, s.ref.Key, keys(data))
	}
	if err := all.Validate(); err != nil {
		return nil, fmt.Errorf("%s: the Secret %s/%s: %w", s.field, s.namespace, s.ref.Name, err)
	}
	return all, nil
}

const (
	secretAge  = 30 * time.Second // how long a value is cached
	secretTime = 5 * time.Second  // time limit for reading
)

// cached returns a function that reads a secret at most once per secretAge. Any request from outside needs the secret, and must not
// cause a request to the API server each time. trouble receives errors of reading.
func cached(ask func(context.Context) (string, error), trouble func(error)) func(context.Context) (string, error) {
	var (
		mu    sync.Mutex
		asked time.Time
		value string
		err   error
	)
	return func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if !asked.IsZero() && time.Since(asked) < secretAge {
			return value, err
		}
		// A client that cancels its request must not make other requests fail.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), secretTime)
		defer cancel()
		value, err = ask(ctx)
		asked = time.Now()
		if err != nil {
			trouble(err)
		}
		return value, err
	}
}

// ca returns a bundle of certificates, and refuses anything else. The bundle is written to CRDs, which are public, and a Secret
// with certificates often also has a private key.
func (s secret) ca(ctx context.Context) ([]byte, error) {
	bundle, _, err := s.follow(ctx, caKey)
	if err != nil {
		return nil, err
	}
	if err := certificates([]byte(bundle)); err != nil {
		return nil, fmt.Errorf("%s: the Secret %s/%s: %w", s.field, s.namespace, s.ref.Name, err)
	}
	return []byte(bundle + "\n"), nil
}

// certificates returns an error if a bundle holds anything but certificates.
func certificates(bundle []byte) error {
	for n := 0; ; n++ {
		block, rest := pem.Decode(bundle)
		switch {
		case block == nil && len(strings.TrimSpace(string(bundle))) > 0, block == nil && n == 0:
			return errors.New("the value is not a list of PEM certificates")
		case block == nil:
			return nil
		case block.Type != "CERTIFICATE":
			return errors.New("the value contains more than certificates; remove everything that is secret")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("certificate %d under the key cannot be read", n+1)
		}
		bundle = rest
	}
}

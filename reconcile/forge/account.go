package forge

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"headgate.dev/headgate/reconcile/network"
)

// An Account is access to a repository on a forge: the repository and how to get a token for it.
type Account struct {
	Repository Repository
	// Token returns the current token. Account calls it before every request, because a token may change: its file is
	// rotated, or it belongs to the installation of an App.
	Token func(ctx context.Context) (string, error)
	// Transport is network.Default if nil.
	Transport http.RoundTripper
	// Plain lists the hosts that may get the token without TLS.
	Plain network.Plain
}

// Token returns a function that always returns the same token.
func Token(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

// Poster returns a Poster for the account. It remembers what it posted, and lists the statuses of a commit before it
// posts the first one. So it posts nothing twice, even after a restart. It is safe for concurrent use, but callers
// must post the statuses of one context one after another.
func (a Account) Poster() (Record, error) {
	of, t, err := a.open()
	if err != nil {
		return nil, err
	}
	return &poster{statusAPI: of, transport: t}, nil
}

// Pulls returns the account's pull requests.
func (a Account) Pulls() (*Pulls, error) {
	of, t, err := a.open()
	if err != nil {
		return nil, err
	}
	return &Pulls{pullAPI: of, transport: t, forge: a.Repository.Kind.forge(), at: a.Repository}, nil
}

func (a Account) open() (client, *transport, error) {
	if err := a.Repository.check(); err != nil {
		return nil, nil, err
	}
	if a.Token == nil {
		return nil, nil, fmt.Errorf("the forge of %s needs a token", a.Repository)
	}
	f := a.Repository.Kind.forge()
	if f.open == nil {
		return nil, nil, fmt.Errorf("repository %s: the kind of forge at %s is not known", a.Repository, a.Repository.Base)
	}
	api := a.Repository.api()
	if err := checkTLS(a.Plain, api); err != nil {
		return nil, nil, fmt.Errorf("repository %s: %w", a.Repository, err)
	}
	t := &transport{next: bounded{cmp.Or(a.Transport, network.Default)}, header: f.header, origin: originOf(api), fetch: a.Token}
	of, err := f.open(a.Repository, api, &http.Client{Transport: t, CheckRedirect: sameHost})
	return of, t, err
}

// checkTLS returns an error if tokens for an API would cross the network without TLS.
func checkTLS(plain network.Plain, api string) error {
	u, err := url.Parse(api)
	if err != nil {
		return err
	}
	return plain.Check(u)
}

// basic returns the Authorization header for a user name and a password.
func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// An App is an installation of an app on a forge.
type App struct {
	ID, Installation int64
	// Key returns the current private key, in PEM. App calls it before it creates a token, because a key may change.
	Key func(ctx context.Context) (string, error)
	// Plain lists the hosts that may get the App's tokens without TLS.
	Plain network.Plain
}

// Token returns the function that an Account of a repository needs to get the App's tokens. It is an error if the
// forge has no Apps. A nil transport means network.Default.
func (a App) Token(of Repository, transport http.RoundTripper) (func(context.Context) (string, error), error) {
	f := of.Kind.forge()
	if f.appToken == nil {
		return nil, fmt.Errorf("%s has no Apps; use tokenFrom", of.Base)
	}
	if err := checkTLS(a.Plain, of.api()); err != nil {
		return nil, err
	}
	return f.appToken(a, of, of.api(), transport), nil
}

// AppUser returns the user name that Git sends with the token of an App.
func (r Repository) AppUser() string { return r.Kind.forge().appUser }

// A transport adds the token to requests, and sends them to one host only.
type transport struct {
	next   http.RoundTripper
	header func(token string) string
	origin string // scheme://host that the token is for
	fetch  func(context.Context) (string, error)

	mu   sync.Mutex
	last []string // the last token and everything it can be derived from; hide replaces them
}

// maxAnswer is the maximum size of an answer. A page of statuses has at most a tenth of it.
const maxAnswer = 8 << 20

// token returns the current token. Its error is permanent if the text cannot be a token.
func (t *transport) token(ctx context.Context) (string, error) {
	token, err := t.fetch(ctx)
	if err != nil {
		return "", &Later{Err: fmt.Errorf("cannot get the token of the forge: %w", err)}
	}
	token = strings.TrimSpace(token)
	if token == "" {
		return "", network.Errorf("the token of the forge is empty")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", network.Errorf("the token of the forge has characters that no token has")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, sent, _ := strings.Cut(t.header(token), " ")
	t.last = []string{token, sent}
	if _, password, ok := strings.Cut(token, ":"); ok && len(password) >= 8 {
		t.last = append(t.last, password)
	}
	return token, nil
}

// hide replaces the token in a text.
func (t *transport) hide(s string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, secret := range t.last {
		s = strings.ReplaceAll(s, secret, "***")
	}
	return s
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if originOf(r.URL.String()) != t.origin {
		return nil, network.Errorf("refusing to leave %s", t.origin)
	}
	token, err := t.token(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", t.header(token))
	return t.next.RoundTrip(r)
}

// bounded limits the size of answers.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	return resp, nil
}

// sameHost follows a redirect only within the host. It does not follow a redirect that would turn a POST into a GET:
// the request would only read, but look like a successful write.
func sameHost(to *http.Request, via []*http.Request) error {
	from := via[0]
	if originOf(to.URL.String()) != originOf(from.URL.String()) || to.Method != from.Method || len(via) > 5 {
		return http.ErrUseLastResponse
	}
	return nil
}

// redacted returns an error whose text does not contain the token.
func (t *transport) redacted(err error) error {
	if later, ok := errors.AsType[*Later](err); ok {
		return &Later{After: later.After, Err: hidden{t.hide(err.Error()), later.Err}}
	}
	if _, refused := errors.AsType[*Refusal](err); refused {
		return &Refusal{errors.New(t.hide(err.Error()))}
	}
	return errors.New(t.hide(err.Error()))
}

// hidden is an error whose text contains no token. errors.Is and errors.As still find its cause.
type hidden struct {
	text string
	err  error
}

func (h hidden) Error() string        { return h.text }
func (h hidden) Is(target error) bool { return errors.Is(h.err, target) }

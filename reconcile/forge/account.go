package forge

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// An Account is who posts statuses, and where.
type Account struct {
	Repository Repository
	// Token is asked before every request, so that it may change: a file that is
	// rotated, the installation of a GitHub App.
	Token func(ctx context.Context) (string, error)
	// Transport is http.DefaultTransport if nil.
	Transport http.RoundTripper
}

// Token is a token that stays the same.
func Token(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

// Poster is the account's Poster. It remembers what it posted and lists the statuses of
// a commit before the first, so that nothing is said twice, also after a restart. It is
// safe for concurrent use; statuses of one context have to come one after another.
func (a Account) Poster() (Record, error) {
	of, c, err := a.open()
	if err != nil {
		return nil, err
	}
	return &teller{board: of, courier: c}, nil
}

// Pulls are the account's pull requests.
func (a Account) Pulls() (*Pulls, error) {
	of, c, err := a.open()
	if err != nil {
		return nil, err
	}
	return &Pulls{desk: of, courier: c, kind: a.Repository.Kind}, nil
}

// A forge is all that is asked of one.
type forge interface {
	board
	desk
}

func (a Account) open() (forge, *courier, error) {
	if err := a.Repository.check(); err != nil {
		return nil, nil, err
	}
	if a.Token == nil {
		return nil, nil, fmt.Errorf("the forge of %s needs a token", a.Repository)
	}
	api := a.Repository.api()
	c := &courier{next: bounded{cmp.Or(a.Transport, http.DefaultTransport)}, kind: a.Repository.Kind, origin: originOf(api), fetch: a.Token}
	client := &http.Client{Transport: c, CheckRedirect: stay}
	switch a.Repository.Kind {
	case KindGitHub:
		g, err := newGitHub(a.Repository, api, client)
		return g, c, err
	case KindGitea:
		return gitea{at: a.Repository, api: api, client: client}, c, nil
	case KindGitLab:
		g, err := newGitLab(a.Repository, client)
		return g, c, err
	case KindBitbucket:
		return bitbucket{rest{name: "Bitbucket", at: a.Repository, client: client}}, c, nil
	case KindBitbucketDataCenter:
		return dataCenter{rest{name: "Bitbucket Data Center", at: a.Repository, client: client}}, c, nil
	case KindAzureDevOps:
		return azure{rest{name: "Azure DevOps", at: a.Repository, client: client}}, c, nil
	}
	return nil, nil, fmt.Errorf("repository %s: cannot tell what forge %s is", a.Repository, a.Repository.Base)
}

// authorization is the header that a token of a forge goes in.
func (k Kind) authorization(token string) string {
	basic := func(userinfo string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(userinfo))
	}
	switch k {
	case KindGitHub, KindGitea:
		return "token " + token
	case KindBitbucket, KindBitbucketDataCenter:
		if strings.Contains(token, ":") { // a user's: "email:API token", "name:password"
			return basic(token)
		}
	case KindAzureDevOps:
		// Personal access tokens are passwords of nobody. Those of pipelines and of Entra ID are JWTs.
		if !strings.HasPrefix(token, "eyJ") || strings.Count(token, ".") != 2 {
			return basic(":" + token)
		}
	}
	return "Bearer " + token
}

// A courier carries the token to one host.
type courier struct {
	next   http.RoundTripper
	kind   Kind
	origin string // scheme://host that the token is for
	fetch  func(context.Context) (string, error)

	mu   sync.Mutex
	last []string // the token, and what else gives it away
}

// mostAnswer bounds an answer. A page of statuses has a tenth of it at most.
const mostAnswer = 8 << 20

// token is the current one. It fails for good on what cannot be a token.
func (c *courier) token(ctx context.Context) (string, error) {
	token, err := c.fetch(ctx)
	if err != nil {
		return "", &Later{Err: fmt.Errorf("cannot get the token of the forge: %w", err)}
	}
	token = strings.TrimSpace(token)
	if token == "" {
		return "", errors.New("the token of the forge is empty")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", errors.New("the token of the forge has characters that no token has")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, sent, _ := strings.Cut(c.kind.authorization(token), " ")
	c.last = []string{token, sent}
	if _, password, ok := strings.Cut(token, ":"); ok && len(password) >= 8 {
		c.last = append(c.last, password)
	}
	return token, nil
}

// hide takes the token out of a text.
func (c *courier) hide(s string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, secret := range c.last {
		s = strings.ReplaceAll(s, secret, "***")
	}
	return s
}

func (c *courier) RoundTrip(r *http.Request) (*http.Response, error) {
	if originOf(r.URL.String()) != c.origin {
		return nil, fmt.Errorf("refusing to leave %s", c.origin)
	}
	token, err := c.token(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", c.kind.authorization(token))
	return c.next.RoundTrip(r)
}

// bounded reads no more of an answer than is sane.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, mostAnswer), resp.Body}
	return resp, nil
}

// stay follows a redirect only within the host, and never where it would make a GET of
// a POST: that would read, and look like having written.
func stay(to *http.Request, via []*http.Request) error {
	from := via[0]
	if originOf(to.URL.String()) != originOf(from.URL.String()) || to.Method != from.Method || len(via) > 5 {
		return http.ErrUseLastResponse
	}
	return nil
}

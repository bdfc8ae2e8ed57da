package api

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/intern"

	"k8s.io/client-go/rest"
)

// A throttle bounds the requests of a process to one API server, and holds them back while the server is away or too busy, so that a
// server that comes back is not overrun. All Clusters with the same connection have one, whatever users they impersonate. Watches do not
// count, and the renewal of a lease never waits.
//
//	the last answers              requests
//	others than below             are sent, mostAtOnce at a time
//	mostBusy in a row are 429,    wait for a pause that doubles up to longestBusy; then one is sent, and its answer lets all others go,
//	503 or 504, or there is none  or doubles the pause
type throttle struct {
	places chan struct{} // one for each request under way
	asking chan struct{} // holds a value while a pass that is to begin asks whether the server is back

	mu      sync.Mutex
	busy    int           // answers in a row
	opens   time.Time     // no request before this time, if busy is at least mostBusy
	trying  bool          // a request was let through
	changed chan struct{} // closed when a field above changes
}

const (
	mostAtOnce  = 64 // requests to an API server
	mostBusy    = 3
	firstBusy   = 500 * time.Millisecond
	longestBusy = 10 * time.Second
)

// Throttles holds the throttle of each API server. Clients that share it share these. The zero value is ready to use.
type Throttles struct {
	by intern.Map[connection, throttle]
}

// of returns the throttle of the API server of a configuration.
func (t *Throttles) of(config *rest.Config) *throttle {
	return t.by.Get(connectionOf(config), newThrottle)
}

// A connection is all of a configuration that decides whether a server answers. It is more than the host: a tenant whose kubeconfig names
// the host of others with a wrong CA, a proxy that never answers or a token without a budget is throttled alone.
type connection struct {
	host  string
	proxy string
	rest  [sha256.Size]byte // of the credentials and of what authenticates the server
}

// connectionOf returns the connection of a configuration.
func connectionOf(config *rest.Config) connection {
	of := connection{host: config.Host}
	if config.Proxy != nil {
		of.proxy = proxyOf(config)
	}
	tls := config.TLSClientConfig
	of.rest = sha256.Sum256(fmt.Appendf(nil, "%t %q", tls.Insecure, []string{
		tls.ServerName, tls.CAFile, string(tls.CAData), tls.CertFile, string(tls.CertData), tls.KeyFile, string(tls.KeyData),
		config.BearerToken, config.BearerTokenFile, config.Username, config.Password,
	}))
	return of
}

// proxyOf returns the proxy to the server of a configuration.
func proxyOf(config *rest.Config) string {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return ""
	}
	proxy, err := config.Proxy(&http.Request{URL: server})
	if err != nil || proxy == nil {
		return ""
	}
	return proxy.String()
}

func newThrottle() *throttle {
	return &throttle{places: make(chan struct{}, mostAtOnce), asking: make(chan struct{}, 1), changed: make(chan struct{})}
}

// An awayError is the error of a request that was not sent, because the API server is away or too busy.
type awayError struct{ within time.Duration }

func (e awayError) Error() string {
	return fmt.Sprintf("for %s, the API server answered no request, or only that it is too busy", e.within)
}

func (awayError) Timeout() bool { return true }

func (awayError) Temporary() bool { return true }

// pass waits until a request may be sent, at most for patience. done takes what the answer shows.
func (t *throttle) pass(ctx context.Context, patience time.Duration) (done func(shows), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, awayError{patience})
	defer cancel()
	select {
	case t.places <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	tries, err := t.open(ctx) // the server may have gone away meanwhile
	if err != nil {
		<-t.places
		return nil, err
	}
	return func(of shows) {
		<-t.places
		t.heard(tries, of)
	}, nil
}

// open waits until requests are sent. It returns true if this one is to find out whether the server is back.
func (t *throttle) open(ctx context.Context) (tries bool, err error) {
	for {
		t.mu.Lock()
		wait, trying, changed := time.Until(t.opens), t.trying, t.changed
		switch {
		case t.busy < mostBusy:
			t.mu.Unlock()
			return false, nil
		case wait <= 0 && !trying:
			t.trying = true
			t.mu.Unlock()
			return true, nil
		}
		t.mu.Unlock()
		var again <-chan time.Time
		if !trying {
			again = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-changed:
		case <-again:
		}
	}
}

// heard counts an answer. Those to requests from before a pause do not prolong it.
func (t *throttle) heard(tried bool, of shows) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case of == present:
		t.busy = 0
	case of == away && (tried || t.busy < mostBusy):
		t.busy++
		pause := engine.BackOff(max(1, t.busy-mostBusy+1), firstBusy, longestBusy)
		t.opens = time.Now().Add(pause/2 + rand.N(pause/2)) //nolint:gosec // it needs no secrecy
	}
	t.trying = t.trying && !tried
	close(t.changed)
	t.changed = make(chan struct{})
}

// isAway reports whether the server was away or too busy at its last answer.
func (t *throttle) isAway() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy >= mostBusy
}

// Ready waits until the API server answers, at most for the time of an answer. It sends requests only while the server is away. A pass
// that begins after that does not hold what it has rendered during an outage.
func (c *Client) Ready(ctx context.Context) error {
	if !c.throttle.isAway() {
		return nil
	}
	defer engine.Pause(ctx)()
	within := c.answerTime
	ctx, cancel := context.WithTimeoutCause(ctx, within, awayError{within})
	defer cancel()
	for c.throttle.isAway() && ctx.Err() == nil {
		done, err := c.throttle.ask(ctx)
		if err != nil {
			break
		}
		if c.throttle.isAway() {
			_ = c.Core.RESTClient().Get().AbsPath("/version").Do(ctx) // the throttle hears the answer
		}
		done()
	}
	return c.Explain(context.Cause(ctx), "reach", "the API server at "+c.host())
}

// ask waits until no other pass asks whether the server is back.
func (t *throttle) ask(ctx context.Context) (done func(), err error) {
	select {
	case t.asking <- struct{}{}:
		return func() { <-t.asking }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// shows is what the answer to a request shows about its API server.
type shows int

const (
	nothing shows = iota // the caller did not wait for the answer
	present
	away // or too busy
)

// shownBy returns what an answer shows. What it says of other servers that it calls, such as webhooks, is about single kinds.
func shownBy(ctx context.Context, resp *http.Response, err error) shows {
	switch {
	case err != nil && ctx.Err() != nil:
		return nothing
	case err != nil:
		return away
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if said := saidIn(peek(resp)); !said.unconverted && !said.unstored && !said.uncalled {
			return away
		}
	}
	return present
}

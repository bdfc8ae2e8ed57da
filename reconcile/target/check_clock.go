package target

import (
	"net/http"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/preflight"

	"k8s.io/client-go/rest"
)

// A clock learns the time of a server from the header Date of its first answer.
type clock struct {
	mu    sync.Mutex
	ahead int64
	known bool
}

// config returns a copy of a configuration whose answers the clock reads.
func (c *clock) config(of *rest.Config) *rest.Config {
	of = rest.CopyConfig(of)
	of.Wrap(c.transport)
	return of
}

// transport returns a transport whose answers the clock reads.
func (c *clock) transport(next http.RoundTripper) http.RoundTripper { return dated{next, c} }

// judge judges the difference to our clock.
func (c *clock) judge(of string) preflight.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	return preflight.Clock{Of: of, Ahead: c.ahead, Known: c.known}.Judge()
}

// dated shows the answers of a server to a clock.
type dated struct {
	http.RoundTripper

	clock *clock
}

func (d dated) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := time.Now()
	resp, err := d.RoundTripper.RoundTrip(req)
	if err == nil {
		d.clock.learn(resp.Header.Get("Date"), sent, time.Now())
	}
	return resp, err
}

// learn reads the time of a server, which it wrote between two times of our clock. A header has no fractions of a second.
func (c *clock) learn(header string, sent, received time.Time) {
	at, err := http.ParseTime(header)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || c.known {
		return
	}
	c.known = true
	switch {
	case at.Before(sent.Add(-time.Second)):
		c.ahead = at.Unix() - sent.Unix()
	case at.After(received):
		c.ahead = at.Unix() - received.Unix()
	}
}

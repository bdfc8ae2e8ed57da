package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/inventory"

	"k8s.io/client-go/rest"
)

// A moody API server answers as its mood says, each request after a moment.
type moody struct {
	mood    atomic.Pointer[mood]
	heard   atomic.Int64
	working atomic.Int64
	most    atomic.Int64
}

func (m *moody) RoundTrip(req *http.Request) (*http.Response, error) {
	m.heard.Add(1)
	if n := m.working.Add(1); n > m.most.Load() {
		m.most.Store(n)
	}
	defer m.working.Add(-1)
	time.Sleep(10 * time.Millisecond)
	now := *m.mood.Load()
	if now.code == 0 {
		return nil, syscall.ECONNREFUSED
	}
	return &http.Response{StatusCode: now.code, Header: http.Header{}, Request: req, Body: io.NopCloser(strings.NewReader(now.text))}, nil
}

// A mood is the answer to all requests; the zero value refuses connections.
type mood struct {
	code int
	text string
}

func (m *moody) is(now mood) { m.mood.Store(&now) }

func (m *moody) send(ctx context.Context, t *testing.T, through *throttle, path string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, "https://192.0.2.1"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := deadlineTransport{next: m, through: through, within: 75 * time.Second, under: &underway{}}.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answer %d", resp.StatusCode)
	}
	return nil
}

// Five hundred syncs that try again as soon as they may keep an API server down that comes back.
func TestThrottleHoldsBackAStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, through := &moody{}, newThrottle()
		m.is(mood{})
		ctx, cancel := context.WithCancel(t.Context())
		var syncs sync.WaitGroup
		var done atomic.Int64
		for i := range 500 {
			syncs.Go(func() {
				for ctx.Err() == nil {
					if m.send(ctx, t, through, fmt.Sprint("/api/v1/namespaces/a/configmaps/", i)) == nil {
						done.Add(1)
						return
					}
				}
			})
		}
		phase := func(name string, d time.Duration, most int64) {
			t.Helper()
			before := m.heard.Load()
			time.Sleep(d)
			if n := m.heard.Load() - before; n > most {
				t.Errorf("%s: %d requests within %s, want at most %d", name, n, d, most)
			}
		}
		phase("away", 5*time.Minute, mostAtOnce+5*60/5+10)
		m.is(mood{code: http.StatusGatewayTimeout})
		phase("answers 504", 2*time.Minute, 2*60/5+1)
		if done.Load() > 0 {
			t.Fatal("a request was answered")
		}
		m.is(mood{code: http.StatusOK})
		time.Sleep(longestBusy + 2*time.Second)
		if done.Load() != 500 {
			t.Errorf("%d of 500 go on when the server is back", done.Load())
		}
		if n := m.most.Load(); n > mostAtOnce {
			t.Errorf("%d requests at a time, want at most %d", n, mostAtOnce)
		}
		cancel()
		syncs.Wait()
	})
}

// What one kind or one caller meets says nothing about the server.
func TestThrottleStaysOpen(t *testing.T) {
	cases := map[string]struct {
		reason string
		mood   mood
	}{
		"Refused":    {"A server that forbids is there.", mood{code: http.StatusForbidden}},
		"Defect":     {"So is one with a defect.", mood{code: http.StatusInternalServerError}},
		"Conversion": {"A conversion webhook is away, and the server answers for it.", mood{http.StatusServiceUnavailable, `conversion webhook for example.org/v1, Kind=A failed`}},
		"Webhook":    {"So is an admission webhook.", mood{http.StatusServiceUnavailable, `Internal error occurred: failed calling webhook "a.example.org"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, through := &moody{}, newThrottle()
				m.is(tc.mood)
				began := time.Now()
				for range 20 {
					_ = m.send(t.Context(), t, through, "/api/v1/namespaces/a/configmaps/a")
				}
				if m.heard.Load() != 20 || time.Since(began) > time.Second {
					t.Errorf("%s %d requests within %s", tc.reason, m.heard.Load(), time.Since(began))
				}
			})
		})
	}
}

// The renewal of a lease is what keeps a pass alive, so it does not wait behind others. Whoever gives up leaves the try to another.
func TestThrottleLetsLeasesThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, through := &moody{}, newThrottle()
		m.is(mood{})
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			_ = m.send(ctx, t, through, "/api/v1/namespaces/a/configmaps/a")
			cancel()
		}
		if n := m.heard.Load(); n > mostBusy+3 {
			t.Fatalf("%d requests within two seconds, want the others held back", n)
		}
		m.is(mood{code: http.StatusOK})
		began := time.Now()
		if err := m.send(t.Context(), t, through, "/apis/coordination.k8s.io/v1/namespaces/a/leases/a"); err != nil || time.Since(began) > time.Second {
			t.Errorf("the lease waits %s: %v", time.Since(began), err)
		}
		if err := m.send(t.Context(), t, through, "/api/v1/namespaces/a/configmaps/a"); err != nil || time.Since(began) > longestBusy {
			t.Errorf("the next one waits %s: %v", time.Since(began), err)
		}
	})
}

// A request that was never sent says so, and does not wait for longer than for an answer.
func TestThrottleHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, through := &moody{}, newThrottle()
		through.busy, through.trying = mostBusy, true // by a request without an answer
		m.is(mood{})
		began := time.Now()
		err := m.send(t.Context(), t, through, "/api/v1/namespaces/a/configmaps/a")
		if _, is := errors.AsType[awayError](err); !is || time.Since(began) != 75*time.Second || m.heard.Load() > 0 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if troubleWith(err) != withServer {
			t.Error("nothing may be pruned after that")
		}
	})
}

// Passes that are to begin during an outage wait, and one of them asks. After the time of an answer, they fail without having rendered.
func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &moody{}
		m.is(mood{})
		config := &rest.Config{Host: "https://192.0.2.1"}
		config.Wrap(func(http.RoundTripper) http.RoundTripper { return m })
		all := &Throttles{}
		ready := func() (chan error, *Client) {
			c, err := Connect(config, inventory.Sync{Namespace: "a", Name: "b"}, Options{Throttles: all})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- c.Ready(t.Context()) }()
			return ended, c
		}
		first, c := ready()
		if err := <-first; err != nil || m.heard.Load() > 0 {
			t.Fatalf("nobody knows of an outage: %v after %d requests", err, m.heard.Load())
		}
		c.throttle.busy = mostBusy
		var waiting []chan error
		for range 200 {
			one, _ := ready()
			waiting = append(waiting, one)
		}
		for _, one := range waiting {
			if err := <-one; err == nil || !strings.Contains(err.Error(), "192.0.2.1") {
				t.Fatalf("%v, want why the pass does not begin", err)
			}
		}
		if n := m.heard.Load(); n > 25 {
			t.Errorf("200 passes that wait ask %d times", n)
		}
		m.is(mood{code: http.StatusOK})
		again, _ := ready()
		began := time.Now()
		if err := <-again; err != nil || time.Since(began) > longestBusy {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// A tenant must not throttle others: whoever can name the host of another API server in a kubeconfig can make it look as if it were away.
func TestWhoSharesAThrottle(t *testing.T) {
	base := rest.Config{Host: "https://192.0.2.1", BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca")}}
	through := func(proxy string) func(*http.Request) (*url.URL, error) {
		return func(*http.Request) (*url.URL, error) { return url.Parse(proxy) }
	}
	for name, tc := range map[string]struct {
		change func(*rest.Config)
		shares bool
	}{
		"AnotherUser":       {func(c *rest.Config) { c.Impersonate.UserName = "system:serviceaccount:a:b" }, true},
		"AnotherTransport":  {func(c *rest.Config) { c.Wrap(func(next http.RoundTripper) http.RoundTripper { return next }) }, true},
		"AnotherHost":       {func(c *rest.Config) { c.Host = "https://192.0.2.2" }, false},
		"AnotherCA":         {func(c *rest.Config) { c.CAData = []byte("other") }, false},
		"AnotherServerName": {func(c *rest.Config) { c.ServerName = "other" }, false},
		"AnotherToken":      {func(c *rest.Config) { c.BearerToken = "other" }, false},
		"ACertificate":      {func(c *rest.Config) { c.CertData = []byte("certificate") }, false},
		"AProxy":            {func(c *rest.Config) { c.Proxy = through("http://192.0.2.3:3128") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var all Throttles
			other := rest.CopyConfig(&base)
			tc.change(other)
			one, another := all.of(&base), all.of(other)
			if shares := one == another; shares != tc.shares {
				t.Errorf("shares: %t, want %t", shares, tc.shares)
			}
		})
	}
}

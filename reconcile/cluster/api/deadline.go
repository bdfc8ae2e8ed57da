package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/engine"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// listFactor multiplies the time limit of a list, which may have to send thousands of objects.
	listFactor = 4
	// mostAsked is the longest Retry-After of an API server that is followed.
	mostAsked = 10 * time.Second
	// late is how long a pass keeps its worker while it waits for an answer.
	late = time.Second
)

// errUnanswered matches, with errors.Is, the error of a request that was not answered in time. A proxy on the way to the API server
// may have lost it.
var errUnanswered = errors.New("no answer")

// An unanswered error is the error of a request that was not answered in time.
type unanswered struct {
	request string
	within  time.Duration
}

func (e unanswered) Error() string {
	return fmt.Sprintf("no answer to %s within %s", e.request, e.within)
}

func (e unanswered) Is(t error) bool { return t == errUnanswered }

func (e unanswered) Timeout() bool { return true }

func (e unanswered) Temporary() bool { return true }

// A deadlineTransport sends requests through a throttle, gives each a deadline, repeats reads that the API server was too busy for, and
// records the requests that are under way. The worker of a pass leaves while an answer is late.
type deadlineTransport struct {
	next    http.RoundTripper
	through *throttle
	within  time.Duration // time limit for the answer to a request
	under   *underway
}

// RoundTrip sends a request. A watch ends by itself, within the time that it requests.
func (p deadlineTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	verb := Verb(req)
	if verb != "WATCH" {
		defer engine.Late(req.Context(), late)()
	}
	for pause := 200 * time.Millisecond; ; pause *= 2 {
		resp, err := p.throttled(req, verb)
		if req.Method != http.MethodGet || verb == "WATCH" || pause > 2*time.Second || !isBusy(resp, err) {
			return resp, err
		}
		if err == nil {
			_ = resp.Body.Close()
		}
		if Sleep(req.Context(), pause); req.Context().Err() != nil {
			return nil, context.Cause(req.Context())
		}
	}
}

// isBusy reports whether a read may succeed in a moment. If the API server sets Retry-After, the client waits for it.
func isBusy(resp *http.Response, err error) bool {
	if err != nil {
		return utilnet.IsConnectionRefused(err)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return resp.Header.Get("Retry-After") == "" && !saidIn(peek(resp)).unconverted
	case http.StatusInternalServerError:
		return saidIn(peek(resp)).etcd
	}
	return false
}

// peek returns the body of an error, which is short, and makes it readable again.
func peek(resp *http.Response) string {
	begin, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = broken{err}
	}
	resp.Body = readCloser{io.MultiReader(bytes.NewReader(begin), rest), resp.Body}
	return string(begin)
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

type readCloser struct {
	io.Reader
	io.Closer
}

// throttled sends a request through the throttle. A watch, and whatever proves that a lease is held, does not wait.
func (p deadlineTransport) throttled(req *http.Request, verb string) (*http.Response, error) {
	if verb == "WATCH" || strings.Contains(req.URL.Path, "/leases/") {
		return p.once(req, verb)
	}
	end := p.under.await("an API server that is away or too busy")
	done, err := p.through.pass(req.Context(), p.within)
	end()
	if err != nil {
		return nil, err
	}
	resp, err := p.once(req, verb)
	done(shownBy(req.Context(), resp, err))
	return resp, err
}

// once sends a request without repeating it.
func (p deadlineTransport) once(req *http.Request, verb string) (*http.Response, error) {
	within := p.within
	switch verb {
	case "LIST":
		within *= listFactor
	case "WATCH":
		seconds, err := strconv.Atoi(req.URL.Query().Get("timeoutSeconds"))
		if err != nil || seconds <= 0 {
			return p.next.RoundTrip(req) // a watch without a limit ends with its context
		}
		within += time.Duration(seconds) * time.Second
	}
	missing := unanswered{verb + " " + req.URL.Path, within}
	ctx, cancel := context.WithTimeoutCause(req.Context(), within, missing)
	isLate := func() bool { return errors.Is(context.Cause(ctx), errUnanswered) }
	done, read := func() {}, func() {}
	if verb != "WATCH" {
		done, read = p.under.begin(missing.request), engine.Late(req.Context(), late) // also while the rest of the answer is late
	}
	end := sync.OnceFunc(func() { cancel(); done(); read() })
	resp, err := p.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		defer end()
		if isLate() {
			return nil, missing
		}
		return nil, redactError(req, err)
	}
	resp.Body = &timedBody{ReadCloser: resp.Body, end: end, isLate: isLate, late: missing}
	if err := redactAnswer(req, resp); err != nil {
		_ = resp.Body.Close() // closing the body ends the request
		return nil, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		asRefusal(resp)
	}
	if after := resp.Header.Get("Retry-After"); after != "" && resp.StatusCode >= 300 {
		seconds, err := strconv.Atoi(after)
		switch {
		case saidIn(peek(resp)).unconverted: // reported as an initializing storage for as long as the conversion webhook is broken
			resp.Header.Del("Retry-After")
		case err != nil || time.Duration(seconds)*time.Second > mostAsked:
			resp.Header.Set("Retry-After", strconv.Itoa(int(mostAsked.Seconds())))
		}
	}
	return resp, nil
}

// A timedBody is the body of an answer with a deadline.
type timedBody struct {
	io.ReadCloser
	end    func()
	isLate func() bool
	late   unanswered
}

func (t *timedBody) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && t.isLate() {
		err = t.late
	}
	return n, err
}

func (t *timedBody) Close() error {
	defer t.end()
	return t.ReadCloser.Close()
}

// underway records the requests without an answer, and everything else that a pass waits for.
type underway struct {
	mu       sync.Mutex
	next     int
	requests map[int]sentRequest
	others   []string // the newest last
}

type sentRequest struct {
	line string
	at   time.Time
}

// begin records a request until the returned function is called.
func (u *underway) begin(line string) (end func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.next++
	id := u.next
	if u.requests == nil {
		u.requests = map[int]sentRequest{}
	}
	u.requests[id] = sentRequest{line, time.Now()}
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.requests, id)
	}
}

// await records something that a pass polls for, until the returned function is called.
func (u *underway) await(what string) (end func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.others = append(u.others, what)
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if i := slices.Index(u.others, what); i >= 0 {
			u.others = slices.Delete(u.others, i, i+1)
		}
	}
}

// FirstOf returns the first of some names and how many more there are.
func FirstOf(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	return fmt.Sprintf("%s and %d more", slices.Min(names), len(names)-1)
}

// slow is how long a request may have no answer before it counts as what a pass waits for.
const slow = 5 * time.Second

// what returns what a pass waits for; "" if that is not known.
func (u *underway) what(now time.Time) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var oldest sentRequest
	for _, r := range u.requests {
		if oldest.line == "" || r.at.Before(oldest.at) || r.at.Equal(oldest.at) && strings.Compare(r.line, oldest.line) < 0 {
			oldest = r
		}
	}
	other := ""
	if len(u.others) > 0 {
		other = u.others[len(u.others)-1]
	}
	if oldest.line == "" || now.Sub(oldest.at) < slow {
		return other
	}
	return fmt.Sprintf("the answer to %s, for %s", oldest.line, now.Sub(oldest.at).Round(time.Second))
}

// WaitsFor returns what the current pass is waiting for; "" if that is not known. It may be called while the pass runs.
func (c *Client) WaitsFor() string { return c.under.what(time.Now()) }

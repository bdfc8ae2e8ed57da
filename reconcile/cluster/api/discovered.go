package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
)

// Discovered remembers what an API server serves, for all Clients of one configuration: as long as the server answers that nothing has changed,
// nothing is sent, decoded or kept again. The zero value is ready to use.
type Discovered struct {
	mu      sync.Mutex
	answers map[string]served // by path
	surface *Surface          // made of them; nil before the first
}

// A served is the answer to a request of discovery.
type served struct{ accept, tag, media, body string }

// An inquiry is one discovery of a Client, with the answers that it has got.
type inquiry struct {
	mu      sync.Mutex
	answers map[string]served // by path
	ready   map[string]served // those that take the place of the next request
	untold  bool              // an answer shows no version, so it cannot be asked whether it has changed
}

func newInquiry() *inquiry {
	return &inquiry{answers: map[string]served{}, ready: map[string]served{}}
}

type inquiryKey struct{}

// unchanged returns what was discovered before if the API server answers that it still serves the same. Otherwise, the inquiry has the answers
// that are new, and a request for one of them is not sent again.
func (d *Discovered) unchanged(ctx context.Context, c *Client, i *inquiry) *Surface {
	d.mu.Lock()
	known, surface := d.answers, d.surface
	d.mu.Unlock()
	same := surface != nil
	for _, path := range slices.Sorted(maps.Keys(known)) { // as client-go does
		was, code := known[path], 0
		c.Discovery.RESTClient().Get().AbsPath(path).SetHeader("Accept", was.accept).SetHeader("If-None-Match", was.tag).Do(ctx).StatusCode(&code)
		switch code {
		case http.StatusNotModified:
			i.got(path, was)
		case http.StatusOK:
			same = false
		default: // the inquiry goes on, and reports the error
			return nil
		}
		i.reuse(path)
	}
	if !same {
		return nil
	}
	return surface.again()
}

// keep remembers what was discovered, unless it is incomplete.
func (d *Discovered) keep(s *Surface, i *inquiry) {
	if i.untold || len(s.Broken) > 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers, d.surface = i.answers, s
}

// again returns what was discovered for another pass, which finds out anew what it cannot read in the preferred version.
func (s *Surface) again() *Surface {
	return &Surface{Kinds: s.Kinds, Versions: s.Versions, Listable: s.Listable, Broken: s.Broken}
}

// An inquiring transport keeps the answers of an inquiry.
type inquiring struct{ next http.RoundTripper }

func (t inquiring) RoundTrip(req *http.Request) (*http.Response, error) {
	i, _ := req.Context().Value(inquiryKey{}).(*inquiry)
	if i == nil {
		return t.next.RoundTrip(req)
	}
	path := req.URL.Path
	if known, has := i.take(path); has {
		return known.response(req), nil
	}
	resp, err := t.next.RoundTrip(req)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusNotModified:
		return resp, nil
	case resp.StatusCode != http.StatusOK || resp.Header.Get("ETag") == "":
		i.untell()
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	fresh := served{req.Header.Get("Accept"), resp.Header.Get("ETag"), resp.Header.Get("Content-Type"), string(body)}
	i.got(path, fresh)
	return fresh.response(req), nil
}

func (i *inquiry) got(path string, answer served) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answers[path] = answer
}

func (i *inquiry) untell() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.untold = true
}

// reuse makes an answer take the place of the next request for it.
func (i *inquiry) reuse(path string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if answer, has := i.answers[path]; has {
		i.ready[path] = answer
	}
}

// take returns an answer to reuse, once, because client-go asks again if something is missing in it.
func (i *inquiry) take(path string) (served, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	answer, has := i.ready[path]
	delete(i.ready, path)
	return answer, has
}

func (d served) response(to *http.Request) *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: to,
		Header: http.Header{"Content-Type": {d.media}}, Body: io.NopCloser(bytes.NewReader([]byte(d.body))), ContentLength: int64(len(d.body)),
	}
}

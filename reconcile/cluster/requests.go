package cluster

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
)

// Requests counts the requests to an API server by verb: GET, LIST, WATCH, PATCH, POST, PUT and DELETE. Dry runs are counted
// separately, with the prefix "DRY-RUN ". The zero value is ready to use; add it to a rest.Config with config.Wrap(requests.Wrap).
type Requests struct {
	mu             sync.Mutex
	counts         map[string]int
	sent, received int64
	log            []string
}

// Wrap returns a transport that counts the requests through next.
func (r *Requests) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		r.mu.Lock()
		if r.counts == nil {
			r.counts = map[string]int{}
		}
		verb := Verb(req)
		r.counts[verb]++
		r.sent += max(req.ContentLength, 0)
		r.log = append(r.log, verb+" "+req.URL.RequestURI())
		r.mu.Unlock()
		resp, err := next.RoundTrip(req)
		if err == nil {
			resp.Body = &counted{ReadCloser: resp.Body, to: r}
		}
		return resp, err
	})
}

// Counts returns the number of requests by verb.
func (r *Requests) Counts() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.counts)
}

// Total returns the number of requests.
func (r *Requests) Total() int {
	total := 0
	for _, n := range r.Counts() {
		total += n
	}
	return total
}

// Writes returns the number of requests to change the cluster, without dry runs.
func (r *Requests) Writes() int {
	counts := r.Counts()
	return counts["PATCH"] + counts["POST"] + counts["PUT"] + counts["DELETE"]
}

// Bytes returns the number of bytes in the bodies sent and received so far. Received bodies are counted as the wrapped transport
// returns them.
func (r *Requests) Bytes() (sent, received int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent, r.received
}

// Log returns every request as "VERB /path?query", in the order of sending.
func (r *Requests) Log() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.log...)
}

// Reset sets all counts to zero and clears the log.
func (r *Requests) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts, r.log, r.sent, r.received = nil, nil, 0, 0
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

type counted struct {
	io.ReadCloser
	to *Requests
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.to.mu.Lock()
	c.to.received += int64(n)
	c.to.mu.Unlock()
	return n, err
}

// Verb returns the verb of a request to an API server, as Requests counts it.
func Verb(req *http.Request) string {
	query := req.URL.Query()
	switch {
	case req.Method != http.MethodGet && query.Has("dryRun"):
		return "DRY-RUN " + req.Method
	case req.Method != http.MethodGet:
		return req.Method
	case query.Has("watch"):
		return "WATCH"
	case isCollection(req.URL.Path):
		return "LIST"
	}
	return http.MethodGet
}

// isCollection reports whether a path names all objects of a resource: one element follows the version or, if there is one, the
// namespace.
func isCollection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return false // discovery
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	return len(parts) == 1
}

package remote

import (
	"cmp"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"headgate.dev/headgate/reconcile/network"
)

// overHTTP is a conversation that closes its own connections at the end, if it has any.
type overHTTP struct {
	transport.UploadPackSession

	own *own
}

func (o overHTTP) Close() error {
	if o.own != nil {
		o.own.CloseIdleConnections()
	}
	return nil
}

// overHTTP prepares a conversation over https or http.
func (r Server) overHTTP() (conversation, error) {
	own, err := r.At.auth.own()
	if err != nil {
		return nil, err
	}
	next := cmp.Or(r.Transport, network.Default)
	if own != nil {
		next = own
	}
	var auth transport.AuthMethod
	if r.At.auth.given() {
		auth = r.At.auth.basic()
	}
	with, err := githttp.NewClientWithOptions(&http.Client{
		Transport:     &limited{next: network.Quiet(next, nil), left: r.Limits.Bytes, limit: r.Limits.Bytes, refs: r.Limits.RefBytes},
		CheckRedirect: r.follow,
	}, nil).NewUploadPackSession(r.At.endpoint(), auth)
	return overHTTP{with, own}, err
}

func (a Address) endpoint() *transport.Endpoint {
	host := a.url.Hostname()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	port, _ := strconv.Atoi(a.url.Port()) // a URL without a port has port 0; url.Parse only accepts digits
	return &transport.Endpoint{Protocol: a.url.Scheme, Host: host, Port: port, Path: strings.TrimRight(a.url.EscapedPath(), "/")}
}

// follow refuses a redirect to another host or scheme if there are credentials. Without credentials, go-git follows
// redirects of the first request, but never from https to http.
func (r Server) follow(req *http.Request, _ []*http.Request) error {
	if !r.At.auth.secret() || req.URL.Scheme == r.At.url.Scheme && strings.EqualFold(req.URL.Host, r.At.url.Host) {
		return nil
	}
	return network.Errorf("it redirects to %s://%s, and Headgate does not send the credentials there; use that URL if you trust it", scheme(req.URL), network.Host(req.URL.Host))
}

func scheme(u *url.URL) string {
	if u.Scheme == "http" {
		return "http"
	}
	return "https" // the client supports no other scheme
}

// limited is a RoundTripper that limits the bytes of a session, and refuses answers that are not from a Git server.
type limited struct {
	next        http.RoundTripper
	left, limit int64
	refs        int64 // maximum size of the list of refs
}

func (g *limited) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := g.next.RoundTrip(req)
	if err != nil || res.StatusCode >= 300 { // such a response has no body to limit
		return res, err
	}
	from := res.Body
	res.Body = body{bounded{from, g}, from}
	if !strings.HasSuffix(req.URL.Path, "/info/refs") {
		return res, nil
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")) // an invalid header gives ""
	if kind != "application/x-git-upload-pack-advertisement" {
		_ = from.Close()
		return nil, network.Errorf("the answer is %s and not from a Git server; check that this is the URL of a repository", typeOf(kind))
	}
	res.Body = body{&refList{res.Body, g.refs}, from}
	return res, nil
}

// typeOf describes a media type. It only quotes common ones, because the server chooses the text.
func typeOf(kind string) string {
	switch kind {
	case "":
		return "of no type"
	case "text/html", "text/plain", "application/json", "application/xml", "text/xml", "application/octet-stream":
		return kind
	}
	return "of another type"
}

type body struct {
	io.Reader
	io.Closer
}

type bounded struct {
	io.Reader
	g *limited
}

func (b bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.g.left -= int64(n); b.g.left < 0 {
		return 0, tooMuch(b.g.limit)
	}
	return n, err
}

// tooMuch is the error for a server that sends more than a limit.
func tooMuch(limit int64) error {
	return network.Errorf("the server sends more than %d bytes; raise the limit if that is right", limit)
}

// A refList limits the list of refs of a server, which go-git reads as a whole.
type refList struct {
	io.Reader

	left int64
}

func (l *refList) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, network.Errorf("the list of refs is too long; delete branches that are not needed")
	}
	return n, err
}

package registry

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"headgate.dev/headgate/reconcile/legible"
	"headgate.dev/headgate/reconcile/network"
)

// newTransport returns the transport for registries. A commit names them, and their answers may be shown. So the
// transport does not connect to addresses that only this machine can reach; within a Reach, it connects to internal
// addresses of the registries in it only.
func newTransport(r *Reach) http.RoundTripper {
	if r != nil {
		return tlsOnly{network.Quiet(bounded{answering{newPublicOnly(r)}}, network.RegistryCodes)}
	}
	return tlsOnly{network.Quiet(bounded{answering{newHTTP(notLinkLocal)}}, network.RegistryCodes)}
}

// newHTTP returns a transport that connects only where control allows it.
func newHTTP(control func(network, address string, c syscall.RawConn) error) *http.Transport {
	t := network.New(control)
	t.MaxIdleConnsPerHost, t.IdleConnTimeout, t.ResponseHeaderTimeout = together, 30*time.Second, 30*time.Second
	return t
}

// notLinkLocal refuses the addresses that package network refuses, and the unspecified address, which means this machine.
func notLinkLocal(by, address string, c syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err == nil && at.Addr().Unmap().IsUnspecified() {
		return network.Errorf("%s cannot be the address of a registry", at.Addr())
	}
	return network.Control(by, address, c)
}

// A tlsOnly transport refuses to send credentials without TLS, except to loopback addresses.
type tlsOnly struct{ http.RoundTripper }

func (c tlsOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := network.CheckHost(req.URL.Hostname()); err != nil {
		return nil, err
	}
	if req.URL.Scheme != "https" && req.Header.Get("Authorization") != "" && !network.IsLoopback(req.URL.Hostname()) {
		return nil, errPlainHTTP
	}
	return c.RoundTripper.RoundTrip(req)
}

// An answering transport refuses successful answers that a registry does not give, because its client would swallow the reason.
type answering struct{ http.RoundTripper }

var (
	errNoDigest = network.Errorf("the registry gave no digest for the tag")
	errPage     = network.Errorf("the answer is no manifest (text/html: a login page or a proxy?)")
)

func (a answering) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.RoundTripper.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK || req.URL.Path == "/v2/" {
		return resp, err
	}
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); {
	case kind == "text/html":
		err = errPage
	case req.Method == http.MethodHead && strings.Contains(req.URL.Path, "/manifests/") && resp.Header.Get("Docker-Content-Digest") == "":
		err = errNoDigest
	default:
		return resp, nil
	}
	return nil, errors.Join(err, resp.Body.Close())
}

// maxTagsPage is the maximum size of a page of tags. A page holds a thousand tags, or all of them.
const maxTagsPage = 16 << 20

// maxItems is the maximum number of objects in a manifest, an index or a config. An object of a few bytes takes hundreds in
// memory. An honest image has one for each layer, and an honest index one for each platform, signature and attestation.
const maxItems = 20_000

// A bounded transport limits what the client reads into memory: the bytes of tags, manifests and lists of referrers,
// and their number of items. The client itself limits all other small answers, and blobs are stored on disk.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	for req.Response != nil && req.Response.Request != nil { // a redirect may change the URL, so use that of the first request
		req = req.Response.Request
	}
	of := &items{Reader: resp.Body}
	switch path := req.URL.Path; {
	case strings.HasSuffix(path, "/tags/list"):
		of.separator, of.left, of.bytes, of.what = ',', maxTags+100, maxTagsPage, network.Errorf("it has more than %d tags; name a version in the object that installs it", maxTags)
	case strings.Contains(path, "/manifests/"), strings.Contains(path, "/referrers/"):
		of.separator, of.left, of.bytes, of.what = '{', maxItems, metadata, errTooManyItems
	default:
		return resp, nil
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{of, resp.Body}
	return resp, nil
}

var errTooManyItems = network.Errorf("its manifest holds more than %d items", maxItems)

// items is a response with a list. Reading fails after too many items or bytes.
type items struct {
	io.Reader

	separator byte // the byte between items, or before each item
	left      int
	bytes     int64
	what      error // the error for too many items
}

func (i *items) Read(p []byte) (int, error) {
	n, err := i.Reader.Read(p)
	i.left -= bytes.Count(p[:n], []byte{i.separator})
	i.bytes -= int64(n)
	switch {
	case i.left < 0:
		return 0, i.what
	case i.bytes < 0:
		return 0, network.Errorf("the answer of the registry is too long")
	}
	return n, err
}

// isOutage reports whether an error means that a registry may respond later.
func isOutage(err error) bool {
	if _, ok := errors.AsType[network.RefusedError](err); ok {
		return false
	}
	if _, ok := errors.AsType[forbiddenError](err); ok || errors.Is(err, errPage) || errors.Is(err, errNoDigest) {
		return false
	}
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		return answer.Temporary() || answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusTooManyRequests
	}
	var network net.Error
	return errors.As(err, &network)
}

// A shortError is an error with a text of one line, because registries may return pages of text.
type shortError struct{ error }

func (b shortError) Unwrap() error { return b.error }

// Outage reports whether the registry was unavailable and may respond later: there was no connection, or it returned
// 408, 429 or 5xx. Every other response is final, as is an untrusted certificate or a registry without TLS.
func (b shortError) Outage() bool {
	switch troubleOf(b.error) {
	case PlainHTTP, Untrusted, Unauthorised:
		return false
	}
	return isOutage(b.error)
}

func (b shortError) Error() string {
	const most = 300
	text := strings.Map(func(r rune) rune {
		if legible.Invisible(r) {
			return ' '
		}
		return r
	}, b.error.Error())
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}

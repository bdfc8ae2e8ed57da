// Package network makes Headgate's connections to Git servers, registries and forges. Syncs, commits and redirects
// choose these hosts. So the package refuses the addresses where a cloud serves the credentials of its machines.
package network

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Default is the transport for Git servers and forges: http.DefaultTransport without the addresses that Check refuses.
var Default http.RoundTripper = guarded{New(Control)}

// New returns a transport that connects only where control allows it.
func New(control func(network, address string, c syscall.RawConn) error) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: control}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          100,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
			if res.StatusCode == http.StatusOK {
				return nil
			}
			return ProxyError(res.StatusCode)
		},
	}
}

// A ProxyError is the status code with which a proxy refuses to connect.
type ProxyError int

func (e ProxyError) Error() string {
	return fmt.Sprintf("the proxy answered %d %s", int(e), http.StatusText(int(e)))
}

// Own is a transport like Default with settings of its own.
type Own struct {
	guarded

	own *http.Transport
}

// With returns a transport with settings of TLS, and a proxy in place of that of the environment; nil for the one of the environment.
func With(config *tls.Config, proxy *url.URL) *Own {
	t := New(Control)
	t.TLSClientConfig = config
	if proxy != nil {
		t.Proxy = http.ProxyURL(proxy)
	}
	return &Own{guarded{t}, t}
}

// CloseIdleConnections closes the connections that no request uses.
func (o *Own) CloseIdleConnections() { o.own.CloseIdleConnections() }

// Dial connects to an address over TCP, unless Check refuses it.
func Dial(ctx context.Context, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if err := CheckHost(host); err != nil {
		return nil, err
	}
	return (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: Control}).DialContext(ctx, "tcp", address)
}

// Control refuses the addresses that Check refuses. A dialer calls it with the resolved address, so neither a host
// name nor a redirect can evade it.
func Control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return Check(at.Addr())
}

// metadata lists the addresses of metadata services that are not link-local.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
	netip.MustParsePrefix("fd00:c1::/32"),       // Oracle Cloud
	netip.MustParsePrefix("fd20:ce::/32"),       // Google Cloud
}

// names lists host names of metadata services. Behind a proxy, Headgate does not see the resolved address.
var names = []string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}

// nat64 and sixToFour are the prefixes of IPv6 addresses that contain an IPv4 address.
var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

// Check returns an error if an address is link-local, multicast, or belongs to a metadata service.
func Check(ip netip.Addr) error {
	at := ip.Unmap().WithZone("")
	switch raw := at.As16(); {
	case nat64.Contains(at):
		at = netip.AddrFrom4([4]byte(raw[12:]))
	case sixToFour.Contains(at):
		at = netip.AddrFrom4([4]byte(raw[2:6]))
	}
	if at.IsLinkLocalUnicast() || at.IsMulticast() || slices.ContainsFunc(metadata, func(p netip.Prefix) bool { return p.Contains(at) }) {
		return RefusedError(ip.String())
	}
	return nil
}

// A RefusedError is the address or host name of a refused connection.
type RefusedError string

func (e RefusedError) Error() string {
	return fmt.Sprintf("refusing to connect to %s: it is link-local or belongs to a metadata service; use another address", string(e))
}

// guarded refuses requests by host name before the name is resolved, because a proxy may resolve it. It also replaces
// the text of status lines by the standard text.
type guarded struct{ http.RoundTripper }

func (g guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := CheckHost(req.URL.Hostname()); err != nil {
		return nil, err
	}
	resp, err := g.RoundTripper.RoundTrip(req)
	if err == nil {
		known(resp)
	}
	return resp, err
}

// CheckHost returns an error if a host is an address that Check refuses, or the name of a metadata service.
func CheckHost(host string) error {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if slices.Contains(names, host) {
		return RefusedError(host)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return Check(ip)
	}
	return nil
}

package network

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Plain lists the hosts, as name or name:port, that a user allows to receive credentials without TLS.
type Plain []string

// Check returns an error if credentials for a URL would cross the network without TLS and the user has not allowed
// its host. It accepts hosts on this machine.
func (p Plain) Check(u *url.URL) error {
	host := strings.ToLower(u.Hostname())
	if u.Scheme == "https" || IsLoopback(host) || slices.Contains(p, host) || slices.Contains(p, strings.ToLower(u.Host)) {
		return nil
	}
	return PlainError(u.Host)
}

// A PlainError is a host that would receive credentials over plain http.
type PlainError string

func (e PlainError) Error() string {
	return fmt.Sprintf("%s would get credentials over plain http, where others can read them; use https, or allow it with --plain-http %s", string(e), string(e))
}

// IsLoopback reports whether a host name or address is this machine.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

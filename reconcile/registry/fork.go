package registry

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"headgate.dev/headgate/reconcile/network"
	"headgate.dev/headgate/render/packages"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// A Fork bounds the requests for commits whose authors may not push to the repository. They use no credentials, neither
// the docker configuration nor a cluster's, and never see content that was pulled with credentials.
type Fork struct {
	// Registries are the hosts of the only registries that are asked: ghcr.io, or registry.example.org:5000. They may
	// be anywhere. They may redirect only to each other and to public addresses.
	Registries []string
}

// The limits for one commit of a fork. A registry with public push access can be full of large images.
const (
	maxOfFork   = 256 // packages
	bytesOfFork = 1 << 30
)

// A forbiddenError is a request that a commit of a fork may not cause. A retry does not help.
type forbiddenError string

func (e forbiddenError) Error() string { return string(e) }

// check refuses a registry that is not to be asked. The zero of a Fork allows none, nil any.
func (f *Fork) check(registry name.Registry) error {
	if f == nil || f.allows(registry.Name()) {
		return nil
	}
	allowed := "none is allowed"
	if len(f.Registries) > 0 {
		allowed = "allowed are " + strings.Join(f.Registries, ", ")
	}
	return forbiddenError(fmt.Sprintf("the registry %s is not asked for a commit of a fork; %s", registry.Name(), allowed))
}

// withoutMirror returns an error without the registry that an ImageConfig of the cluster leads to: with one
// image after the other, the author of a pull request could learn the names of inner registries.
func (f *Fork) withoutMirror(err error, configs *packages.ImageConfigs, image string) error {
	if by, ok := configs.Rewrite(image); f != nil && ok && by.Live {
		return forbiddenError(by.String() + " has it pulled from a registry that is not asked for a commit of a fork")
	}
	return err
}

// allows reports whether a registry may be asked. host is its name in image references.
func (f *Fork) allows(host string) bool {
	return slices.ContainsFunc(f.Registries, func(one string) bool {
		r, err := name.NewRegistry(one) // docker.io has another name there
		return err == nil && one != "" && strings.EqualFold(r.Name(), host)
	})
}

// charge subtracts a pulled size from the bytes that the commit of a fork may pull.
func (p *puller) charge(size int64) error {
	if p.fork == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left -= max(size, 0); p.left < 0 {
		return forbiddenError(fmt.Sprintf("what this commit of a fork has pulled is larger than %d bytes together", bytesOfFork))
	}
	return nil
}

// anonymous is a keychain without credentials.
type anonymous struct{}

func (anonymous) Resolve(authn.Resource) (authn.Authenticator, error) { return authn.Anonymous, nil }

// A publicOnly transport is the transport for forks. A registry may redirect us for blobs or a token. But a stranger
// may have written the registry's answer, and internal hosts often trust every client that can reach them.
type publicOnly struct {
	fork   *Fork
	listed http.RoundTripper // to registries that are allowed
	others http.RoundTripper // to whom they send us; it dials public addresses only
	proxy  func(*http.Request) (*url.URL, error)
}

func (g publicOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if g.fork.allows(hostOf(req.URL)) {
		return g.listed.RoundTrip(req)
	}
	if by, err := g.proxy(req); err != nil || by != nil { // this process cannot see the addresses that the proxy dials
		return nil, forbiddenError(fmt.Sprintf("%s is not asked for a commit of a fork: it is behind a proxy, and not one of the registries that are allowed", network.Host(req.URL.Host)))
	}
	return g.others.RoundTrip(req)
}

// hostOf is the host of a URL as images have it: the port that goes without saying is left out.
func hostOf(u *url.URL) string {
	if port := u.Port(); port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http" {
		return strings.TrimSuffix(u.Host, ":"+port)
	}
	return u.Host
}

// onlyPublic refuses addresses that are not public.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if ip := at.Addr().Unmap(); !isPublic(ip) {
		return forbiddenError(fmt.Sprintf("%s is not a public address, and not of a registry that is allowed: it is not asked for a commit of a fork", ip))
	}
	return nil
}

// inner are addresses that are neither private nor of a link, and yet of an inner network, of
// the machine's cloud, or another way of writing an IPv4 address.
var inner = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),    // behind the NAT of a carrier, or a cloud
	netip.MustParsePrefix("168.63.129.16/32"), // what Azure tells its machines
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001::/32"),
	netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("fec0::/10"),
}

func isPublic(ip netip.Addr) bool {
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !slices.ContainsFunc(inner, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// newPublicOnly is the transport of a fork.
func newPublicOnly(f *Fork) publicOnly {
	others := newHTTP(onlyPublic)
	others.Proxy = nil
	return publicOnly{fork: f, listed: newHTTP(notLinkLocal), others: others, proxy: http.ProxyFromEnvironment}
}

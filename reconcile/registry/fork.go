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

// A Fork restricts the requests for commits whose authors cannot push to the repository. They use no credentials, neither those
// in the docker configuration nor those in a cluster, and never read content that was pulled with credentials.
type Fork struct {
	// Registries are the hosts of the only registries to send requests to: ghcr.io, or registry.example.org:5000.
	// They may have any address. They may redirect only to each other and to public addresses.
	Registries []string
}

// The limits for one commit of a fork. A registry with public push access can be full of large images.
const (
	maxOfFork   = 256 // maximum number of packages
	bytesOfFork = 1 << 30
)

// A forbiddenError refuses a request that a commit of a fork must not cause. A retry does not help.
type forbiddenError string

func (e forbiddenError) Error() string { return string(e) }

// check refuses a registry that is not allowed. A zero Fork allows none, a nil Fork any.
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

// withoutMirror removes from an error the registry to which an ImageConfig of the cluster redirects an image. By trying one image
// after another, the author of a pull request could otherwise learn the names of internal registries.
func (f *Fork) withoutMirror(err error, configs *packages.ImageConfigs, image string) error {
	if by, ok := configs.Rewrite(image); f != nil && ok && by.Live {
		return forbiddenError(by.String() + " has it pulled from a registry that is not asked for a commit of a fork")
	}
	return err
}

// allows reports whether a registry is allowed. host is its name in image references.
func (f *Fork) allows(host string) bool {
	return slices.ContainsFunc(f.Registries, func(one string) bool {
		r, err := name.NewRegistry(one) // NewRegistry resolves aliases such as docker.io
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

// A publicOnly is the transport for forks. A registry may redirect requests for blobs or a token. But a stranger may
// control the registry's answer, and internal hosts often trust every client that can reach them.
type publicOnly struct {
	fork   *Fork
	listed http.RoundTripper // for allowed registries
	others http.RoundTripper // for redirects to other hosts; it only connects to public addresses
	proxy  func(*http.Request) (*url.URL, error)
}

func (g publicOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if g.fork.allows(hostOf(req.URL)) {
		return g.listed.RoundTrip(req)
	}
	if by, err := g.proxy(req); err != nil || by != nil { // Headgate cannot check the addresses to which a proxy connects
		return nil, forbiddenError(fmt.Sprintf("%s is not asked for a commit of a fork: it is behind a proxy, and not one of the registries that are allowed", network.Host(req.URL.Host)))
	}
	return g.others.RoundTrip(req)
}

// hostOf returns the host of a URL in the notation of images, which omits the default port.
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

// inner lists addresses that are neither private nor link-local, but belong to an internal network or the cloud of
// the machine, or embed an IPv4 address.
var inner = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),    // carrier-grade NAT, and some clouds
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's internal services for virtual machines
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

// newPublicOnly returns the transport for a fork.
func newPublicOnly(f *Fork) publicOnly {
	others := newHTTP(onlyPublic)
	others.Proxy = nil
	return publicOnly{fork: f, listed: newHTTP(notLinkLocal), others: others, proxy: http.ProxyFromEnvironment}
}

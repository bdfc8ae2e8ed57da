package registry

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"headgate.dev/headgate/reconcile/network"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/packages"

	"github.com/google/go-containerregistry/pkg/name"
)

// A Reach is everything that Headgate asks for on behalf of a commit whose author it does not trust. Its registries may have any
// address. They may redirect requests to each other and to public addresses.
type Reach struct {
	Registries []string // hosts, such as ghcr.io or registry.example.org:5000
	Secrets    []string // the names of Secrets with credentials or keys

	fork bool // the commit comes from a fork
}

// ReachOf returns the Reach of the head of a pull request: what its target names, and the listed registries. Every pull request may
// name the registries of Crossplane's packages.
func ReachOf(named packages.Named, listed ...string) Reach {
	r := Reach{Registries: slices.Concat(crossplane.Registries, listed), Secrets: named.Secrets}
	for _, image := range named.Images {
		r.Registries = append(r.Registries, hostOfImage(image))
	}
	return r
}

// HostOf returns the registry of an image.
func HostOf(image string) string { return hostOfImage(image) }

// hostOfImage returns the registry of an image, or of the beginning of one: its first part, if that is a host.
func hostOfImage(image string) string {
	host, _, _ := strings.Cut(image, "/")
	if host == "localhost" || strings.ContainsAny(host, ".:") {
		return host
	}
	return name.DefaultRegistry
}

// who describes the commit in errors.
func (r Reach) who() string {
	if r.fork {
		return "a commit of a fork"
	}
	return "a pull request"
}

// A forbiddenError refuses a request that a commit must not cause. A retry does not help.
type forbiddenError string

func (e forbiddenError) Error() string { return string(e) }

// check refuses a registry that is not in reach. A nil Reach has no limits.
func (r *Reach) check(registry name.Registry) error {
	switch {
	case r == nil || r.allows(registry.Name()):
		return nil
	case !r.fork:
		return forbiddenError(fmt.Sprintf("the registry %s is not asked for a pull request, because its target does not name it; list it in spec.previewRegistries or --preview-registries", registry.Name()))
	case len(r.Registries) == 0:
		return forbiddenError(fmt.Sprintf("the registry %s is not asked for a commit of a fork; none is allowed", registry.Name()))
	}
	return forbiddenError(fmt.Sprintf("the registry %s is not asked for a commit of a fork; allowed are %s", registry.Name(), strings.Join(r.Registries, ", ")))
}

// withoutMirror removes from an error the registry to which an ImageConfig of the cluster redirects an image. By trying one image
// after another, the author of a pull request could otherwise learn the names of internal registries.
func (r *Reach) withoutMirror(err error, configs *packages.ImageConfigs, image string) error {
	if by, ok := configs.Rewrite(image); r != nil && ok && by.Live {
		return forbiddenError(by.String() + " has it pulled from a registry that is not asked for " + r.who())
	}
	return err
}

// allows reports whether a registry is in reach. host is its name in image references.
func (r *Reach) allows(host string) bool {
	return slices.ContainsFunc(r.Registries, func(one string) bool {
		known, err := name.NewRegistry(one) // NewRegistry resolves aliases such as docker.io
		return err == nil && one != "" && strings.EqualFold(known.Name(), host)
	})
}

// reading returns a function that reads only the Secrets in reach.
func (r *Reach) reading(read func(ctx context.Context, name string) (map[string][]byte, error)) func(ctx context.Context, name string) (map[string][]byte, error) {
	if r == nil || read == nil {
		return read
	}
	return func(ctx context.Context, name string) (map[string][]byte, error) {
		if !slices.Contains(r.Secrets, name) {
			return nil, forbiddenError("out of reach")
		}
		return read(ctx, name)
	}
}

// unusable returns the error of a Secret. It is the same for one that does not exist, that the target does not name, and that holds
// something else, because the author of a pull request reads it.
func (r *Reach) unusable(what string, err error) error {
	if r == nil || err == nil {
		return err
	}
	return forbiddenError(what + " cannot be used for " + r.who() + "; it must exist, be valid, and be named by the target")
}

// A publicOnly is the transport for untrusted commits. A registry may redirect requests for blobs or a token. But a stranger may
// control the registry's answer, and internal hosts often trust every client that can reach them.
type publicOnly struct {
	reach  *Reach
	listed http.RoundTripper // for registries in reach
	others http.RoundTripper // for redirects to other hosts; it only connects to public addresses
	proxy  func(*http.Request) (*url.URL, error)
}

func (g publicOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if g.reach.allows(hostOf(req.URL)) {
		return g.listed.RoundTrip(req)
	}
	switch by, err := g.proxy(req); {
	case err == nil && by == nil:
	case g.reach.fork || err != nil: // Headgate cannot check the addresses to which a proxy connects
		return nil, forbiddenError(fmt.Sprintf("%s is not asked for %s: it is behind a proxy, and not one of the registries that are allowed", network.Host(req.URL.Host), g.reach.who()))
	default:
		if ip, err := netip.ParseAddr(req.URL.Hostname()); err == nil && !isPublic(ip.Unmap()) {
			return nil, g.elsewhere(req)
		}
		return g.listed.RoundTrip(req)
	}
	resp, err := g.others.RoundTrip(req)
	if err != nil && req.Context().Err() == nil {
		return nil, g.elsewhere(req)
	}
	return resp, err
}

// elsewhere returns the error of a host that is not in reach. It is the same for one that has no address, an address that is not
// public, and no answer: the author of a pull request must not learn the names and addresses of internal hosts.
func (g publicOnly) elsewhere(req *http.Request) error {
	return elsewhereError(fmt.Sprintf("%s cannot be asked for %s: it is not one of the allowed registries, and does not answer at a public address", network.Host(req.URL.Host), g.reach.who()))
}

// An elsewhereError is the error of a host to which a registry redirects. It is a net.Error, because it may be an outage.
type elsewhereError string

func (e elsewhereError) Error() string   { return string(e) }
func (e elsewhereError) Timeout() bool   { return false }
func (e elsewhereError) Temporary() bool { return false }

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
		return forbiddenError(ip.String() + " is not a public address")
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

// newPublicOnly returns the transport for a Reach.
func newPublicOnly(r *Reach) publicOnly {
	others := newHTTP(onlyPublic)
	others.Proxy = nil
	return publicOnly{reach: r, listed: newHTTP(notLinkLocal), others: others, proxy: http.ProxyFromEnvironment}
}

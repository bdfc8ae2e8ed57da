package registry

import (
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
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

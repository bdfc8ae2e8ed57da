package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// dockerConfig is the key of a Secret of type kubernetes.io/dockerconfigjson.
const dockerConfig = ".dockerconfigjson"

// A pullSecret holds the credentials of a Secret by scope: a host, or a host and the beginning of a repository.
type pullSecret map[string]authn.AuthConfig

// pullSecretOf parses the data of a Secret. Its errors quote none of it.
func pullSecretOf(data map[string][]byte) (pullSecret, error) {
	var config struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if len(data[dockerConfig]) == 0 {
		return nil, fmt.Errorf("it has nothing under the key %s", dockerConfig)
	}
	if err := json.Unmarshal(data[dockerConfig], &config); err != nil {
		return nil, fmt.Errorf("what is under the key %s is not a docker configuration", dockerConfig)
	}
	secret := pullSecret{}
	for of, auth := range config.Auths {
		_, host, ok := strings.Cut(of, "://")
		if !ok {
			host = of
		}
		host = strings.TrimSuffix(host, "/")
		for _, version := range []string{"/v1", "/v2"} { // docker itself writes such keys
			host = strings.TrimSuffix(host, version)
		}
		secret[host] = auth
	}
	return secret, nil
}

// Resolve implements authn.Keychain. The entry with the longest matching scope counts.
func (s pullSecret) Resolve(of authn.Resource) (authn.Authenticator, error) {
	for name := of.String(); ; {
		if auth, ok := s[name]; ok {
			return authn.FromConfig(auth), nil
		}
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			return authn.Anonymous, nil
		}
		name = name[:i]
	}
}

// client returns a client for registries. It uses credentials in Secrets before those in the docker configuration.
// why reports invalid Secrets, because other credentials may suffice.
func (p *puller) client(ctx context.Context, secrets []string) (client *remote.Puller, why error) {
	if p.secret == nil {
		secrets = nil
	}
	key := strings.Join(secrets, " ")
	p.mu.Lock()
	c, ok := p.clients[key]
	p.mu.Unlock()
	if ok {
		return c.client, c.why
	}
	keys := []authn.Keychain{}
	for _, name := range secrets {
		data, err := p.secret(ctx, name)
		var secret pullSecret
		if err == nil {
			secret, err = pullSecretOf(data)
		}
		if err != nil {
			err = fmt.Errorf("pull secret %s: %w", name, err)
			c.why = errors.Join(c.why, p.reach.unusable("pull secret "+name, err))
			continue
		}
		for _, auth := range secret {
			for _, value := range []string{auth.Password, auth.Auth, auth.IdentityToken, auth.RegistryToken} {
				if p.hide != nil && value != "" {
					p.hide(value)
				}
			}
		}
		keys = append(keys, secret)
	}
	keys = append(keys, p.keys)
	// Our options are valid.
	c.client, _ = remote.NewPuller(append(slices.Clone(p.options), remote.WithAuthFromKeychain(authn.NewMultiKeychain(keys...)))...)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil {
		p.clients[key] = c
	}
	return c.client, c.why
}

// A clientOf is a client, with the error of the Secrets that it could not use.
type clientOf struct {
	client *remote.Puller
	why    error
}

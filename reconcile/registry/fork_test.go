package registry_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
)

// ofFork returns a Source with a stranger's commit, and with credentials that the stranger must not use.
func ofFork(t *testing.T, files []string, allowed ...string) *registry.Resolver {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	var auths []string
	for _, host := range allowed {
		auths = append(auths, fmt.Sprintf(`%q:{"username":"robot","password":"canary-password"}`, host))
	}
	config := `{"auths":{` + strings.Join(auths, ",") + `}}`
	if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return &registry.Resolver{
		Next: commit{files: tree(files...)}, Cache: t.TempDir(),
		Fork: &registry.Fork{Registries: allowed},
		Secret: func(context.Context, string) (map[string][]byte, error) {
			t.Error("a Secret of the cluster was asked for")
			return nil, errors.New("forbidden")
		},
		Installed: func(context.Context) ([]crossplane.Installed, error) {
			t.Error("the cluster was asked for its packages")
			return nil, errors.New("forbidden")
		},
	}
}

// listening calls hear for every request to a registry.
func listening(r *fixtures.Registry, hear func(*http.Request)) {
	var mu sync.Mutex
	r.Through(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			mu.Lock()
			hear(req)
			mu.Unlock()
			next.ServeHTTP(w, req)
		})
	})
}

func localhost(r *fixtures.Registry) string {
	return strings.Replace(r.Host, "127.0.0.1", "localhost", 1)
}

// unread returns the reason why the only package of a commit could not be read.
func unread(t *testing.T, s *registry.Resolver) string {
	t.Helper()
	want := rendered(t, s, render.OwnerCrossplane)
	if len(want.Unread) != 1 || len(want.Definitions) > 0 {
		t.Fatalf("want one package that is not read, got %v and %d definitions", want.Unread, len(want.Definitions))
	}
	if diff := cmp.Diff([]string{packages.RuleUnread}, rules(want, manifest.Warning)); diff != "" {
		t.Errorf("and a finding that says so (-want +got):\n%s", diff)
	}
	return want.Unread[0].Err.Error()
}

// Every author of a pull request may name any image. Headgate can reach internal registries, and worse.
func TestForkAsksAllowedRegistriesOnly(t *testing.T) {
	r, inner := start(t), fixtures.StartRegistry(t)
	digest := ""
	for _, one := range []*fixtures.Registry{r, inner} {
		digest = one.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
		one.Push(t, "acme/config", "v1.0.0", configuration("config", dependsOn(inner, "provider", "acme/provider-sea", ">=v1.0.0")), 0)
	}
	install := func(image string) string { return installs("Provider", "provider-sea", image, "") }
	rewriting := func(from, to string) string {
		return "apiVersion: pkg.crossplane.io/v1beta1\nkind: ImageConfig\nmetadata: {name: rewrite}\nspec:\n  matchImages: [{prefix: " + from + "}]\n  rewriteImage: {prefix: " + to + "}\n"
	}
	cases := map[string]struct {
		reason string
		files  []string
		want   string // part of the error; "" if the package is read
	}{
		"Allowed":    {"An allowed registry is asked, which shows that the other cases fail for their own reason.", []string{install(r.Host + "/acme/provider-sea:v1.0.0")}, ""},
		"NotAllowed": {"A tag in a registry that is not allowed is not read.", []string{install(inner.Host + "/acme/provider-sea:v1.0.0")}, inner.Host},
		"Digest":     {"A digest in a registry that is not allowed is not read.", []string{install(inner.Host + "/acme/provider-sea@" + digest)}, inner.Host},
		"ByName":     {"Hosts are compared by name, not by address.", []string{install(localhost(r) + "/acme/provider-sea:v1.0.0")}, localhost(r)},
		"OtherPort":  {"The port is part of the host.", []string{install("127.0.0.1:1/acme/provider-sea:v1.0.0")}, "127.0.0.1:1"},
		"Default":    {"A name without a host belongs to Docker Hub.", []string{install("acme/provider-sea:v1.0.0")}, "index.docker.io"},
		"Prefix":     {"A name that begins with an allowed name is not allowed.", []string{install(r.Host + "1/acme/provider-sea:v1.0.0")}, r.Host + "1"},
		"Rewritten":  {"An ImageConfig of the head must not redirect to a registry that is not allowed.", []string{install(r.Host + "/acme/provider-sea:v1.0.0"), rewriting(r.Host, inner.Host)}, inner.Host},
		"RewrittenBack": {
			"Only the registry that is actually asked must be allowed.", []string{install("mirrored.example.org/acme/provider-sea:v1.0.0"), rewriting("mirrored.example.org", r.Host)}, "",
		},
		"Dependency": {"A package in an allowed registry may depend on one in a registry that is not allowed.", []string{installs("Configuration", "acme-config", r.Host+"/acme/config:v1.0.0", "")}, inner.Host},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inner.Asked()
			s := ofFork(t, tc.files, r.Host)
			if tc.want == "" {
				if want := rendered(t, s, render.OwnerCrossplane); len(want.Definitions) != 1 || len(want.Unread) > 0 {
					t.Errorf("%s: %d definitions, %v", tc.reason, len(want.Definitions), want.Unread)
				}
			} else if got := unread(t, s); !strings.Contains(got, "the registry "+tc.want+" is not asked for a commit of a fork; allowed are "+r.Host) {
				t.Errorf("%s: want %s named, got %s", tc.reason, tc.want, got)
			}
			if requests, _ := inner.Asked(); len(requests) > 0 {
				t.Errorf("%s: it was asked: %q", tc.reason, requests)
			}
		})
	}
	t.Run("None", func(t *testing.T) {
		if got := unread(t, ofFork(t, []string{install(r.Host + "/acme/provider-sea:v1.0.0")})); !strings.Contains(got, "none is allowed") {
			t.Error(got)
		}
	})
}

// An allowed registry serves what strangers pushed, and may redirect Headgate.
func TestForkIsNotSentInside(t *testing.T) {
	cases := map[string]struct {
		reason  string
		path    string // part of the path of the redirected request
		to      func(inner *fixtures.Registry) string
		allowed bool // inner is
		want    string
	}{
		"Blob":      {"A redirect of a blob to a private address is refused.", "/blobs/", func(inner *fixtures.Registry) string { return inner.Host }, false, "does not answer at a public address"},
		"ByName":    {"A redirect to a name with a private address is refused.", "/blobs/", localhost, false, "does not answer at a public address"},
		"Manifest":  {"A redirect of a manifest to a private address is refused.", "/manifests/", func(inner *fixtures.Registry) string { return inner.Host }, false, "does not answer at a public address"},
		"Metadata":  {"A redirect to a metadata service is refused, because it may return credentials.", "/blobs/", func(*fixtures.Registry) string { return "169.254.169.254" }, false, "private/link-local host"},
		"Allowed":   {"A redirect to another allowed registry is followed.", "/blobs/", func(inner *fixtures.Registry) string { return inner.Host }, true, ""},
		"SixInFour": {"A redirect to a private address in another notation is refused.", "/blobs/", func(*fixtures.Registry) string { return "[::ffff:127.0.0.1]:1" }, false, "private/link-local host"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, inner := start(t), fixtures.StartRegistry(t)
			for _, one := range []*fixtures.Registry{r, inner} {
				one.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
			}
			r.Through(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					if strings.Contains(req.URL.Path, tc.path) {
						http.Redirect(w, req, "http://"+tc.to(inner)+req.URL.Path, http.StatusTemporaryRedirect)
						return
					}
					next.ServeHTTP(w, req)
				})
			})
			allowed := []string{r.Host}
			if tc.allowed {
				allowed = append(allowed, inner.Host)
			}
			s := ofFork(t, []string{installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.0.0", "")}, allowed...)
			if tc.want == "" {
				if want := rendered(t, s, render.OwnerCrossplane); len(want.Definitions) != 1 {
					t.Errorf("%s: %v", tc.reason, want.Unread)
				}
				return
			}
			if got := unread(t, s); !strings.Contains(got, tc.want) {
				t.Errorf("%s: want %q, got %s", tc.reason, tc.want, got)
			}
			if requests, _ := inner.Asked(); len(requests) > 0 {
				t.Errorf("%s: it was asked: %q", tc.reason, requests)
			}
		})
	}
}

// A registry names its token service, which also receives a request.
func TestForkAsksNobodyInsideForTokens(t *testing.T) {
	r, inner := start(t), fixtures.StartRegistry(t)
	r.Through(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+localhost(inner)+`/token",service="registry"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
		})
	})
	s := ofFork(t, []string{installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.0.0", "")}, r.Host)
	if got := unread(t, s); !strings.Contains(got, "does not answer at a public address") {
		t.Error(got)
	}
	if requests, _ := inner.Asked(); len(requests) > 0 {
		t.Errorf("it was asked: %q", requests)
	}
}

// Strangers must not read images with our credentials.
func TestForkHasNoCredentials(t *testing.T) {
	r := start(t)
	r.Want("robot", "canary-password")
	digest := r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
	var sent []string
	listening(r, func(req *http.Request) { sent = append(sent, req.Header.Values("Authorization")...) })
	// The docker configuration and a keychain have credentials, and the commit may name a Secret with some.
	files := []string{installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.0.0", "  packagePullSecrets: [{name: pull}]\n") + `---
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata: {name: pull}
spec:
  matchImages: [{prefix: ` + r.Host + `}]
  registry: {authentication: {pullSecretRef: {name: other}}}
`}
	s := ofFork(t, files, r.Host)
	s.Keychain = asked{t}
	if got := unread(t, s); !strings.Contains(got, "401") {
		t.Error(got)
	}
	if len(sent) > 0 {
		t.Errorf("credentials were sent: %q", sent)
	}

	// Strangers must not get an image from the cache by its digest either.
	trusted := &registry.Resolver{Next: commit{files: tree(files...)}, Cache: s.Cache}
	if want := rendered(t, trusted, render.OwnerCrossplane); len(want.Definitions) != 1 {
		t.Fatalf("with credentials it is read: %v", want.Unread)
	}
	again := ofFork(t, []string{installs("Provider", "provider-sea", r.Host+"/acme/provider-sea@"+digest, "")}, r.Host)
	again.Cache = s.Cache
	if got := unread(t, again); !strings.Contains(got, "401") {
		t.Error(got)
	}
}

// asked is a keychain that must not be used.
type asked struct{ *testing.T }

func (a asked) Resolve(of authn.Resource) (authn.Authenticator, error) {
	a.Errorf("asked for the credentials of %s", of.RegistryStr())
	return nil, errors.New("none")
}

// A demand that cannot be met still applies to a fork's commit.
func TestForkVerifies(t *testing.T) {
	r := start(t)
	r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
	s := ofFork(t, []string{installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.0.0", "") + `---
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata: {name: signed}
spec:
  matchImages: [{prefix: ` + r.Host + `/acme}]
  verification: {provider: Cosign, cosign: {authorities: [{name: acme, key: {secretRef: {name: key, key: cosign.pub}}}]}}
`}, r.Host)
	if got := unread(t, s); !strings.Contains(got, "demands that its signature is verified") {
		t.Error(got)
	}
}

// A public registry often allows public pushes, so an allowed registry may hold many large images.
func TestForkPullsNoMoreThanSo(t *testing.T) {
	r := start(t)
	var files []string
	for _, name := range []string{"one", "two"} {
		img := imageOf(t, tarred(t, tar.Header{Name: "package.yaml", Typeflag: tar.TypeReg}, metadata+"# "+name+"\n"), isBase)
		r.PushImage(t, "acme/"+name, "v1.0.0", img)
		manifest, err := img.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		vast := manifest.DeepCopy()
		vast.Layers[0].Size = 600 << 20
		body, err := json.Marshal(vast)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+r.Host+"/v2/acme/"+name+"/manifests/v1.0.0", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", string(vast.MediaType))
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatal(resp, err)
		}
		_ = resp.Body.Close()
		files = append(files, installs("Provider", name, r.Host+"/acme/"+name+":v1.0.0", ""))
	}
	want := rendered(t, ofFork(t, files, r.Host), render.OwnerCrossplane)
	if len(want.Packages) != 1 || len(want.Unread) != 1 || !strings.Contains(want.Unread[0].Err.Error(), "larger than 1073741824 bytes together") {
		t.Errorf("two that are not too large are, together: %v", want.Unread)
	}

	var many []string
	for i := range 300 {
		many = append(many, installs("Provider", fmt.Sprintf("p%d", i), fmt.Sprintf("%s/acme/p%d:v1", r.Host, i), ""))
	}
	r.Asked()
	if _, err := ofFork(t, many, r.Host).Fetch(t.Context(), ""); err == nil || !strings.HasPrefix(err.Error(), "package-") || !strings.Contains(err.Error(), "more than 256 packages") {
		t.Errorf("want a place and a number, got %v", err)
	}
	if requests, _ := r.Asked(); len(requests) > 0 {
		t.Errorf("%d requests", len(requests))
	}
}

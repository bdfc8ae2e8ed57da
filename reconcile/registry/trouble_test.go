package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"headgate.dev/headgate/render/packages"
)

// A hint about "the server" does not let the user tell a registry that requires a login from a misspelt one.
func TestTroubles(t *testing.T) {
	answering := func(h http.HandlerFunc) string {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return strings.TrimPrefix(server.URL, "http://")
	}
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := taken.Addr().String()
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		host string
		want Trouble
	}{
		"Login":     {answering(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }), Unauthorised},
		"Forbidden": {answering(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }), Unauthorised},
		"Missing":   {answering(http.NotFound), ""},
		"Closed":    {closed, Unreachable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPuller(&Resolver{Cache: t.TempDir(), Keychain: anonymous{}})
			p.begin("a", 0, nil)
			for _, version := range []string{"v1.0.0", "", "sha256:" + strings.Repeat("a", 64)} { // a tag, a list of tags, and an image
				image := p.answer(t.Context(), packages.Request{Source: tc.host + "/acme/provider", Version: version, Configs: &packages.ImageConfigs{}})
				got, is := errors.AsType[Error](image.Err)
				if image.Err == nil || is != (tc.want != "") || got.Trouble != tc.want || is && got.Host != tc.host {
					t.Errorf("version %q: %q of %q, want %q of %q: %v", version, got.Trouble, got.Host, tc.want, tc.host, image.Err)
				}
			}
		})
	}
}

// A registry may answer with what its client cannot use. Crossplane reads the manifest if HEAD returns no digest.
func TestAnswers(t *testing.T) {
	const page = "<html>Please log in: hunter2</html>"
	cases := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   string // of the error for a tag
	}{
		"LoginPage": {"A proxy answers every request with a page.", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte(page))
		}, "the answer is no manifest (text/html: a login page or a proxy?)"},
		"NoDigest": {"The registry has no manifest either.", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && r.URL.Path != "/v2/" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.Header().Set("Content-Length", "2")
		}, "the registry gave no digest for the tag, and not the manifest either"},
		"DigestOfTheManifest": {"Old registries send the digest with no answer.", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			_, _ = w.Write([]byte(`{}`))
		}, "it is not an image with layers"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.answer)
			t.Cleanup(server.Close)
			p := newPuller(&Resolver{Cache: t.TempDir(), Keychain: anonymous{}})
			p.begin("a", 0, nil)
			host := strings.TrimPrefix(server.URL, "http://")
			image := p.answer(t.Context(), packages.Request{Source: host + "/acme/provider", Version: "v1.0.0", Configs: &packages.ImageConfigs{}})
			if image.Err == nil || !strings.Contains(image.Err.Error(), tc.want) || strings.Contains(image.Err.Error(), "hunter2") {
				t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, image.Err)
			}
			if outage, is := image.Err.(interface{ Outage() bool }); !is || outage.Outage() {
				t.Errorf("%s\nthe answer counts as an outage: %v", tc.reason, image.Err)
			}
		})
	}
}

// These errors need another host or several minutes. The messages come from real connections.
func TestTroublesOfConnections(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	stop := make(chan struct{})
	mute := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	t.Cleanup(mute.Close)
	t.Cleanup(func() { close(stop) })
	over, cancel := context.WithTimeout(t.Context(), 1)
	t.Cleanup(cancel)
	impatient := newHTTP(notLinkLocal)
	impatient.ResponseHeaderTimeout = 1
	get := func(ctx context.Context, through http.RoundTripper, url string, headers ...string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range headers {
			req.Header.Set("Authorization", h)
		}
		resp, err := (&http.Client{Transport: through}).Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	usual, direct := newTransport(nil), newHTTP(notLinkLocal)
	direct.Proxy = nil // a proxy would resolve the name
	cases := map[string]struct {
		err  error
		want Trouble
	}{
		"PlainHTTP":   {get(t.Context(), usual, strings.Replace(plain.URL, "http:", "https:", 1)), PlainHTTP},
		"Credentials": {get(t.Context(), usual, "http://registry.example.org/", "Basic x"), PlainHTTP},
		"Misspelt":    {get(t.Context(), direct, "https://registry.invalid/"), UnknownHost},
		"Untrusted":   {get(t.Context(), usual, secure.URL), Untrusted},
		"Deadline":    {get(over, usual, mute.URL), TimedOut},
		"Mute":        {get(t.Context(), impatient, mute.URL), TimedOut},
		"Fork":        {forbiddenError("registry"), ""},
		"None":        {nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.err
			if err != nil {
				err = fmt.Errorf("get: %w", err)
			}
			again := troubled("outer", troubled("host", err))
			got, is := errors.AsType[Error](again)
			if got.Trouble != tc.want || is && got.Host != "host" || is && again.Error() != err.Error() {
				t.Errorf("%q of %q: %v", got.Trouble, got.Host, again)
			}
		})
	}
}

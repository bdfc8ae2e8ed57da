package registry

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/fixtures/bombs"
	"headgate.dev/headgate/render/packages"
)

// Hosts without a public address often trust every client that can reach them.
func TestPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"140.82.112.33": true, "2606:50c0:8000::154": true,
		"127.0.0.1": false, "::1": false, "0.0.0.0": false, "::": false, "0.1.2.3": false,
		"10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "fd00:ec2::254": false, "fec0::1": false,
		"169.254.169.254": false, "fe80::1": false, "100.100.100.200": false, "168.63.129.16": false, "192.0.0.192": false,
		"::ffff:10.0.0.1": false, "::10.0.0.1": false, "64:ff9b::a00:1": false, "2002:a00:1::": false, "2001:0:a00:1::": false,
		"224.0.0.1": false, "ff02::1": false, "255.255.255.255": false, "198.18.0.1": false, "240.0.0.1": false,
	} {
		address := netip.AddrPortFrom(netip.MustParseAddr(text), 443).String()
		if err := onlyPublic("tcp", address, nil); (err == nil) != want {
			t.Errorf("%s: public %t, and got %v", text, want, err)
		}
	}
}

// Companies often reach public hosts through a proxy only. Headgate checks what it sees: the host of the request.
func TestHeadBehindProxy(t *testing.T) {
	for at, want := range map[string]bool{
		"https://registry.example.org/v2/": true, "https://blobs.example.org/a": true, "https://140.82.112.33/a": true,
		"https://10.0.0.1/a": false, "https://[fd00::1]/a": false, "https://[::ffff:10.0.0.1]/a": false, "http://127.0.0.1:5000/a": false,
	} {
		asked := false
		g := publicOnly{
			reach: &Reach{Registries: []string{"registry.example.org"}},
			listed: fixtures.Transport(func(req *http.Request) (*http.Response, error) {
				asked = true
				return &http.Response{Request: req}, nil
			}),
			proxy: func(*http.Request) (*url.URL, error) { return url.Parse("http://proxy.example.org:3128") },
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := g.RoundTrip(req)
		if resp != nil && resp.Body != nil {
			_ = resp.Body.Close()
		}
		if asked != want || (err == nil) != want {
			t.Errorf("%s: asked %t, %v", at, asked, err)
		}
	}
}

// A proxy connects on our behalf without revealing the address. A fork's commit must not reach an address that Headgate cannot
// check.
func TestForkBehindProxy(t *testing.T) {
	reached := ""
	to := func(which string) http.RoundTripper {
		return fixtures.Transport(func(req *http.Request) (*http.Response, error) {
			reached = which
			return &http.Response{Request: req}, nil
		})
	}
	proxied := func(*http.Request) (*url.URL, error) { return url.Parse("http://proxy.example.org:3128") }
	direct := func(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // as net/http has it
	broken := func(*http.Request) (*url.URL, error) { return nil, errors.New("no URL") }
	for name, tc := range map[string]struct {
		url   string
		proxy func(*http.Request) (*url.URL, error)
		want  string // name of the transport; "" if the address is refused
	}{
		"Allowed":          {"https://registry.example.org/v2/", proxied, "listed"},
		"AllowedPort":      {"https://registry.example.org:443/v2/", proxied, "listed"},
		"AllowedCase":      {"https://REGISTRY.example.org/v2/", direct, "listed"},
		"OtherPort":        {"https://registry.example.org:8443/v2/", direct, "others"},
		"PortOfAnother":    {"http://registry.example.org:443/v2/", direct, "others"},
		"Elsewhere":        {"https://blobs.example.org/a", direct, "others"},
		"Below":            {"https://a.registry.example.org/a", direct, "others"},
		"ElsewhereProxied": {"https://blobs.example.org/a", proxied, ""},
		"ProxyUnknown":     {"https://blobs.example.org/a", broken, ""},
		"Docker":           {"https://index.docker.io/v2/", proxied, "listed"},
	} {
		t.Run(name, func(t *testing.T) {
			reached = ""
			g := publicOnly{reach: &Reach{fork: true, Registries: []string{"registry.example.org", "docker.io", ""}}, listed: to("listed"), others: to("others"), proxy: tc.proxy}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tc.url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := g.RoundTrip(req)
			if resp != nil && resp.Body != nil {
				_ = resp.Body.Close()
			}
			if reached != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("want %q, got %q, %v", tc.want, reached, err)
			}
			if err != nil && !strings.Contains(err.Error(), req.URL.Host) {
				t.Errorf("it does not name the host: %v", err)
			}
		})
	}
}

// A stranger's registry may list tags without end.
func TestTagsAreBounded(t *testing.T) {
	from := fixtures.Transport(func(req *http.Request) (*http.Response, error) {
		return &http.Response{Request: req, Body: io.NopCloser(io.LimitReader(bombs.Zeros{}, 2*maxTagsPage))}, nil
	})
	redirected := &http.Response{Request: &http.Request{URL: &url.URL{Path: "/v2/acme/sea/tags/list"}}}
	for name, tc := range map[string]struct {
		path  string
		after *http.Response
		want  int64
		ends  bool // without an error
	}{
		"Tags":       {"/v2/acme/sea/tags/list", nil, maxTagsPage, false},
		"Redirected": {"/elsewhere", redirected, maxTagsPage, false},
		"Manifest":   {"/v2/acme/sea/manifests/v1", nil, metadata, false},
		"Referrers":  {"/v2/acme/sea/referrers/sha256:0", nil, metadata, false},
		"Blob":       {"/v2/acme/sea/blobs/sha256:0", nil, 2 * maxTagsPage, true},
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := bounded{from}.RoundTrip(&http.Request{URL: &url.URL{Path: tc.path}, Response: tc.after})
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if n, err := io.Copy(io.Discard, resp.Body); n > tc.want || n < tc.want-64<<10 || (err == nil) != tc.ends {
				t.Errorf("%d bytes are read, %v; want %d", n, err, tc.want)
			}
		})
	}
}

func TestPagesOfTagsAreBounded(t *testing.T) {
	page, err := json.Marshal(map[string]any{"name": "acme/sea", "tags": make([]string, maxTags/4)})
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !strings.HasSuffix(req.URL.Path, "/tags/list") {
			return
		}
		pages++
		w.Header().Set("Link", "<"+req.URL.Path+">; rel=\"next\"")
		_, _ = w.Write(page)
	}))
	defer server.Close()
	p := newPuller(&Resolver{Cache: t.TempDir(), Keychain: anonymous{}})
	p.begin("", 0, nil)
	_, _, err = p.list(t.Context(), packages.Request{Source: strings.TrimPrefix(server.URL, "http://") + "/acme/sea", Configs: new(packages.ImageConfigs)})
	if err == nil || !strings.Contains(err.Error(), "more than 100000 tags; name a version") || pages != 5 {
		t.Errorf("after %d pages: %v", pages, err)
	}
}

// An item of a few bytes takes hundreds in memory, and the client reads four responses at a time.
func TestItemsAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		path, item string
		n          int
		ok         bool
	}{
		"Layers":       {"/v2/acme/sea/manifests/v1", "{},", maxItems + 1, false},
		"HonestLayers": {"/v2/acme/sea/manifests/v1", "{},", 2 * 256, true},
		"Tags":         {"/v2/acme/sea/tags/list", `"",`, maxTags + 200, false},
		"HonestTags":   {"/v2/acme/sea/tags/list", `"v1.0.0",`, maxTags, true},
	} {
		t.Run(name, func(t *testing.T) {
			from := fixtures.Transport(func(req *http.Request) (*http.Response, error) {
				return &http.Response{Request: req, Body: io.NopCloser(strings.NewReader(strings.Repeat(tc.item, tc.n)))}, nil
			})
			resp, err := bounded{from}.RoundTrip(&http.Request{URL: &url.URL{Path: tc.path}})
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, err := io.Copy(io.Discard, resp.Body); (err == nil) != tc.ok {
				t.Error(err)
			}
		})
	}
}

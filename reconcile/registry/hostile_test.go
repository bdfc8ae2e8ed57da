package registry_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/render"
)

// A registry may send the credentials, markup, control characters and very long texts in any field. Findings must quote only plain
// words from it.
func TestHostileRegistry(t *testing.T) {
	const password = "c4n4ry-t0k3n"
	output := password + " cm9ib3Q6YzRuNHJ5LXQwazNu \u202e **bold** [a](http://evil.example/" + password + ") <img> " + strings.Repeat("0123456789abcdef", 50)
	first := strings.Fields(output)[0]
	bearer := func(parameters string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, req *http.Request) bool {
			if strings.HasPrefix(req.URL.Path, "/token") {
				fmt.Fprintf(w, `{"nothing":%q}`, output)
				return true
			}
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(parameters, req.Host, first))
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
	}
	header := func(path string, code int, headers ...string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, req *http.Request) bool {
			if !strings.Contains(req.URL.Path, path) {
				return false
			}
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q,"detail":%q},{"code":"DENIED","message":%q}]}`, output, output, output, output)
			return true
		}
	}
	const anImage = "application/vnd.oci.image.manifest.v1+json"
	cases := map[string]struct {
		reason  string
		version string
		answer  func(w http.ResponseWriter, req *http.Request) bool
		want    string
	}{
		"Codes":      {reason: "Codes, messages and details of errors may contain any text.", answer: header("/manifests/", 403), want: "403 Forbidden"},
		"Challenge":  {reason: "A challenge names a scheme, which may be any text.", answer: header("/v2/", 401, "WWW-Authenticate", output), want: "cannot be read"},
		"NoRealm":    {reason: "A challenge has parameters, which may contain any text.", answer: bearer(`Bearer service="%s %s"`), want: "missing realm"},
		"Realm":      {reason: "A realm is a URL, which may contain any text.", answer: bearer(`Bearer realm="http://%s/token/%s",service="x"`), want: "no token in bearer response"},
		"BadRealm":   {reason: "A realm may not be a URL.", answer: bearer(`Bearer realm="gopher://%s/%%zz%s"`), want: "invalid realm"},
		"Location":   {reason: "The address of a redirect may contain any text.", answer: header("/blobs/", 307, "Location", "http://localhost:1/"+first+"?"+first), want: "connection refused"},
		"NoLocation": {reason: "The address of a redirect may not be a URL.", answer: header("/blobs/", 307, "Location", "http://%zz"+first), want: "failed to parse Location header"},
		"Digest":     {reason: "A digest may be any text.", answer: header("/manifests/v1", 200, "Content-Type", anImage, "Content-Length", "5", "Docker-Content-Digest", output), want: "in hash"},
		"OtherType":  {reason: "A media type may be any text.", answer: header("/manifests/", 200, "Content-Type", "a/"+first), want: "cannot be read"},
		"Link":       {reason: "The header with the next page may contain any text.", version: ">=v1.0.0", answer: header("/tags/list", 200, "Link", output), want: "cannot be read"},
		"Scheme":     {reason: "The next page may be on another host.", version: ">=v1.0.0", answer: header("/tags/list", 200, "Link", "<gopher://x/"+first+">"), want: "cannot be read"},
		"Tags": {reason: "A tag may be any text.", version: ">=v1.0.0", answer: func(w http.ResponseWriter, req *http.Request) bool {
			if strings.HasSuffix(req.URL.Path, "/tags/list") {
				fmt.Fprintf(w, `{"name":%q,"tags":[%q,"v1.0.0+%s","v1.0.0 **x**"]}`, output, output, "a b")
			}
			return strings.HasSuffix(req.URL.Path, "/tags/list")
		}, want: "none of its 3 tags is a version"},
		"Status": {reason: "A status line may contain any text.", answer: func(w http.ResponseWriter, _ *http.Request) bool {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				fmt.Fprintf(conn, "HTTP/1.1 418 %s\r\nContent-Length: 0\r\n\r\n", output)
				_ = conn.Close()
			}
			return true
		}, want: "418 I'm a teapot"},
		"NoStatus": {reason: "A status line may be invalid.", answer: func(w http.ResponseWriter, _ *http.Request) bool {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				fmt.Fprintf(conn, "HTTP/1.1 %s\r\n\r\n", output)
				_ = conn.Close()
			}
			return true
		}, want: "server gave HTTP response to HTTPS client"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DOCKER_CONFIG", t.TempDir())
			r := start(t)
			r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
			config := `{"auths":{"` + r.Host + `":{"username":"robot","password":"` + password + `"}}}`
			if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			r.Through(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					if strings.Contains(req.URL.Path, "/acme/config/") || !tc.answer(w, req) {
						next.ServeHTTP(w, req)
					}
				})
			})
			files := tree(installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.0.0", ""))
			if tc.version != "" {
				r.Push(t, "acme/config", "v1.0.0", configuration("config", dependsOn(r, "provider", "acme/provider-sea", tc.version)), 0)
				files = tree(installs("Configuration", "config", r.Host+"/acme/config:v1.0.0", ""))
			}
			want := rendered(t, &registry.Resolver{Next: commit{files: files}, Cache: t.TempDir()}, render.OwnerCrossplane)
			var all []string
			for _, f := range want.Findings {
				all = append(all, f.Message, f.Fix)
			}
			for _, unread := range want.Unread {
				for e := unread.Err; e != nil; e = errors.Unwrap(e) {
					all = append(all, e.Error())
				}
			}
			text := strings.Join(all, "\n")
			if !strings.Contains(text, tc.want) {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, all)
			}
			for _, one := range all {
				if len(one) > 1000 || strings.Contains(one, password) || strings.Contains(one, "YzRuNHJ5") || strings.ContainsAny(one, "*[<\u202e") || strings.ContainsFunc(one, unicode.IsControl) {
					t.Errorf("%s\n%q", tc.reason, one)
				}
			}
		})
	}
}

package registry_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	"github.com/google/go-cmp/cmp"
)

// A port is a listener that counts connections.
type port struct {
	host string
	seen atomic.Int32
}

// countedPort returns a port that accepts connections and answers nothing.
func countedPort(t *testing.T) *port {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &port{host: l.Addr().String()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.seen.Add(1)
			_ = c.Close()
		}
	}()
	return p
}

func headOf(t *testing.T, target *registry.Resolver, files []string, listed ...string) *registry.Resolver {
	t.Helper()
	want, err := attempt(t, target, render.OwnerCrossplane)
	if err != nil && len(want.Named.Images) == 0 {
		t.Fatal(err)
	}
	head, err := target.Head(t.Context(), want.Named, listed)
	if err != nil {
		t.Fatal(err)
	}
	head.Next = commit{files: tree(files...)}
	return head
}

// rewriting returns an ImageConfig that redirects images.
func rewriting(from, to string) string {
	return "apiVersion: pkg.crossplane.io/v1beta1\nkind: ImageConfig\nmetadata: {name: rewrite}\nspec:\n  matchImages: [{prefix: " + from + "}]\n  rewriteImage: {prefix: " + to + "}\n"
}

// The author of a pull request chooses images. Without limits, Headgate would scan the ports of its own network for every author.
func TestHeadReachesWhatItsTargetNames(t *testing.T) {
	r := start(t)
	r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
	r.Push(t, "acme/provider-sea", "v2.0.0", provider("provider-sea", "boats", "ships"), 0)
	silent := countedPort(t)
	r.Push(t, "acme/config", "v1.0.0", configuration("config", "  dependsOn: [{provider: "+silent.host+"/acme/provider-sea, version: '>=v1.0.0'}]\n"), 0)
	install := func(image string) string { return installs("Provider", "provider-sea", image, "") }
	base := install(r.Host + "/acme/provider-sea:v1.0.0")
	cases := map[string]struct {
		reason string
		target []string
		live   []packages.LiveConfig
		head   []string
		listed []string
		want   string // part of the error; "" if the package is read
	}{
		"Named":      {"A registry on a private address may be named by the target.", []string{base}, nil, []string{install(r.Host + "/acme/provider-sea:v2.0.0")}, nil, ""},
		"OtherPort":  {"Another port of this machine is not asked.", []string{base}, nil, []string{install(silent.host + "/acme/provider-sea:v1.0.0")}, nil, silent.host},
		"Digest":     {"A digest does not help.", []string{base}, nil, []string{install(silent.host + "/acme/provider-sea@sha256:" + strings.Repeat("a", 64))}, nil, silent.host},
		"Public":     {"A public registry must be named, too.", []string{base}, nil, []string{install("registry.example.org/acme/provider-sea:v1.0.0")}, nil, "registry.example.org"},
		"Hub":        {"An image without a host is at Docker Hub, which the target does not name.", []string{base}, nil, []string{install("acme/provider-sea:v1.0.0")}, nil, "index.docker.io"},
		"Rewritten":  {"An ImageConfig of the head does not redirect to another registry.", []string{base}, nil, []string{install(r.Host + "/acme/provider-sea:v1.0.0"), rewriting(r.Host, silent.host)}, nil, silent.host},
		"Dependency": {"Nor does a dependency of a package that the head installs.", []string{base}, nil, []string{installs("Configuration", "config", r.Host+"/acme/config:v1.0.0", "")}, nil, silent.host},
		"Empty":      {"A target that names nothing allows nothing.", nil, nil, []string{install(silent.host + "/acme/provider-sea:v1.0.0")}, nil, silent.host},
		"Listed":     {"The user may list a registry.", nil, nil, []string{install(r.Host + "/acme/provider-sea:v2.0.0")}, []string{r.Host}, ""},
		"Mirror":     {"A target names a registry with an ImageConfig, too.", []string{rewriting("xpkg.example.org", r.Host)}, nil, []string{rewriting("xpkg.example.org", r.Host), install("xpkg.example.org/acme/provider-sea:v2.0.0")}, nil, ""},
		"LiveMirror": {"So does the cluster.", nil, mirror("xpkg.example.org", r.Host), []string{install("xpkg.example.org/acme/provider-sea:v2.0.0")}, nil, ""},
		"Broken":     {"A pull request that repairs its target needs the registries that the target names.", []string{base, "kind: Provider\nmetadata: {}\n"}, nil, []string{install(r.Host + "/acme/provider-sea:v2.0.0")}, nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			target := &registry.Resolver{Next: commit{files: tree(tc.target...)}, Cache: t.TempDir()}
			if tc.live != nil {
				target.Images = func(context.Context) ([]packages.LiveConfig, error) { return tc.live, nil }
			}
			want, err := attempt(t, target, render.OwnerCrossplane)
			if (err != nil) != (name == "Broken") {
				t.Fatal(err)
			}
			head, err := target.Head(t.Context(), want.Named, tc.listed)
			if err != nil {
				t.Fatal(err)
			}
			head.Next = commit{files: tree(tc.head...)}
			if tc.want == "" {
				if want := rendered(t, head, render.OwnerCrossplane); len(want.Definitions) == 0 || len(want.Unread) > 0 {
					t.Errorf("%s\n%d definitions, %v", tc.reason, len(want.Definitions), want.Unread)
				}
			} else {
				want := rendered(t, head, render.OwnerCrossplane)
				if len(want.Unread) != 1 || !strings.HasSuffix(want.Unread[0].Err.Error(), "the registry "+tc.want+" is not asked for a pull request, because its target does not name it; list it in spec.previewRegistries or --preview-registries") {
					t.Errorf("%s\n%v", tc.reason, want.Unread)
				}
			}
			if n := silent.seen.Load(); n > 0 {
				t.Errorf("%s\n%d connections", tc.reason, n)
			}
		})
	}
}

func mirror(from, to string) []packages.LiveConfig {
	return []packages.LiveConfig{{Name: "mirror", Spec: map[string]any{
		"matchImages":  []any{map[string]any{"prefix": from}},
		"rewriteImage": map[string]any{"prefix": to},
	}}}
}

// A registry that the target names may redirect. The author of a pull request must not learn from it which internal hosts exist.
func TestHeadIsNotSentInside(t *testing.T) {
	silent := countedPort(t)
	_, number, _ := strings.Cut(silent.host, ":")
	texts := map[string]string{}
	for name, to := range map[string]string{
		"Address": silent.host,
		"Name":    "localhost:" + number,
		"Closed":  "localhost:1",
		"Absent":  "absent.invalid:" + number,
	} {
		t.Run(name, func(t *testing.T) {
			for _, by := range []string{"redirect", "token"} {
				r := start(t)
				r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
				r.Push(t, "acme/provider-sea", "v2.0.0", provider("provider-sea", "boats", "ships"), 0)
				target := &registry.Resolver{Next: commit{files: tree(installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.0.0", ""))}, Cache: t.TempDir()}
				head := headOf(t, target, []string{installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v2.0.0", "")})
				r.Through(func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
						switch {
						case by == "token":
							w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+to+`/token",service="registry"`)
							http.Error(w, "who are you?", http.StatusUnauthorized)
						case strings.Contains(req.URL.Path, "/blobs/"):
							http.Redirect(w, req, "http://"+to+req.URL.Path, http.StatusTemporaryRedirect)
						default:
							next.ServeHTTP(w, req)
						}
					})
				})
				got := unread(t, head)
				if name != "Address" { // the client itself refuses what looks like a private address
					_, got, _ = strings.Cut(strings.ReplaceAll(got, r.Host, "REGISTRY"), "cannot be read: ")
					texts[name+" "+by] = strings.ReplaceAll(got, to, "HOST")
				}
			}
		})
	}
	var distinct []string
	for _, text := range texts {
		distinct = append(distinct, text)
	}
	slices.Sort(distinct)
	want := []string{"HOST cannot be asked for a pull request: it is not one of the allowed registries, and does not answer at a public address"}
	if diff := cmp.Diff(want, slices.Compact(distinct)); diff != "" {
		t.Errorf("one text (-want +got):\n%s", diff)
	}
	if n := silent.seen.Load(); n > 0 {
		t.Errorf("%d connections", n)
	}
}

// A loop reads Secrets in the namespace of its Sync. The author of a pull request must not learn which ones exist.
func TestHeadUsesSecretsOfItsTarget(t *testing.T) {
	r := start(t)
	r.Want("robot", "canary-password")
	r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
	valid := map[string][]byte{".dockerconfigjson": fmt.Appendf(nil, `{"auths":{%q:{"username":"robot","password":"canary-password"}}}`, r.Host)}
	secrets := map[string]map[string][]byte{"named": valid, "unnamed": valid, "other": {"key": []byte("canary")}, "named-other": {"key": []byte("canary")}}
	var read []string
	using := func(secret string) string {
		return installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.0.0", "  packagePullSecrets: [{name: "+secret+"}]\n")
	}
	signed := func(secret string) string {
		return "apiVersion: pkg.crossplane.io/v1beta1\nkind: ImageConfig\nmetadata: {name: signed}\nspec:\n  matchImages: [{prefix: " + r.Host + "}]\n" +
			"  registry: {authentication: {pullSecretRef: {name: named}}}\n" +
			"  verification: {provider: Cosign, cosign: {authorities: [{name: acme, key: {secretRef: {name: " + secret + ", key: key}}}]}}\n"
	}
	target := func() *registry.Resolver {
		return &registry.Resolver{
			Next: commit{files: tree(using("named"), signed("named-other"), signed("named-absent"))}, Cache: t.TempDir(),
			Secret: func(_ context.Context, name string) (map[string][]byte, error) {
				read = append(read, name)
				if data, ok := secrets[name]; ok {
					return data, nil
				}
				return nil, errors.New("not found")
			},
		}
	}
	named := packages.Named{Images: []string{r.Host + "/acme/provider-sea"}, Secrets: []string{"named", "named-other", "named-absent"}}
	headOf := func(files ...string) *registry.Resolver {
		head, err := target().Head(t.Context(), named, nil)
		if err != nil {
			t.Fatal(err)
		}
		head.Next = commit{files: tree(files...)}
		return head
	}
	if want := rendered(t, headOf(using("named")), render.OwnerCrossplane); len(want.Definitions) != 1 {
		t.Errorf("a Secret that the target names is used: %v", want.Unread)
	}
	for _, name := range []string{"absent", "unnamed", "other", "named-absent", "named-other"} {
		if got := unread(t, headOf(using(name))); !strings.HasSuffix(got, "; pull secret "+name+" cannot be used for a pull request; it must exist, be valid, and be named by the target") {
			t.Errorf("%s: %s", name, got)
		}
		if got := unread(t, headOf(using("named"), signed(name))); !strings.HasSuffix(got, "the key "+name+"/key cannot be used for a pull request; it must exist, be valid, and be named by the target") {
			t.Errorf("%s as key: %s", name, got)
		}
	}
	for _, name := range []string{"absent", "unnamed", "other"} {
		if slices.Contains(read, name) {
			t.Errorf("the Secret %s was read", name)
		}
	}
}

// Both sides of a comparison use the same image, also if a tag moves in between.
func TestHeadUsesTheImageOfItsTarget(t *testing.T) {
	r := start(t)
	first := r.Push(t, "acme/provider-sea", "v1", provider("provider-sea", "boats"), 0)
	files := []string{installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1", "")}
	target := &registry.Resolver{Next: commit{files: tree(files...)}, Cache: t.TempDir(), Fresh: 1}
	within, err := target.Within(nil)
	if err != nil {
		t.Fatal(err)
	}
	head := headOf(t, within, files)
	r.Push(t, "acme/provider-sea", "v1", provider("provider-sea", "ships"), 0)
	want := rendered(t, head, render.OwnerCrossplane)
	if len(want.Packages) != 1 || want.Packages[0].Digest != first {
		t.Errorf("want %s, got %v", first, want.Packages)
	}
	if diff := cmp.Diff([]string(nil), rules(want, manifest.Warning)); diff != "" {
		t.Error(diff)
	}
}

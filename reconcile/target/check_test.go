package target

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/client-go/rest"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/preflight"
)

const unprinted = "canary-that-nobody-may-read"

// run makes checks and returns their results by name. No result contains the text unprinted.
func run(t *testing.T, c Checks) map[string]preflight.Result {
	t.Helper()
	all := map[string]preflight.Result{}
	for _, r := range c.Run(t.Context()) {
		all[r.Check] = r
		if text, err := json.Marshal(r); err != nil || strings.Contains(string(text), unprinted) {
			t.Errorf("a secret is in a result: %s (%v)", text, err)
		}
		if r.Status == "" || r.Message == "" {
			t.Errorf("%s has no result", r.Check)
		}
	}
	return all
}

// An API server, a forge or a proxy in front of them may answer with anything. One answer stops no other check.
func TestChecksAgainstBadServers(t *testing.T) {
	page := "<html><title>Sign in</title>" + unprinted + "</html>"
	cases := map[string]struct {
		reason string
		serve  http.HandlerFunc
		want   preflight.Status // of the API server
	}{
		"Unauthorized": {"The credentials are not accepted.", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, page, http.StatusUnauthorized) }, preflight.Failed},
		"Forbidden":    {"Nothing is allowed.", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, page, http.StatusForbidden) }, preflight.Failed},
		"Page":         {"A proxy answers with a page.", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) }, preflight.Failed},
		"Empty":        {"There is nothing in the answer.", func(http.ResponseWriter, *http.Request) {}, preflight.Failed},
		"Trouble":      {"The server is in trouble.", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, page, http.StatusInternalServerError) }, preflight.Failed},
		"OnlyVersion": {"A server of which only the version can be read.", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/version" {
				http.Error(w, page, http.StatusForbidden)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"major":"1","minor":"37","gitVersion":"v1.37.0"}`)
		}, preflight.OK},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.serve)
			defer server.Close()
			s := decode(t, "  source: {repo: /nowhere, ref: main}\n  clusterName: prod\n  statuses: {forge: Gitea, url: "+server.URL+", repository: a/b, tokenFrom: {env: TOKEN}}")
			all := run(t, Checks{
				Syncs:  []v1alpha1.Sync{s},
				Config: func() (*rest.Config, error) { return &rest.Config{Host: server.URL, BearerToken: unprinted}, nil },
				Around: Surroundings{Getenv: func(string) string { return unprinted }},
				Limit:  5 * time.Second,
			})
			if len(all) != len(ofCluster)+len(ofSync) {
				t.Errorf("%d checks, want %d", len(all), len(ofCluster)+len(ofSync))
			}
			if got := all["API server"].Status; got != tc.want {
				t.Errorf("%s\nAPI server: %s, want %s: %s", tc.reason, got, tc.want, all["API server"].Message)
			}
			for _, check := range []string{"Crossplane", "policies", "owners of CRDs", "shards", "rights that are too wide", "lease", "rights"} {
				if got := all[check]; got.Status != preflight.Unknown {
					t.Errorf("%s\n%s: %s: %s", tc.reason, check, got.Status, got.Message)
				}
			}
			if got := all["token of the forge"].Status; got != preflight.Failed {
				t.Errorf("%s\nthe token: %s: %s", tc.reason, got, all["token of the forge"].Message)
			}
			if got := all["repository"].Status; got != preflight.Failed {
				t.Errorf("the repository does not exist: %s", got)
			}
		})
	}
}

// Syncs of one cluster and repository share one pair of statuses, or none of them does.
func TestMixedContexts(t *testing.T) {
	sync := func(name, cluster, repository, contexts string) v1alpha1.Sync {
		s := decode(t, "  source: {repo: /nowhere, ref: main}\n  clusterName: "+cluster+"\n  statuses: {forge: Gitea, url: https://example.org, repository: "+repository+", contexts: "+contexts+"}")
		s.Name = name
		return s
	}
	a, shared := sync("a", "prod", "o/one", "Sync"), sync("b", "prod", "o/one", "Cluster")
	if got := mixedContexts([]v1alpha1.Sync{a, shared}); len(got) != 1 || got[0].Status != preflight.Warning || !strings.Contains(got[0].Message, "without team/a") {
		t.Errorf("%+v", got)
	}
	without := decode(t, "  source: {repo: /nowhere, ref: main}\n")
	if got := mixedContexts([]v1alpha1.Sync{a, sync("b", "other", "o/one", "Cluster"), sync("c", "prod", "o/two", "Cluster"), sync("d", "prod", "o/one", "Sync"), without}); len(got) != 0 {
		t.Errorf("another cluster, another repository: %+v", got)
	}
}

// A server that does not answer costs one limit, not one for each check.
func TestChecksAreBounded(t *testing.T) {
	asked := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		<-r.Context().Done()
	}))
	defer server.Close()
	all := run(t, Checks{Config: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, Limit: 50 * time.Millisecond})
	if got := all["API server"]; got.Status != preflight.Failed || !strings.Contains(got.Message, "50ms") {
		t.Errorf("%s: %s", got.Status, got.Message)
	}
	if n := len(asked); n != 1 {
		t.Errorf("%d requests to a server that does not answer", n)
	}
}

func TestChecksOffline(t *testing.T) {
	s := decode(t, "  source: {repo: https://git.example.org/a/b.git, ref: main}\n  clusterName: prod\n  statuses: {forge: Gitea, tokenFrom: {env: TOKEN}}")
	all := run(t, Checks{
		Syncs: []v1alpha1.Sync{s}, Offline: true,
		Config: func() (*rest.Config, error) {
			return &rest.Config{Host: "https://127.0.0.1:1", BearerToken: jwt(`{"exp":1}`)}, nil
		},
	})
	for name, r := range all {
		want := preflight.Skipped
		if name == "kubeconfig" {
			want = preflight.Failed // the token shows that it expired
		}
		if r.Status != want {
			t.Errorf("%s: %s: %s, want %s", name, r.Status, r.Message, want)
		}
	}
	none := run(t, Checks{Offline: true, Config: func() (*rest.Config, error) { return nil, errors.New("no kubeconfig") }})
	if got := none["kubeconfig"].Status; got != preflight.Unknown {
		t.Errorf("without a cluster, a check of files does not fail: %s", got)
	}
}

func jwt(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + unprinted
}

func TestExpiries(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	in := func(d time.Duration) string { return fmt.Sprintf(`{"exp":%d}`, now.Add(d).Unix()) }
	cases := map[string]struct {
		reason string
		config rest.Config
		want   preflight.Status
	}{
		"Token":         {"A token of a service account.", rest.Config{BearerToken: jwt(in(1000 * time.Hour))}, preflight.OK},
		"Expired":       {"An expired token.", rest.Config{BearerToken: jwt(in(-time.Hour))}, preflight.Failed},
		"Endless":       {"A token of a Secret does not expire.", rest.Config{BearerToken: jwt(`{}`)}, preflight.OK},
		"Opaque":        {"Other tokens show nothing.", rest.Config{BearerToken: unprinted}, preflight.Unknown},
		"NotJSON":       {"It looks like a token.", rest.Config{BearerToken: jwt(`]`)}, preflight.Unknown},
		"Word":          {"The claim is no number.", rest.Config{BearerToken: jwt(`{"exp":"x"}`)}, preflight.Unknown},
		"Huge":          {"The claim is out of range.", rest.Config{BearerToken: jwt(`{"exp":1e300}`)}, preflight.Unknown},
		"Negative":      {"The claim is before 1970.", rest.Config{BearerToken: jwt(`{"exp":-5}`)}, preflight.Unknown},
		"Nothing":       {"A proxy may add the credentials.", rest.Config{}, preflight.Unknown},
		"Certificate":   {"A client certificate.", rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: certificateUntil(t, now.Add(time.Hour))}}, preflight.Warning},
		"Old":           {"An old client certificate.", rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: certificateUntil(t, now.Add(-time.Hour))}}, preflight.Failed},
		"NoCertificate": {"It is no certificate.", rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x")}}, preflight.Unknown},
		"NoFile":        {"The file is not there.", rest.Config{BearerTokenFile: filepath.Join(t.TempDir(), "none")}, preflight.Unknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := expiries(&tc.config, now)[0].Judge()
			if got.Status != tc.want || strings.Contains(got.Message, unprinted) {
				t.Errorf("%s\n%s: %s, want %s", tc.reason, got.Status, got.Message, tc.want)
			}
		})
	}
}

func certificateUntil(t *testing.T, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: until.Add(-time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestClock(t *testing.T) {
	sent := time.Date(2026, 1, 2, 3, 4, 5, 700_000_000, time.UTC)
	received := sent.Add(2 * time.Second)
	for name, tc := range map[string]struct {
		reason, header string
		ahead          int64
		known          bool
	}{
		"Same":    {"The header has no fractions.", "Fri, 02 Jan 2026 03:04:05 GMT", 0, true},
		"Between": {"The answer took two seconds.", "Fri, 02 Jan 2026 03:04:07 GMT", 0, true},
		"Ahead":   {"The server is a minute ahead.", "Fri, 02 Jan 2026 03:05:07 GMT", 60, true},
		"Behind":  {"The server is a minute behind.", "Fri, 02 Jan 2026 03:03:05 GMT", -60, true},
		"Missing": {"A proxy removes it.", "", 0, false},
		"Garbage": {"It is no time.", "yesterday", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			var c clock
			c.learn(tc.header, sent, received)
			if c.ahead != tc.ahead || c.known != tc.known {
				t.Errorf("%s\nlearn(%q) = %d, %t; want %d, %t", tc.reason, tc.header, c.ahead, c.known, tc.ahead, tc.known)
			}
		})
	}
}

func TestSecretNames(t *testing.T) {
	s := decode(t, `  source: {repo: https://git.example.org/a/b.git, credentialsFrom: {secretRef: {name: git}}, webhook: {secretFrom: {secretRef: {name: hook}}}}
  clusterName: prod
  statuses: {forge: Gitea, tokenFrom: {secretRef: {name: git}}}`)
	if got := strings.Join(secretNames(s.Spec), " "); got != "git hook" {
		t.Errorf("the Secrets of the Sync: %s", got)
	}
}

// A check that has no limit of its own would wait for ever.
func TestEveryCheckIsBounded(t *testing.T) {
	i := &inspection{Checks: Checks{Limit: time.Hour}, down: map[preflight.Need]bool{}}
	i.answer(t.Context(), probe{name: "x", ask: func(_ *inspection, ctx context.Context) (preflight.Result, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("a check has no deadline")
		}
		return preflight.Result{}, nil
	}})
}

// A Sync whose repository and statuses are on a real Gitea, with a real API server.
func TestChecksOnGitea(t *testing.T) {
	g := fixtures.StartGitea(t)
	cloned := g.CreateRepo(t, "platform")
	commit := g.Commit(t, "platform", "settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\n")
	path := "/repos/" + g.Owner + "/platform"
	protect := func(contexts ...string) {
		t.Helper()
		_ = g.TryCall(http.MethodDelete, path+"/branch_protections/main", nil, nil)
		g.Call(t, http.MethodPost, path+"/branch_protections", map[string]any{"rule_name": "main", "enable_status_check": true, "status_check_contexts": contexts}, nil)
	}
	token := g.User(t, "bot", "write:repository")
	g.Call(t, http.MethodPut, path+"/collaborators/bot", map[string]string{"permission": "write"}, nil)
	s := decode(t, "  source: {repo: "+cloned+", ref: main}\n  crdOwner: Headgate\n  clusterName: prod\n  previews: true\n  statuses: {forge: Gitea, tokenFrom: {env: TOKEN}}")
	expect := func(want map[string]preflight.Status) {
		t.Helper()
		all := run(t, Checks{
			Syncs: []v1alpha1.Sync{s}, Config: func() (*rest.Config, error) { return fixtures.Config(t), nil }, Limit: fixtures.Patience,
			Around: Surroundings{Getenv: func(name string) string { return map[string]string{"TOKEN": token}[name] }},
		})
		for name, status := range want {
			if got := all[name]; got.Status != status {
				t.Errorf("%s: %s: %s, want %s", name, got.Status, got.Message, status)
			}
		}
		for _, r := range all {
			if strings.Contains(r.Message+r.Do, token) {
				t.Errorf("the token is in a result: %s", r.Message)
			}
		}
	}
	protect("build")
	expect(map[string]preflight.Status{
		"repository": preflight.OK, "registries": preflight.OK, "rights": preflight.OK, "other owners": preflight.OK, "lease": preflight.OK,
		"token of the forge": preflight.OK, "expiry of the token": preflight.OK, "clock of the forge": preflight.OK,
		"required status": preflight.Warning, "cluster name": preflight.OK,
	})
	protect("headgate/prod/preview")
	g.Call(t, http.MethodPost, path+"/statuses/"+commit, map[string]string{"state": "success", "context": "headgate/prod/team/checksongitea/activation"}, nil)
	expect(map[string]preflight.Status{"required status": preflight.OK, "cluster name": preflight.Warning})
	protect("headgate/prod/team/checksongitea/activation")
	expect(map[string]preflight.Status{"required status": preflight.Failed})
	token = g.User(t, "reader", "read:repository")
	expect(map[string]preflight.Status{"token of the forge": preflight.Failed, "expiry of the token": preflight.Unknown, "required status": preflight.Unknown, "repository": preflight.OK, "lease": preflight.OK})
}

// Registries are read also if the cluster cannot be: then the pull secrets in the cluster are missing.
func TestChecksOfRegistries(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	packages := fixtures.StartRegistry(t)
	packages.Push(t, "acme/provider-check", "v1.0.0", fstest.MapFS{
		"crossplane.yaml": {Data: []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-check}\nspec: {capabilities: [safe-start]}\n")},
		"crd.yaml": {Data: []byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: boats.checked.example.org}\nspec:\n  group: checked.example.org\n" +
			"  names: {kind: Boat, plural: boats}\n  scope: Namespaced\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n")},
	}, 0)
	r := newRepo(t)
	r.push(t, "provider.yaml", "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-check}\nspec: {package: "+packages.Host+"/acme/provider-check:v1.0.0}\n")
	s := decode(t, fmt.Sprintf("  source: {repo: %q}\n", r.dir))
	expect := func(want preflight.Status, says string) {
		t.Helper()
		all := run(t, Checks{
			Syncs: []v1alpha1.Sync{s}, Config: func() (*rest.Config, error) { return nil, errors.New("no kubeconfig") }, Limit: fixtures.Patience,
		})
		if got := all["registries"]; got.Status != want || !strings.Contains(got.Message, says) {
			t.Errorf("registries: %s: %s, want %s with %q", got.Status, got.Message, want, says)
		}
		for _, check := range []string{"rights", "other owners", "lease"} {
			if got := all[check].Status; got != preflight.Unknown {
				t.Errorf("%s needs the cluster: %s", check, got)
			}
		}
	}
	expect(preflight.OK, "1 package of "+packages.Host)
	packages.Want("robot", unprinted)
	expect(preflight.Failed, "1 of 1 package cannot be read: "+packages.Host+"/acme/provider-check:v1.0.0: ")
	packages.Fail(http.StatusInternalServerError)
	expect(preflight.Failed, "500")
}

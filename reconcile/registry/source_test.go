package registry_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
)

// A commit is the Source that a Resolver wraps.
type commit struct {
	revision string
	files    fstest.MapFS
}

func (c commit) Fetch(context.Context, string) (render.Input, error) {
	return render.Input{Revision: c.revision, Files: c.files}, nil
}

// provider returns the files of a provider package in sea.example.org, with one definition for each plural.
func provider(name string, plurals ...string) fstest.MapFS {
	files := fstest.MapFS{"crossplane.yaml": {Data: []byte(`apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata:
  name: ` + name + `
spec:
  capabilities: [safe-start]
`)}}
	for _, plural := range plurals {
		files["crds/"+plural+".yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.sea.example.org
spec:
  group: sea.example.org
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]s, singular: %[3]s}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, description: "of %[1]s"}}
`, plural, strings.ToUpper(plural[:1])+plural[1:len(plural)-1], plural[:len(plural)-1])}
	}
	return files
}

func configuration(name, more string) fstest.MapFS {
	return fstest.MapFS{"crossplane.yaml": {Data: []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: " + name + "\nspec:\n" + more)}}
}

const policyText = `apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceActivationPolicy
metadata: {name: team}
spec: {activate: [boats.sea.example.org]}
`

// installs returns the object that installs a package.
func installs(kind, name, image, more string) string {
	return "apiVersion: pkg.crossplane.io/v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec:\n  package: " + image + "\n" + more
}

func tree(files ...string) fstest.MapFS {
	m := fstest.MapFS{"policy.yaml": {Data: []byte(policyText)}}
	for i, text := range files {
		m[fmt.Sprintf("package-%d.yaml", i)] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// rendered fetches a commit and renders it.
func rendered(t *testing.T, s *registry.Resolver, owner render.Owner) render.Desired {
	t.Helper()
	want, err := attempt(t, s, owner)
	if err != nil {
		t.Fatal(err)
	}
	return want
}

func attempt(t *testing.T, s *registry.Resolver, owner render.Owner) (render.Desired, error) {
	t.Helper()
	in, err := s.Fetch(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	how := s.How
	how.Owner = owner
	return render.Render(in, how)
}

// told returns every definition and whether it is active, and every package with its version.
func told(want render.Desired) []string {
	var all []string
	for _, d := range want.Definitions {
		all = append(all, fmt.Sprintf("%s %t", d.Name, d.Active))
	}
	for _, p := range want.Packages {
		all = append(all, fmt.Sprintf("%s %s %s", p.Kind, p.Name, p.Version))
	}
	return all
}

func rules(want render.Desired, least manifest.Severity) []string {
	var all []string
	for _, f := range want.Findings {
		if f.Severity != manifest.Note || least == manifest.Note {
			all = append(all, f.Rule)
		}
	}
	return all
}

func start(t *testing.T) *fixtures.Registry {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	return fixtures.StartRegistry(t)
}

// A preview loop survives a pull request whose package causes a panic.
func TestPanicOfOnePackage(t *testing.T) {
	defer func() {
		if output, _ := recover().(string); !strings.HasPrefix(output, "a nil map\n") {
			t.Errorf("The caller learns of %q.", output)
		}
	}()
	s := &registry.Resolver{
		Next:   commit{files: tree(installs("Provider", "sea", "127.0.0.1:1/acme/sea:v1", "  packagePullSecrets: [{name: pull}]\n"))},
		Cache:  t.TempDir(),
		Secret: func(context.Context, string) (map[string][]byte, error) { panic("a nil map") },
	}
	_, err := s.Fetch(t.Context(), "")
	t.Errorf("It went on: %v", err)
}

// A package has the same result in the tree and in a registry.
func TestSameAsInTheTree(t *testing.T) {
	sea := provider("provider-sea", "boats", "buoys")
	r := start(t)
	digest := r.Push(t, "acme/provider-sea", "v1.2.0", sea, 1<<20)
	install := installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.2.0", "")
	inTree := tree(install)
	for name, file := range sea {
		inTree["provider/"+name] = file
	}
	content := func(want render.Desired) []string {
		var all []string
		for _, o := range want.Objects {
			all = append(all, o.ID.String()+" "+o.Digest)
		}
		for _, d := range want.Definitions {
			all = append(all, fmt.Sprintf("%s %t %s %s", d.Name, d.Active, d.State, d.Package.Name))
		}
		return append(all, rules(want, manifest.Note)...)
	}
	for _, owner := range []render.Owner{render.OwnerHeadgate, render.OwnerCrossplane} {
		pulled := rendered(t, &registry.Resolver{Next: commit{files: tree(install)}, Cache: t.TempDir()}, owner)
		held := rendered(t, &registry.Resolver{Next: commit{files: inTree}, Cache: t.TempDir()}, owner)
		if diff := cmp.Diff(content(held), content(pulled)); diff != "" {
			t.Errorf("owner %s (-in the tree +pulled):\n%s", owner, diff)
		}
		if got := pulled.Packages[0].Digest; got != digest {
			t.Errorf("digest %s, want %s", got, digest)
		}
	}
}

// A provider's program is much larger than its package, and Headgate does not need it.
func TestPullsNothingElse(t *testing.T) {
	r := start(t)
	r.Push(t, "acme/provider-sea", "v1.2.0", provider("provider-sea", "boats"), 1<<20)
	cache := t.TempDir()
	files := tree(installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.2.0", ""))
	rendered(t, &registry.Resolver{Next: commit{files: files}, Cache: cache}, render.OwnerCrossplane)
	requests, served := r.Asked()
	if blobs := fixtures.Blobs(requests); len(blobs) != 2 || served > 10<<10 {
		t.Errorf("config and layer are two blobs and a few bytes, got %d bytes with %q", served, requests)
	}

	want := rendered(t, &registry.Resolver{Next: commit{files: files}, Cache: cache}, render.OwnerCrossplane)
	requests, _ = r.Asked()
	if diff := cmp.Diff([]string{"GET /v2/", "HEAD /v2/acme/provider-sea/manifests/v1.2.0"}, requests); diff != "" {
		t.Errorf("with a warm cache a tag is one question (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"boats.sea.example.org true", "Provider provider-sea v1.2.0"}, told(want)); diff != "" {
		t.Error(diff)
	}

	pinned := tree(installs("Provider", "provider-sea", r.Host+"/acme/provider-sea@"+want.Packages[0].Digest, ""))
	rendered(t, &registry.Resolver{Next: commit{files: pinned}, Cache: cache}, render.OwnerCrossplane)
	if requests, _ := r.Asked(); len(requests) > 0 {
		t.Errorf("of a digest nothing is asked, got %q", requests)
	}
}

// Both sides of a comparison use the same image, and a loop does not check a tag in every pass.
func TestTagIsLookedAtOnce(t *testing.T) {
	r := start(t)
	image := r.Host + "/acme/provider-sea:v1"
	r.Push(t, "acme/provider-sea", "v1", provider("provider-sea", "boats"), 0)
	s := &registry.Resolver{Next: commit{"a", tree(installs("Provider", "provider-sea", image, ""))}, Cache: t.TempDir()}
	rendered(t, s, render.OwnerCrossplane)
	r.Push(t, "acme/provider-sea", "v1", provider("provider-sea", "boats", "buoys"), 0)
	s.Next = commit{"b", tree(installs("Provider", "provider-sea", image, ""))}
	if diff := cmp.Diff([]string{"boats.sea.example.org true", "Provider provider-sea v1"}, told(rendered(t, s, render.OwnerCrossplane))); diff != "" {
		t.Error(diff)
	}
	if requests, _ := r.Asked(); len(requests) > 0 {
		t.Errorf("asked again: %q", requests)
	}
}

// Headgate also follows an object's pull policy, with which Crossplane checks every minute or never.
func TestPullPolicy(t *testing.T) {
	r := start(t)
	r.Push(t, "acme/provider-sea", "v1", provider("provider-sea", "boats"), 0)
	cache := t.TempDir()
	with := func(policy string) *registry.Resolver {
		files := tree(installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1", "  packagePullPolicy: "+policy+"\n"))
		return &registry.Resolver{Next: commit{"a", files}, Cache: cache, Fresh: time.Hour}
	}
	if want := rendered(t, with("Never"), render.OwnerCrossplane); len(want.Unread) != 1 || !strings.Contains(want.Unread[0].Err.Error(), "no registry is asked (packagePullPolicy: Never)") {
		t.Errorf("%v", want.Unread)
	}
	if requests, _ := r.Asked(); len(requests) > 0 {
		t.Errorf("never is never: %q", requests)
	}
	always := with("Always")
	rendered(t, always, render.OwnerCrossplane)
	if requests, _ := r.Asked(); len(requests) == 0 {
		t.Error("nobody was asked")
	}
	rendered(t, always, render.OwnerCrossplane)
	if requests, _ := r.Asked(); len(requests) > 0 {
		t.Errorf("once a minute, and not at every pass: %q", requests)
	}
	want := rendered(t, with("Never"), render.OwnerCrossplane)
	if diff := cmp.Diff([]string{"boats.sea.example.org true", "Provider provider-sea v1"}, told(want)); diff != "" {
		t.Errorf("what was pulled is there (-want +got):\n%s", diff)
	}
	if requests, _ := r.Asked(); len(requests) > 0 || len(rules(want, manifest.Warning)) > 0 {
		t.Errorf("and it is no trouble: %q, %v", requests, want.Findings)
	}
}

// Which image Crossplane has installed depends on when it checked the tag, so the user gets a finding.
func TestMovedTag(t *testing.T) {
	r := start(t)
	cache := t.TempDir()
	files := tree(installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1", ""))
	for i, tc := range []struct {
		revision string
		push     bool
		want     []string
	}{
		{"a", true, nil},
		{"a", false, nil},
		{"a", true, []string{registry.RuleMoved}},
		{"a", false, []string{registry.RuleMoved}},
		{"b", false, nil},
	} {
		if tc.push {
			r.Push(t, "acme/provider-sea", "v1", provider("provider-sea", "boats", fmt.Sprintf("buoy%ds", i)), 0)
		}
		want := rendered(t, &registry.Resolver{Next: commit{tc.revision, files}, Cache: cache}, render.OwnerCrossplane)
		if diff := cmp.Diff(tc.want, rules(want, manifest.Warning)); diff != "" {
			t.Errorf("look %d (-want +got):\n%s", i, diff)
		}
	}
}

// Without Crossplane, the images that the sync applied stay: a tag that someone moved, or a newer version in a range, must neither remove
// what the commit of yesterday asked for, nor add to it.
func TestAppliedImages(t *testing.T) {
	r := start(t)
	sea := r.Host + "/acme/provider-sea"
	push := func(tag string, plurals ...string) string {
		return r.Push(t, "acme/provider-sea", tag, provider("provider-sea", plurals...), 0)
	}
	applied := []packages.Locked{{Source: sea, Version: "v1.0.0", Digest: push("v1.0.0", "boats", "buoys")}}
	push("v1.0.0", "boats")
	push("v1.1.0", "boats", "docks")
	depends := configuration("config-sea", "  dependsOn:\n  - {provider: "+sea+", version: '>=v1.0.0'}\n")
	r.Push(t, "acme/config-sea", "v1.0.0", depends, 0)
	kept, moved := []string{"boats.sea.example.org", "buoys.sea.example.org"}, []string{registry.RuleMoved}
	for name, tc := range map[string]struct {
		commit  string
		applied []packages.Locked
		want    []string
		rules   []string
	}{
		"Moved":        {installs("Provider", "provider-sea", sea+":v1.0.0", ""), applied, kept, moved},
		"Range":        {installs("Configuration", "config-sea", r.Host+"/acme/config-sea:v1.0.0", ""), applied, kept, moved},
		"First":        {installs("Provider", "provider-sea", sea+":v1.0.0", ""), nil, kept[:1], nil},
		"OtherVersion": {installs("Provider", "provider-sea", sea+":v1.1.0", ""), applied, []string{kept[0], "docks.sea.example.org"}, nil},
		"Always":       {installs("Provider", "provider-sea", sea+":v1.0.0", "  packagePullPolicy: Always\n"), applied, kept[:1], nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &registry.Resolver{Next: commit{"a", tree(tc.commit)}, Cache: t.TempDir(), Applied: func(context.Context) ([]packages.Locked, error) { return tc.applied, nil }}
			for range 2 { // the answers of the first fetch are remembered
				want := rendered(t, s, render.OwnerHeadgate)
				var names []string
				for _, d := range want.Definitions {
					names = append(names, d.Name)
				}
				if diff := cmp.Diff(tc.want, names); diff != "" {
					t.Errorf("definitions (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.rules, rules(want, manifest.Warning)); diff != "" {
					t.Errorf("findings (-want +got):\n%s", diff)
				}
			}
		})
	}
	gone := []packages.Locked{{Source: sea, Version: "v1.0.0", Digest: "sha256:" + strings.Repeat("0", 64)}}
	s := &registry.Resolver{Next: commit{"a", tree(installs("Provider", "provider-sea", sea+":v1.0.0", ""))}, Cache: t.TempDir(), Applied: func(context.Context) ([]packages.Locked, error) { return gone, nil }}
	if _, err := attempt(t, s, render.OwnerHeadgate); err == nil || !strings.Contains(err.Error(), "name another digest or version") {
		t.Errorf("an applied image is gone: %v", err)
	}
}

// With a warm cache, a render works although a registry is down, and reports the outage.
func TestOutage(t *testing.T) {
	r := start(t)
	r.Push(t, "acme/provider-sea", "v1.2.0", provider("provider-sea", "boats"), 0)
	r.Push(t, "acme/config-sea", "v1.0.0", configuration("config-sea", "  dependsOn:\n  - {provider: "+r.Host+"/acme/provider-sea, version: '>=v1.0.0'}\n"), 0)
	cache := t.TempDir()
	files := tree(installs("Configuration", "acme-config-sea", r.Host+"/acme/config-sea:v1.0.0", ""))
	source := func() *registry.Resolver { return &registry.Resolver{Next: commit{"a", files}, Cache: cache} }
	known := told(rendered(t, source(), render.OwnerCrossplane))

	r.Fail(http.StatusServiceUnavailable)
	want := rendered(t, source(), render.OwnerCrossplane)
	if diff := cmp.Diff(known, told(want)); diff != "" {
		t.Errorf("the same is rendered (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{registry.RuleUnreachable, registry.RuleUnreachable, registry.RuleUnreachable}, rules(want, manifest.Warning)); diff != "" {
		t.Errorf("and it is said (-want +got):\n%s", diff)
	}

	offline := source()
	offline.Offline = true
	r.Asked()
	want = rendered(t, offline, render.OwnerHeadgate)
	if requests, _ := r.Asked(); len(requests) > 0 || len(rules(want, manifest.Warning)) > 0 {
		t.Errorf("who says --offline knows: %q, %v", requests, want.Findings)
	}

	cold := source()
	cold.Cache = t.TempDir()
	want = rendered(t, cold, render.OwnerCrossplane)
	if diff := cmp.Diff([]string{packages.RuleUnread}, rules(want, manifest.Warning)); diff != "" {
		t.Errorf("without one, Crossplane is left to it (-want +got):\n%s", diff)
	}
	if _, err := attempt(t, cold, render.OwnerHeadgate); err == nil || !strings.HasPrefix(err.Error(), "package-0.yaml:5: package ") {
		t.Errorf("but who makes the CRDs has to know them: what is not declared is pruned; got %v", err)
	}
}

// An outage is temporary, so the preview is repeated. A response of the registry is final.
func TestOutagePasses(t *testing.T) {
	r := start(t)
	r.Push(t, "acme/provider-sea", "v1.2.0", provider("provider-sea", "boats"), 0)
	files := tree(installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.2.0", ""))
	for status, want := range map[int]bool{
		http.StatusRequestTimeout: true, http.StatusTooManyRequests: true, http.StatusInternalServerError: true, http.StatusBadGateway: true,
		http.StatusServiceUnavailable: true, http.StatusGatewayTimeout: true,
		http.StatusUnauthorized: false, http.StatusForbidden: false, http.StatusNotFound: false, http.StatusBadRequest: false,
	} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			source := &registry.Resolver{Next: commit{"a", files}, Cache: t.TempDir()}
			r.Fail(status)
			got := rendered(t, source, render.OwnerCrossplane).Unread
			if len(got) != 1 || got[0].Outage() != want {
				t.Errorf("%v; an outage: %t, want %t", got, len(got) == 1 && got[0].Outage(), want)
			}
			r.Fail(0)
			if got := rendered(t, source, render.OwnerCrossplane).Unread; len(got) != 0 {
				t.Errorf("it answers again, and is asked: %v", got)
			}
		})
	}
	elsewhere := map[string]struct {
		image string
		want  bool
	}{
		"NoConnection": {"127.0.0.1:1/acme/provider-sea:v1.2.0", true},
		"NoDigest":     {r.Host + "/acme/provider-sea@sha256:" + strings.Repeat("0", 64), false},
	}
	for name, tc := range elsewhere {
		t.Run(name, func(t *testing.T) {
			source := &registry.Resolver{Next: commit{"a", tree(installs("Provider", "provider-sea", tc.image, ""))}, Cache: t.TempDir()}
			if got := rendered(t, source, render.OwnerCrossplane).Unread; len(got) != 1 || got[0].Outage() != tc.want {
				t.Errorf("%v; want an outage: %t", got, tc.want)
			}
		})
	}
}

// A cache may be damaged, or emptied while it is in use.
func TestDamagedCache(t *testing.T) {
	r := start(t)
	r.Push(t, "acme/provider-sea", "v1.2.0", provider("provider-sea", "boats"), 0)
	cache := t.TempDir()
	files := tree(installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.2.0", ""))
	source := func() *registry.Resolver { return &registry.Resolver{Next: commit{files: files}, Cache: cache} }
	want := told(rendered(t, source(), render.OwnerCrossplane))
	for name, damage := range map[string]func(string) error{
		"changed": func(name string) error { return os.WriteFile(name, []byte("{}"), 0o600) },
		"cut":     func(name string) error { return os.Truncate(name, 3) },
		"gone":    os.Remove,
	} {
		blobs, err := filepath.Glob(filepath.Join(cache, "sha256", "*", "*"))
		if err != nil || len(blobs) != 3 {
			t.Fatalf("%s: %q, %v: want manifest, config and layer", name, blobs, err)
		}
		in, err := source().Fetch(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, blob := range blobs {
			if err := damage(blob); err != nil {
				t.Fatal(err)
			}
		}
		again, err := render.Render(render.Input{Files: in.Files, Packages: in.Packages}, render.Options{Owner: render.OwnerCrossplane})
		if diff := cmp.Diff(want, told(again)); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestCredentials(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	r := fixtures.StartAuthenticatedRegistry(t)
	r.Push(t, "acme/provider-sea", "v1.2.0", provider("provider-sea", "boats"), 0)
	files := tree(installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.2.0", ""))
	source := func() *registry.Resolver { return &registry.Resolver{Next: commit{files: files}, Cache: t.TempDir()} }

	want := rendered(t, source(), render.OwnerCrossplane)
	if diff := cmp.Diff([]string{packages.RuleUnread}, rules(want, manifest.Warning)); diff != "" {
		t.Error(diff)
	}
	config := `{"auths":{"` + r.Host + `":{"username":"robot","password":"canary-password"}}}`
	if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	want = rendered(t, source(), render.OwnerCrossplane)
	if diff := cmp.Diff([]string{"boats.sea.example.org true", "Provider provider-sea v1.2.0"}, told(want)); diff != "" {
		t.Errorf("the docker configuration has them (-want +got):\n%s", diff)
	}
}

// A registry may redirect its clients to any host, but its credentials must not follow.
func TestRedirect(t *testing.T) {
	r, elsewhere := start(t), fixtures.StartRegistry(t)
	r.Want("robot", "canary-password")
	var leaked []string
	for _, one := range []*fixtures.Registry{r, elsewhere} {
		one.Push(t, "acme/provider-sea", "v1.2.0", provider("provider-sea", "boats"), 0)
	}
	r.Through(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if strings.Contains(req.URL.Path, "/blobs/") {
				http.Redirect(w, req, "http://"+strings.Replace(elsewhere.Host, "127.0.0.1", "localhost", 1)+req.URL.Path, http.StatusTemporaryRedirect)
				return
			}
			next.ServeHTTP(w, req)
		})
	})
	elsewhere.Through(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			leaked = append(leaked, req.Header.Values("Authorization")...)
			next.ServeHTTP(w, req)
		})
	})
	s := &registry.Resolver{
		Next:  commit{files: tree(installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.2.0", ""))},
		Cache: t.TempDir(), Keychain: only{r.Host},
	}
	want := rendered(t, s, render.OwnerCrossplane)
	if len(want.Definitions) != 1 || len(leaked) > 0 {
		t.Errorf("%d definitions, and credentials went elsewhere: %q; %v", len(want.Definitions), leaked, want.Findings)
	}
}

// only is a keychain with credentials for one registry.
type only struct{ host string }

func (o only) Resolve(of authn.Resource) (authn.Authenticator, error) {
	if of.RegistryStr() != o.host {
		return authn.Anonymous, errors.New("asked for the credentials of " + of.RegistryStr())
	}
	return authn.FromConfig(authn.AuthConfig{Username: "robot", Password: "canary-password"}), nil
}

func configFile(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// A full cache keeps the images in use. Files of a killed process are removed.
func TestSweep(t *testing.T) {
	r := start(t)
	r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
	cache := t.TempDir()
	left := filepath.Join(cache, "sha256", "00", "writing-1")
	for _, name := range []string{left, filepath.Join(cache, "sha256", "00", "old")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Truncate(name, 1<<30), os.Chtimes(name, time.Unix(0, 0), time.Unix(0, 0))); err != nil {
			t.Fatal(err)
		}
	}
	files := tree(installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.0.0", ""))
	rendered(t, &registry.Resolver{Next: commit{files: files}, Cache: cache}, render.OwnerCrossplane)
	blobs, err := filepath.Glob(filepath.Join(cache, "sha256", "*", "*"))
	if err != nil || len(blobs) != 3 {
		t.Errorf("manifest, config and layer stay, got %q, %v", blobs, err)
	}
}

// The cluster holds the credentials, in Secrets that the commit names.
func TestPullSecrets(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	r := fixtures.StartAuthenticatedRegistry(t)
	r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
	named := installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.0.0", "  packagePullSecrets: [{name: pull}]\n")
	configured := installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.0.0", "") + `---
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata: {name: pull}
spec:
  matchImages: [{type: Prefix, prefix: ` + r.Host + `/acme}]
  registry: {authentication: {pullSecretRef: {name: pull}}}
---
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata: {name: shorter}
spec:
  matchImages: [{prefix: ` + r.Host + `/}]
  registry: {authentication: {pullSecretRef: {name: another}}}
`
	for name, text := range map[string]string{"named": named, "configured": configured} {
		var hidden []string
		s := &registry.Resolver{
			Next: commit{files: tree(text)}, Cache: t.TempDir(),
			Hide: func(value string) { hidden = append(hidden, value) },
			Secret: func(_ context.Context, name string) (map[string][]byte, error) {
				if name != "pull" {
					return nil, errors.New("asked for Secret " + name)
				}
				return map[string][]byte{".dockerconfigjson": []byte(`{"auths":{"` + r.Host + `":{"username":"robot","password":"canary-password"}}}`)}, nil
			},
		}
		want := rendered(t, s, render.OwnerCrossplane)
		if diff := cmp.Diff([]string{"boats.sea.example.org true", "Provider provider-sea v1.0.0"}, told(want)); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%v", name, diff, want.Unread)
		}
		if !slices.Contains(hidden, "canary-password") {
			t.Errorf("%s: the password is written nowhere, and the log does not know it: %q", name, hidden)
		}
		s.Cache, s.Secret = t.TempDir(), func(context.Context, string) (map[string][]byte, error) { return nil, errors.New("forbidden") }
		fresh := &registry.Resolver{Next: s.Next, Cache: s.Cache, Secret: s.Secret}
		if want := rendered(t, fresh, render.OwnerCrossplane); len(want.Unread) != 1 || !strings.Contains(want.Unread[0].Err.Error(), "pull secret pull: forbidden") {
			t.Errorf("%s: %v", name, want.Unread)
		}
	}
}

// A user who demands a signature does not want findings about the content of an unsigned image.
func TestVerificationIsNotIgnored(t *testing.T) {
	r := start(t)
	r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
	files := tree(installs("Provider", "provider-sea", "mirror.example.org/acme/provider-sea:v1.0.0", "") + `---
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata: {name: mirror}
spec:
  matchImages: [{prefix: mirror.example.org/}]
  rewriteImage: {prefix: ` + r.Host + `/}
---
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata: {name: signed}
spec:
  matchImages: [{prefix: ` + r.Host + `/acme}]
  verification: {provider: Cosign, cosign: {authorities: [{name: acme, key: {secretRef: {name: key, key: cosign.pub}}}]}}
`)
	want := rendered(t, &registry.Resolver{Next: commit{files: files}, Cache: t.TempDir()}, render.OwnerCrossplane)
	if len(want.Definitions) > 0 || len(want.Unread) != 1 || !strings.Contains(want.Unread[0].Err.Error(), "ImageConfig signed (package-0.yaml:18) demands that its signature is verified") {
		t.Errorf("%d definitions, %v", len(want.Definitions), want.Unread)
	}
	if requests, _ := r.Asked(); len(fixtures.Blobs(requests)) > 0 {
		t.Errorf("nothing is pulled that is not to be trusted: %q", requests)
	}
}

// Resolving packages does not read the commit a second time, however many rounds it takes. Processes that share a cache do not wait
// for each other.
func TestReadsOnce(t *testing.T) {
	r := start(t)
	r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
	r.Push(t, "acme/config", "v1.0.0", configuration("config", dependsOn(r, "provider", "acme/provider-sea", ">=v1.0.0")), 0)
	cache := t.TempDir()
	var beside sync.WaitGroup
	for range 4 {
		beside.Go(func() {
			files := &counted{MapFS: tree(installs("Configuration", "acme-config", r.Host+"/acme/config:v1.0.0", "")), opened: map[string]int{}}
			s := &registry.Resolver{Next: commitOf{files}, Cache: cache}
			in, err := s.Fetch(t.Context(), "")
			if err != nil {
				t.Error(err)
				return
			}
			want, err := render.Render(in, render.Options{Owner: render.OwnerCrossplane})
			if err != nil || len(want.Definitions) != 1 {
				t.Errorf("%d definitions, %v", len(want.Definitions), err)
			}
			if n := files.opened["policy.yaml"]; n > 3 { // to scan it, to decode it, and for its line numbers
				t.Errorf("policy.yaml was opened %d times", n)
			}
			if n := files.opened["package-0.yaml"]; n > 4 { // and to decode it with other objects
				t.Errorf("package-0.yaml was opened %d times", n)
			}
		})
	}
	beside.Wait()
}

type commitOf struct{ files fs.FS }

func (c commitOf) Fetch(context.Context, string) (render.Input, error) {
	return render.Input{Files: c.files}, nil
}

type counted struct {
	fstest.MapFS

	mu     sync.Mutex
	opened map[string]int
}

func (c *counted) Open(name string) (fs.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened[name]++
	return c.MapFS.Open(name)
}

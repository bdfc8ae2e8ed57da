package registry_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"sigs.k8s.io/yaml"
)

// live returns an ImageConfig in a cluster.
func live(t *testing.T, name, prefix, says string) packages.LiveConfig {
	t.Helper()
	one := packages.LiveConfig{Name: name}
	if err := yaml.Unmarshal([]byte(`{matchImages: [{prefix: "`+prefix+`"}], `+says+"}"), &one.Spec); err != nil {
		t.Fatal(err)
	}
	return one
}

// having returns a function that lists the ImageConfigs of a cluster.
func having(all ...packages.LiveConfig) func(context.Context) ([]packages.LiveConfig, error) {
	return func(context.Context) ([]packages.LiveConfig, error) { return all, nil }
}

// imageConfig returns an ImageConfig of a commit.
func imageConfig(name, prefix, says string) string {
	return "apiVersion: pkg.crossplane.io/v1beta1\nkind: ImageConfig\nmetadata: {name: " + name + "}\nspec: {matchImages: [{prefix: \"" + prefix + "\"}], " + says + "}\n"
}

// A platform team created ImageConfigs with Helm or by hand, and Crossplane pulls with them.
func TestPullsAsTheClusterSays(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	r := fixtures.StartAuthenticatedRegistry(t)
	r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
	mirror := live(t, "mirror", "packages.example.org/", "rewriteImage: {prefix: "+r.Host+"/}")
	password := live(t, "password", r.Host+"/", "registry: {authentication: {pullSecretRef: {name: pull}}}")
	has, asked := []packages.LiveConfig{mirror, password}, 0
	s := &registry.Resolver{
		Next: commit{"a", tree(installs("Provider", "provider-sea", "packages.example.org/acme/provider-sea:v1.0.0", ""))}, Cache: t.TempDir(),
		Secret: func(_ context.Context, name string) (map[string][]byte, error) {
			if name != "pull" {
				return nil, errors.New("asked for Secret " + name)
			}
			return map[string][]byte{".dockerconfigjson": []byte(`{"auths":{"` + r.Host + `":{"username":"robot","password":"canary-password"}}}`)}, nil
		},
		Images: func(context.Context) ([]packages.LiveConfig, error) {
			asked++
			return slices.Clone(has), nil
		},
	}
	r.Asked()
	known := []string{"boats.sea.example.org true", "Provider provider-sea v1.0.0"}
	if diff := cmp.Diff(known, told(rendered(t, s, render.OwnerCrossplane))); diff != "" {
		t.Errorf("from where and with what the cluster says (-want +got):\n%s", diff)
	}
	r.Asked()
	if diff := cmp.Diff(known, told(rendered(t, s, render.OwnerCrossplane))); diff != "" || asked != 2 {
		t.Errorf("it is asked at every pass, once: %d\n%s", asked, diff)
	}
	if requests, _ := r.Asked(); len(requests) > 0 {
		t.Errorf("while it says the same no registry is asked again: %q", requests)
	}
	has = append(has, live(t, "signed", r.Host+"/acme", "verification: "+byAcme))
	want := rendered(t, s, render.OwnerCrossplane)
	if len(want.Unread) != 1 || !strings.Contains(want.Unread[0].Err.Error(), "ImageConfig signed of the cluster demands that its signature is verified") {
		t.Errorf("what it says now counts for a commit that was seen before: %v", want.Unread)
	}

	asked = 0
	s.Next = commit{"b", tree()}
	s.Installed = func(context.Context) ([]crossplane.Installed, error) { asked++; return nil, nil }
	rendered(t, s, render.OwnerCrossplane)
	rendered(t, s, render.OwnerCrossplane)
	if asked != 0 {
		t.Errorf("for a commit without packages the cluster is asked nothing, and was %d times", asked)
	}

	s.Next = commit{"c", tree(installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.0.0", ""))}
	s.Installed, s.Images = nil, func(context.Context) ([]packages.LiveConfig, error) { return nil, os.ErrPermission }
	if _, err := s.Fetch(t.Context(), ""); !errors.Is(err, os.ErrPermission) {
		t.Errorf("what may be wrong is not said: %v", err)
	}
}

// A commit may drop a demand of the cluster, because the commit will be applied. Its reviewers must learn of it.
func TestDropsWhatTheClusterDemands(t *testing.T) {
	r := start(t)
	r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
	r.Push(t, "acme/provider-pond", "v1.0.0", provider("provider-pond", "frogs"), 0)
	s := &registry.Resolver{
		Next: commit{files: tree(
			installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.0.0", "")+"---\n"+installs("Provider", "provider-pond", r.Host+"/acme/provider-pond:v1.0.0", ""),
			imageConfig("signed", "nowhere.example.org/", "rewriteImage: {prefix: elsewhere.example.org/}"),
		)},
		Cache: t.TempDir(), Images: having(live(t, "signed", r.Host+"/", "verification: "+byAcme)),
	}
	want := rendered(t, s, render.OwnerCrossplane)
	if len(want.Unread) > 0 || len(want.Definitions) != 2 {
		t.Errorf("there is nothing to verify: %v", want.Unread)
	}
	var findings []manifest.Finding
	for _, f := range want.Findings {
		if f.Rule == packages.RuleUnsigned {
			findings = append(findings, f)
		}
	}
	if diff := cmp.Diff([]manifest.Finding{{
		Rule: packages.RuleUnsigned, Severity: manifest.Warning, Origin: manifest.Origin{Path: "package-1.yaml", Line: 1},
		About:   manifest.About{Subject: "ImageConfig signed of the cluster"},
		Message: "ImageConfig signed of the cluster requires a signature of " + r.Host + "/acme/provider-sea:v1.0.0 and 1 more, but with this commit nothing does, because of ImageConfig signed (package-1.yaml:1)",
		Fix:     "require the same signature in the commit, unless this is intended",
	}}, findings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Settings of the cluster do not allow further registries for a fork, but the cluster's demands for signatures also apply to forks.
func TestForkAndTheCluster(t *testing.T) {
	acme, mallory := newSigner(t), newSigner(t)
	keys := map[string]string{}
	for name, of := range map[string]signer{"acme": acme, "mallory": mallory} {
		keys[name+"/cosign.pub"] = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(keys[name+"/cosign.pub"], of.pem(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	byMallory := strings.Replace(byAcme, "name: acme, key: cosign", "name: mallory, key: cosign", 1)
	type has struct {
		commit []string
		live   []packages.LiveConfig
	}
	cases := map[string]struct {
		reason string
		signed []signer
		image  string // "" means the image in the registry
		keys   map[string]string
		has    func(host string, inner *fixtures.Registry) has
		want   string // part of the error; "" if the package is read
		not    func(inner *fixtures.Registry) string
	}{
		"RewrittenToAllowed": {
			reason: "The rewritten registry is allowed.", image: "packages.example.org",
			has: func(host string, _ *fixtures.Registry) has {
				return has{live: []packages.LiveConfig{live(t, "mirror", "packages.example.org/", "rewriteImage: {prefix: "+host+"/}")}}
			},
		},
		"RewrittenInside": {
			reason: "The names of internal registries stay private.",
			has: func(host string, inner *fixtures.Registry) has {
				return has{live: []packages.LiveConfig{live(t, "mirror", host+"/", "rewriteImage: {prefix: "+inner.Host+"/}")}}
			},
			want: "ImageConfig mirror of the cluster has it pulled from a registry that is not asked for a commit of a fork",
			not:  func(inner *fixtures.Registry) string { return inner.Host },
		},
		"RewrittenToNonsense": {
			reason: "The names of internal registries stay private, even if an error would quote them.",
			has: func(host string, _ *fixtures.Registry) has {
				return has{live: []packages.LiveConfig{live(t, "mirror", host+"/", "rewriteImage: {prefix: inner.example.org/UPPER/}")}}
			},
			want: "ImageConfig mirror of the cluster has it pulled from a registry",
			not:  func(*fixtures.Registry) string { return "inner.example.org" },
		},
		"PullSecret": {
			reason: "The pull Secret of the cluster is not read.",
			has: func(host string, _ *fixtures.Registry) has {
				return has{live: []packages.LiveConfig{live(t, "password", host+"/", "registry: {authentication: {pullSecretRef: {name: pull}}}")}}
			},
		},
		"Unsigned": {
			reason: "A demand applies to forks, too.", keys: keys,
			has: func(host string, _ *fixtures.Registry) has {
				return has{live: []packages.LiveConfig{live(t, "signed", host+"/", "verification: "+byAcme)}}
			},
			want: "ImageConfig signed of the cluster demands that its signature is verified: authority \"acme\": the image has no signature",
		},
		"Signed": {
			reason: "A fork's image can meet a demand.", keys: keys, signed: []signer{acme},
			has: func(host string, _ *fixtures.Registry) has {
				return has{live: []packages.LiveConfig{live(t, "signed", host+"/", "verification: "+byAcme)}}
			},
		},
		"NoKey": {
			reason: "Without a public key the image is refused.", signed: []signer{acme},
			has: func(host string, _ *fixtures.Registry) has {
				return has{live: []packages.LiveConfig{live(t, "signed", host+"/", "verification: "+byAcme)}}
			},
			want: "its key is in the Secret acme, and no cluster is asked for it",
		},
		"Shadowed": {
			reason: "An object with the same name in the head must not disable the demand.", keys: keys,
			has: func(host string, _ *fixtures.Registry) has {
				return has{[]string{imageConfig("signed", "nowhere.example.org/", "rewriteImage: {prefix: elsewhere.example.org/}")}, []packages.LiveConfig{live(t, "signed", host+"/", "verification: "+byAcme)}}
			},
			want: "ImageConfig signed of the cluster demands that its signature is verified",
		},
		"OwnKey": {
			reason: "A longer prefix with the stranger's key must not disable the demand.", keys: keys, signed: []signer{mallory},
			has: func(host string, _ *fixtures.Registry) has {
				return has{[]string{imageConfig("mine", host+"/acme/", "verification: "+byMallory)}, []packages.LiveConfig{live(t, "signed", host+"/", "verification: "+byAcme)}}
			},
			want: "ImageConfig signed of the cluster demands that its signature is verified: authority \"acme\": no signature is accepted",
		},
		"BothKeys": {
			reason: "A user with both keys may change the signer.", keys: keys, signed: []signer{mallory, acme},
			has: func(host string, _ *fixtures.Registry) has {
				return has{[]string{imageConfig("mine", host+"/acme/", "verification: "+byMallory)}, []packages.LiveConfig{live(t, "signed", host+"/", "verification: "+byAcme)}}
			},
		},
		"RewrittenAway": {
			reason: "Another image name must not disable the demand.", keys: keys, image: "packages.example.org",
			has: func(host string, _ *fixtures.Registry) has {
				return has{[]string{imageConfig("mine", "packages.example.org/", "rewriteImage: {prefix: "+host+"/}")}, []packages.LiveConfig{live(t, "signed", "packages.example.org/", "verification: "+byAcme)}}
			},
			want: "ImageConfig signed of the cluster demands that its signature is verified",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, inner := start(t), fixtures.StartRegistry(t)
			digest := r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
			var layers []mutate.Addendum
			for _, one := range tc.signed {
				layers = append(layers, one.signature(t, simple(digest)))
			}
			if len(layers) > 0 {
				tagged(t, r, digest, "sig", layers...)
			}
			host := tc.image
			if host == "" {
				host = r.Host
			}
			of := tc.has(r.Host, inner)
			s := ofFork(t, append([]string{installs("Provider", "provider-sea", host+"/acme/provider-sea:v1.0.0", "")}, of.commit...), r.Host)
			s.KeyFiles, s.Images = tc.keys, having(of.live...)
			if tc.want == "" {
				if want := rendered(t, s, render.OwnerCrossplane); len(want.Definitions) != 1 || len(want.Unread) > 0 {
					t.Errorf("%s: %d definitions, %v", tc.reason, len(want.Definitions), want.Unread)
				}
				return
			}
			want := rendered(t, s, render.OwnerCrossplane)
			if len(want.Unread) != 1 || len(want.Definitions) > 0 {
				t.Fatalf("%s: %v", tc.reason, want.Unread)
			}
			got := want.Unread[0].Err.Error()
			if !strings.Contains(got, tc.want) {
				t.Errorf("%s\nwant %s\ngot  %s", tc.reason, tc.want, got)
			}
			if tc.not != nil && strings.Contains(got, tc.not(inner)) {
				t.Errorf("%s\ngot  %s", tc.reason, got)
			}
			if requests, _ := inner.Asked(); len(requests) > 0 {
				t.Errorf("%s: it was asked: %q", tc.reason, requests)
			}
		})
	}

	s := ofFork(t, []string{installs("Provider", "provider-sea", "packages.example.org/acme/provider-sea:v1.0.0", "")})
	s.Images = func(context.Context) ([]packages.LiveConfig, error) {
		return nil, errors.New("cannot reach the API server at https://inner.example.org")
	}
	if _, err := s.Fetch(t.Context(), ""); err == nil || strings.Contains(err.Error(), "inner.example.org") {
		t.Errorf("The demand is not known, and the error reveals no more: %v", err)
	}
}

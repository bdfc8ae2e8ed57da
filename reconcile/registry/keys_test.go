package registry

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/render/packages"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

func TestPullSecret(t *testing.T) {
	secret, err := pullSecretOf(map[string][]byte{dockerConfig: []byte(`{"auths":{
		"https://a.example.org/v2/": {"username":"u","password":"whole"},
		"b.example.org": {"auth":"dTpob3N0"},
		"b.example.org/team": {"username":"u","password":"team"},
		"b.example.org/team/one": {"username":"u","password":"one"}
	}}`)})
	if err != nil {
		t.Fatal(err)
	}
	for image, want := range map[string]string{
		"a.example.org/any/thing":      "whole",
		"b.example.org/other/thing":    "host",
		"b.example.org/team/two":       "team",
		"b.example.org/team/one":       "one",
		"b.example.org/teams/one":      "host",
		"evil.b.example.org/team/one":  "",
		"b.example.org.evil.net/a/one": "",
	} {
		repository, err := name.NewRepository(image)
		if err != nil {
			t.Fatal(err)
		}
		auth, err := secret.Resolve(repository)
		if err != nil {
			t.Fatal(err)
		}
		got, err := authn.Authorization(t.Context(), auth)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Password); diff != "" {
			t.Errorf("%s: credentials are for their own registry (-want +got):\n%s", image, diff)
		}
	}
}

// FuzzPullSecret reads arbitrary content of a Secret. Errors must not quote the content, and no registry may get credentials for
// another host.
func FuzzPullSecret(f *testing.F) {
	f.Add(`{"auths":{"registry.example.org":{"username":"u","password":"canary-password"}}}`)
	f.Add(`{"auths":{"registry.example.org":{"auth":"canary-password"}}}`)
	f.Add(`{"auths":["canary-password"]}`)
	f.Add(`canary-password`)
	f.Fuzz(func(t *testing.T, text string) {
		secret, err := pullSecretOf(map[string][]byte{dockerConfig: []byte(text)})
		if err != nil {
			if strings.Contains(err.Error(), "canary-password") {
				t.Errorf("%v", err)
			}
			return
		}
		repository, err := name.NewRepository("registry.example.org/a/b")
		if err != nil {
			t.Fatal(err)
		}
		got, err := secret.Resolve(repository)
		if err != nil || got == authn.Anonymous {
			return
		}
		var config struct{ Auths map[string]json.RawMessage }
		if err := json.Unmarshal([]byte(text), &config); err != nil || !strings.Contains(text, "registry.example.org") && !strings.Contains(text, `\`) {
			t.Errorf("%q names no such registry", text)
		}
	})
}

// If Crossplane checks a tag every minute, Headgate must not use a result for ten minutes.
func TestFresh(t *testing.T) {
	of := func(policies ...packages.PullPolicy) (all []packages.Image) {
		for _, p := range policies {
			all = append(all, packages.Image{Request: packages.Request{PullPolicy: p}})
		}
		return all
	}
	for name, tc := range map[string]struct {
		given, want time.Duration
		packages    []packages.Image
	}{
		"Nothing": {time.Hour, time.Hour, nil},
		"Usual":   {time.Hour, time.Hour, of("", "IfNotPresent", packages.PullNever)},
		"Always":  {time.Hour, time.Minute, of("", packages.PullAlways)},
		"Shorter": {time.Second, time.Second, of(packages.PullAlways)},
		"Process": {0, 0, of(packages.PullAlways)}, // both sides of a comparison use the same image
	} {
		if got := (&Resolver{Fresh: tc.given}).fresh(tc.packages); got != tc.want {
			t.Errorf("%s: want %s, got %s", name, tc.want, got)
		}
	}
}

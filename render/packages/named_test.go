package packages

import (
	"testing"

	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

func TestNamedBy(t *testing.T) {
	spec := func(more map[string]any) map[string]any {
		more["matchImages"] = []any{map[string]any{"prefix": "xpkg.example.org"}}
		return more
	}
	key := func(secret string) map[string]any {
		return map[string]any{"name": secret, "key": map[string]any{"secretRef": map[string]any{"name": secret, "key": "cosign.pub"}}}
	}
	got := NamedBy([]LiveConfig{
		{Name: "a", Spec: spec(map[string]any{"rewriteImage": map[string]any{"prefix": "harbor.example.org/proxy"}})},
		{Name: "b", Spec: spec(map[string]any{"registry": map[string]any{"authentication": map[string]any{"pullSecretRef": map[string]any{"name": "pull"}}}})},
		{Name: "c", Spec: spec(map[string]any{"verification": map[string]any{"provider": "Cosign", "cosign": map[string]any{"authorities": []any{
			key("first"), map[string]any{"name": "keyless"}, key("second"),
		}}}})},
		{Name: "d", Spec: spec(map[string]any{"verification": map[string]any{"cosign": "malformed"}})},
	})
	want := Named{Images: []string{"harbor.example.org/proxy"}, Secrets: []string{"pull", "first", "second"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	both := Named{Secrets: []string{"pull", "a"}}.And(got)
	if diff := cmp.Diff(Named{Images: []string{"harbor.example.org/proxy"}, Secrets: []string{"a", "first", "pull", "second"}}, both); diff != "" {
		t.Error(diff)
	}
}

// Objects of the commit name registries, even if the tree has a copy of the package, and Headgate need not pull it.
func TestNamedByObjects(t *testing.T) {
	rewrite := &ImageConfigs{Rewrites: []Prefixed{{Prefix: "xpkg.example.org", Value: "harbor.example.org"}}}
	c := Commit{
		roots:    []root{{id: manifest.ID{Kind: "Provider"}, source: "xpkg.example.org/acme/a", secrets: []string{"pull"}}},
		resolved: &resolution{configs: rewrite, nodes: []*node{{request: Request{Source: "ghcr.io/acme/b"}}}},
	}
	want := Named{Images: []string{"ghcr.io/acme/b", "harbor.example.org", "harbor.example.org/acme/a"}, Secrets: []string{"pull"}}
	if diff := cmp.Diff(want, c.Named()); diff != "" {
		t.Error(diff)
	}
}

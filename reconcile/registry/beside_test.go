package registry_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/render"
)

// If a Provider installs an image, the image counts, and the copy in the tree counts only while the image cannot be read. If
// Headgate applies the copy, it reads no image.
func TestImageBesideACopy(t *testing.T) {
	r := start(t)
	r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats", "sails"), 0)
	r.Push(t, "acme/provider-sea", "v3.0.0", configuration("provider-sea", ""), 0)
	cases := map[string]struct {
		reason    string
		version   string
		owner     render.Owner
		offline   bool
		installed []string // definitions of the image
		asks      bool
	}{
		"Read":       {reason: "The image has two definitions.", version: "v1.0.0", owner: render.OwnerCrossplane, installed: []string{"boats.sea.example.org", "sails.sea.example.org"}, asks: true},
		"Auto":       {reason: "A Provider means that Crossplane installs the image.", version: "v1.0.0", owner: render.OwnerAuto, installed: []string{"boats.sea.example.org", "sails.sea.example.org"}, asks: true},
		"Gone":       {reason: "The image does not exist.", version: "v2.0.0", owner: render.OwnerCrossplane, asks: true},
		"OtherKind":  {reason: "Crossplane does not install a Configuration for a Provider.", version: "v3.0.0", owner: render.OwnerCrossplane, asks: true},
		"Offline":    {reason: "Offline, no registry gets a request.", version: "v1.0.0", owner: render.OwnerCrossplane, offline: true},
		"OfHeadgate": {reason: "Headgate applies the copy.", version: "v1.0.0", owner: render.OwnerHeadgate},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := tree(installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:"+tc.version, ""))
			maps.Copy(files, fixtures.Below("sea", provider("provider-sea", "boats")))
			s := &registry.Resolver{
				Next: commit{revision: "1", files: files}, How: render.Options{Owner: tc.owner}, Cache: t.TempDir(), Offline: tc.offline, Fresh: time.Hour,
			}
			r.Asked()
			want := rendered(t, s, tc.owner)
			if requests, _ := r.Asked(); (len(requests) > 0) != tc.asks {
				t.Errorf("%s\nit asks %q", tc.reason, requests)
			}
			var installed []string
			for _, of := range want.Beside {
				for _, d := range of.Definitions {
					installed = append(installed, d.Name)
				}
			}
			if diff := cmp.Diff(tc.installed, installed); diff != "" {
				t.Errorf("%s\ndefinitions of the image (-want +got):\n%s", tc.reason, diff)
			}
			if len(want.Definitions) != 1 || len(want.Unread) > 0 {
				t.Errorf("the copy declares %d definitions, and %v is unread", len(want.Definitions), want.Unread)
			}
			rendered(t, s, tc.owner)
			if requests, _ := r.Asked(); len(requests) > 0 {
				t.Errorf("the next pass waits for a registry again: %q", requests)
			}
		})
	}
}

package render

import (
	"strings"
	"testing"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

// The author of a commit writes the list of kept definitions. An entry counts only if the base keeps the same definition of the
// same image.
func TestClaims(t *testing.T) {
	const (
		meta    = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: sea}\nspec: {capabilities: [safe-start]}\n"
		boats   = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: boats.sea}\nspec: {group: sea, names: {kind: Boat, plural: boats}, scope: Cluster, versions: [{name: v1, schema: {}}]}\n"
		buoys   = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: buoys.sea}\nspec: {group: sea, names: {kind: Buoy, plural: buoys}, scope: Cluster, versions: [{name: v1}]}\n"
		outline = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"buoys.sea"},"spec":{"group":"sea","names":{"kind":"Buoy","plural":"buoys"},"scope":"Cluster"}}` + "\n"
	)
	of := func(hash, digest string, documents ...string) Desired {
		all, err := manifest.NewReader(nil, manifest.Limits{}, nil).Inline("package.yaml", strings.Join(documents, "---\n"))
		if err != nil {
			t.Fatal(err)
		}
		return Desired{Packages: []catalogue.Package{{Source: "acme/sea", Version: "v1", Digest: digest, Kept: &catalogue.Kept{Hash: hash, Documents: all}}}}
	}
	base := of("1", "one", meta, boats, outline)
	pulled := Desired{Packages: []catalogue.Package{{Source: "acme/sea", Version: "v1", Digest: "one"}}}
	claim := func(adds ...string) []string { return append([]string{"acme/sea"}, adds...) }
	for name, tc := range map[string]struct {
		reason     string
		base, head Desired
		want       []string // the source and the definitions that it adds
	}{
		"Same":          {"The base has the same copy.", base, of("1", "one", meta, boats, outline), nil},
		"Pulled":        {"The head was read from a registry.", base, pulled, nil},
		"Added":         {"The head activates one more definition.", base, of("2", "one", meta, boats, buoys), claim("buoys.sea")},
		"Narrowed":      {"The base has more schemas: inactive definitions need none.", of("2", "one", meta, boats, buoys), base, nil},
		"Upgrade":       {"The image has changed.", base, of("2", "two", meta, boats, outline), claim()},
		"UpgradeAlike":  {"The digest has changed, but the schemas have not.", base, of("1", "two", meta, boats, outline), claim()},
		"Schema":        {"A schema has changed, but the image has not.", base, of("2", "one", meta, strings.Replace(boats, "schema: {}", "schema: {a: b}", 1), outline), claim()},
		"Metadata":      {"Without safe-start, all definitions are active.", base, of("2", "one", strings.Replace(meta, "[safe-start]", "[]", 1), boats, outline), claim()},
		"Missing":       {"A definition was removed from the copy.", base, of("2", "one", meta, boats), claim()},
		"Renamed":       {"The kind of a definition has changed.", base, of("2", "one", meta, boats, strings.Replace(outline, `"Buoy"`, `"Buoi"`, 1)), claim()},
		"OutlineOfMore": {"An outline with fields that Headgate does not write is not valid.", of("1", "one", meta, boats, strings.Replace(outline, `"scope"`, `"x":1,"scope"`, 1)), of("2", "one", meta, boats, buoys), claim()},
		"BasePulled":    {"The base was read from the image, but the head was not.", pulled, base, claim()},
		"BaseUnread":    {"The base could not be read.", Desired{}, base, claim()},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range tc.head.Claims(tc.base) {
				got = append(append(got, c.Package.Source), c.Adds...)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nClaims(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

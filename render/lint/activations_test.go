package lint

import (
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render"
)

// The policy default of Crossplane's chart is mentioned once, and only to those whose definitions it may activate.
func TestDefault(t *testing.T) {
	const provider = "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: it}\nspec: {package: registry.example.org/acme/it:v1}\n---\n"
	cases := map[string]struct {
		reason string
		text   string
		owner  render.Owner
		want   int
	}{
		"Crossplane": {reason: "Crossplane makes the CRDs.", text: policy("team", "a.*"), owner: render.OwnerCrossplane, want: 1},
		"Installs":   {reason: "The commit gives packages to Crossplane.", text: provider + policy("team", "a.*") + "---\n" + policy("other", "b.*"), owner: render.OwnerAuto, want: 1},
		"Headgate":   {reason: "Headgate makes the CRDs, so no policy of a cluster counts.", text: policy("team", "a.*"), owner: render.OwnerAuto},
		"Declared":   {reason: "The commit decides what the policy activates.", text: policy("default", "a.*"), owner: render.OwnerCrossplane},
		"NoPolicy":   {reason: "Nothing here limits what is active.", text: provider, owner: render.OwnerCrossplane},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want, err := render.Render(render.Input{Files: fstest.MapFS{"a.yaml": {Data: []byte(tc.text)}}}, render.Options{Owner: tc.owner})
			if err != nil {
				t.Fatal(err)
			}
			if found := Default(want); len(found) != tc.want {
				t.Errorf("%s\nfound %v", tc.reason, found)
			}
		})
	}
}

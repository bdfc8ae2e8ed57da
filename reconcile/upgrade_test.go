package reconcile

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
)

// commits are those of a repository, by what they are asked for.
type commits map[string]fs.FS

func (c commits) Fetch(_ context.Context, ref string) (render.Input, error) {
	return render.Input{Revision: ref, Files: c[ref]}, nil
}

// TestUpgrades previews upgrades of real providers. What the comments say is what a reviewer
// has to know who has never seen one.
func TestUpgrades(t *testing.T) {
	cases := map[string]struct {
		reason       string
		older, newer string
		activate     string
		says, never  []string
	}{
		"HelmGainsNamespacedKinds": {
			reason: "A pattern of one star activates what a new version brings, and the old kind loses a field.",
			older:  "provider-helm-v0.21.0", newer: "provider-helm", activate: "*",
			says: []string{
				"\n**Breaks 1 schema, activates 1 definition.**\n",
				"\n#### Becomes active: 1\n\nThis cannot be undone: ",
				"\n- `releases.helm.m.crossplane.io`\n  - `policy platform matches with \"*\" (policy.yaml:5)`\n",
				"\n- `releases.helm.crossplane.io` in `provider/crds/helm.crossplane.io_releases.yaml:2`\n  - `spec.publishConnectionDetailsTo is removed (v1alpha1, v1beta1)`\n",
				"<summary>create 4 CRDs: <code>clusterproviderconfigs.helm.m.crossplane.io</code> and 3 more</summary>",
				"\n+ v1beta1 spec.forProvider.plainHTTP: {\"type\":\"boolean\"}\n",
			},
			never: []string{"openAPIV3Schema", "\"description\"", "#### Is deleted"},
		},
		"HelmWithANarrowPolicy": {
			reason: "What no pattern names stays inactive.",
			older:  "provider-helm-v0.21.0", newer: "provider-helm", activate: "releases.helm.crossplane.io",
			says:  []string{"\n**Breaks 1 schema.**\n", "Definitions after the merge: 1 active, 1 inactive."},
			never: []string{"Becomes active", "create CRD `releases."},
		},
		"KubernetesBreaksNothing": {
			reason: "The usual upgrade, of which there is nothing to fear.",
			older:  "provider-kubernetes-v1.0.0", newer: "provider-kubernetes", activate: "*",
			says: []string{
				"\n**Changes 4 objects; no schema breaks.**\n",
				"Definitions after the merge: 4 active, 0 inactive.",
				"\n1 definition differs only in descriptions or in what generators write.\n",
				"<summary>update 3 CRDs: <code>clusterproviderconfigs.kubernetes.m.crossplane.io</code> and 2 more, all in the same way</summary>",
			},
			never: []string{"Schemas that break", "Becomes active", "Memory of an API server", "Held", "Findings"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := commits{}
			for ref, archive := range map[string]string{"older": tc.older, "newer": tc.newer} {
				files := fixtures.Below("provider", fixtures.Corpus(t, archive))
				files["policy.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\n" +
					"metadata: {name: platform}\nspec:\n  activate: [\"" + tc.activate + "\"]\n")}
				of[ref] = files
			}
			// Without a cluster nobody knows the service that answers the provider's webhook.
			r := Reconciler{Source: of, Sync: plan.Sync{Name: "platform"}, Options: render.Options{Conversion: render.Conversion{Strategy: render.ConversionNone}}}
			made, err := r.Preview(t.Context(), Pull{Base: "older", Head: "newer"})
			if err != nil {
				t.Fatal(err)
			}
			said := report.Comment(made, 65_536)
			for _, want := range tc.says {
				if !strings.Contains(said, want) {
					t.Errorf("%s\nthe comment does not say %q", tc.reason, want)
				}
			}
			for _, never := range tc.never {
				if strings.Contains(said, never) {
					t.Errorf("%s\nthe comment says %q", tc.reason, never)
				}
			}
			if len(said) > 6_000 {
				t.Errorf("nobody reads %d bytes", len(said))
			}
			if t.Failed() {
				t.Log(said)
			}
		})
	}
}

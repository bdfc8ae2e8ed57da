package kinds_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/crossplane/kinds"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestKind(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, apiVersion, kind string
		want                     []string
	}{
		"Right": {
			reason:     "A kind of Crossplane in its own group has no findings.",
			apiVersion: "apiextensions.crossplane.io/v1alpha1", kind: "ManagedResourceActivationPolicy",
		},
		"LaterVersion": {
			reason:     "Headgate writes the version that is served.",
			apiVersion: "apiextensions.crossplane.io/v1beta1", kind: "ManagedResourceActivationPolicy",
		},
		"GroupOfPackages": {
			reason:     "The package group has no policies, so this one activates nothing.",
			apiVersion: "pkg.crossplane.io/v1alpha1", kind: "ManagedResourceActivationPolicy",
			want: []string{"error kind-unknown a.yaml:2: pkg.crossplane.io has no kind ManagedResourceActivationPolicy: ManagedResourceActivationPolicy is a kind of apiextensions.crossplane.io/v1alpha1, so this object activates nothing; write apiVersion: apiextensions.crossplane.io/v1alpha1"},
		},
		"Plural": {
			apiVersion: "apiextensions.crossplane.io/v1alpha1", kind: "ManagedResourceActivationPolicies",
			want: []string{"error kind-unknown a.yaml:2: apiextensions.crossplane.io has no kind ManagedResourceActivationPolicies: ManagedResourceActivationPolicy is a kind of apiextensions.crossplane.io/v1alpha1, so this object activates nothing; write apiVersion: apiextensions.crossplane.io/v1alpha1, kind: ManagedResourceActivationPolicy"},
		},
		"Misspelt": {
			apiVersion: "apiextensions.crossplane.io/v1", kind: "Compositio",
			want: []string{"error kind-unknown a.yaml:2: apiextensions.crossplane.io has no kind Compositio; did you mean Composition?"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := findings(t, "apiVersion: "+tc.apiVersion+"\nkind: "+tc.kind+"\nmetadata: {name: a}\nspec: {activate: [\"*\"]}\n")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Kinds that resemble those of Crossplane get a warning, and ordinary kinds of others do not.
func TestResembling(t *testing.T) {
	for _, gvk := range []string{
		"extensions.crossplane.io/v1alpha1 ManagedResourceActivationPolicy",
		"apiextension.crossplane.io/v1alpha1 ManagedResourceActivationPolicy",
		"apiextensions.crossplane.com/v1alpha1 ManagedResourceActivationPolicy",
		"crossplane.io/v1alpha1 ManagedResourceActivationPolicy",
		"platform.example.org/v1 CompositeResourceDefinition",
		"pkg.upbound.io/v1 Provider",
		"pgk.crossplane.io/v1 Provider",
		"crossplane.io/v1 Configuration",
		"protection.crossplane.com/v1beta1 Usage",
		"secrets.crossplane.io/v1alpha1 StoreConfig",
		"aws.upbound.io/v1beta1 ImageConfig",
	} {
		if got := findingsOf(t, gvk); len(got) != 1 || !strings.HasPrefix(got[0], "warning kind-near ") {
			t.Errorf("%s: %q", gvk, got)
		}
	}
	for _, gvk := range []string{
		"lambda.aws.upbound.io/v1beta1 Function",
		"lambda.aws.crossplane.io/v1beta1 Function",
		"mq.aws.m.upbound.io/v1beta1 Configuration",
		"notification.toolkit.fluxcd.io/v1beta3 Provider",
		"serving.knative.dev/v1 Configuration",
		"core.krateo.io/v1 Composition",
		"coordination.example.org/v1 Lock",
		"aws.upbound.io/v1beta1 ProviderConfig",
		"kubernetes.m.crossplane.io/v1alpha1 ClusterProviderConfig",
		"spaces.upbound.io/v1beta1 ControlPlane",
		"meta.dev.upbound.io/v2alpha1 Project",
	} {
		if got := findingsOf(t, gvk); len(got) > 0 {
			t.Errorf("%s: %q", gvk, got)
		}
	}
	for gvk, fix := range map[string]string{
		"pkg.crossplane.io/v1alpha1 ControllerConfig":               "DeploymentRuntimeConfig",
		"apiextensions.crossplane.io/v1 Provider":                   "pkg.crossplane.io/v1",
		"pkg.crossplane.io/v1 xrd":                                  "apiextensions.crossplane.io/v2, kind: CompositeResourceDefinition",
		"pkg.crossplane.io/v1 Usage":                                "protection.crossplane.io/v1beta1",
		"ops.crossplane.io/v1 EnvironmentConfig":                    "apiextensions.crossplane.io/v1beta1",
		"apiextensions.crossplane.io/v1 managedresourcedefinition":  "ManagedResourceDefinition",
		"protection.crossplane.io/v1beta1 ClusterUsages":            "ClusterUsage",
		"pkg.crossplane.io/v1beta1 RuntimeConfig":                   "",
		"apiextensions.crossplane.io/v1 ManagedResourceDefinitions": "ManagedResourceDefinition",
	} {
		if got := findingsOf(t, gvk); len(got) != 1 || !strings.HasPrefix(got[0], "error kind-unknown ") || !strings.Contains(got[0], fix) {
			t.Errorf("%s: %q", gvk, got)
		}
	}
}

func findingsOf(t *testing.T, gvk string) []string {
	t.Helper()
	apiVersion, kind, _ := strings.Cut(gvk, " ")
	return findings(t, "apiVersion: "+apiVersion+"\nkind: "+kind+"\nmetadata: {name: a}\n")
}

// findings returns what the check finds in a manifest, with the kinds of the newest Crossplane.
func findings(t *testing.T, manifest string) []string {
	t.Helper()
	want, err := render.Render(render.Input{Files: fstest.MapFS{"a.yaml": {Data: []byte(manifest)}}}, render.Options{Lints: true})
	if err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	var all []string
	for _, f := range check.Check(want.Objects, kinds.Of(crossplane.Version{})).Findings {
		all = append(all, strings.TrimSuffix(fmt.Sprintf("%s %s %s: %s; %s", f.Severity, f.Rule, f.Origin, f.Message, f.Fix), "; "))
	}
	return all
}

// Every release has all kinds, with their versions, and every version has a schema that the API server's libraries accept.
func TestReleases(t *testing.T) {
	for _, version := range []string{"", "v2.0.0", "v2.0.5", "v2.0.8", "v2.1.3", "v2.2.0-rc.1", "v2.2.4", "v2.3.4", "v2.4.2"} {
		v, err := crossplane.VersionOf(version)
		if err != nil {
			t.Fatal(err)
		}
		s := kinds.Of(v)
		n := 0
		for _, group := range s.Groups() {
			if s.Knows(group) != check.All {
				t.Errorf("%s: %s is not known completely", version, group)
			}
			for _, gk := range s.Kinds(group) {
				n++
				kind, ok := s.Kind(gk)
				if !ok || len(kind.Versions()) == 0 {
					t.Errorf("%s: no %s", version, gk)
					continue
				}
				for _, served := range kind.Versions() {
					o := &unstructured.Unstructured{}
					o.SetGroupVersionKind(gk.WithVersion(served))
					if r := kind.Check(o); r.NotChecked != "" {
						t.Errorf("%s: %s %s: %s", version, gk, served, r.NotChecked)
					}
				}
			}
		}
		if n != 21 {
			t.Errorf("%s has %d kinds", version, n)
		}
	}
}

// The release decides which fields exist. The kinds of a later release than Headgate knows are not known completely.
func TestRelease(t *testing.T) {
	const scaled = `
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: stores.platform.example.org}
spec:
  group: platform.example.org
  names: {kind: Store, plural: stores}
  defaultCompositionRevisionSelector: {matchLabels: {a: b}}
  versions: [{name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object}}, unheard: of}]
`
	for version, want := range map[string]check.Result{
		"":        {Errors: []check.Problem{{Field: "spec.versions[0].unheard", Message: "unknown field"}}},
		"v2.4.9":  {Errors: []check.Problem{{Field: "spec.versions[0].unheard", Message: "unknown field"}}},
		"v2.1.3":  {Errors: []check.Problem{{Field: "spec.defaultCompositionRevisionSelector", Message: "unknown field"}, {Field: "spec.versions[0].unheard", Message: "unknown field"}}},
		"v2.99.0": {Warnings: []check.Problem{{Field: "spec.versions[0].unheard", Message: "unknown field"}}, NotChecked: "kinds of Crossplane v2.99.0, which is newer than this Headgate"},
	} {
		v, err := crossplane.VersionOf(version)
		if err != nil {
			t.Fatal(err)
		}
		kind, _ := kinds.Of(v).Kind(crossplane.KindXRD)
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(scaled), &o.Object); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, kind.Check(o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

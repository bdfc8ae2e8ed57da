package examples

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/install"
)

// Helm renders what 'headgate install --export' prints for the same settings, object by object.
func TestChart(t *testing.T) {
	fixtures.Helm(t, "lint", "--strict", "chart")
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	cases := map[string]struct {
		reason    string
		namespace string
		values    string
		options   install.Options
	}{
		"Initial":    {"The chart without values is the installation without flags.", "headgate-system", "", install.Options{Profile: install.Tenant}},
		"Namespace":  {"Each namespace has its own cluster roles.", "team-headgate", "", install.Options{Profile: install.Tenant}},
		"Watch":      {"A controller for one namespace has no right to the Syncs of others.", "headgate-system", "watchNamespace: team-a", install.Options{Profile: install.Tenant, Watch: "team-a"}},
		"Own":        {"The controller may watch its own namespace.", "team-a", "{watchNamespace: team-a, serviceAccount: deployer}", install.Options{Profile: install.Tenant, Watch: "team-a", Account: "deployer"}},
		"Account":    {"It may act as one account there.", "headgate-system", "{watchNamespace: team-a, serviceAccount: deployer}", install.Options{Profile: install.Tenant, Watch: "team-a", Account: "deployer"}},
		"Observe":    {"An observer may read the Secrets that it names.", "headgate-system", "{profile: observe, secrets: [forge, git]}", install.Options{Profile: install.Observe, Secrets: []string{"forge", "git"}}},
		"Crossplane": {"Names of Syncs reach roles and the admission policy.", "other", "{profile: crossplane, syncs: [platform, team-b]}", install.Options{Profile: install.Crossplane, Syncs: []string{"platform", "team-b"}}},
		"Groups": {
			"Groups reach roles and the admission policy.", "headgate-system", "{profile: crossplane, providerGroups: [aws.m.upbound.io, gcp.m.upbound.io], countGroups: [s3.aws.m.upbound.io]}",
			install.Options{Profile: install.Crossplane, ProviderGroups: []string{"aws.m.upbound.io", "gcp.m.upbound.io"}, CountGroups: []string{"s3.aws.m.upbound.io"}},
		},
		"CRDs": {
			"The workload takes its image, its authorities and its ports from the values.", "headgate-system",
			"{profile: crds, image: {registry: mirror.example.org:5000/x, digest: '" + digest + "'}, imagePullSecrets: [a, b], caConfigMap: authorities, egressPorts: [3000, 8443]}",
			install.Options{Profile: install.CRDs, Image: "mirror.example.org:5000/x/headgate-dev/headgate@" + digest, PullSecrets: []string{"a", "b"}, CA: "authorities", EgressPorts: []int64{3000, 8443}},
		},
		"Shards":      {"Each shard has its own workload.", "headgate-system", "{shards: [a, team-b], egressPorts: [3000], imagePullSecrets: [a], caConfigMap: authorities}", install.Options{Profile: install.Tenant, Shards: []string{"a", "team-b"}, EgressPorts: []int64{3000}, PullSecrets: []string{"a"}, CA: "authorities"}},
		"ShardsOwn":   {"Shards of a profile act as its account.", "other", "{profile: crossplane, shards: ['0']}", install.Options{Profile: install.Crossplane, Shards: []string{"0"}}},
		"Cache":       {"The volume and the limits follow the size of the cache.", "headgate-system", "{cacheSize: 20Gi, shards: [a]}", install.Options{Profile: install.Tenant, CacheSize: "20Gi", Shards: []string{"a"}}},
		"Preview":     {"Previews have no rights.", "headgate-system", "{profile: preview}", install.Options{Profile: install.Preview}},
		"PreviewFile": {"The file of Syncs is a text, whatever it contains.", "headgate-system", "{profile: preview, syncFile: \"a: '{{ .Values }}'\\n---\\nb: |\\n  c\\n\"}", install.Options{Profile: install.Preview, SyncFile: "a: '{{ .Values }}'\n---\nb: |\n  c\n"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := tc.options
			if o.Namespace = tc.namespace; o.Image == "" {
				o.Image = "ghcr.io/headgate-dev/headgate:v0.0.0"
			}
			if o.Syncs == nil {
				o.Syncs = []string{"platform"}
			}
			want, err := install.Objects(Manifests, o)
			if err != nil {
				t.Fatal(err)
			}
			values := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(values, []byte(tc.values), 0o600); err != nil {
				t.Fatal(err)
			}
			rendered := fixtures.Helm(t, "template", "headgate", "chart", "-n", tc.namespace, "-f", values, "--set", "createNamespace=true")
			if diff := cmp.Diff(asRead(t, want), asRead(t, fixtures.Documents(t, rendered))); diff != "" {
				t.Errorf("%s\n'headgate install --export' and Helm (-export +Helm):\n%s", tc.reason, diff)
			}
		})
	}
}

// asRead returns objects as YAML, by kind, namespace and name. It leaves out what only a chart needs.
func asRead(t *testing.T, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, u := range objects {
		notes := u.GetAnnotations()
		delete(notes, "helm.sh/resource-policy") // otherwise Helm would delete the CRD, and all Syncs with it
		u.SetAnnotations(notes)
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		all[u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName()] = string(text)
	}
	return all
}

// Values that would write YAML or CEL of their own, or a right to all names, are refused by the schema of the chart.
func TestChartRefuses(t *testing.T) {
	for name, values := range map[string]string{
		"Quote":     `{profile: crossplane, syncs: ["a' || true || 'b"]}`,
		"NoSyncs":   `{profile: crossplane, syncs: []}`,
		"Newline":   `{caConfigMap: "a\nhostNetwork: true"}`,
		"Wildcard":  `{profile: crds, countGroups: ["*"]}`,
		"Misspelt":  `{profil: crds}`,
		"NoProfile": `{profile: admin}`,
		"Image":     `{image: {tag: "v1\n        command: [sh]"}}`,
		"Watch":     `{profile: crds, watchNamespace: team-a}`,
		"Shard":     `{shards: ["a\nhostNetwork: true"]}`,
		"ShardLong": `{shards: [` + strings.Repeat("a", 35) + `]}`,
		"ShardEnds": `{shards: [a-webhooks]}`,
		"ShardIs":   `{shards: [webhooks]}`,
		"ShardSame": `{shards: [a, a]}`,
		"CacheMega": `{cacheSize: 512Mi}`,
		"CacheMore": `{cacheSize: "3Gi\n- --approvals=all"}`,
		"Shardless": `{profile: preview, shards: [a]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := fixtures.TryHelm(t, "template", "headgate", "chart", "-f", file); err == nil || !strings.Contains(out, "schema") {
				t.Errorf("%s is rendered: %v\n%.500s", values, err, out)
			}
		})
	}
}

//test:package minutes=1
package render_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func policy(patterns ...string) *fstest.MapFile {
	var b strings.Builder
	b.WriteString("apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata:\n  name: team\nspec:\n  activate:\n")
	for _, p := range patterns {
		fmt.Fprintf(&b, "  - %q\n", p)
	}
	return &fstest.MapFile{Data: []byte(b.String())}
}

// withPolicy moves a package to a directory and adds a policy.
func withPolicy(pkg fstest.MapFS, patterns ...string) fstest.MapFS {
	files := fixtures.Below("package", pkg)
	files["policy.yaml"] = policy(patterns...)
	return files
}

func mustRender(tb testing.TB, files fs.FS, how render.Options) render.Desired {
	tb.Helper()
	want, err := render.Render(render.Input{Files: files}, how)
	if err != nil {
		tb.Fatal(err)
	}
	return want
}

// crdNames returns the names of all wanted CRDs, in order.
func crdNames(want render.Desired) []string {
	var names []string
	for _, o := range want.Objects {
		if o.ID.IsCRD() {
			names = append(names, o.ID.Name)
		}
	}
	return names
}

var exemptOfAWS = []string{
	"clusterproviderconfigs.aws.m.upbound.io",
	"providerconfigs.aws.m.upbound.io",
	"providerconfigs.aws.upbound.io",
	"providerconfigusages.aws.m.upbound.io",
	"providerconfigusages.aws.upbound.io",
}

//test:long
func TestAWS(t *testing.T) { fixtures.Large(t, rendersAWS) }

func rendersAWS(t *testing.T, aws fstest.MapFS) {
	t.Helper()
	all := mustRender(t, fixtures.Below("package", aws), render.Options{})
	if n := len(all.Definitions); n != 2038 {
		t.Errorf("definitions: want 2038, got %d", n)
	}
	if diff := cmp.Diff(exemptOfAWS, crdNames(all)); diff != "" {
		t.Errorf("without a policy only the exempt CRDs are wanted (-want +got):\n%s", diff)
	}
	var managed []string
	for _, d := range all.Definitions {
		if strings.Contains(d.Name, ".m.") {
			managed = append(managed, d.Name)
		}
	}

	t.Run("Forty", func(t *testing.T) {
		forty := managed[100:140]
		want := mustRender(t, withPolicy(aws, forty...), render.Options{})
		if diff := cmp.Diff(slices.Sorted(slices.Values(slices.Concat(forty, exemptOfAWS))), crdNames(want)); diff != "" {
			t.Errorf("exactly the forty and the exempt ones (-want +got):\n%s", diff)
		}
		if len(want.Findings) > 0 {
			t.Errorf("findings on a policy without fault: %v", want.Findings)
		}
		for _, o := range want.Objects {
			if o.ID.IsCRD() && (o.Serves.Kind == "" || o.Serves.Group == "" || len(o.Digest) != 22) {
				t.Errorf("%s: serves %v, digest %q", o.ID, o.Serves, o.Digest)
			}
			if made := o.Definition != ""; made != slices.Contains(forty, o.ID.Name) {
				t.Errorf("%s: made of definition %q", o.ID, o.Definition)
			}
		}
		inputs := 0
		for name := range aws {
			inputs += strings.Count(name, "upstream/")
		}
		if got := want.Skipped[catalogue.BuildInput]; got != inputs || got == 0 {
			t.Errorf("build inputs: want %d, got %d", inputs, got)
		}
	})
	t.Run("Group", func(t *testing.T) {
		var wanted []string
		for _, name := range managed {
			if strings.HasSuffix(name, ".s3.aws.m.upbound.io") {
				wanted = append(wanted, name)
			}
		}
		want := mustRender(t, withPolicy(aws, "*.s3.aws.m.upbound.io"), render.Options{})
		got := slices.DeleteFunc(crdNames(want), func(name string) bool { return slices.Contains(exemptOfAWS, name) })
		if diff := cmp.Diff(wanted, got); diff != "" || len(wanted) == 0 {
			t.Errorf("exactly the %d of the group (-want +got):\n%s", len(wanted), diff)
		}
	})
	t.Run("All", func(t *testing.T) {
		want := mustRender(t, withPolicy(aws, "*"), render.Options{})
		if n := len(crdNames(want)); n != 2043 {
			t.Errorf("CRDs: want all 2043, got %d", n)
		}
	})
}

func TestCorpus(t *testing.T) {
	cases := map[string]struct {
		reason                      string
		archive                     string
		how                         render.Options
		active, inactive, crds, all int
		rules                       []string
	}{
		"Nop": {
			reason: "Without safe-start, everything is active, and the webhook configuration has a placeholder.", archive: "provider-nop-older",
			active: 1, crds: 1, all: 3, rules: []string{"policy-cannot-restrict", render.RuleWebhook, "pattern-matches-nothing"},
		},
		"OldHelm": {
			reason: "Exempt kinds are not definitions.", archive: "provider-helm-older",
			active: 1, crds: 3, all: 4, rules: []string{"policy-cannot-restrict", "pattern-matches-nothing"},
		},
		"Helm": {
			reason: "With safe-start, nothing is active without a policy.", archive: "provider-helm",
			inactive: 2, crds: 5, all: 6, rules: []string{"pattern-matches-nothing"},
		},
		"OldKubernetes": {
			reason: "A CRD with two versions needs its webhook, or a setting that it needs none.", archive: "provider-kubernetes-v1.0.0",
			how:    render.Options{Conversion: render.Conversion{Strategy: render.ConversionNone}},
			active: 4, crds: 9, all: 10, rules: []string{"policy-cannot-restrict", "pattern-matches-nothing"},
		},
		"Core": {
			reason: "Crossplane's own CRDs are not a package, so they are ordinary CRDs; the policy is optional.", archive: "crossplane-core",
			crds: 21, all: 22, rules: []string{"pattern-matches-nothing"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := mustRender(t, withPolicy(fixtures.Corpus(t, tc.archive), "nothing.example.org"), tc.how)
			active := 0
			for _, d := range want.Definitions {
				if d.Active {
					active++
				}
			}
			got := []int{active, len(want.Definitions) - active, len(crdNames(want)), len(want.Objects)}
			if diff := cmp.Diff([]int{tc.active, tc.inactive, tc.crds, tc.all}, got); diff != "" {
				t.Errorf("%s\nactive, inactive, CRDs, objects (-want +got):\n%s", tc.reason, diff)
			}
			var rules []string
			for _, f := range want.Findings {
				rules = append(rules, f.Rule)
			}
			if diff := cmp.Diff(tc.rules, rules); diff != "" {
				t.Errorf("%s\nrules (-want +got):\n%s", tc.reason, diff)
			}
			if partial := len(want.Definitions) == 0; want.Partial != partial {
				t.Errorf("partial: want %t, got %t", partial, want.Partial)
			}
		})
	}
}

func TestConversionIsRefusedWhereItMatters(t *testing.T) {
	_, err := render.Render(render.Input{Files: withPolicy(fixtures.Corpus(t, "provider-kubernetes"), "*")}, render.Options{})
	if err == nil || !strings.HasPrefix(err.Error(), "package/crds/kubernetes.crossplane.io_objects.yaml:") {
		t.Errorf("two versions and a webhook without a service: want an error with its place, got %v", err)
	}
	// If Crossplane makes the CRDs, it may install the package from elsewhere, with a complete webhook.
	for pattern, matters := range map[string]bool{"*": true, "objects.kubernetes.m.crossplane.io": false} {
		want := mustRender(t, withPolicy(fixtures.Corpus(t, "provider-kubernetes"), pattern), render.Options{Owner: render.OwnerCrossplane})
		if problems := want.Problems(); (problems != nil) != matters {
			t.Errorf("%s: problems of active definitions: %v", pattern, problems)
		}
		for _, o := range want.Objects {
			if (o.Problem != nil) != (o.ID.Name == "objects.kubernetes.crossplane.io") {
				t.Errorf("%s: %v", o.ID, o.Problem)
			}
		}
	}
}

func TestDeterminism(t *testing.T) {
	files := withPolicy(fixtures.Corpus(t, "provider-helm"), "*", "releases.*", "relase.x")
	var first []byte
	for _, n := range []int{1, 4, 1, 4} {
		before := runtime.GOMAXPROCS(n)
		got := dump(t, mustRender(t, files, render.Options{}))
		runtime.GOMAXPROCS(before)
		if first == nil {
			first = got
		}
		if diff := cmp.Diff(string(first), string(got)); diff != "" {
			t.Fatalf("GOMAXPROCS %d renders something else (-first +got):\n%s", n, diff)
		}
	}
}

// dump returns everything that is visible of a Desired.
func dump(t *testing.T, want render.Desired) []byte {
	t.Helper()
	var all []any
	for _, o := range want.Objects {
		content, err := o.Content()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o.ID, o.Origin, o.Digest, o.Definition, o.Serves, o.Optional, content)
	}
	for _, d := range want.Definitions {
		all = append(all, d.Name, d.Active, d.Reasons)
	}
	all = append(all, want.Policies, want.Packages, want.Skipped, want.Findings)
	raw, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func file(text string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(strings.TrimPrefix(text, "\n"))}
}

const nativeMRD = `
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceDefinition
metadata:
  name: buckets.toy.example.org
  labels: {team: a}
spec:
  group: toy.example.org
  names: {kind: Bucket, plural: buckets}
  scope: Namespaced
  versions:
  - {name: v2, served: true, storage: true}
  - {name: v1, served: true, storage: false}
`

func TestRender(t *testing.T) {
	files := fstest.MapFS{
		"mrd.yaml":    file(nativeMRD),
		"policy.yaml": policy("buckets.toy.example.org"),
		"provider.yaml": file(`
apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata: {name: provider-toy}
spec: {package: "example.org/provider-toy:v1"}
`),
		"config.yaml": file(`
apiVersion: toy.example.org/v1
kind: ProviderConfig
metadata: {name: default, namespace: team}
`),
	}
	want := mustRender(t, files, render.Options{})

	type object struct {
		ID, Definition string
		Optional       bool
	}
	var got []object
	for _, o := range want.Objects {
		got = append(got, object{o.ID.String(), o.Definition, o.Optional})
	}
	wanted := []object{
		{"ManagedResourceActivationPolicy.apiextensions.crossplane.io/team", "", true},
		{"CustomResourceDefinition.apiextensions.k8s.io/buckets.toy.example.org", "buckets.toy.example.org", false},
		{"Provider.pkg.crossplane.io/provider-toy", "", true},
		{"ProviderConfig.toy.example.org/team/default", "", false},
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Fatalf("the CRD instead of the MRD, the rest as it is (-want +got):\n%s", diff)
	}

	made, err := want.Objects[1].Content()
	if err != nil {
		t.Fatal(err)
	}
	const crd = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"buckets.toy.example.org"},"spec":{"group":"toy.example.org","names":{"kind":"Bucket","plural":"buckets"},"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":false},{"name":"v2","served":true,"storage":true}]}}`
	raw, err := json.Marshal(made.Object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(crd, string(raw)); diff != "" {
		t.Errorf("as Crossplane makes it (-want +got):\n%s", diff)
	}

	again, err := want.Definitions[0].CRD()
	if err != nil || again.Digest != want.Objects[1].Digest {
		t.Errorf("the definition makes the same CRD on demand: %v", err)
	}
}

// A commit that contains only policies does not show which definitions they match, so Headgate deactivates nothing.
func TestPartial(t *testing.T) {
	some := policy("buckets.toy.example.org")
	for name, tc := range map[string]struct {
		files fstest.MapFS
		want  bool
	}{
		"Policies":       {fstest.MapFS{"policy.yaml": some}, true},
		"AndDefinitions": {fstest.MapFS{"policy.yaml": some, "mrd.yaml": file(nativeMRD)}, false},
		"Definitions":    {fstest.MapFS{"mrd.yaml": file(nativeMRD)}, false},
		"Nothing":        {fstest.MapFS{}, false},
	} {
		if got := mustRender(t, tc.files, render.Options{}).Partial; got != tc.want {
			t.Errorf("%s: partial %t, want %t", name, got, tc.want)
		}
	}
}

func TestPausedAndInactive(t *testing.T) {
	paused := strings.Replace(nativeMRD, "metadata:\n", "metadata:\n  annotations: {crossplane.io/paused: \"true\"}\n", 1)
	want := mustRender(t, fstest.MapFS{"mrd.yaml": file(paused), "policy.yaml": policy("*")}, render.Options{})
	if names := crdNames(want); len(names) > 0 || !want.Definitions[0].Active {
		t.Errorf("active but paused makes no CRD, got %v", names)
	}
	want = mustRender(t, fstest.MapFS{"mrd.yaml": file(nativeMRD)}, render.Options{})
	if names := crdNames(want); len(names) > 0 || want.Definitions[0].Active {
		t.Errorf("inactive makes no CRD, got %v", names)
	}
	if _, err := want.Definitions[0].CRD(); err != nil {
		t.Errorf("but it can be made on demand: %v", err)
	}
}

func TestOtherObject(t *testing.T) {
	a := mustRender(t, fstest.MapFS{"a.yaml": file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b, c: d}\n")}, render.Options{})
	b := mustRender(t, fstest.MapFS{"b.json": file(`{"kind":"ConfigMap","data":{"c":"d","a":"b"},"apiVersion":"v1","metadata":{"name":"a"}}`)}, render.Options{})
	c := mustRender(t, fstest.MapFS{"a.yaml": file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b, c: e}\n")}, render.Options{})
	if a.Objects[0].Digest != b.Objects[0].Digest {
		t.Error("the digest is of the content, whatever its form")
	}
	if a.Objects[0].Digest == c.Objects[0].Digest {
		t.Error("other content, other digest")
	}
	content, err := a.Objects[0].Content()
	if err != nil {
		t.Fatal(err)
	}
	content.SetName("changed")
	if again, err := a.Objects[0].Content(); err != nil || again.GetName() != "a" {
		t.Errorf("every caller has its own: %v, %v", again, err)
	}
}

func webhookCRD(versions ...string) string {
	var b strings.Builder
	b.WriteString(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buckets.toy.example.org}
spec:
  group: toy.example.org
  names: {kind: Bucket, plural: buckets}
  scope: Cluster
  conversion:
    strategy: Webhook
    webhook:
      clientConfig: {service: {path: /convert}}
      conversionReviewVersions: [v1]
  versions:
`)
	for i, v := range versions {
		fmt.Fprintf(&b, "  - {name: %s, served: true, storage: %t}\n", v, i == 0)
	}
	return b.String()
}

func TestConversion(t *testing.T) {
	const provider = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-toy}\n"
	inject := render.Conversion{Strategy: render.ConversionInject, Namespace: "crossplane-system", CABundle: theCA}
	named := inject
	named.Service, named.Port = "webhooks", 443

	injected := func(name string, port int64) map[string]any {
		return map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"clientConfig": map[string]any{
				"caBundle": caBundle,
				"service":  map[string]any{"name": name, "namespace": "crossplane-system", "path": "/convert", "port": port},
			},
			"conversionReviewVersions": []any{"v1"},
		}}
	}
	cases := map[string]struct {
		reason string
		crd    string
		how    render.Conversion
		want   map[string]any // spec.conversion
		fails  bool
	}{
		"SafeSingle": {
			reason: "A CRD with one version needs no conversion.",
			crd:    webhookCRD("v1"),
		},
		"SafeSeveral": {
			reason: "Without a conversion, data could be lost.",
			crd:    webhookCRD("v1", "v1beta1"),
			fails:  true,
		},
		"None": {
			reason: "The user explicitly chose no conversion.",
			crd:    webhookCRD("v1", "v1beta1"),
			how:    render.Conversion{Strategy: render.ConversionNone},
		},
		"Inject": {
			reason: "As in Crossplane, the service has the name of the package.",
			crd:    webhookCRD("v1", "v1beta1"),
			how:    inject,
			want:   injected("provider-toy", 9443),
		},
		"InjectNamed": {
			reason: "The user may choose the name of the service.",
			crd:    webhookCRD("v1"),
			how:    named,
			want:   injected("webhooks", 443),
		},
		"Exempt": {
			reason: "In published packages, exempt kinds have a webhook, too.",
			crd:    strings.Replace(webhookCRD("v1"), "Bucket", "ProviderConfig", 1),
			how:    inject,
			want:   injected("provider-toy", 9443),
		},
		"Complete": {
			reason: "A complete client configuration must not change.",
			crd:    strings.Replace(webhookCRD("v1", "v2"), "{service: {path: /convert}}", "{url: https://example.org}", 1),
			want: map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"clientConfig":             map[string]any{"url": "https://example.org"},
				"conversionReviewVersions": []any{"v1"},
			}},
		},
		"NoWebhook": {
			reason: "Strategy None is kept.",
			crd:    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: buckets.toy.example.org}\nspec:\n  group: toy.example.org\n  names: {kind: Bucket, plural: buckets}\n  scope: Cluster\n  conversion: {strategy: None}\n  versions: [{name: v1, served: true, storage: true}]\n",
			how:    inject,
			want:   map[string]any{"strategy": "None"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{"p/crossplane.yaml": file(provider), "p/crd.yaml": file(tc.crd)}
			want, err := render.Render(render.Input{Files: files}, render.Options{Conversion: tc.how})
			if tc.fails {
				if err == nil || !strings.HasPrefix(err.Error(), "p/crd.yaml:9: ") {
					t.Errorf("%s: want an error at p/crd.yaml:9, got %v", tc.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			made, err := want.Objects[0].Content()
			if err != nil {
				t.Fatal(err)
			}
			got, _ := made.Object["spec"].(map[string]any)["conversion"].(map[string]any)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nspec.conversion (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWebhookConfiguration(t *testing.T) {
	how := render.Options{Conversion: render.Conversion{Strategy: render.ConversionInject, Namespace: "crossplane-system", CABundle: theCA}}
	want := mustRender(t, fixtures.Corpus(t, "provider-nop"), how)
	for _, o := range want.Objects {
		if o.ID.Kind != "ValidatingWebhookConfiguration" {
			continue
		}
		content, err := o.Content()
		if err != nil {
			t.Fatal(err)
		}
		got := content.Object["webhooks"].([]any)[0].(map[string]any)["clientConfig"]
		wanted := map[string]any{
			"caBundle": caBundle,
			"service": map[string]any{
				"name": "provider-nop", "namespace": "crossplane-system", "port": int64(9443),
				"path": "/validate-nop-crossplane-io-v1alpha1-clusternopresource",
			},
		}
		if diff := cmp.Diff(any(wanted), got); diff != "" || o.ID.Name != "crossplane-provider-provider-nop" {
			t.Errorf("%s (-want +got):\n%s", o.ID, diff)
		}
		return
	}
	t.Error("no webhook configuration is wanted")
}

func TestRenderRefuses(t *testing.T) {
	activated := func(mrd string) fstest.MapFS {
		return fstest.MapFS{"mrd.yaml": file(mrd), "policy.yaml": policy("*")}
	}
	cases := map[string]struct {
		reason string
		files  fstest.MapFS
		how    render.Options
		want   []string // beginnings of the lines
	}{
		"Everywhere": {
			reason: "All mistakes are reported together: in files, in objects, and in definitions that do not become a CRD.",
			files: fstest.MapFS{
				"a.yaml":      file("kind: [\n"),
				"b.yaml":      file("apiVersion: v1\nkind: ConfigMap\n"),
				"mrd.yaml":    file(strings.Replace(nativeMRD, "name: v2, ", "", 1)),
				"policy.yaml": policy("*"),
			},
			want: []string{"a.yaml:", "b.yaml:1: ConfigMap has no metadata.name", "mrd.yaml:11: cannot make a CRD of buckets.toy.example.org: spec.versions[0].name: is required"},
		},
		"WrongField": {
			reason: "Every field is reported with its own line.",
			files:  activated(strings.NewReplacer("scope: Namespaced", "scope: Global", "name: v2, ", "").Replace(nativeMRD)),
			want: []string{
				"mrd.yaml:9: cannot make a CRD of buckets.toy.example.org: spec.scope: must be Namespaced or Cluster",
				"mrd.yaml:11: cannot make a CRD of buckets.toy.example.org: spec.versions[0].name: is required",
			},
		},
		"VersionsIsAnObject": {
			reason: "Crossplane's design document shows versions as a map, but its API refuses that.",
			files:  activated(strings.Replace(nativeMRD[:strings.LastIndex(nativeMRD, "  - {")], "  - {", "    {", 1)),
			want:   []string{"mrd.yaml:11: cannot make a CRD of buckets.toy.example.org: spec.versions: must be a list"},
		},
		"VersionsIsAnObjectForCrossplane": {
			reason: "The mistake is reported whoever owns the CRDs.",
			files:  activated(strings.Replace(nativeMRD[:strings.LastIndex(nativeMRD, "  - {")], "  - {", "    {", 1)),
			how:    render.Options{Owner: render.OwnerCrossplane},
			want:   []string{"mrd.yaml:11: cannot make a CRD of buckets.toy.example.org: spec.versions: must be a list"},
		},
		"CRDBeside": {
			reason: "An active definition and an ordinary CRD with the same name cannot both be applied.",
			files: fstest.MapFS{
				"mrd.yaml": file(nativeMRD), "policy.yaml": policy("*"),
				"crd.yaml": file("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: buckets.toy.example.org}\n"),
			},
			want: []string{"mrd.yaml:1: CustomResourceDefinition.apiextensions.k8s.io/buckets.toy.example.org comes from this active definition, and is declared at crd.yaml:1 already"},
		},
		"Owner": {
			reason: "The owner of the CRDs must be a known one.",
			how:    render.Options{Owner: "Somebody"},
			want:   []string{"crdOwner must be Headgate, Crossplane or Auto"},
		},
		"Conversion": {
			reason: "The API server cannot call a service without a CA.",
			how:    render.Options{Conversion: render.Conversion{Strategy: render.ConversionInject, Namespace: "a"}},
			want:   []string{"conversion Inject needs the CA bundle"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.files == nil {
				tc.files = fstest.MapFS{}
			}
			want, err := render.Render(render.Input{Files: tc.files}, tc.how)
			if err == nil {
				t.Fatalf("%s\nRender(...): no error", tc.reason)
			}
			if len(want.Objects) > 0 {
				t.Error("something is wanted all the same")
			}
			got := strings.Split(err.Error(), "\n")
			if len(got) != len(tc.want) {
				t.Fatalf("%s\nwant %d problems, got:\n%v", tc.reason, len(tc.want), err)
			}
			for i, wanted := range tc.want {
				if !strings.HasPrefix(got[i], wanted) {
					t.Errorf("%s\nproblem %d: want %q…, got %q", tc.reason, i, wanted, got[i])
				}
			}
		})
	}
}

const connectionDetails = `
apiVersion: headgate.dev/v1alpha1
kind: ConnectionDetails
metadata: {name: team}
spec:
  definitions:
  - name: buckets.toy.example.org
    connectionDetails:
    - {name: endpoint, description: where it is}
    - {name: password, description: how to get in}
`

// A CRD has no field for connection details, so Crossplane gets them in the definitions.
func TestConnectionDetails(t *testing.T) {
	files := fstest.MapFS{
		"details.yaml": file(connectionDetails),
		"mrd.yaml":     file(nativeMRD + "  connectionDetails: [{name: user, description: who}, {name: password, description: old}]\n"),
		"policy.yaml":  policy("*"),
	}
	want := mustRender(t, files, render.Options{Owner: render.OwnerCrossplane})
	var got any
	for _, o := range want.Objects {
		if crossplane.IsMRD(o.ID) {
			content, err := o.Content()
			if err != nil {
				t.Fatal(err)
			}
			got = content.Object["spec"].(map[string]any)["connectionDetails"]
		}
	}
	wanted := []any{
		map[string]any{"name": "user", "description": "who"},
		map[string]any{"name": "password", "description": "how to get in"},
		map[string]any{"name": "endpoint", "description": "where it is"},
	}
	if diff := cmp.Diff(any(wanted), got); diff != "" || len(want.Objects) != 2 {
		t.Errorf("added to its own, and none applied itself (-want +got):\n%s", diff)
	}

	made := mustRender(t, files, render.Options{})
	without := mustRender(t, fstest.MapFS{"mrd.yaml": file(nativeMRD), "policy.yaml": policy("*")}, render.Options{})
	for i, o := range made.Objects {
		if o.Digest != without.Objects[i].Digest {
			t.Errorf("a CRD says nothing of them: %s", o.ID)
		}
	}

	type found struct {
		Rule   string
		Origin string
	}
	findings := func(want render.Desired) (all []found) {
		for _, f := range want.Findings {
			all = append(all, found{f.Rule, f.Origin.String()})
		}
		return all
	}
	files = fstest.MapFS{
		"details.yaml":      file(strings.ReplaceAll(connectionDetails, "buckets", "releases") + "---" + connectionDetails),
		"p/crossplane.yaml": file("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-toy}\nspec: {capabilities: [safe-start]}\n"),
		"p/crd.yaml":        file(strings.NewReplacer("buckets", "releases", "Bucket", "Release").Replace(webhookCRD("v1"))),
		"provider.yaml":     file("apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-toy}\nspec: {package: example.org/provider-toy:v1}\n"),
	}
	for owner, wanted := range map[render.Owner][]found{
		render.OwnerCrossplane: {{"connection-details-wiped", "details.yaml:6"}, {"connection-details-of-unknown", "details.yaml:16"}},
		render.OwnerHeadgate:   {{"connection-details-of-unknown", "details.yaml:16"}},
	} {
		if diff := cmp.Diff(wanted, findings(mustRender(t, files, render.Options{Owner: owner}))); diff != "" {
			t.Errorf("with %s (-want +got):\n%s", owner, diff)
		}
	}

	partial := mustRender(t, fstest.MapFS{"details.yaml": file(connectionDetails)}, render.Options{})
	if len(partial.Findings) > 0 {
		t.Errorf("where no definitions are, they may be elsewhere: %v", partial.Findings)
	}
	_, err := render.Render(render.Input{Files: fstest.MapFS{"a.yaml": file(connectionDetails), "b.yaml": file(connectionDetails)}}, render.Options{})
	if err == nil || !strings.HasPrefix(err.Error(), "b.yaml:6: the connection details of buckets.toy.example.org are declared at a.yaml:6 already") {
		t.Errorf("two that speak of one, got %v", err)
	}
}

// Convert prints what Headgate gives to Crossplane, plus the state and an empty name and namespace for the webhook's service.
// fixtures/oracle checks the result with Crossplane itself.
func TestDeclared(t *testing.T) {
	for _, archive := range []string{"provider-nop", "provider-helm", "provider-kubernetes-v1.0.0", "provider-kubernetes"} {
		want := mustRender(t, fixtures.Corpus(t, archive), render.Options{
			Owner:      render.OwnerCrossplane,
			Conversion: render.Conversion{Strategy: render.ConversionInject, Namespace: "a", CABundle: theCA},
		})
		objects := map[string]render.Object{}
		for _, o := range want.Objects {
			objects[o.Definition] = o
		}
		for _, d := range want.Definitions {
			declared, err := d.Declared()
			if err != nil {
				t.Fatal(err)
			}
			content, err := objects[d.Name].Content()
			if err != nil {
				t.Fatal(err)
			}
			if d.State != catalogue.None {
				content.Object["spec"].(map[string]any)["state"] = string(d.State)
			}
			if service, ok, _ := unstructured.NestedMap(content.Object, "spec", "conversion", "webhook", "clientConfig", "service"); ok {
				path := service["path"]
				unstructured.RemoveNestedField(content.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
				if err := unstructured.SetNestedMap(content.Object, map[string]any{"name": "", "namespace": "", "path": path}, "spec", "conversion", "webhook", "clientConfig", "service"); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(content.Object, declared.Object); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", archive, d.Name, diff)
			}
		}
	}
}

func TestMalformedPatternIsNoError(t *testing.T) {
	want := mustRender(t, fstest.MapFS{"mrd.yaml": file(nativeMRD), "policy.yaml": policy("[")}, render.Options{})
	if len(want.Findings) != 1 || want.Findings[0].Severity != manifest.Warning {
		t.Errorf("Crossplane ignores it; want one warning, got %v", want.Findings)
	}
}

func BenchmarkRenderAWS(b *testing.B) {
	aws := fixtures.Corpus(b, "provider-upjet-aws")
	names := slices.Sorted(maps.Keys(aws))
	var forty []string
	for _, name := range names {
		base, ok := strings.CutPrefix(name, "crds/")
		if !ok || !strings.Contains(base, ".m.") || strings.Contains(base, "onfig") {
			continue
		}
		group, plural, _ := strings.Cut(strings.TrimSuffix(base, ".yaml"), "_")
		if len(forty) < 40 {
			forty = append(forty, plural+"."+group)
		}
	}
	files := withPolicy(aws, forty...)
	b.ReportAllocs()
	for b.Loop() {
		mustRender(b, files, render.Options{})
	}
}

// Crossplane's definitions and policies may become v1beta1. The same repository makes the same CRDs in both versions.
func TestVersionsOfDefinitions(t *testing.T) {
	const definition = `apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  names: {kind: Thing, plural: things}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}}]
`
	rendered := func(version string) string {
		files := withPolicy(fixtures.Corpus(t, "provider-kubernetes"), "things.example.org", "*.kubernetes.m.crossplane.io")
		files["definition.yaml"] = &fstest.MapFile{Data: []byte(definition)}
		for name, file := range files {
			files[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(string(file.Data), "apiextensions.crossplane.io/v1alpha1", "apiextensions.crossplane.io/"+version))}
		}
		want := mustRender(t, files, render.Options{Owner: render.OwnerHeadgate})
		var b strings.Builder
		for _, o := range want.Objects {
			if !o.ID.IsCRD() {
				continue
			}
			u, err := o.Content()
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(u)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s\n", raw)
		}
		if got := crdNames(want); !slices.Contains(got, "things.example.org") || len(got) < 3 {
			t.Errorf("%s: %q", version, got)
		}
		return b.String()
	}
	if diff := cmp.Diff(rendered("v1alpha1"), rendered("v1beta1")); diff != "" {
		t.Errorf("the CRDs differ (-v1alpha1 +v1beta1):\n%s", diff)
	}
}

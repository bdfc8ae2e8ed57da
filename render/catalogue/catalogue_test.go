//test:package raced
package catalogue_test

import (
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const (
	safeProvider = `
apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: provider-toy}
spec: {capabilities: [SafeStart]}`
	unsafeProvider = `
apiVersion: meta.pkg.crossplane.io/v1alpha1
kind: Provider
metadata: {name: provider-nop}`
	configuration = `
apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: platform}`
	function = `
apiVersion: meta.pkg.crossplane.io/v1beta1
kind: Function
metadata: {name: function-go}`
)

// read returns the catalogue of a commit, and the errors in the commit.
func read(files fs.FS, root string, how catalogue.Options) (catalogue.Catalogue, error) {
	d, err := catalogue.Open(files, root, how)
	if err != nil {
		return catalogue.Catalogue{}, err
	}
	c, problems := d.Catalogue()
	return c, problems.OrNil()
}

func crd(plural, kind string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.toy.example.org
spec:
  group: toy.example.org
  names:
    kind: %[2]s
    plural: %[1]s
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
`, plural, kind)
}

func mrd(more string) string {
	return `
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceDefinition
metadata:
  name: things.toy.example.org
spec:
  group: toy.example.org
  names:
    kind: Thing
    plural: things
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
` + more
}

func object(apiVersion, kind, name string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n", apiVersion, kind, name)
}

func tree(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(strings.TrimPrefix(text, "\n"))}
	}
	return m
}

func documents(texts ...string) string { return strings.Join(texts, "\n---\n") }

func TestRead(t *testing.T) {
	type definition struct {
		Name, Package string
		State         catalogue.State
		FromCRD       bool
		Paused        bool
	}
	type result struct {
		Definitions []definition
		Policies    []string // name: pattern@line …
		Packages    []string
		Objects     []string
		Skipped     catalogue.Skipped
		Findings    []string // rule@place
	}
	const policy = `
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceActivationPolicy
metadata:
  name: team
spec:
  activate:
  # what the shop uses
  - buckets.toy.example.org

  - "*.example.org"
`

	cases := map[string]struct {
		reason string
		files  map[string]string
		root   string
		how    catalogue.Options
		want   result
	}{
		"Ordinary": {
			reason: "Outside packages, all objects are applied, including CRDs, wherever they are.",
			files: map[string]string{
				"a.yaml":        documents(object("v1", "Namespace", "a"), object("v1", "ConfigMap", "a")),
				"deep/er/b.yml": crd("buckets", "Bucket"),
				"c.json":        `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"a"}}`,
				"README.md":     "# not read",
				".git/x.yaml":   "not: [read",
				".hidden.yaml":  "not: [read",
				".notes.md":     "# not read",
				"a.yaml.orig":   "not: [read",
			},
			want: result{
				Objects: []string{"ConfigMap/a", "ConfigMap/a/c", "Namespace/a", "CustomResourceDefinition.apiextensions.k8s.io/buckets.toy.example.org"},
				Skipped: catalogue.Skipped{catalogue.Hidden: 2, catalogue.OtherSuffix: 1},
			},
		},
		"Root": {
			reason: "Only files below the path are read.",
			files:  map[string]string{"a/x.yaml": object("v1", "ConfigMap", "a"), "b/x.yaml": object("v1", "ConfigMap", "b")},
			root:   "/b/",
			want:   result{Objects: []string{"ConfigMap/b"}},
		},
		"RootIsAFile": {
			reason: "A path may name a single file.",
			files:  map[string]string{"a/x.yaml": object("v1", "ConfigMap", "a"), "a/y.yaml": object("v1", "ConfigMap", "b")},
			root:   "a/y.yaml",
			want:   result{Objects: []string{"ConfigMap/b"}},
		},
		"Skipped": {
			reason: "Documents that are not for the cluster, or not for Headgate to apply, are counted.",
			files: map[string]string{
				"values.yaml": "replicas: 1",
				"local.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/local-config: \"true\"\n",
				"flux.yaml":   documents(object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "a"), object("source.toolkit.fluxcd.io/v1", "GitRepository", "a")),
				"argo.yaml":   object("argoproj.io/v1alpha1", "Application", "a"),
				"sops.yaml":   object("v1", "Secret", "a") + "data:\n  a: ENC[AES256_GCM,data:x]\nsops:\n  mac: x\n",
				"sops2.yaml":  "apiVersion: ENC[AES256_GCM,data:x]\nkind: ENC[AES256_GCM,data:x]\nsops: {mac: x}\n",
				"meta.yaml":   safeProvider,
			},
			want: result{Skipped: catalogue.Skipped{
				catalogue.NotManifest: 1, catalogue.LocalOnly: 1, catalogue.OtherTool: 3, catalogue.Encrypted: 2, catalogue.Metadata: 1,
			}, Findings: []string{"package-metadata-elsewhere@meta.yaml:1"}},
		},
		"Hooks": {
			reason: "A hook of another tool would run at once if it were applied. CRDs that Helm 2 installs first are no hooks, and Crossplane installs every object of a package.",
			files: map[string]string{
				"post.yaml":            object("v1", "ConfigMap", "post") + "  annotations: {argocd.argoproj.io/hook: PostDelete}\n",
				"sync.yaml":            object("v1", "ConfigMap", "sync") + "  annotations:\n    argocd.argoproj.io/hook: Sync,Skip\n",
				"test.yaml":            object("v1", "ConfigMap", "test") + "  annotations:\n    helm.sh/hook: \"test, post-delete\"\n    helm.sh/hook-weight: \"1\"\n",
				"empty.yaml":           object("v1", "ConfigMap", "empty") + "  annotations:\n    helm.sh/hook: \"\"\n",
				"skip.yaml":            object("v1", "ConfigMap", "skip") + "  annotations:\n    argocd.argoproj.io/hook: Skip\n    helm.sh/hook: test\n",
				"crd.yaml":             strings.Replace(crd("buckets", "Bucket"), "metadata:\n", "metadata:\n  annotations: {helm.sh/hook: crd-install}\n", 1),
				"weight.yaml":          object("v1", "ConfigMap", "weight") + "  annotations: {argocd.argoproj.io/hook-delete-policy: HookSucceeded, helm.sh/hook-weight: \"1\"}\n",
				"k/a.yaml":             object("v1", "ConfigMap", "built"),
				"k/kustomization.yaml": "resources: [a.yaml]\ncommonAnnotations: {argocd.argoproj.io/hook: SyncFail}\n",
				"p/crossplane.yaml":    safeProvider,
				"p/crd.yaml":           strings.Replace(crd("things", "Thing"), "metadata:\n", "metadata:\n  annotations: {helm.sh/hook: pre-install}\n", 1),
			},
			want: result{
				Definitions: []definition{{Name: "things.toy.example.org", Package: "provider-toy", FromCRD: true}},
				Packages:    []string{"Provider provider-toy in p, safe-start: true, at p/crossplane.yaml:1"},
				Objects: []string{
					"ConfigMap/weight", "CustomResourceDefinition.apiextensions.k8s.io/buckets.toy.example.org",
				},
				Skipped:  catalogue.Skipped{catalogue.Hook: 5, catalogue.Unsynced: 1, catalogue.Metadata: 1},
				Findings: []string{"hook-not-applied@empty.yaml:1", "hook-not-applied@k/a.yaml:1", "hook-not-applied@post.yaml:1", "hook-not-applied@sync.yaml:1", "hook-not-applied@test.yaml:1"},
			},
		},
		"Substituted": {
			reason: "Flux's variables are applied literally, which deserves a warning; programs, prose and schemas may contain similar texts.",
			files: map[string]string{
				"a.yaml":    object("v1", "ConfigMap", "a") + "data:\n  region: eu-${region}\n  other: ${other:=x}\n",
				"b.yaml":    object("v1", "ConfigMap", "b") + "data:\n  script: |\n    echo ${HOME}\n    true\n  escaped: $${region}\n  shell: $(HOME) $HOME ${1}\n",
				"c.yaml":    object("v1", "Pod", "c") + "spec:\n  containers:\n  - name: a\n  - name: ${name}\n",
				"d.yaml":    object("apiextensions.crossplane.io/v1", "Composition", "d") + "spec:\n  x: ${name}\n",
				"crd.yaml":  crd("buckets", "Bucket") + "    description: ${name}\n",
				"mrd.yaml":  mrd("") + "    description: ${name}\n",
				"flux.yaml": object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "${name}"),
			},
			want: result{
				Definitions: []definition{{Name: "things.toy.example.org"}},
				Objects: []string{
					"ConfigMap/a", "ConfigMap/b", "Pod/c", "Composition.apiextensions.crossplane.io/d",
					"CustomResourceDefinition.apiextensions.k8s.io/buckets.toy.example.org",
				},
				Skipped:  catalogue.Skipped{catalogue.OtherTool: 1},
				Findings: []string{"unsubstituted-variable@a.yaml:7", "unsubstituted-variable@c.yaml:8"},
			},
		},
		"Kustomized": {
			reason: "A directory with a kustomization contributes what kustomize builds; other directories contribute their files; a base is not applied again.",
			files: map[string]string{
				"a.yaml":                     object("v1", "ConfigMap", "a"),
				"shared/b.yaml":              object("v1", "ConfigMap", "b"),
				"shared/patch.yaml":          object("v1", "ConfigMap", "b") + "data: {x: y}\n",
				"shared/c.yaml":              object("v1", "ConfigMap", "c"),
				"base/kustomization.yaml":    "resources: [policy.yaml, mrd.yaml, local.yaml]\n",
				"base/policy.yaml":           policy,
				"base/mrd.yaml":              mrd(""),
				"base/local.yaml":            object("v1", "ConfigMap", "l") + "  annotations: {config.kubernetes.io/local-config: \"true\"}\n",
				"base/not-named.yaml":        "not: [read",
				"prod/kustomization.yaml":    "resources: [../base, ../shared/b.yaml, flux.yaml]\npatches: [{path: ../shared/patch.yaml}]\ncommonAnnotations: {a: b}\n",
				"prod/flux.yaml":             object("source.toolkit.fluxcd.io/v1", "GitRepository", "a"),
				"component/Kustomization":    "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [d.yaml]\n",
				"component/d.yaml":           object("v1", "ConfigMap", "d"),
				"flux/kustomization.yaml":    object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "a"),
				"flux/e.yaml":                object("v1", "ConfigMap", "e"),
				"ignored/kustomization.yaml": "not: [read",
				"ignored/.headgateignore":    "kustomization.yaml\n",
				"ignored/f.yaml":             object("v1", "ConfigMap", "f"),
				"plain/overlay.yaml":         "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n",
			},
			want: result{
				Definitions: []definition{{Name: "things.toy.example.org"}},
				Policies:    []string{"team: buckets.toy.example.org@8 *.example.org@10"},
				Objects:     []string{"ConfigMap/a", "ConfigMap/b", "ConfigMap/c", "ConfigMap/e", "ConfigMap/f", "ManagedResourceActivationPolicy.apiextensions.crossplane.io/team"},
				Skipped: catalogue.Skipped{
					catalogue.LocalOnly: 1, catalogue.OtherTool: 2, catalogue.Kustomize: 2, catalogue.Ignored: 1,
				},
				Findings: []string{"kustomization-base@base/kustomization.yaml:1"},
			},
		},
		"KustomizedRoot": {
			reason: "The path is an overlay, and its base is outside the path.",
			files: map[string]string{
				"base/kustomization.yaml":      "resources: [a.yaml]\n",
				"base/a.yaml":                  object("v1", "ConfigMap", "a"),
				"prod/kustomization.yaml":      "resources: [../base]\nnamespace: prod\n",
				"prod/more/kustomization.yaml": "not: [read",
				"kustomization.yaml":           "not: [read",
			},
			root: "prod",
			want: result{Objects: []string{"ConfigMap/prod/a"}},
		},
		"KustomizedInAPackage": {
			reason: "A path that names a directory inside a package is read like any other.",
			files: map[string]string{
				"toy/crossplane.yaml":           safeProvider,
				"toy/deploy/kustomization.yaml": "resources: [a.yaml]\n",
				"toy/deploy/a.yaml":             object("v1", "ConfigMap", "a"),
			},
			root: "toy/deploy",
			want: result{
				Packages: []string{"Provider provider-toy in toy, safe-start: true, at toy/crossplane.yaml:1"},
				Objects:  []string{"ConfigMap/a"},
			},
		},
		"HiddenPackage": {
			reason: "A package below a kustomization does not count as a package, which loses its definitions and deserves a warning.",
			files: map[string]string{
				"kustomization.yaml":  "resources: [a.yaml]\n",
				"a.yaml":              object("v1", "ConfigMap", "a"),
				"toy/crossplane.yaml": safeProvider,
				"toy/crd.yaml":        crd("buckets", "Bucket"),
			},
			want: result{
				Objects:  []string{"ConfigMap/a"},
				Findings: []string{"package-inside-kustomization@toy/crossplane.yaml:1"},
			},
		},
		"Ignored": {
			reason: "A repository excludes templates and sources of other tools with an ignore file.",
			files: map[string]string{
				".headgateignore":       "# templates\n*.tmpl.yaml\n/drafts/\n",
				"a.yaml":                object("v1", "ConfigMap", "a"),
				"b.tmpl.yaml":           "not: [read",
				"deep/c.tmpl.yaml":      "not: [read",
				"drafts/d.yaml":         "not: [read",
				"drafts/more/e.yaml":    "not: [read",
				"drafts/more/README.md": "not read anyway, and so not counted",
				"deep/drafts/f.yaml":    object("v1", "ConfigMap", "f"),
				"keep/.headgateignore":  "!g.tmpl.yaml\r\n",
				"keep/g.tmpl.yaml":      object("v1", "ConfigMap", "g"),
				"toy/.headgateignore":   "crossplane.yaml\n",
				"toy/crossplane.yaml":   safeProvider,
				"toy/crd.yaml":          crd("buckets", "Bucket"),
			},
			want: result{
				Objects: []string{"ConfigMap/a", "ConfigMap/f", "ConfigMap/g", "CustomResourceDefinition.apiextensions.k8s.io/buckets.toy.example.org"},
				Skipped: catalogue.Skipped{catalogue.Ignored: 5},
			},
		},
		"IgnoredAbove": {
			reason: "The ignore file of a directory above the path applies.",
			files: map[string]string{
				".headgateignore":           "*.tmpl.yaml\n",
				"clusters/prod/a.yaml":      object("v1", "ConfigMap", "a"),
				"clusters/b.tmpl.yaml":      "not: [read",
				"clusters/prod/c.tmpl.yaml": "not: [read",
			},
			root: "clusters/prod",
			want: result{Objects: []string{"ConfigMap/a"}, Skipped: catalogue.Skipped{catalogue.Ignored: 1}},
		},
		"IgnoredByName": {
			reason: "A path may name an ignored directory, as in git add.",
			files: map[string]string{
				".headgateignore":    "drafts\n*.tmpl.yaml\n",
				"drafts/a.yaml":      object("v1", "ConfigMap", "a"),
				"drafts/b.tmpl.yaml": "not: [read",
			},
			root: "drafts",
			want: result{Objects: []string{"ConfigMap/a"}, Skipped: catalogue.Skipped{catalogue.Ignored: 1}},
		},
		"SafeStart": {
			reason: "From a provider package come definitions, exempt CRDs, MRDs, and webhook configurations with Crossplane's name for them.",
			files: map[string]string{
				"toy/crossplane.yaml":         safeProvider,
				"toy/crds/buckets.yaml":       crd("buckets", "Bucket"),
				"toy/crds/configs.yaml":       crd("providerconfigs", "ProviderConfig"),
				"toy/crds/usages.yaml":        crd("clusterproviderconfigusages", "ClusterProviderConfigUsage"),
				"toy/crds/identity.yaml":      crd("identityproviderconfigs", "IdentityProviderConfig"),
				"toy/crds/old.yaml":           object("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "old.toy.example.org"),
				"toy/crds/native.yaml":        mrd("  state: Active\n"),
				"toy/webhooks/manifests.yaml": object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "placeholder"),
				"policy.yaml":                 policy,
			},
			want: result{
				Definitions: []definition{
					{Name: "buckets.toy.example.org", Package: "provider-toy", FromCRD: true},
					{Name: "identityproviderconfigs.toy.example.org", Package: "provider-toy", FromCRD: true},
					{Name: "things.toy.example.org", Package: "provider-toy", State: catalogue.Active},
				},
				Policies: []string{"team: buckets.toy.example.org@8 *.example.org@10"},
				Packages: []string{"Provider provider-toy in toy, safe-start: true, at toy/crossplane.yaml:1"},
				Objects: []string{
					"ValidatingWebhookConfiguration.admissionregistration.k8s.io/crossplane-provider-provider-toy",
					"ManagedResourceActivationPolicy.apiextensions.crossplane.io/team",
					"CustomResourceDefinition.apiextensions.k8s.io/clusterproviderconfigusages.toy.example.org",
					"CustomResourceDefinition.apiextensions.k8s.io/old.toy.example.org",
					"CustomResourceDefinition.apiextensions.k8s.io/providerconfigs.toy.example.org",
				},
				Skipped: catalogue.Skipped{catalogue.Metadata: 1},
			},
		},
		"NotSafeStart": {
			reason: "Without the capability, converted definitions are Active, and native ones keep their state; a paused CRD becomes a paused definition.",
			files: map[string]string{
				"crossplane.yaml": unsafeProvider,
				"crds/a.yaml":     strings.Replace(crd("buckets", "Bucket"), "metadata:\n", "metadata:\n  annotations:\n    crossplane.io/paused: \"true\"\n", 1),
				"crds/b.yaml":     mrd(""),
			},
			want: result{
				Definitions: []definition{
					{Name: "buckets.toy.example.org", Package: "provider-nop", State: catalogue.Active, FromCRD: true, Paused: true},
					{Name: "things.toy.example.org", Package: "provider-nop"},
				},
				Packages: []string{"Provider provider-nop in ., safe-start: false, at crossplane.yaml:1"},
				Skipped:  catalogue.Skipped{catalogue.Metadata: 1},
			},
		},
		"NotInstalled": {
			reason: "An object that Crossplane would not install from a package is not applied, which deserves a warning.",
			files: map[string]string{
				"toy/crossplane.yaml": safeProvider,
				"toy/policy.yaml":     policy,
				"toy/provider.yaml":   object("pkg.crossplane.io/v1", "Provider", "toy"),
				"toy/config.yaml":     object("toy.example.org/v1", "ProviderConfig", "default"),
			},
			want: result{
				Packages: []string{"Provider provider-toy in toy, safe-start: true, at toy/crossplane.yaml:1"},
				Skipped:  catalogue.Skipped{catalogue.Metadata: 1, catalogue.NotInstalled: 3},
				Findings: []string{
					"not-installed-from-package@toy/config.yaml:1",
					"not-installed-from-package@toy/policy.yaml:1",
					"not-installed-from-package@toy/provider.yaml:1",
				},
			},
		},
		"Configuration": {
			reason: "A Configuration contains XRDs, Compositions, policies and operations, but no CRDs.",
			files: map[string]string{
				"p/crossplane.yaml": configuration,
				"p/apis.yaml": documents(
					object("apiextensions.crossplane.io/v2", "CompositeResourceDefinition", "xs.example.org"),
					object("apiextensions.crossplane.io/v1", "Composition", "x"),
					object("ops.crossplane.io/v1alpha1", "CronOperation", "x")),
				"p/policy.yaml": policy,
				"p/crd.yaml":    crd("buckets", "Bucket"),
				"p/mrd.yaml":    mrd(""),
			},
			want: result{
				Policies: []string{"team: buckets.toy.example.org@8 *.example.org@10"},
				Packages: []string{"Configuration platform in p, safe-start: false, at p/crossplane.yaml:1"},
				Objects: []string{
					"CompositeResourceDefinition.apiextensions.crossplane.io/xs.example.org",
					"Composition.apiextensions.crossplane.io/x",
					"ManagedResourceActivationPolicy.apiextensions.crossplane.io/team",
					"CronOperation.ops.crossplane.io/x",
				},
				Skipped:  catalogue.Skipped{catalogue.Metadata: 1, catalogue.NotInstalled: 2},
				Findings: []string{"not-installed-from-package@p/crd.yaml:1", "not-installed-from-package@p/mrd.yaml:1"},
			},
		},
		"Function": {
			reason: "A Function installs nothing, and the schema of its input causes no finding.",
			files: map[string]string{
				"f/crossplane.yaml": function,
				"f/input.yaml":      crd("inputs", "Input"),
				"f/x.yaml":          object("v1", "ConfigMap", "x"),
			},
			want: result{
				Packages: []string{"Function function-go in f, safe-start: false, at f/crossplane.yaml:1"},
				Skipped:  catalogue.Skipped{catalogue.Metadata: 1, catalogue.NotInstalled: 2},
				Findings: []string{"not-installed-from-package@f/x.yaml:1"},
			},
		},
		"FunctionThen": {
			reason: "Before v2.2.0, Crossplane installed the objects of a Function unchanged.",
			files: map[string]string{
				"f/crossplane.yaml": function,
				"f/input.yaml":      crd("inputs", "Input"),
				"f/x.yaml":          object("v1", "ConfigMap", "x"),
			},
			how: catalogue.Options{CrossplaneVersion: "2.1.8"},
			want: result{
				Packages: []string{"Function function-go in f, safe-start: false, at f/crossplane.yaml:1"},
				Objects:  []string{"CustomResourceDefinition.apiextensions.k8s.io/inputs.toy.example.org"},
				Skipped:  catalogue.Skipped{catalogue.Metadata: 1, catalogue.NotInstalled: 1},
				Findings: []string{"not-installed-from-package@f/x.yaml:1"},
			},
		},
		"FirstRelease": {
			reason: "v2.0.1 made definitions from all CRDs, and accepted neither definitions nor policies in packages.",
			files: map[string]string{
				"toy/crossplane.yaml":    safeProvider,
				"toy/crds/configs.yaml":  crd("providerconfigs", "ProviderConfig"),
				"toy/crds/native.yaml":   mrd(""),
				"conf/crossplane.yaml":   configuration,
				"conf/policy.yaml":       policy,
				"elsewhere/policy.yaml":  strings.Replace(policy, "name: team", "name: other", 1),
				"elsewhere/classic.yaml": crd("providerconfigusages", "ProviderConfigUsage"),
			},
			how: catalogue.Options{CrossplaneVersion: "v2.0.1"},
			want: result{
				Definitions: []definition{{Name: "providerconfigs.toy.example.org", Package: "provider-toy", FromCRD: true}},
				Policies:    []string{"other: buckets.toy.example.org@8 *.example.org@10"},
				Packages: []string{
					"Configuration platform in conf, safe-start: false, at conf/crossplane.yaml:1",
					"Provider provider-toy in toy, safe-start: true, at toy/crossplane.yaml:1",
				},
				Objects: []string{
					"ManagedResourceActivationPolicy.apiextensions.crossplane.io/other",
					"CustomResourceDefinition.apiextensions.k8s.io/providerconfigusages.toy.example.org",
				},
				Skipped:  catalogue.Skipped{catalogue.Metadata: 2, catalogue.NotInstalled: 2},
				Findings: []string{"not-installed-from-package@conf/policy.yaml:1", "not-installed-from-package@toy/crds/native.yaml:1"},
			},
		},
		"ThreeExempt": {
			reason: "Before v2.2.0 there were three exempt kinds.",
			files: map[string]string{
				"crossplane.yaml": safeProvider,
				"a.yaml":          crd("providerconfigs", "ProviderConfig"),
				"b.yaml":          crd("clusterproviderconfigusages", "ClusterProviderConfigUsage"),
				"c.yaml":          mrd(""),
			},
			how: catalogue.Options{CrossplaneVersion: "v2.1.8"},
			want: result{
				Definitions: []definition{
					{Name: "clusterproviderconfigusages.toy.example.org", Package: "provider-toy", FromCRD: true},
					{Name: "things.toy.example.org", Package: "provider-toy"},
				},
				Packages: []string{"Provider provider-toy in ., safe-start: true, at crossplane.yaml:1"},
				Objects:  []string{"CustomResourceDefinition.apiextensions.k8s.io/providerconfigs.toy.example.org"},
				Skipped:  catalogue.Skipped{catalogue.Metadata: 1},
			},
		},
		"FourExempt": {
			reason: "A release candidate of v2.2.0 counts as v2.2.0, with four exempt kinds.",
			files: map[string]string{
				"crossplane.yaml": safeProvider,
				"b.yaml":          crd("clusterproviderconfigusages", "ClusterProviderConfigUsage"),
			},
			how: catalogue.Options{CrossplaneVersion: "v2.2.0-rc.0.12.gabcdef0"},
			want: result{
				Packages: []string{"Provider provider-toy in ., safe-start: true, at crossplane.yaml:1"},
				Objects:  []string{"CustomResourceDefinition.apiextensions.k8s.io/clusterproviderconfigusages.toy.example.org"},
				Skipped:  catalogue.Skipped{catalogue.Metadata: 1},
			},
		},
		"Incompatible": {
			reason: "Crossplane does not install a package that requires another release.",
			files: map[string]string{
				"a/crossplane.yaml": safeProvider + "\n",
				"b/crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: b}\nspec:\n  crossplane:\n    version: \">=v2.3.0\"\n",
				"c/crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: c}\nspec: {crossplane: {version: \">=v1.12.0-0\"}}\n",
			},
			how: catalogue.Options{CrossplaneVersion: "v2.2.4"},
			want: result{
				Packages: []string{
					"Provider provider-toy in a, safe-start: true, at a/crossplane.yaml:1",
					"Provider b in b, safe-start: false, at b/crossplane.yaml:1",
					"Provider c in c, safe-start: false, at c/crossplane.yaml:1",
				},
				Skipped:  catalogue.Skipped{catalogue.Metadata: 3},
				Findings: []string{"package-incompatible@b/crossplane.yaml:6"},
			},
		},
		"Declared": {
			reason: "A directory without crossplane.yaml is in every respect a package if it is declared as one.",
			files: map[string]string{
				"vendor/toy/crds/buckets.yaml": crd("buckets", "Bucket"),
				"vendor/toy/examples/a.yaml":   "not: [read",
				"vendor/toy/webhook.yaml":      object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "placeholder"),
				"vendor/toy/x.yaml":            object("v1", "ConfigMap", "x"),
				"vendor/other/crd.yaml":        crd("queues", "Queue"),
				"vendor/crd.yaml":              crd("tables", "Table"),
			},
			how: catalogue.Options{Packages: []catalogue.Declared{{Path: "vendor/toy/", Name: "toy", SafeStart: true}, {Path: "./vendor/other", Name: "other"}}},
			want: result{
				Definitions: []definition{
					{Name: "buckets.toy.example.org", Package: "toy", FromCRD: true},
					{Name: "queues.toy.example.org", Package: "other", FromCRD: true, State: catalogue.Active},
				},
				Packages: []string{
					"Provider other in vendor/other, safe-start: false, at vendor/other",
					"Provider toy in vendor/toy, safe-start: true, at vendor/toy",
				},
				Objects: []string{
					"ValidatingWebhookConfiguration.admissionregistration.k8s.io/crossplane-provider-toy",
					"CustomResourceDefinition.apiextensions.k8s.io/tables.toy.example.org",
				},
				Skipped:  catalogue.Skipped{catalogue.BuildInput: 1, catalogue.NotInstalled: 1},
				Findings: []string{"not-installed-from-package@vendor/toy/x.yaml:1"},
			},
		},
		"InsideOfADeclared": {
			reason: "A path inside a declared package does not turn its definitions into ordinary CRDs.",
			files:  map[string]string{"toy/crds/buckets.yaml": crd("buckets", "Bucket")},
			root:   "toy/crds/buckets.yaml",
			how:    catalogue.Options{Packages: []catalogue.Declared{{Path: "toy", Name: "toy", SafeStart: true}}},
			want: result{
				Definitions: []definition{{Name: "buckets.toy.example.org", Package: "toy", FromCRD: true}},
				Packages:    []string{"Provider toy in toy, safe-start: true, at toy"},
			},
		},
		"BuildInputs": {
			reason: "Examples, tests, sources and kustomizations inside a package are counted, not read.",
			files: map[string]string{
				"toy/crossplane.yaml":           safeProvider,
				"toy/crds/buckets.yaml":         crd("buckets", "Bucket"),
				"toy/examples/bucket.yaml":      "not: [read",
				"toy/examples/deep/bucket.yaml": "not: [read",
				"toy/test/e2e/x.yaml":           "not: [read",
				"toy/upstream/auth.yaml":        "not: [read",
				"toy/patch/kustomization.yaml":  "not: [read",
				"toy/patch/more/webhook.yaml":   "not: [read",
				"examples/a.yaml":               object("v1", "ConfigMap", "a"),
			},
			want: result{
				Definitions: []definition{{Name: "buckets.toy.example.org", Package: "provider-toy", FromCRD: true}},
				Packages:    []string{"Provider provider-toy in toy, safe-start: true, at toy/crossplane.yaml:1"},
				Objects:     []string{"ConfigMap/a"},
				Skipped:     catalogue.Skipped{catalogue.Metadata: 1, catalogue.BuildInput: 6},
				Findings:    []string{"package-build-input@toy/patch/kustomization.yaml"},
			},
		},
		"InsideOfAPackage": {
			reason: "A path inside a package does not turn its definitions into ordinary CRDs.",
			files:  map[string]string{"toy/crossplane.yaml": safeProvider, "toy/crds/buckets.yaml": crd("buckets", "Bucket")},
			root:   "toy/crds",
			want: result{
				Definitions: []definition{{Name: "buckets.toy.example.org", Package: "provider-toy", FromCRD: true}},
				Packages:    []string{"Provider provider-toy in toy, safe-start: true, at toy/crossplane.yaml:1"},
			},
		},
		"ExamplesByName": {
			reason: "A path may name the examples of a package.",
			files:  map[string]string{"toy/crossplane.yaml": safeProvider, "toy/examples/a.yaml": object("v1", "ConfigMap", "a")},
			root:   "toy/examples",
			want: result{
				Packages: []string{"Provider provider-toy in toy, safe-start: true, at toy/crossplane.yaml:1"},
				Objects:  []string{"ConfigMap/a"},
			},
		},
		"NestedPackage": {
			reason: "A file belongs to the nearest package.",
			files: map[string]string{
				"crossplane.yaml":     configuration,
				"toy/crossplane.yaml": safeProvider,
				"toy/crd.yaml":        crd("buckets", "Bucket"),
			},
			want: result{
				Definitions: []definition{{Name: "buckets.toy.example.org", Package: "provider-toy", FromCRD: true}},
				Packages: []string{
					"Configuration platform in ., safe-start: false, at crossplane.yaml:1",
					"Provider provider-toy in toy, safe-start: true, at toy/crossplane.yaml:1",
				},
				Skipped: catalogue.Skipped{catalogue.Metadata: 2},
			},
		},
		"NoPackage": {
			reason: "A crossplane.yaml with another kind does not make a package.",
			files:  map[string]string{"crossplane.yaml": object("v1", "ConfigMap", "crossplane"), "crd.yaml": crd("buckets", "Bucket")},
			want:   result{Objects: []string{"ConfigMap/crossplane", "CustomResourceDefinition.apiextensions.k8s.io/buckets.toy.example.org"}},
		},
		"Lists": {
			reason: "The items of a List count, and one file may contain everything.",
			files: map[string]string{"a.yaml": documents(
				"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n",
				policy)},
			want: result{
				Policies: []string{"team: buckets.toy.example.org@16 *.example.org@18"},
				Objects:  []string{"ConfigMap/a", "ConfigMap/b", "ManagedResourceActivationPolicy.apiextensions.crossplane.io/team"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := read(tree(tc.files), tc.root, tc.how)
			if err != nil {
				t.Fatalf("%s\nRead(...): %v", tc.reason, err)
			}
			var got result
			for _, d := range c.Definitions {
				def := definition{Name: d.Name, State: d.State, FromCRD: d.FromCRD, Paused: d.Paused}
				if d.Package != nil {
					def.Package = d.Package.Name
				}
				got.Definitions = append(got.Definitions, def)
				if d.Kind == "" || d.Plural+"."+d.Group != d.Name || d.Scope != "Namespaced" {
					t.Errorf("definition %s: kind %q, plural %q, group %q, scope %q", d.Name, d.Kind, d.Plural, d.Group, d.Scope)
				}
			}
			for _, p := range c.Policies {
				s := p.Name + ":"
				for _, e := range p.Patterns {
					s += fmt.Sprintf(" %s@%d", e.Glob, e.Origin.Line)
				}
				got.Policies = append(got.Policies, s)
			}
			for _, p := range c.Packages {
				got.Packages = append(got.Packages, fmt.Sprintf("%s %s in %s, safe-start: %t, at %s", p.Kind, p.Name, p.Directory, p.SafeStart, p.Origin))
			}
			for _, o := range c.Objects {
				got.Objects = append(got.Objects, o.ID().String())
			}
			for _, f := range c.Findings {
				got.Findings = append(got.Findings, f.Rule+"@"+f.Origin.String())
			}
			got.Skipped = c.Skipped
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nRead(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A finding on an object that a package does not install must be correct for the Crossplane version, and its advice must be
// possible.
func TestNotInstalled(t *testing.T) {
	team := object("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", "team")
	const move = " if the object is meant to be applied"
	for name, tc := range map[string]struct {
		reason, meta, dir, content, version string
		want                                string
	}{
		"Policy": {
			reason: "Crossplane installs no policies of a provider.", meta: safeProvider, dir: "toy/", content: team,
			want: "ManagedResourceActivationPolicy team is in Provider package provider-toy, and Crossplane installs CRDs, ManagedResourceDefinitions and webhook configurations from it: it is not applied; move it out of toy" + move,
		},
		"AtTheTop": {
			reason: "The package is at the root, so no directory is outside it.", meta: safeProvider, content: team,
			want: "ManagedResourceActivationPolicy team is in Provider package provider-toy, and Crossplane installs CRDs, ManagedResourceDefinitions and webhook configurations from it: it is not applied; move the package to a directory of its own" + move,
		},
		"Refused": {
			reason: "Crossplane refuses the whole package because of the object, so the object must be removed.", meta: configuration, dir: "p/", content: object("v1", "ConfigMap", "a"),
			want: "ConfigMap a is in Configuration package platform, and Crossplane installs XRDs, Compositions, ManagedResourceActivationPolicies and operations from it: it is not applied, and it refuses a package that holds one; move it out of p",
		},
		"Function": {
			reason: "A function installs nothing.", meta: function, dir: "f/", content: team,
			want: "ManagedResourceActivationPolicy team is in Function package function-go, and Crossplane installs nothing from it: it is not applied; move it out of f" + move,
		},
		"FirstRelease": {
			reason: "v2.0.1 did not install definitions of packages, so the finding must not claim that.", meta: safeProvider, dir: "toy/", content: mrd(""), version: "v2.0.1",
			want: "ManagedResourceDefinition things.toy.example.org is in Provider package provider-toy, and Crossplane installs CRDs and webhook configurations from it: it is not applied, and it refuses a package that holds one; move it out of toy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := read(tree(map[string]string{tc.dir + "crossplane.yaml": tc.meta, tc.dir + "x.yaml": tc.content}), "", catalogue.Options{CrossplaneVersion: tc.version})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range c.Findings {
				got = append(got, f.Message+"; "+f.Fix)
			}
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	files := tree(map[string]string{"a.yaml": object("v1", "ConfigMap", "a")})
	files["link.yaml"] = &fstest.MapFile{Data: []byte("a.yaml"), Mode: fs.ModeSymlink}
	files["dir"] = &fstest.MapFile{Data: []byte("."), Mode: fs.ModeSymlink}
	files["module"] = &fstest.MapFile{Mode: fs.ModeIrregular}

	c, err := read(files, "", catalogue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := catalogue.Skipped{catalogue.Symlink: 2, catalogue.Submodule: 1}
	if diff := cmp.Diff(want, c.Skipped); diff != "" || len(c.Objects) != 1 {
		t.Errorf("links are counted and never followed: %d objects, skipped (-want +got):\n%s", len(c.Objects), diff)
	}
	if _, err := read(files, "dir", catalogue.Options{}); err == nil {
		t.Error("a path through a link is not followed either: want an error, got none")
	}
}

func TestOthers(t *testing.T) {
	files := map[string]string{
		"flux.yaml":  object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "apps"),
		"argo.yaml":  object("argoproj.io/v1alpha1", "Application", "apps"),
		"sops.yaml":  object("v1", "Secret", "a") + "data:\n  a: ENC[AES256_GCM,data:x]\nsops:\n  mac: x\n",
		"whole.yaml": "apiVersion: ENC[AES256_GCM,data:x]\nkind: ENC[AES256_GCM,data:x]\nsops: {mac: x}\n",
	}
	cases := map[string]struct {
		reason string
		others catalogue.Others
		want   []string // beginnings of the problems
	}{
		"Skip": {"By default, objects of other tools are skipped, because several tools may share a repository.", catalogue.SkipOthers, nil},
		"Refuse": {"With RefuseOthers, objects of other tools are an error.", catalogue.RefuseOthers, []string{
			"argo.yaml:1: Application apps is an object of Flux or Argo CD and must not be here",
			"flux.yaml:1: Kustomization apps is an object of Flux or Argo CD and must not be here",
			"sops.yaml:1: Secret a is encrypted with SOPS and must not be here",
			"whole.yaml:1: this document is encrypted with SOPS and must not be here",
		}},
		"Apply": {"With ApplyOthers, encrypted values are applied for an operator to decrypt, but a document encrypted as a whole is an error.", catalogue.ApplyOthers, []string{
			"whole.yaml:1: this document is encrypted with SOPS as a whole",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := read(tree(files), "", catalogue.Options{Others: tc.others})
			var got []string
			if err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if len(got) != len(tc.want) {
				t.Fatalf("%s\nwant %d problems, got:\n%v", tc.reason, len(tc.want), err)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("%s\nproblem %d: want %q…, got %q", tc.reason, i, want, got[i])
				}
			}
		})
	}

	delete(files, "whole.yaml")
	c, err := read(tree(files), "", catalogue.Options{Others: catalogue.ApplyOthers})
	if err != nil || len(c.Objects) != 3 || len(c.Skipped) != 0 {
		t.Errorf("Apply applies all three of them: %d objects, skipped %v, %v", len(c.Objects), c.Skipped, err)
	}
}

func TestReadRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		root   string
		how    catalogue.Options
		want   []string // beginnings of the problems, in order
	}{
		"BrokenYAML": {
			reason: "An object that cannot be read must not count as removed.",
			files:  map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [}\n"},
			want:   []string{"a.yaml:3: "},
		},
		"NoName": {
			reason: "An object in Git needs a name.",
			files:  map[string]string{"a.yaml": documents(object("v1", "ConfigMap", "a"), "apiVersion: batch/v1\nkind: Job\nmetadata:\n  generateName: a-\n")},
			want:   []string{"a.yaml:7: Job has no metadata.name: give it one"},
		},
		"NameOfNoURL": {
			reason: "No request can read such an object, so it would be neither updated nor pruned.",
			files: map[string]string{"a.yaml": documents(
				object("v1", "ConfigMap", `"%ENV%-config"`), object("v1", "ConfigMap", ".."), object("v1", "ConfigMap", "../x"),
				object("v1", "ConfigMap", "a")+"  namespace: a/b\n", object("rbac.authorization.k8s.io/v1", "ClusterRole", "system:node"), strings.Replace(mrd(""), "name: things", "name: t/hings", 1))},
			want: []string{
				"a.yaml:4: metadata.name of ConfigMap %ENV%-config may not contain '%', so no API server has such an object",
				"a.yaml:10: metadata.name of ConfigMap .. may not be '..'", "a.yaml:16: metadata.name of ConfigMap ../x may not contain '/'",
				"a.yaml:23: metadata.namespace of ConfigMap a may not contain '/'", "a.yaml:36: metadata.name of ManagedResourceDefinition t/hings",
			},
		},
		"NameOfNoURLFromKustomize": {
			reason: "Kustomize adds a prefix to the name.",
			files:  map[string]string{"a.yaml": object("v1", "ConfigMap", "a"), "kustomization.yaml": "namePrefix: \"%\"\nresources: [a.yaml]\n"},
			want:   []string{"a.yaml:1: metadata.name of ConfigMap %a may not contain '%'"},
		},
		"Twice": {
			reason: "An identity may be declared only once, whatever the version.",
			files: map[string]string{
				"a.yaml": object("apps/v1", "Deployment", "a"),
				"b.yaml": object("apps/v1beta1", "Deployment", "a"),
				"c.yaml": object("apps/v1", "Deployment", "a"),
			},
			want: []string{
				"b.yaml:1: Deployment.apps/a is declared at a.yaml:1 already: remove one",
				"c.yaml:1: Deployment.apps/a is declared at a.yaml:1 already: remove one",
			},
		},
		"DefinitionTwice": {
			reason: "A definition may be declared only once, by MRDs, packages and ordinary CRDs together.",
			files: map[string]string{
				"a/crossplane.yaml": safeProvider,
				"a/crd.yaml":        documents(crd("buckets", "Bucket"), crd("things", "Thing"), crd("others", "Other")),
				"b/crossplane.yaml": strings.ReplaceAll(safeProvider, "toy", "other"),
				"b/crd.yaml":        crd("buckets", "Bucket"),
				"c.yaml":            mrd(""),
				"d.yaml":            crd("others", "Other"),
			},
			want: []string{
				"b/crd.yaml:1: CustomResourceDefinition.apiextensions.k8s.io/buckets.toy.example.org is declared at a/crd.yaml:1 already",
				"c.yaml:1: definition things.toy.example.org is declared at a/crd.yaml:18 already",
				"d.yaml:1: CustomResourceDefinition.apiextensions.k8s.io/others.toy.example.org is declared at a/crd.yaml:35 already",
			},
		},
		"State": {
			reason: "Only the two states are valid.",
			files:  map[string]string{"a.yaml": mrd("  state: active\n")},
			want:   []string{`a.yaml:15: spec.state of ManagedResourceDefinition things.toy.example.org must be Active or Inactive, not "active"`},
		},
		"UnknownVersion": {
			reason: "A policy in an unknown version must not count as missing.",
			files:  map[string]string{"a.yaml": object("apiextensions.crossplane.io/v1beta2", "ManagedResourceActivationPolicy", "a")},
			want:   []string{"a.yaml:1: ManagedResourceActivationPolicy is not known in version apiextensions.crossplane.io/v1beta2: use apiextensions.crossplane.io/v1alpha1 or v1beta1"},
		},
		"EmptyPolicy": {
			reason: "Crossplane requires at least one pattern, and patterns must be strings.",
			files: map[string]string{
				"a.yaml": object("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", "a") + "spec: {activate: []}\n",
				"b.yaml": object("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", "b"),
				"c.yaml": object("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", "c") + "spec:\n  activate:\n  - a\n  - 1\n",
				"d.yaml": object("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", "d") + "spec:\n  activate: \"*\"\n",
			},
			want: []string{
				"a.yaml:5: spec.activate of policy a must be a list",
				"b.yaml:1: spec.activate of policy b must be a list",
				"c.yaml:8: spec.activate[1] of policy c must be a string",
				"d.yaml:6: spec.activate of policy d must be a list",
			},
		},
		"Kustomization": {
			reason: "kustomize would fetch, run and read things outside the commit, and all mistakes are reported together.",
			files: map[string]string{
				"a/kustomization.yml":  "resources:\n- https://example.org/a.yaml\n",
				"b/kustomization.yaml": "resources: [x.yaml]\nhelmCharts: [{name: x}]\n", "b/x.yaml": "not: [read",
			},
			want: []string{
				"a/kustomization.yml:2: resources[0]: https://example.org/a.yaml is not in the commit",
				"b/kustomization.yaml:2: helmCharts: charts are not inflated",
				"b/x.yaml:1: cannot decode",
			},
		},
		"KustomizationInOtherCase": {
			reason: "kustomize does not find the file, so the files next to it would be applied unchanged.",
			files: map[string]string{
				"a/Kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\nnamePrefix: x-\n", "a/a.yaml": object("v1", "ConfigMap", "a"),
				"b/KUSTOMIZATION.YML": "resources: [a.yaml]\n", "b/a.yaml": object("v1", "ConfigMap", "b"),
				"c/Kustomization.yaml": object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "a"),
				"d/Kustomization.yaml": "a: b\n",
			},
			want: []string{
				"a/Kustomization.yaml: kustomize does not find a kustomization of this name; rename it to kustomization.yaml",
				"b/KUSTOMIZATION.YML: kustomize does not find a kustomization of this name; rename it to kustomization.yml",
			},
		},
		"KustomizationByName": {
			reason: "kustomize builds directories, not files.",
			files:  map[string]string{"a/kustomization.yml": "resources: []"},
			root:   "a/kustomization.yml",
			want:   []string{"a/kustomization.yml: is a kustomization: name its directory"},
		},
		"BuiltTwice": {
			reason: "A path with two overlays of one base is one directory too high, and the usual message about duplicates would not explain that.",
			files: map[string]string{
				"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": object("v1", "ConfigMap", "a"),
				"dev/kustomization.yaml":  "resources: [../base]\n",
				"prod/kustomization.yaml": "resources: [../base]\n",
				"test/kustomization.yaml": "resources: [../base]\nnamespace: test\n",
			},
			want: []string{"prod/kustomization.yaml:1: ConfigMap a of base/a.yaml:1 is built here and by dev: let the path name one of the two"},
		},
		"BuiltAndPlain": {
			reason: "An object may be declared only once, whether built or not.",
			files: map[string]string{
				"a/kustomization.yaml": "resources: [a.yaml]\nnamePrefix: x-\n", "a/a.yaml": object("v1", "ConfigMap", "a"),
				"b.yaml": object("v1", "ConfigMap", "x-a"),
			},
			want: []string{"b.yaml:1: ConfigMap/x-a is declared at a/a.yaml:1 already"},
		},
		"PackageWithKustomization": {
			reason: "A directory with both files is ambiguous.",
			files: map[string]string{
				"toy/crossplane.yaml": safeProvider, "toy/crd.yaml": crd("buckets", "Bucket"), "toy/kustomization.yaml": "resources: [crd.yaml]",
			},
			want: []string{"toy/kustomization.yaml: toy is a package and has a kustomization: list the unwanted one in .headgateignore"},
		},
		"PackageFileInKustomization": {
			reason: "A CRD is either made from a definition or applied unchanged.",
			files: map[string]string{
				"toy/crossplane.yaml": safeProvider, "toy/crd.yaml": crd("buckets", "Bucket"), "app/kustomization.yaml": "resources: [../toy/crd.yaml]",
			},
			want: []string{"toy/crd.yaml: belongs to package provider-toy, and a kustomization also names it"},
		},
		"BrokenPackage": {
			reason: "Without a valid crossplane.yaml, the meaning of a directory's files is unknown.",
			files: map[string]string{
				"a/crossplane.yaml": "kind: [", "a/crd.yaml": "not: [read",
				"b/crossplane.yaml": strings.Replace(safeProvider, "Provider", "Plugin", 1), "b/crd.yaml": "not: [read",
				"c/crossplane.yaml": documents(safeProvider, unsafeProvider), "c/crd.yaml": "not: [read",
				"d/crossplane.yaml": strings.Replace(safeProvider, "name: provider-toy", "labels: {}", 1),
				"e/crossplane.yaml": strings.Replace(safeProvider, "[SafeStart]", "SafeStart", 1),
			},
			want: []string{
				"a/crossplane.yaml:",
				"b/crossplane.yaml:1: Crossplane knows no package of kind Plugin",
				"c/crossplane.yaml:7: a package has one metadata document: the first is at c/crossplane.yaml:1",
				"d/crossplane.yaml:1: the package has no metadata.name",
				"e/crossplane.yaml:1: spec.capabilities of provider-toy must be a list of strings",
			},
		},
		"IgnoreFile": {
			reason: "If a pattern were misread, ignored files would be applied.",
			files: map[string]string{
				"a/.headgateignore": "ok\n\n[z-\n",
				"b/.headgateignore": "[[:alpha:]]\n",
				"c/.headgateignore": "a/b[]/\n",
				"d/.headgateignore": "!\n",
				"e/.headgateignore": "/\n",
			},
			want: []string{
				`a/.headgateignore:3: this is not a pattern: "[z-" cannot be understood`,
				"b/.headgateignore:1: this is not a pattern: classes as [:alpha:] are not supported",
				`c/.headgateignore:1: this is not a pattern: "b[]" cannot be understood`,
				"d/.headgateignore:1: this is not a pattern: it names nothing",
				"e/.headgateignore:1: this is not a pattern: it names nothing",
			},
		},
		"NoSuchPath": {
			reason: "A misspelt path must not count as an empty directory.",
			files:  map[string]string{"a.yaml": object("v1", "ConfigMap", "a")},
			root:   "clusters/prod",
			want:   []string{"clusters/prod: this commit has no such path"},
		},
		"Outside": {
			reason: "A path must stay inside the commit.",
			files:  map[string]string{"a.yaml": object("v1", "ConfigMap", "a")},
			root:   "../other",
			want:   []string{"../other: is not a path inside of the commit"},
		},
		"TwoMetadata": {
			reason: "With two metadata documents, Crossplane does not install the package.",
			files: map[string]string{
				"a/crossplane.yaml": safeProvider,
				"a/more/meta.yaml":  documents(crd("buckets", "Bucket"), configuration),
				"b/crossplane.yaml": documents(function, function),
			},
			want: []string{
				"a/more/meta.yaml:18: Configuration is metadata of a package, and package provider-toy has its own, at a/crossplane.yaml:1",
				"b/crossplane.yaml:6: a package has one metadata document: the first is at b/crossplane.yaml:1",
			},
		},
		"Constraint": {
			reason: "Crossplane installs no package of any kind if it cannot parse the constraint.",
			files: map[string]string{
				"a/crossplane.yaml": strings.Replace(safeProvider, "spec: {capabilities: [SafeStart]}", "spec:\n  crossplane:\n    version: latest\n", 1),
				"b/crossplane.yaml": function + "\nspec:\n  crossplane: {}\n",
				"c/crossplane.yaml": configuration + "\nspec:\n  crossplane:\n    version: 2\n",
			},
			want: []string{
				`a/crossplane.yaml:6: spec.crossplane.version of provider-toy must be a constraint, as ">=v2.0.0", not "latest"`,
				`b/crossplane.yaml:1: spec.crossplane.version of function-go must be a constraint, as ">=v2.0.0", not ""`,
				`c/crossplane.yaml:6: spec.crossplane.version of platform must be a constraint, as ">=v2.0.0", not ""`,
			},
		},
		"NotDeclared": {
			reason: "If a declaration matches no directory, the intended one may have been read as ordinary CRDs.",
			files: map[string]string{
				"toy/crossplane.yaml": safeProvider,
				"file.yaml":           object("v1", "ConfigMap", "a"),
				"toy/examples/a.yaml": "",
			},
			how: catalogue.Options{Packages: []catalogue.Declared{
				{Path: "toy", Name: "a"}, {Path: "file.yaml", Name: "b"}, {Path: "tyo", Name: "c"}, {Path: "toy/examples", Name: "d"},
			}},
			want: []string{
				"file.yaml: is declared to be package b, and is not a directory",
				"toy/crossplane.yaml:1: is the metadata of package provider-toy, so toy cannot be declared to be package a: remove the declaration",
				"toy/examples: is declared to be package d, and is not read",
				"tyo: is declared to be package c, and this commit has no such directory",
			},
		},
		"TwoWebhookConfigurations": {
			reason: "A package renames its webhook configurations to one name, so there can be only one.",
			files: map[string]string{
				"crossplane.yaml": safeProvider,
				"a.yaml": documents(
					object("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "a"),
					object("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "b")),
			},
			want: []string{"a.yaml:7: MutatingWebhookConfiguration.admissionregistration.k8s.io/crossplane-provider-provider-toy is declared at a.yaml:1 already"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := read(tree(tc.files), tc.root, tc.how)
			if err == nil {
				t.Fatalf("%s\nRead(...): no error", tc.reason)
			}
			got := strings.Split(err.Error(), "\n")
			if len(got) != len(tc.want) {
				t.Fatalf("%s\nwant %d problems, got:\n%v", tc.reason, len(tc.want), err)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("%s\nproblem %d: want %q…, got %q", tc.reason, i, want, got[i])
				}
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	cases := map[string]struct {
		how  catalogue.Options
		want []string
	}{
		"HalfAVersion":  {catalogue.Options{CrossplaneVersion: "v2.1"}, []string{"crossplaneVersion must be a complete version"}},
		"BeforeV2":      {catalogue.Options{CrossplaneVersion: "1.20.0"}, []string{"crossplaneVersion must be at least v2.0.0"}},
		"NoName":        {catalogue.Options{Packages: []catalogue.Declared{{Path: "a"}}}, []string{"packages[0].name is missing"}},
		"Outside":       {catalogue.Options{Packages: []catalogue.Declared{{Path: "../a", Name: "a"}}}, []string{"packages[0].path must be a directory of the commit"}},
		"PathTwice":     {catalogue.Options{Packages: []catalogue.Declared{{Path: "a", Name: "a"}, {Path: "a/", Name: "b"}}}, []string{"packages[1]: a/ and b can be declared once each"}},
		"NameTwice":     {catalogue.Options{Packages: []catalogue.Declared{{Path: "a", Name: "a"}, {Path: "b", Name: "a"}}}, []string{"packages[1]: b and a can be declared once each"}},
		"SeveralAtOnce": {catalogue.Options{CrossplaneVersion: "x", Packages: []catalogue.Declared{{Name: "a"}}}, []string{"crossplaneVersion", "packages[0].path"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := read(fstest.MapFS{}, "", tc.how)
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.Split(err.Error(), "\n")
			if len(got) != len(tc.want) {
				t.Fatalf("want %d problems, got:\n%v", len(tc.want), err)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("want %q…, got %q", want, got[i])
				}
			}
		})
	}
}

func TestRefusedPackage(t *testing.T) {
	files := tree(map[string]string{
		"crossplane.yaml": safeProvider,
		"a.yaml":          object("apiextensions.crossplane.io/v1", "Composition", "a"),
		"b.yaml":          object("pkg.crossplane.io/v1", "Provider", "b"),
	})
	for version, want := range map[string][]bool{"": {false, true}, "v2.1.0": {true, true}} {
		c, err := read(files, "", catalogue.Options{CrossplaneVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		var got []bool
		for _, f := range c.Findings {
			got = append(got, strings.HasSuffix(f.Message, ", and it refuses a package that holds one"))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Crossplane %s: what it can decode it leaves out since v2.2.0, and before that refused the package for (-want +got):\n%s", version, diff)
		}
	}
}

func TestProblemsAreCut(t *testing.T) {
	files := map[string]string{}
	for i := range 25 {
		files[fmt.Sprintf("%02d.yaml", i)] = "apiVersion: v1\nkind: ConfigMap\n"
	}
	_, err := read(tree(files), "", catalogue.Options{})
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 11 || !strings.HasPrefix(lines[0], "00.yaml:1: ") || lines[10] != "and 15 more" {
		t.Errorf("ten of them and a count, in order of place, got:\n%v", err)
	}
}

func TestSafeStart(t *testing.T) {
	for capability, want := range map[string]bool{
		"safe-start": true, "SafeStart": true, "safe_start": true, "SAFE START": true, "safe→start": true,
		"safestart2": false, "not-safe-start": false, "late-mr-activation": false, "": false, "ſafestart": false,
	} {
		c, err := read(tree(map[string]string{
			"crossplane.yaml": strings.Replace(safeProvider, "[SafeStart]", fmt.Sprintf("[other, %q]", capability), 1),
		}), "", catalogue.Options{})
		if err != nil || len(c.Packages) != 1 {
			t.Fatalf("%q: %v", capability, err)
		}
		if got := c.Packages[0].SafeStart; got != want {
			t.Errorf("capability %q: want safe-start %t, got %t", capability, want, got)
		}
	}
}

func TestPatternLines(t *testing.T) {
	var b strings.Builder
	b.WriteString(object("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", "a") + "spec:\n  activate:\n")
	var want []int
	line := 7
	for i := range 300 {
		if i%17 == 3 {
			b.WriteString("  # a comment\n\n")
			line += 2
		}
		fmt.Fprintf(&b, "  - p%d\n", i)
		want = append(want, line)
		line++
	}
	c, err := read(tree(map[string]string{"a.yaml": b.String()}), "", catalogue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, p := range c.Policies[0].Patterns {
		got = append(got, p.Origin.Line)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("every entry has its own line (-want +got):\n%s", diff)
	}
}

func TestTooLargeIsAllThatIsSaid(t *testing.T) {
	files := map[string]string{"platform/broken.yaml": "a: [\n", "platform/crossplane.yaml": safeProvider}
	for i := range 50 {
		files[fmt.Sprintf("platform/%02d.yaml", i)] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %d}\n", i)
	}
	for limits, want := range map[manifest.Limits]string{
		{Documents: 40}:                   "platform: cannot read: the commit holds more than the limit of 40 documents",
		{TotalBytes: 1000}:                "platform: cannot read: the files of the commit are larger than the limit of 1000 bytes together",
		{TotalBytes: 1000, Documents: 10}: "platform: cannot read: the files of the commit are larger than the limit of 1000 bytes together",
	} {
		for _, n := range []int{1, 4, 4, 4} {
			before := runtime.GOMAXPROCS(n)
			_, err := read(tree(files), "platform", catalogue.Options{Limits: limits})
			runtime.GOMAXPROCS(before)
			if err == nil || err.Error() != want {
				t.Errorf("which file is one too many is left to chance, what is said is not\nwant %s\ngot  %v", want, err)
			}
		}
	}
}

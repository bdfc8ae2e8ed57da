package lint

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/packages"
)

const (
	function      = "apiVersion: pkg.crossplane.io/v1\nkind: Function\nmetadata: {name: function-pt}\nspec: {package: 'xpkg.example.org/contrib/function-pt:v0.7.0'}\n"
	xrd           = "apiVersion: apiextensions.crossplane.io/v2\nkind: CompositeResourceDefinition\nmetadata: {name: stores.platform.example.org}\nspec:\n  group: platform.example.org\n  names: {kind: Store, plural: stores}\n  scope: %s\n  versions:\n  - {name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object}}}\n  - {name: v2, served: false, referenceable: false, schema: {openAPIV3Schema: {type: object}}}\n"
	composed1     = "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: stores}\nspec:\n  compositeTypeRef:\n    apiVersion: platform.example.org/%s\n    kind: %s\n  mode: Pipeline\n  pipeline:\n  - step: pt\n    functionRef:\n      name: %s\n    input:\n      apiVersion: pt.fn.crossplane.io/v1beta1\n      kind: Resources\n      resources:\n      - name: a\n        base:\n          apiVersion: %s\n          kind: %s\n"
	configuration = "apiVersion: pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: platform}\nspec: {package: 'xpkg.example.org/contrib/platform:v1'}\n"
	imageConfig   = "apiVersion: pkg.crossplane.io/v1beta1\nkind: ImageConfig\nmetadata: {name: mirror}\nspec:\n  matchImages:\n  - prefix: %s\n  rewriteImage: {prefix: %s}\n"
)

func namespacedXRD() string { return fmt.Sprintf(xrd, "Namespaced") }

func compositionOf(version, kind, function, baseVersion, base string) string {
	return fmt.Sprintf(composed1, version, kind, function, baseVersion, base)
}

func TestReferences(t *testing.T) {
	const config = "apiVersion: %s\nkind: %s\nmetadata: {name: default%s}\nspec: {}\n"
	good := compositionOf("v1", "Store", "function-pt", "v1", "ConfigMap")
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   []string
	}{
		"Good": {"Everything that is named is there.", map[string]string{"f.yaml": function, "x.yaml": namespacedXRD(), "c.yaml": good}, nil},
		"Function": {"A misspelt function stops the composition.", map[string]string{"f.yaml": function, "x.yaml": namespacedXRD(), "c.yaml": compositionOf("v1", "Store", "upbound-function-pt", "v1", "ConfigMap")},
			[]string{"warning c.yaml:12 Composition.apiextensions.crossplane.io/stores names Function upbound-function-pt, which the commit does not declare; did you mean function-pt, the only one?"}},
		"FunctionOfAPackage": {"A package that is not read may depend on the function.", map[string]string{"f.yaml": function, "p.yaml": configuration, "x.yaml": namespacedXRD(), "c.yaml": compositionOf("v1", "Store", "function-other", "v1", "ConfigMap")},
			[]string{"note c.yaml:12 Composition.apiextensions.crossplane.io/stores names Function function-other, and whether it is there is not known: a package that may bring it could not be read"}},
		"FunctionsElsewhere": {"A commit may leave functions to another one.", map[string]string{"x.yaml": namespacedXRD(), "c.yaml": good, "d.yaml": "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: other}\nspec:\n  compositeTypeRef: {apiVersion: platform.example.org/v1, kind: Store}\n  pipeline: [{step: a, functionRef: {name: b}}]\n"},
			[]string{"note d.yaml:6 Composition.apiextensions.crossplane.io/other names Function b, and whether it is there is not known: the commit declares none (1 reference like it)"}},
		"Kind": {"The plural is no kind.", map[string]string{"f.yaml": function, "x.yaml": namespacedXRD(), "c.yaml": compositionOf("v1", "Stores", "function-pt", "v1", "ConfigMap")},
			[]string{"warning c.yaml:7 Composition.apiextensions.crossplane.io/stores is of Stores in platform.example.org, which no CompositeResourceDefinition of the commit declares; did you mean Store?"}},
		"Version": {"A version that is not served makes no composite resource.", map[string]string{"f.yaml": function, "x.yaml": namespacedXRD(), "c.yaml": compositionOf("v2", "Store", "function-pt", "v1", "ConfigMap")},
			[]string{"warning c.yaml:6 Composition.apiextensions.crossplane.io/stores is of Store in version v2, which CompositeResourceDefinition.apiextensions.crossplane.io/stores.platform.example.org does not serve; use v1"}},
		"NoXRD": {"Another repository may declare the kind.", map[string]string{"f.yaml": function, "c.yaml": good},
			[]string{"note c.yaml:7 Composition.apiextensions.crossplane.io/stores is of Store in platform.example.org, and whether it is there is not known: the commit declares none"}},
		"ClusterScoped": {"Crossplane refuses a cluster-scoped object of a namespaced composite resource.", map[string]string{"f.yaml": function, "x.yaml": namespacedXRD(), "c.yaml": compositionOf("v1", "Store", "function-pt", "rbac.authorization.k8s.io/v1", "ClusterRole")},
			[]string{"warning c.yaml:20 Composition.apiextensions.crossplane.io/stores composes ClusterRole rbac.authorization.k8s.io, which is cluster-scoped, and its composite resource is namespaced: Crossplane refuses that; compose a namespaced kind, or set scope: Cluster in CompositeResourceDefinition.apiextensions.crossplane.io/stores.platform.example.org"}},
		"ClusterScopedOfCluster": {"A cluster-scoped composite resource composes both.", map[string]string{"f.yaml": function, "x.yaml": fmt.Sprintf(xrd, "Cluster"), "c.yaml": compositionOf("v1", "Store", "function-pt", "rbac.authorization.k8s.io/v1", "ClusterRole")}, nil},
		"DeletionPolicy": {"The field does nothing, and the cloud resource is deleted.", map[string]string{
			"b.yaml":            "apiVersion: s3.m.example.org/v1\nkind: Bucket\nmetadata: {name: a, namespace: team}\nspec:\n  deletionPolicy: Orphan\n",
			"n/d.yaml":          fmt.Sprintf(toyCRD, "buckets.s3.m.example.org", "s3.m.example.org", "Bucket", "buckets", "bucket"),
			"n/crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-n}\nspec: {}\n",
			"c.yaml":            strings.Replace(good, "kind: ConfigMap", "kind: ConfigMap\n      - name: b\n        base:\n          apiVersion: other.m.example.org/v1\n          kind: Thing\n          spec:\n            deletionPolicy: Delete", 1),
			"f.yaml":            function, "x.yaml": namespacedXRD(),
		}, []string{
			`warning b.yaml:5 Bucket.s3.m.example.org/team/a sets spec.deletionPolicy of Bucket, and namespaced managed resources have no such field; use managementPolicies, such as ["Observe", "Create", "Update", "LateInitialize"] to keep the external resource`,
			`warning c.yaml:26 Composition.apiextensions.crossplane.io/stores sets spec.deletionPolicy of Thing, and namespaced managed resources have no such field; use managementPolicies, such as ["Observe", "Create", "Update", "LateInitialize"] to keep the external resource`,
		}},
		"Patched": {"A patch sets the name.", map[string]string{
			"c.yaml": strings.Replace(good, "kind: ConfigMap", "kind: ConfigMap\n      - name: b\n        base: {apiVersion: s3.example.org/v1, kind: Bucket, spec: {providerConfigRef: {name: other}}}\n        patches: [{fromFieldPath: spec.team, toFieldPath: spec.providerConfigRef.name}]", 1),
			"f.yaml": function, "x.yaml": namespacedXRD(), "p.yaml": fmt.Sprintf(config, "example.org/v1", "ProviderConfig", ""),
		}, nil},
		"Composed": {"A Composition makes a ProviderConfig for each tenant.", map[string]string{
			"b.yaml": "apiVersion: s3.example.org/v1\nkind: Bucket\nmetadata: {name: a, namespace: team}\nspec: {providerConfigRef: {name: tenant}}\n",
			"c.yaml": compositionOf("v1", "Store", "function-pt", "example.org/v1", "ProviderConfig"),
			"f.yaml": function, "x.yaml": namespacedXRD(), "p.yaml": fmt.Sprintf(config, "example.org/v1", "ProviderConfig", ""),
		}, []string{"note b.yaml:4 Bucket.s3.example.org/team/a names ProviderConfig tenant, and whether it is there is not known: a Composition makes such objects"}},
		"ProviderConfig": {"A misspelt ProviderConfig stops the resource.", map[string]string{
			"b.yaml": "apiVersion: s3.example.org/v1\nkind: Bucket\nmetadata: {name: a, namespace: team}\nspec:\n  providerConfigRef:\n    name: devault\n",
			"c.yaml": fmt.Sprintf(config, "example.org/v1", "ProviderConfig", ", namespace: team"),
		}, []string{"warning b.yaml:6 Bucket.s3.example.org/team/a names ProviderConfig devault, which the commit does not declare; did you mean default?"}},
		"ProviderConfigNamespace": {"A namespaced managed resource uses a ProviderConfig of its namespace.", map[string]string{
			"b.yaml":            "apiVersion: s3.m.example.org/v1\nkind: Bucket\nmetadata: {name: a, namespace: team}\nspec: {providerConfigRef: {kind: ProviderConfig, name: default}}\n",
			"n/d.yaml":          fmt.Sprintf(toyCRD, "buckets.s3.m.example.org", "s3.m.example.org", "Bucket", "buckets", "bucket"),
			"n/crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-n}\nspec: {}\n",
			"p.yaml":            fmt.Sprintf(config, "m.example.org/v1", "ProviderConfig", ", namespace: other"),
		}, []string{"warning b.yaml:4 Bucket.s3.m.example.org/team/a names ProviderConfig default, which the commit declares only in other namespaces than team; declare it in team, or name a ClusterProviderConfig"}},
		"ProviderConfigElsewhere": {"Another writer may make ProviderConfigs.", map[string]string{
			"b.yaml": "apiVersion: s3.example.org/v1\nkind: Bucket\nmetadata: {name: a, namespace: team}\nspec: {providerConfigRef: {name: other}}\n",
		}, []string{"note b.yaml:4 Bucket.s3.example.org/team/a names ProviderConfig other, and whether it is there is not known: the commit declares none"}},
		"Composition": {"A composite resource names a Composition that is not there.", map[string]string{
			"f.yaml": function, "x.yaml": namespacedXRD(), "c.yaml": good,
			"s.yaml": "apiVersion: platform.example.org/v1\nkind: Store\nmetadata: {name: a, namespace: team}\nspec: {crossplane: {compositionRef: {name: store}}}\n",
		}, []string{"warning s.yaml:4 Store.platform.example.org/team/a names Composition store, which the commit does not declare; did you mean stores?"}},
		"Scheme": {"References of images have no scheme.", map[string]string{"f.yaml": function, "i.yaml": fmt.Sprintf(imageConfig, "https://xpkg.example.org/contrib", "registry.example.org/contrib")},
			[]string{`warning i.yaml:6 the prefix "https://xpkg.example.org/contrib" of ImageConfig mirror begins with https://, and references of images have no scheme, so it fits no image; write xpkg.example.org/contrib`}},
		"SchemeOfRewrite": {"Nor has what replaces them.", map[string]string{"f.yaml": function, "i.yaml": fmt.Sprintf(imageConfig, "xpkg.example.org/contrib", "https://registry.example.org/contrib")},
			[]string{`warning i.yaml:7 the prefix "https://registry.example.org/contrib" of ImageConfig mirror begins with https://, and references of images have no scheme, so it fits no image; write registry.example.org/contrib`}},
		"OtherImages": {"A prefix of another repository has no effect, unless a dependency has it.", map[string]string{"f.yaml": function, "i.yaml": fmt.Sprintf(imageConfig, "xpkg.example.org/other", "registry.example.org/other")},
			[]string{"note i.yaml:1 ImageConfig mirror matches no package that the commit names; whether it matches a dependency is not known"}},
		"Prefix": {"The prefix matches.", map[string]string{"f.yaml": function, "i.yaml": fmt.Sprintf(imageConfig, "xpkg.example.org/contrib", "registry.example.org/contrib")}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want, err := render.Render(unread(t, platform(tc.files)), render.Options{Owner: render.OwnerCrossplane})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range References(want) {
				text := fmt.Sprintf("%s %s %s", f.Severity, f.Origin, f.Message)
				if f.Fix != "" {
					text += "; " + f.Fix
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nReferences(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// unread returns a commit whose packages of registries cannot be read.
func unread(t *testing.T, files fstest.MapFS) render.Input {
	t.Helper()
	in := render.Input{Files: files}
	documents, err := render.Read(in, render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in.Packages = []packages.Image{}
	for _, r := range documents.Missing() {
		in.Packages = append(in.Packages, packages.Image{Request: r, Version: r.Version, Err: fmt.Errorf("no registry")})
	}
	return in
}

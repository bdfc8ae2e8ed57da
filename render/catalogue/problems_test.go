package catalogue_test

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	"github.com/google/go-cmp/cmp"
)

// malformed returns commits with one mistake each, by the name of the mistake.
func malformed() map[string]map[string]string {
	policy := object("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", "team")
	provider := object("pkg.crossplane.io/v1", "Provider", "toy")
	one := func(text string) map[string]string { return map[string]string{"a.yaml": text} }
	meta := func(text string) map[string]string { return map[string]string{"crossplane.yaml": text} }
	return map[string]map[string]string{
		"PolicyString":       one(policy + "spec:\n  activate: x\n"),
		"PolicyMisspelt":     one(policy + "spec:\n  activations:\n  - \"*\"\n"),
		"PolicyEmpty":        one(policy + "spec:\n  activate: []\n"),
		"PolicyNull":         one(policy + "spec:\n  activate: null\n"),
		"PolicyNumber":       one(policy + "spec:\n  activate: [1, \"*\"]\n"),
		"PolicyMapping":      one(policy + "spec:\n  activate: {a: b}\n"),
		"PolicyNoSpec":       one(policy),
		"PolicySpecIsAList":  one(policy + "spec: [activate]\n"),
		"PolicyVersion":      one(strings.Replace(policy, "v1alpha1", "v1", 1) + "spec: {activate: [a]}\n"),
		"PolicyNoName":       one(strings.Replace(policy, "name:", "label:", 1) + "spec: {activate: [a]}\n"),
		"PolicyInAPackage":   {"crossplane.yaml": configuration, "a.yaml": policy + "spec:\n  activate: x\n"},
		"Broken":             one("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [}\n"),
		"Twice":              one(documents(object("v1", "ConfigMap", "a"), object("v1", "ConfigMap", "a"))),
		"DefinitionTwice":    one(documents(mrd(""), mrd(""))),
		"State":              one(mrd("  state: active\n")),
		"StateIsNoText":      one(mrd("  state: [Active]\n")),
		"DefinitionNoKind":   one(strings.Replace(mrd(""), "kind: Thing", "knd: Thing", 1)),
		"DefinitionNames":    one(strings.Replace(mrd(""), "names:", "name:", 1)),
		"DefinitionGroup":    one(strings.Replace(mrd(""), "group: toy.example.org", "group: [toy]", 1)),
		"CRDNames":           {"crossplane.yaml": safeProvider, "a.yaml": strings.Replace(crd("buckets", "Bucket"), "    kind: Bucket\n", "    kind: 5\n", 1)},
		"ProviderNoPackage":  one(provider + "spec: {pakage: registry.example.org/a/b:v1.0.0}\n"),
		"ProviderNoTag":      one(provider + "spec: {package: registry.example.org/a/b}\n"),
		"ProviderNumber":     one(provider + "spec: {package: 5}\n"),
		"ProviderVersion":    one(strings.Replace(provider, "v1", "v2", 1) + "spec: {package: registry.example.org/a/b:v1.0.0}\n"),
		"DependsOnMapping":   meta(safeProvider + "\n  dependsOn: {provider: x}\n"),
		"DependsOnText":      meta(strings.Replace(safeProvider, "{capabilities: [SafeStart]}", "{dependsOn: [x]}", 1)),
		"Capabilities":       meta(strings.Replace(safeProvider, "[SafeStart]", "SafeStart", 1)),
		"PackageSpec":        meta(strings.Replace(safeProvider, "{capabilities: [SafeStart]}", "[capabilities]", 1)),
		"PackageKind":        meta(strings.Replace(safeProvider, "kind: Provider", "kind: Plugin", 1)),
		"PackageTwice":       meta(documents(safeProvider, unsafeProvider)),
		"PackageMetadata":    {"crossplane.yaml": safeProvider, "a.yaml": unsafeProvider},
		"Details":            one(object("headgate.dev/v1alpha1", "ConnectionDetails", "a") + "spec: {definitions: x}\n"),
		"DetailsVersion":     one(object("headgate.dev/v1", "ConnectionDetails", "a") + "spec: {}\n"),
		"Lock":               one(object("headgate.dev/v1alpha1", "PackageLock", "a") + "packages: x\n"),
		"LockVersion":        one(object("headgate.dev/v1", "PackageLock", "a")),
		"IgnoreFile":         {".headgateignore": "[z-\n"},
		"Kustomization":      {"kustomization.yaml": "resources: [missing.yaml]\n"},
		"KustomizedInAndOut": {"toy/crossplane.yaml": safeProvider, "toy/crd.yaml": crd("buckets", "Bucket"), "app/kustomization.yaml": "resources: [../toy/crd.yaml]"},
		"Image":              {"a.xpkg": "no image"},
	}
}

// TestReportsEveryProblem proves that every way to read a commit reports all its mistakes: alone, together with all other mistakes,
// and after registries were queried.
func TestReportsEveryProblem(t *testing.T) {
	together, want := map[string]string{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(malformed())) {
		files := malformed()[name]
		alone := problemsOf(t, name, files)
		if len(alone) == 0 {
			t.Errorf("%s: nothing is reported", name)
		}
		for file, text := range files {
			// Unique identities allow the commits to be combined.
			text = strings.NewReplacer("name: team", "name: team-"+strings.ToLower(name), "things.toy", "things."+strings.ToLower(name)).Replace(text)
			together[path.Join(name, file)] = text
		}
		for _, p := range alone {
			at, _, _ := strings.Cut(p, ": ")
			want = append(want, path.Join(name, at))
		}
	}
	got := map[string]bool{}
	for _, p := range problemsOf(t, "together", together) {
		at, _, _ := strings.Cut(p, ": ")
		got[at] = true
	}
	for _, at := range want {
		if !got[at] {
			t.Errorf("%s is reported alone, and lost beside the others", at)
		}
	}
}

// problemsOf returns the problems of a commit, which must be the same in every way to read it.
func problemsOf(t *testing.T, name string, files map[string]string) []string {
	t.Helper()
	texts := func(how string, err error) []string {
		var problems catalogue.Errors
		if err != nil && !errors.As(err, &problems) {
			t.Fatalf("%s: %s: the error is not Errors: %v", name, how, err)
		}
		var all []string
		for _, p := range problems {
			if p.Origin.Path == "" || !strings.HasPrefix(p.Error(), p.Origin.Path) {
				t.Errorf("%s: %s: %q does not begin with its place, %s", name, how, p.Error(), p.Origin)
			}
			all = append(all, p.Error())
		}
		return all
	}
	docs, err := catalogue.Open(tree(files), "", catalogue.Options{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	_, err = packages.Of(docs, false).Catalogue()
	want := texts("Of", err)
	elsewhere := []packages.Image{{Request: packages.Request{Source: "registry.example.org/else/where"}, Err: errors.New("not found")}}
	for how, held := range map[string][]packages.Image{"nothing asked": nil, "nothing held": {}, "another held": elsewhere} {
		r, err := catalogue.Open(tree(files), "", catalogue.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		commit := packages.Of(r, false)
		for _, again := range []string{"", " again"} {
			_, err = commit.With(held, packages.Live{}).Catalogue()
			if diff := cmp.Diff(want, texts(how+again, err)); diff != "" {
				t.Errorf("%s: %s%s (-Of +With):\n%s", name, how, again, diff)
			}
		}
	}
	return want
}

// TestErrorsOf proves that a joined error is split completely.
func TestErrorsOf(t *testing.T) {
	at := func(line int) catalogue.Error {
		return catalogue.Errorf(manifest.Origin{Path: "a.yaml", Line: line}, "x")
	}
	joined := errors.Join(catalogue.Errors{at(1), at(2)}, at(3), errors.New("no place"))
	if got := catalogue.ErrorsOf(manifest.Origin{Path: "b.yaml"}, joined); len(got) != 4 {
		t.Errorf("ErrorsOf(a join of 4) has %d: %v", len(got), got)
	}
}

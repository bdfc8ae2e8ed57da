package schema

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
	"sigs.k8s.io/yaml"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/render/manifest"
)

// strict configures crdify: its defaults, except that a change that allows more values breaks nothing, and that descriptions do not
// count. Unknown keywords are not checked.
var strict = config.Config{
	UnhandledEnforcement: config.EnforcementPolicyNone,
	Conversion:           config.ConversionPolicyIgnore,
	Validations: []config.ValidationConfig{
		{Name: "description", Enforcement: config.EnforcementPolicyNone},
		{Name: "enum", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": "Allow"}},
		{Name: "pattern", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"removalPolicy": "Allow"}},
		{Name: "nullable", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": "Allow"}},
	},
}

// registry returns the comparators of crdify for a single schema.
func registry() validations.Registry {
	r := validations.NewRegistry()
	for _, register := range []func(validations.Registry){
		property.RegisterDefault, property.RegisterDescription, property.RegisterEnum, property.RegisterNullable,
		property.RegisterPattern, property.RegisterRequired, property.RegisterType,
		property.RegisterMaximum, property.RegisterMaxItems, property.RegisterMaxLength, property.RegisterMaxProperties,
		property.RegisterMinimum, property.RegisterMinItems, property.RegisterMinLength, property.RegisterMinProperties,
	} {
		register(r)
	}
	return r
}

type comparator = validations.Comparator[apiextensions.JSONSchemaProps]

// comparators returns the comparators of crdify by keyword.
var comparators = sync.OnceValue(func() map[string]comparator {
	all, err := validations.LoadValidationsFromRegistry(registry())
	if err == nil {
		all, err = validations.ConfigureValidations(all, registry(), strict)
	}
	if err != nil {
		panic(err) // only a mistake in the fixed configuration above, which every test would show
	}
	byKeyword := make(map[string]comparator, len(all))
	for keyword, v := range all {
		if c, ok := v.(comparator); ok { // the registry contains only comparators
			byKeyword[keyword] = c
		}
	}
	return byKeyword
})

// TestCRDifyAgrees runs all of crdify on whole CRDs, and expects the same findings at the same paths.
func TestCRDifyAgrees(t *testing.T) {
	for name, tc := range ruleCases() {
		if name == "Unreadable" || tc.kind != "" { // crdify reads neither
			continue
		}
		t.Run(name, func(t *testing.T) {
			before, after := tc.pair(t)
			agree(t, before, after)
		})
	}
}

// TestCRDifyAgreesOnReleases does the same for releases of real providers.
func TestCRDifyAgreesOnReleases(t *testing.T) {
	for older, newer := range map[string]string{
		"provider-kubernetes-v1.0.0": "provider-kubernetes",
		"provider-kubernetes":        "provider-kubernetes-v1.0.0",
		"provider-helm-older":        "provider-helm",
		"provider-helm":              "provider-helm-older",
	} {
		was, is := definitions(t, fixtures.Corpus(t, older)), definitions(t, fixtures.Corpus(t, newer))
		both, breaks := 0, 0
		for _, name := range slices.Sorted(maps.Keys(was)) {
			if is[name] == nil {
				continue
			}
			t.Run(older+"/"+name, func(t *testing.T) {
				agree(t, was[name], is[name])
			})
			both++
			breaks += len(Compare(was[name], is[name]).Breaking())
		}
		if both < 3 {
			t.Errorf("%s and %s have only %d CRDs in common", older, newer, both)
		}
		t.Logf("%s → %s: %d CRDs, %d changes that break", older, newer, both, breaks)
	}
}

func definitions(t *testing.T, files fstest.MapFS) map[string]*unstructured.Unstructured {
	t.Helper()
	byName := map[string]*unstructured.Unstructured{}
	paths, err := fs.Glob(files, "crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		documents, err := manifest.Read(files, path, manifest.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range documents {
			u, err := d.Decode()
			if err != nil {
				t.Fatal(err)
			}
			byName[u.GetName()] = u
		}
	}
	return byName
}

// failing is a test, or one of its many iterations.
type failing interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// knowsMore lists keywords for which crdify also reports changes that neither drop nor refuse a value, or misses some that do.
var knowsMore = []Rule{Default, Required, Field, Undecided, "type", "enum", "pattern", "minimum", "maximum", "minLength", "minItems", "minProperties", "anyOf", "allOf", "oneOf", "not", "x-kubernetes-int-or-string", "additionalProperties"}

// agree reports paths at which only one of the two finds a break. TestDifferential covers changes that Compare judges by more than
// one keyword.
func agree(t failing, before, after *unstructured.Unstructured) {
	t.Helper()
	all := Compare(before, after)
	found, explained := map[string]bool{}, map[string]bool{}
	var removed []string
	for _, c := range all.Changes {
		parent := strings.TrimSpace(c.Version + " " + c.Path[:max(strings.LastIndex(c.Path, "."), 0)])
		if slices.Contains(knowsMore, c.Rule) {
			explained[c.Where()] = explained[c.Where()] || !c.Breaking || c.Rule != Required
			explained[parent] = explained[parent] || c.Rule == Required // crdify reports it for the parent object
		}
		if c.Rule == Field || c.Rule == "additionalProperties" {
			removed = append(removed, c.Where())
		}
		if _, known := comparators()[string(c.Rule)]; c.Breaking && (known && c.Rule != Required || c.Rule == Scope) {
			found[c.Where()] = true
		}
	}
	reported := crdifyFinds(t, before, after)
	explains := func(place string) bool {
		return explained[place] || slices.ContainsFunc(removed, func(path string) bool {
			return strings.HasPrefix(place, path+".") || strings.HasPrefix(place, path+"[]")
		})
	}
	for _, places := range []map[string]bool{reported, found} {
		maps.DeleteFunc(places, func(place string, _ bool) bool { return explains(place) })
	}
	if diff := cmp.Diff(reported, found); diff != "" {
		t.Errorf("places that break (-crdify +Compare):\n%s%s", diff, fmt.Sprint(all.Changes))
	}
}

// crdifyFinds returns the paths of breaking changes according to crdify.
func crdifyFinds(t failing, before, after *unstructured.Unstructured) map[string]bool {
	t.Helper()
	r, err := runner.New(&strict, runner.DefaultRegistry())
	if err != nil {
		t.Fatal(err)
	}
	results := r.Run(typed(t, before), typed(t, after))
	found := map[string]bool{}
	for _, result := range results.CRDValidation {
		for _, e := range result.Errors {
			version, field, removed := strings.Cut(strings.TrimPrefix(e, "removed field : "), ".^")
			if removed {
				found[crdifyPlace(version, field)] = true
			} else {
				found[""] = true
			}
		}
	}
	for _, version := range results.SameVersionValidation {
		for _, property := range version.PropertyComparisons {
			for _, result := range property.ComparisonResults {
				if len(result.Errors) > 0 {
					found[crdifyPlace(version.Version, strings.TrimPrefix(property.Property, "^"))] = true
				}
			}
		}
	}
	return found
}

// alternatives matches paths inside these keywords, because reports contain only the keyword.
var alternatives = regexp.MustCompile(`\.(allOf|anyOf|oneOf|not)\b.*`)

// crdifyPlace converts a path of crdify to ours.
func crdifyPlace(version, path string) string {
	path = alternatives.ReplaceAllString(path, "")
	path = strings.ReplaceAll(path+".", ".items.", "[].")
	path = strings.ReplaceAll(path, ".additionalProperties.", ".*.")
	return strings.TrimSpace(version + " " + strings.Trim(path, "."))
}

func typed(t failing, u *unstructured.Unstructured) *apiextensions.CustomResourceDefinition {
	t.Helper()
	crd := new(apiextensions.CustomResourceDefinition)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// TestStorageOfAWS resets the storage version of the kinds in provider-upjet-aws v2.6.0 to that of the previous release, because
// the corpus contains only one release. With a copy from Git, nearly all kinds would lose fields. With the published package, whose
// build adds a webhook to them, none does.
func TestStorageOfAWS(t *testing.T) {
	// One more kind of the real one had v1beta2 as its storage version in the previous release.
	for name, want := range map[string][2]int{"provider-upjet-aws": {309, 307}, "provider-made": {311, 311}} {
		t.Run(name, func(t *testing.T) {
			if moved, lossy := storageMoves(t, fixtures.Corpus(t, name)); moved != want[0] || lossy != want[1] {
				t.Errorf("%d kinds move, %d of them lose fields; want %v", moved, lossy, want)
			}
		})
	}
}

// storageMoves returns how many kinds move their storage version, and how many of them lose fields.
func storageMoves(t *testing.T, files fstest.MapFS) (moved, lossy int) {
	t.Helper()
	for path, file := range files {
		if !strings.Contains(string(file.Data), "\n    name: v1beta2\n") || !strings.HasPrefix(path, "crds/") {
			continue
		}
		after := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(file.Data, &after.Object); err != nil {
			t.Fatal(err)
		}
		before := after.DeepCopy()
		byName := versions(object(before.Object["spec"]))
		if stored(byName) != "v1beta2" || byName["v1beta1"] == nil {
			continue
		}
		byName["v1beta1"]["storage"], byName["v1beta2"]["storage"] = true, false
		moved++
		if len(Compare(before, after).Breaking()) > 0 {
			lossy++
		}
		if err := unstructured.SetNestedField(after.Object, "Webhook", "spec", "conversion", "strategy"); err != nil {
			t.Fatal(err)
		}
		if breaking := Compare(before, after).Breaking(); len(breaking) > 0 {
			t.Errorf("%s with a webhook: %v", path, breaking)
		}
	}
	return moved, lossy
}

package target

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/impact"
	"headgate.dev/headgate/render"

	"github.com/google/go-cmp/cmp"
)

// A value that only the API or only the core has would have no effect, or could not be set.
func TestOptionsAreComplete(t *testing.T) {
	var spec v1alpha1.Spec
	enumerations := spec.Enumerations()
	for _, e := range enumerations {
		i := slices.IndexFunc(Options, func(o Option) bool { return o.Field == e.Field })
		if i < 0 {
			t.Errorf("%s is in the API and has no row in Options", e.Field)
			continue
		}
		var values []string
		for _, r := range Options[i].rows {
			values = append(values, r.api)
		}
		if !slices.Equal(e.Values, values) {
			t.Errorf("%s has the values %q in the API and %q in Options", e.Field, e.Values, values)
		}
	}
	fields, flags := map[string]bool{}, map[string]bool{}
	for _, o := range Options {
		if fields[o.Field] || flags[o.Flag] {
			t.Errorf("two options set %s, or are --%s", o.Field, o.Flag)
		}
		fields[o.Field], flags[o.Flag] = true, true
		if o.Words == nil {
			continue
		}
		if enumerationOf(&spec, o.Field).Set == nil {
			t.Errorf("%s is in Options and no enumeration of the API", o.Field)
			continue
		}
		for i, word := range o.Words {
			var spec v1alpha1.Spec
			if err := o.Set(&spec, word); err != nil || enumerationOf(&spec, o.Field).Value() != o.rows[i].api || o.Word(&spec) != word || slices.Index(o.Words, word) != i || word == "" {
				t.Errorf("--%s=%s: the API says %q, and the flag again %q: %v", o.Flag, word, enumerationOf(&spec, o.Field).Value(), o.Word(&spec), err)
			}
		}
		known(t, o.Field, coreOf(o))
	}
	var kinds []any
	var named []v1alpha1.Forge
	for _, r := range forges {
		kinds, named = append(kinds, r.core), append(named, r.api)
	}
	known(t, "spec.statuses.forge", kinds)
	if !slices.Equal(named, v1alpha1.Forges) {
		t.Errorf("the API has the forges %q, and the table %q", v1alpha1.Forges, named)
	}
	for _, f := range forge.All() {
		if !slices.Contains(kinds, any(f.Kind)) {
			t.Errorf("no value of the API, and no word of --forge, is a %s", f.Name)
		}
	}
}

// An option that sets nothing, or the setting of another option, would be accepted and ignored.
func TestEveryOptionHasASettingOfItsOwn(t *testing.T) {
	settingsOf := func(o Option, word string) string {
		var spec v1alpha1.Spec
		if err := o.Set(&spec, word); err != nil {
			t.Fatalf("--%s=%s: %v", o.Flag, word, err)
		}
		var to settings
		o.apply(&spec, &to)
		return fmt.Sprintf("%+v", to)
	}
	setBy := map[string]string{fmt.Sprintf("%+v", settings{}): "no option"}
	for _, o := range Options {
		words := []string{"7"} // of a number
		if o.Words != nil {
			words = o.Words[1:]
		}
		for _, word := range words {
			got := settingsOf(o, word)
			if by := setBy[got]; by != "" && by != o.Flag {
				t.Errorf("--%s=%s has the effect of %s", o.Flag, word, by)
			}
			setBy[got] = o.Flag
		}
	}
}

func coreOf(o Option) (all []any) {
	for _, r := range o.rows {
		all = append(all, r.core)
	}
	if o.Field == "spec.conversion.strategy" {
		all = append(all, render.ConversionUnknown) // comparisons set it by default
	}
	return all
}

// known proves that the given values include all constants of their type, so that each can be set.
func known(t *testing.T, field string, values []any) {
	t.Helper()
	of := reflect.TypeOf(values[0])
	if of.Kind() == reflect.Bool {
		return
	}
	for name, constant := range constants(t, of) {
		if !slices.ContainsFunc(values, func(v any) bool { return reflect.ValueOf(v).String() == constant }) {
			t.Errorf("%s: %s.%s is in the core, and nothing in Options has it", field, of.PkgPath(), name)
		}
	}
}

// The constants of the API are exactly the values of its enumerations, and each option reads a separate field.
func TestEveryValueOfTheAPIIsInAnEnumeration(t *testing.T) {
	var spec v1alpha1.Spec
	listed := []string{}
	for _, e := range spec.Enumerations() {
		listed = append(listed, e.Values...)
	}
	for _, f := range v1alpha1.Forges {
		listed = append(listed, string(f))
	}
	listed = append(listed, string(v1alpha1.ScopeNamespaced), string(v1alpha1.ScopeCluster)) // scopes in allowedKinds
	listed = append(listed, string(v1alpha1.UntilApplied), string(v1alpha1.UntilReady), string(v1alpha1.DeletionOrphan), string(v1alpha1.DeletionDelete))
	listed = append(listed, string(v1alpha1.PerCluster), string(v1alpha1.PerSync)) // statuses are optional, so their values are added here
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		for f := range of.Fields() {
			at := f.Type
			for at.Kind() == reflect.Pointer || at.Kind() == reflect.Slice {
				at = at.Elem()
			}
			if at.PkgPath() != of.PkgPath() {
				continue
			}
			if at.Kind() == reflect.Struct {
				walk(at)
				continue
			}
			for name, value := range constants(t, at) {
				if !slices.Contains(listed, value) {
					t.Errorf("v1alpha1.%s = %q is the value of %s, and of no enumeration", name, value, f.Name)
				}
			}
		}
	}
	walk(reflect.TypeFor[v1alpha1.Spec]())
	set := 0
	for _, e := range spec.Enumerations() {
		e.Set(e.Values[len(e.Values)-1])
	}
	for _, e := range spec.Enumerations() {
		if e.Value() == e.Values[len(e.Values)-1] {
			set++
		}
	}
	if set != len(spec.Enumerations()) {
		t.Error("two enumerations read one field")
	}
}

// The settings of a Sync reach the core: every field of the core's options is set, except those with another source.
func TestEverySettingOfTheCoreIsInTheAPI(t *testing.T) {
	elsewhere := map[string]string{
		"Guarding.Home":    "Surroundings, from the namespace of the controller",
		"Terms.Object":     "metadata.uid of a Sync object",
		"Options.Compares": "a comparison of two commits",
		"Options.Live":     "a pass, from the cluster",
		"Options.Explains": "headgate why and tree",
		"Options.Policies": "previews, why and tree, from the cluster",
		"Options.Before":   "a comparison of two commits",
		"Options.Lints":    "Reconciler.Lint",
		"Options.Memo":     "Surroundings",
		"Options.Unlocked": "headgate lock",
	}
	s := decode(t, `  source: {repo: a, takeOver: b}
  limits: {fileSize: 1Mi, totalSize: 1G, documents: 7, depth: 9, nodes: 10, totalNodes: 11}
  maxPrunes: 3
  maxActivations: 5
  previewTrust: [{kind: Provider, bump: patch}]
  crossplaneVersion: v2.1.0
  kubernetesVersion: "1.34"
  schemas: [crds]
  packages: [{path: vendor/aws, name: provider-aws, safeStart: true}]
  ignore: [{paths: [/spec/replicas]}]
  release: [ConfigMap/team/settings]
  allowedKinds: [{kind: ConfigMap}]
  activation: {allow: ["*.example.org"]}
  references: {fromSecrets: false, namespaces: [team-*]}
`)
	for _, e := range s.Spec.Enumerations() {
		e.Set(e.Values[len(e.Values)-1])
	}
	set := settingsOf(s)
	for name, part := range map[string]any{"Options": set.Options, "Guarding": set.Guarding, "Terms": set.Terms} {
		v := reflect.ValueOf(part)
		for f := range v.Type().Fields() {
			if field := name + "." + f.Name; v.FieldByIndex(f.Index).IsZero() == (elsewhere[field] == "") {
				t.Errorf("%s: zero %t, and set elsewhere %q: let an option of the API set it", field, v.FieldByIndex(f.Index).IsZero(), elsewhere[field])
			}
		}
	}
}

// constants returns the constants of a type, by name.
func constants(t *testing.T, of reflect.Type) map[string]string {
	t.Helper()
	directory := filepath.Join("..", "..", filepath.FromSlash(strings.TrimPrefix(of.PkgPath(), "headgate.dev/headgate/")))
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(directory, e.Name()), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) == 0 {
				return true
			}
			if typed, ok := spec.Type.(*ast.Ident); ok && typed.Name == of.Name() {
				if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
					all[spec.Names[0].Name], _ = strconv.Unquote(literal.Value)
				}
			}
			return true
		})
	}
	return all
}

// An empty list trusts nothing, and no list is the default of the guard; both survive the way to the process of a preview.
func TestPreviewTrust(t *testing.T) {
	for text, want := range map[string][]impact.Trust{
		"":                   nil,
		"  previewTrust: []": {},
		"  previewTrust: [{kind: Function, bump: minor}]": {{Kind: "Function", Bump: impact.Minor}},
	} {
		sent, err := json.Marshal(decode(t, "  source: {repo: a}\n"+text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		var s v1alpha1.Sync
		if err := json.Unmarshal(sent, &s); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, settingsOf(s).Guarding.Trust); diff != "" {
			t.Errorf("%q trusts (-want +got):\n%s", text, diff)
		}
	}
}

package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// glossary lists the terms of the design, one for each idea. The design does not define "place" and "source", but each of them once
// named six types.
var glossary = []string{
	"commit", "document", "definition", "package", "policy", "decision", "want", "desired", "seen", "observed", "owned", "inventory", "mark",
	"plan", "step", "retain", "hold", "check", "drift", "verdict", "pass", "round", "effect", "reason", "deactivate", "release", "sync",
	"place", "source",
}

// declaredTwice lists the types that share their word with a type of another package, and why they may.
var declaredTwice = map[string]string{
	"reconcile/report.Definition":    "the JSON of catalogue.Definition in a report",
	"reconcile/report.Package":       "the JSON of catalogue.Package in a report",
	"reconcile/report.Step":          "the JSON of plan.Step in a report",
	"render/check.Source":            "what a check knows kinds from",
	"render/check/kubernetes.Source": "a check.Source",
	"render/crossplane/kinds.Source": "a check.Source",
	"reconcile/api/v1alpha1.Package": "a field of the API: what users write about a package",
	"reconcile/api/v1alpha1.Source":  "a field of the API: what users write about the repository",
	"reconcile/api/v1alpha1.Sync":    "the API object that inventory.Sync names",
}

// If two packages declare a type with the same glossary term, the term names two ideas, or one idea has two types.
func TestGlossary(t *testing.T) {
	declared := map[string]map[string]bool{} // for each term in lower case, the types as "package.Name"
	for _, f := range readSources(t) {
		if f.forTests() {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), filepath.FromSlash(f.path)), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range typesOf(file) {
			word := strings.ToLower(name)
			if declared[word] == nil {
				declared[word] = map[string]bool{}
			}
			declared[word][f.pkg+"."+name] = true
		}
	}
	excused := maps.Clone(declaredTwice)
	for _, word := range glossary {
		types := slices.Sorted(maps.Keys(declared[word]))
		others := slices.DeleteFunc(slices.Clone(types), func(name string) bool { return declaredTwice[name] != "" })
		if len(others) > 1 {
			t.Errorf("%q is the word for one idea, and more than one type: %q; rename all but one", word, others)
		}
		if len(types) > 1 {
			maps.DeleteFunc(excused, func(name, _ string) bool { return slices.Contains(types, name) })
		}
	}
	for name := range excused {
		t.Errorf("declaredTwice lists %s, which shares its word with no other type", name)
	}
}

// typesOf returns the names of all types that a file declares, including those inside functions.
func typesOf(file *ast.File) (names []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			names = append(names, spec.Name.Name)
		}
		return true
	})
	return names
}

func TestTypesOf(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", "package p\ntype A struct{}\ntype (\n\tb = A\n\tC[T any] []T\n)\nfunc f() { type d int }\nvar e int", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := typesOf(file), []string{"A", "b", "C", "d"}; !slices.Equal(got, want) {
		t.Errorf("typesOf(file) = %q, want %q", got, want)
	}
}

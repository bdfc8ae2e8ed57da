package crossplane_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"headgate.dev/headgate/render/crossplane"
)

// exempt lists literals that other packages must spell out because they cannot import this package, such as package manifest.
var exempt = map[string][]string{
	"render/manifest/header.go":          {crossplane.PausedAnnotation},
	"reconcile/api/v1alpha1/validate.go": {crossplane.Provider, crossplane.Configuration, crossplane.Function, crossplane.Extensions, crossplane.Packages},
}

// All of Crossplane's own names are spelled out in only one package.
func TestSpelledOnce(t *testing.T) {
	root := filepath.Join("..", "..")
	tree := os.DirFS(root)
	n := 0
	for _, dir := range []string{"cmd", "reconcile", "render"} {
		err := fs.WalkDir(tree, dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || path.Dir(name) == "render/crossplane" {
				return err
			}
			n++
			for at, text := range literals(t, filepath.Join(root, name)) {
				if spells(text) && !slices.Contains(exempt[name], text) {
					t.Errorf("%s: %q is spelled out: use a name of package crossplane", strings.Replace(at, root+string(filepath.Separator), "", 1), text)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n < 100 {
		t.Errorf("only %d files were read", n)
	}
}

// kinds must not be spelled out anywhere else in the code, not even without their group.
var kinds = []string{
	crossplane.Provider, crossplane.Configuration, crossplane.Function, crossplane.KindMRD.Kind, crossplane.KindMRAP.Kind, crossplane.KindXRD.Kind,
	crossplane.KindComposition.Kind, crossplane.KindCompositionRevision.Kind, crossplane.KindProviderRevision.Kind, crossplane.KindRuntimeConfig.Kind,
	crossplane.KindImageConfig.Kind, crossplane.KindLock.Kind, crossplane.KindClusterUsage.Kind,
	crossplane.KindOperation.Kind, crossplane.KindCronOperation.Kind, crossplane.KindWatchOperation.Kind,
}

// spells reports whether a text is a kind of Crossplane or contains one of its groups.
func spells(text string) bool {
	return strings.Contains(text, "crossplane.io") || slices.Contains(kinds, text)
}

func TestSpells(t *testing.T) {
	for text, want := range map[string]bool{
		"pkg.crossplane.io":                   true,
		"locks.pkg.crossplane.io lock":        true,
		"apiextensions.crossplane.io/v1":      true,
		"ManagedResourceDefinition":           true,
		"Provider":                            true,
		"the Provider that installs it":       false,
		"https://docs.crossplane.example.org": false,
	} {
		if got := spells(text); got != want {
			t.Errorf("spells(%q) = %t", text, got)
		}
	}
}

// literals returns the string literals of a file, by location, without import paths and tags.
func literals(t *testing.T, name string) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				break
			}
			text, err := strconv.Unquote(n.Value)
			if err != nil {
				t.Fatalf("%s: %v", files.Position(n.Pos()), err)
			}
			all[files.Position(n.Pos()).String()] = text
		}
		return true
	})
	return all
}

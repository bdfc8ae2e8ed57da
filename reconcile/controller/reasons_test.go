package controller

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The reasons of conditions and Events are those of package v1alpha1, whose reference lists them: no text in the controller makes another
// one.
func TestReasonsAreListed(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	found := 0
	for _, name := range files {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, reason := range reasonsIn(n) {
				found++
				ast.Inspect(reason, func(n ast.Node) bool {
					if text, is := n.(*ast.BasicLit); is {
						t.Errorf("%s: the reason %s is a text; use a constant of v1alpha1", set.Position(text.Pos()), text.Value)
					}
					return true
				})
			}
			return true
		})
	}
	if found < 20 {
		t.Errorf("only %d reasons were found; the functions that take one have other names", found)
	}
}

// reasonsIn returns the reasons that a call or a value has.
func reasonsIn(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.CallExpr:
		called := ""
		switch f := n.Fun.(type) {
		case *ast.Ident:
			called = f.Name
		case *ast.SelectorExpr:
			called = f.Sel.Name
		}
		at, is := map[string]int{"refuse": 0, "event": 1, "set": 2, "setLong": 2}[called]
		if is && len(n.Args) > at+1 {
			return n.Args[at : at+1]
		}
	case *ast.CompositeLit:
		if of, is := n.Type.(*ast.Ident); is && of.Name == "refusal" && len(n.Elts) > 0 {
			return n.Elts[:1]
		}
	}
	return nil
}

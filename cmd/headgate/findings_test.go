package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// A preview counts only new findings, so every finding has an identity: an object, a field or a subject, or the
// commit as a whole.
func TestFindingsHaveIdentities(t *testing.T) {
	found := 0
	for _, f := range readSources(t) {
		if f.forTests() {
			continue
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, filepath.Join(root(t), filepath.FromSlash(f.path)), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			all := []ast.Expr{literal}
			if list, ok := literal.Type.(*ast.ArrayType); ok && isFinding(list.Elt) {
				all = literal.Elts
			} else if !isFinding(literal.Type) {
				return true
			}
			for _, one := range all {
				keys := keysOf(one)
				if keys["Rule"] {
					found++
				}
				if keys["Rule"] && !keys["About"] {
					t.Errorf("%s: the finding has no About", files.Position(one.Pos()))
				}
			}
			return true
		})
	}
	if found < 50 {
		t.Errorf("only %d findings were found", found)
	}
}

func isFinding(e ast.Expr) bool {
	of, ok := e.(*ast.SelectorExpr)
	return ok && of.Sel.Name == "Finding"
}

func keysOf(e ast.Expr) map[string]bool {
	keys := map[string]bool{}
	literal, _ := e.(*ast.CompositeLit)
	if literal == nil {
		return keys
	}
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if name, ok := pair.Key.(*ast.Ident); ok {
				keys[name.Name] = true
			}
		}
	}
	return keys
}

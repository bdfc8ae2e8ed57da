package report

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/plan"
)

// TestEveryCodeHasWords compares the codes that the core declares with the wordings.
func TestEveryCodeHasWords(t *testing.T) {
	declared := codes(t, "../plan", "../guard")
	if len(declared) < 2 {
		t.Fatalf("found the codes %v", declared)
	}
	for code, name := range declared {
		if string(code) != name {
			t.Errorf("the code %s has the value %q", name, code)
		}
		w, worded := words[code]
		if !worded {
			t.Errorf("the code %s has no words", code)
		}
		values := make([]any, len(w.forms))
		for i := range values {
			values[i] = fmt.Sprintf("value-%d", i)
		}
		said := fmt.Sprintf(w.format, values...)
		for _, value := range values {
			if !strings.Contains(said, value.(string)) {
				t.Errorf("the wording of %s has no place for %s: %s", code, value, said)
			}
		}
		if strings.Contains(said, "%!") {
			t.Errorf("the wording of %s has more places than %d values: %s", code, len(values), said)
		}
	}
	for code := range words {
		if _, is := declared[code]; !is {
			t.Errorf("%s has words, and is no code", code)
		}
	}
}

// TestMisfits proves that values that do not fit a wording are seen, instead of a sentence that makes no sense.
func TestMisfits(t *testing.T) {
	for name, r := range map[string]plan.Reason{
		"Unknown": plan.Code("Nonsense").With(),
		"Few":     plan.Failed.With(),
		"Many":    plan.Failed.With("a", "b"),
		"Type":    plan.Failed.With(1),
	} {
		if said := Words(r); !strings.HasPrefix(said, "%!") {
			t.Errorf("%s: %q", name, said)
		}
	}
	if said := Words(plan.Both.With(plan.Failed.With("this"), plan.Failed.With("that"))); said != "this; that" {
		t.Errorf("Words(both) = %q", said)
	}
}

// codes returns the constants of the type Code that the packages in some directories declare, by value.
func codes(t *testing.T, directories ...string) map[plan.Code]string {
	t.Helper()
	found := map[plan.Code]string{}
	for _, dir := range directories {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				spec, is := n.(*ast.ValueSpec)
				if !is || !isCode(spec.Type) || len(spec.Values) != 1 {
					return true
				}
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				if other, twice := found[plan.Code(value)]; twice {
					t.Errorf("%s: %s is declared twice, also as %s", file, value, other)
				}
				found[plan.Code(value)] = spec.Names[0].Name
				return true
			})
		}
	}
	return found
}

func isCode(of ast.Expr) bool {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name == "Code"
	case *ast.SelectorExpr:
		return of.Sel.Name == "Code"
	}
	return false
}

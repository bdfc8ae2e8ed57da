package report

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/golden"
	"headgate.dev/headgate/reconcile/reason"
)

// documentation is the file with the table of codes.
const documentation = "../README.md"

// TestEveryCodeHasWords compares the codes that the core declares with the wordings, which list all codes.
func TestEveryCodeHasWords(t *testing.T) {
	declared := codes(t, "../reason")
	if len(declared) < 2 {
		t.Fatalf("found the codes %v", declared)
	}
	for code, d := range declared {
		if string(code) != d.name {
			t.Errorf("the code %s has the value %q", d.name, code)
		}
		if d.comment == "" || d.group == "" {
			t.Errorf("the code %s has no comment on its line, or its block does not begin with %q", code, "// The codes of")
		}
		w, worded := words[code]
		if !worded {
			t.Errorf("the code %s has no words", code)
		}
		values := make([]any, len(w.forms))
		for i := range values {
			values[i] = fmt.Sprintf("value-%d", i)
		}
		output := fmt.Sprintf(w.format, values...)
		for _, value := range values {
			if !strings.Contains(output, value.(string)) {
				t.Errorf("the wording of %s has no place for %s: %s", code, value, output)
			}
		}
		if strings.Contains(output, "%!") {
			t.Errorf("the wording of %s has more places than %d values: %s", code, len(values), output)
		}
	}
	for code := range words {
		if _, is := declared[code]; !is {
			t.Errorf("%s has words, and is no code", code)
		}
	}
}

// TestCodesAreDocumented compares the table of codes in the documentation with the codes. With -update it rewrites the table.
func TestCodesAreDocumented(t *testing.T) {
	declared := codes(t, "../reason")
	rows := []string{"| code | wording, or meaning | about |", "|---|---|---|"}
	for _, code := range slices.Sorted(maps.Keys(declared)) {
		d := declared[code]
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", code, strings.ReplaceAll(meaning(words[code], d), "|", `\|`), d.group))
	}
	table := strings.Join(rows, "\n")
	file, err := os.ReadFile(documentation)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(file), rows[0])
	if !found {
		t.Fatalf("%s has no table that begins with %q", documentation, rows[0])
	}
	_, after, _ := strings.Cut(rest, "\n\n")
	if after != "" {
		after = "\n" + after
	}
	golden.Compare(t, documentation, before+table+"\n"+after)
}

// meaning returns the wording of a code with … for its values. If nothing else remains, it returns the code's comment.
func meaning(w wording, d declaration) string {
	output := regexp.MustCompile(`%(\[\d\])?[sq]`).ReplaceAllString(w.format, "…")
	if strings.Trim(output, "…,;: ()") == "" {
		return d.comment
	}
	return strings.ReplaceAll(output, "……", "… …")
}

// TestMisfits proves that values that do not fit a wording are visible, instead of a sentence without meaning.
func TestMisfits(t *testing.T) {
	for name, r := range map[string]reason.Reason{
		"Unknown": reason.Code("Nonsense").With(),
		"Few":     reason.Failed.With(),
		"Many":    reason.Failed.With("a", "b"),
		"Type":    reason.Failed.With(1),
	} {
		if output := Words(r); !strings.HasPrefix(output, "%!") {
			t.Errorf("%s: %q", name, output)
		}
	}
	if output := Words(reason.Both.With(reason.Failed.With("this"), reason.Failed.With("that"))); output != "this; that" {
		t.Errorf("Words(both) = %q", output)
	}
}

// A declaration describes how a package declares a code.
type declaration struct {
	name    string
	comment string // behind it
	group   string // comment on the block of the declaration
}

// codes returns the constants of type Code in the packages of some directories, by value.
func codes(t *testing.T, directories ...string) map[reason.Code]declaration {
	t.Helper()
	found := map[reason.Code]declaration{}
	for _, dir := range directories {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range parsed.Decls {
				block, is := d.(*ast.GenDecl)
				if !is {
					continue
				}
				group, _, _ := strings.Cut(block.Doc.Text(), ".")
				group, _ = strings.CutPrefix(group, "The codes of ")
				for _, s := range block.Specs {
					spec, is := s.(*ast.ValueSpec)
					if !is || !isCode(spec.Type) || len(spec.Values) != 1 {
						continue
					}
					value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
					if err != nil {
						t.Fatal(err)
					}
					if other, twice := found[reason.Code(value)]; twice {
						t.Errorf("%s: %s is declared twice, also as %s", file, value, other.name)
					}
					found[reason.Code(value)] = declaration{spec.Names[0].Name, strings.TrimSpace(spec.Comment.Text()), strings.ReplaceAll(group, "\n", " ")}
				}
			}
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

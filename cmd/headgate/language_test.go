package main_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// limits is the maximum number of turns per thousand words, by kind of prose. Comparable code bases are at 0 to 0.9.
var limits = map[string]float64{"comments": 0.5, "messages": 0.5, "tests": 1, "documents": 0.5}

// A turn is a turn of phrase that makes text hard to read.
type turn struct {
	name  string
	found *regexp.Regexp
	write string // what to write instead
}

var turns = []turn{
	{"nobody", regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|whoever|whomever)\b`),
		"name the actor: Headgate, Crossplane, the API server, the user"},
	{"says whether", regexp.MustCompile(`(?i)\b(says?|said|tells?|told) (whether|what|which|why|where|how|who|when|that|of)\b`),
		"a predicate reports whether, a getter returns, a type is, describes or holds"},
	{"of which", regexp.MustCompile(`(?i)\bof (which|what|those|whom|whose|them that)\b`),
		"two sentences, or whose"},
	{"Of, Where, What", regexp.MustCompile(`(?:^|[.!?] )(Of|Where|What) [^.?!]*(?:[.!]|$)`),
		"begin with the subject"},
	{"is that", regexp.MustCompile(`(?i)\b(is|are|was|were) (that|those|to be)\b`),
		"name the thing, and use a verb"},
	{"comes to", regexp.MustCompile(`(?i)\b((comes?|came) to|(makes?|made|becomes?|became) of)\b`),
		"name the result"},
}

// A prose is a comment, message or paragraph in a file of this repository.
type prose struct {
	kind string // comments, messages, tests (the texts in them) or documents
	file string
	line int
	text string
}

// Comments, messages, tests and documents are plain English, as .github/CONTRIBUTING.md asks for. The test counts the turns of
// phrase that once made them read like a translation.
func TestLanguage(t *testing.T) {
	words := map[string]int{}              // by kind
	counted := map[string]map[string]int{} // by kind and package, then by turn
	places := map[string][]prose{}         // by kind and turn
	inPackage := map[string]int{}          // number of words, by kind and package
	for _, p := range readProse(t) {
		n := len(strings.Fields(p.text))
		words[p.kind] += n
		key := p.kind + " " + path.Dir(p.file)
		inPackage[key] += n
		for _, turn := range turns {
			found := len(turn.found.FindAllString(p.text, -1))
			if found == 0 {
				continue
			}
			if counted[key] == nil {
				counted[key] = map[string]int{}
			}
			counted[key][turn.name] += found
			for range found {
				places[p.kind+" "+turn.name] = append(places[p.kind+" "+turn.name], p)
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(words)) {
		for _, turn := range turns {
			found := places[kind+" "+turn.name]
			if rate := float64(len(found)) * 1000 / float64(words[kind]); rate > limits[kind] {
				t.Errorf("%s: %q stands %.2f times per thousand words, more than %.1f; %s\n%s", kind, turn.name, rate, limits[kind], turn.write, worst(found))
			}
		}
	}
	t.Logf("per thousand words\n%s", tableOf(words, inPackage, counted))
}

// worst returns the files with the most matches, and these matches.
func worst(found []prose) string {
	byFile := map[string][]prose{}
	for _, p := range found {
		byFile[p.file] = append(byFile[p.file], p)
	}
	files := slices.SortedFunc(maps.Keys(byFile), func(a, b string) int {
		return cmp.Or(len(byFile[b])-len(byFile[a]), strings.Compare(a, b))
	})
	var b strings.Builder
	for _, file := range files[:min(len(files), 5)] {
		for _, p := range byFile[file] {
			fmt.Fprintf(&b, "\t%s:%d: %s\n", p.file, p.line, p.text)
		}
	}
	return b.String()
}

// tableOf returns a table with the count of each turn in each package. Packages with the most matches come first.
func tableOf(words, inPackage map[string]int, counted map[string]map[string]int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-40s %7s", "", "words")
	for _, turn := range turns {
		fmt.Fprintf(&b, " %15s", turn.name)
	}
	row := func(name string, words int, count func(turn string) int) {
		fmt.Fprintf(&b, "\n%-40s %7d", name, words)
		for _, turn := range turns {
			fmt.Fprintf(&b, " %15.2f", float64(count(turn.name))*1000/float64(words))
		}
	}
	sum := func(counts map[string]int) (n int) {
		for _, c := range counts {
			n += c
		}
		return n
	}
	for _, kind := range slices.Sorted(maps.Keys(words)) {
		row(kind, words[kind], func(turn string) (n int) {
			for key, counts := range counted {
				if strings.HasPrefix(key, kind+" ") {
					n += counts[turn]
				}
			}
			return n
		})
	}
	for _, key := range slices.SortedFunc(maps.Keys(counted), func(a, b string) int {
		return cmp.Or(sum(counted[b])-sum(counted[a]), strings.Compare(a, b))
	}) {
		row(key, inPackage[key], func(turn string) int { return counted[key][turn] })
	}
	return b.String()
}

// readProse returns the prose of all Go files and documents, also those of nested modules and tests. Golden files and
// generated references repeat messages and comments.
func readProse(t *testing.T) []prose {
	t.Helper()
	tree := os.DirFS(root(t))
	var all []prose
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (name == "bin" || base == "testdata" || base == "want" || base == "node_modules" || strings.HasPrefix(base, ".") && base != ".github" && base != ".site"):
			return fs.SkipDir
		case entry.IsDir(), entry.Type()&fs.ModeSymlink != 0:
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		switch path.Ext(name) {
		case ".go":
			found, err := proseOf(name, content)
			all = append(all, found...)
			return err
		case ".md":
			all = append(all, documentOf(name, string(content))...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// proseOf returns the comments and the messages of a Go file.
func proseOf(name string, content []byte) ([]prose, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	declares := map[*ast.CommentGroup]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			declares[n.Doc] = n.Name.Name
		case *ast.GenDecl:
			declares[n.Doc] = firstName(n)
		case *ast.Field:
			if len(n.Names) > 0 {
				declares[n.Doc] = n.Names[0].Name
			}
		}
		return true
	})
	var all []prose
	for _, g := range file.Comments {
		text := onOneLine(g.Text())
		// The comment begins with the name that it documents, which is not prose.
		text = strings.TrimPrefix(text, declares[g]+" ")
		if text != "" {
			all = append(all, prose{"comments", name, set.Position(g.Pos()).Line, text})
		}
	}
	kind := "messages"
	if strings.HasSuffix(name, "_test.go") {
		kind = "tests"
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			return n.Tag == nil
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if text = onOneLine(text); err == nil && n.Kind == token.STRING && isMessage(text) {
				all = append(all, prose{kind, name, set.Position(n.Pos()).Line, text})
			}
		}
		return true
	})
	return all, nil
}

// firstName returns the first name that a declaration declares, or "".
func firstName(d *ast.GenDecl) string {
	if len(d.Specs) == 0 {
		return ""
	}
	switch s := d.Specs[0].(type) {
	case *ast.TypeSpec:
		return s.Name.Name
	case *ast.ValueSpec:
		return s.Names[0].Name
	}
	return ""
}

// isMessage reports whether a string literal is a message: three words or more.
func isMessage(text string) bool {
	words := 0
	for word := range strings.FieldsSeq(text) {
		if spelled.MatchString(word) {
			words++
		}
	}
	return words >= 3
}

var (
	spelled = regexp.MustCompile(`^[A-Za-z][a-z]*[.,;:?]?$`)
	quoted  = regexp.MustCompile("`[^`]*`|\"[^\"]*\"")
	target  = regexp.MustCompile(`\]\([^)]*\)`)
	fence   = regexp.MustCompile("^\\s*```+")
	listed  = regexp.MustCompile(`^(\s*([-*]|\d+\.|#+|\|)\s*)`)
)

// onOneLine returns a text on one line, without code and quotations.
func onOneLine(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, "\t") {
			lines = append(lines, line)
		}
	}
	text = quoted.ReplaceAllString(strings.Join(lines, " "), "…")
	return strings.Join(strings.Fields(text), " ")
}

// documentOf returns the paragraphs, list entries and rows of a Markdown document.
func documentOf(name, content string) []prose {
	var all []prose
	var lines []string
	begin, code := 0, false
	end := func() {
		if text := onOneLine(target.ReplaceAllString(strings.Join(lines, "\n"), "]")); text != "" {
			all = append(all, prose{"documents", name, begin, text})
		}
		lines = nil
	}
	for i, line := range strings.Split(content, "\n") {
		if fence.MatchString(line) {
			code = !code
			end()
			continue
		}
		if code {
			continue
		}
		if strings.TrimSpace(line) == "" || listed.MatchString(line) {
			end()
			line = listed.ReplaceAllString(line, "")
		}
		if len(lines) == 0 {
			begin = i + 1
		}
		lines = append(lines, strings.TrimLeft(line, "\t"))
	}
	end()
	return all
}

func TestTurns(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		source string
		want   []string // the turns
	}{
		"Comment":      {"Comments are checked.", "// a is where nobody looks.\nvar a int", []string{"nobody"}},
		"Trailing":     {"Trailing comments are checked, too.", "var a int // whoever looks", []string{"nobody"}},
		"Wrapped":      {"A phrase may continue on the next line.", "// a holds what is late, of\n// which there is one.\nvar a int", []string{"of which"}},
		"Predicate":    {"A predicate should use \\\"reports whether\\\".", "// a says whether b.\nvar a int", []string{"says whether"}},
		"Inverted":     {"The subject should come first.", "// a is b. What is late is c.\nvar a int", []string{"Of, Where, What"}},
		"Question":     {"A question may begin with What.", "// a is b. What is late?\nvar a int", nil},
		"Name":         {"The comment on Of must begin with Of.", "// Of returns b.\nfunc Of() {}", nil},
		"NameInverted": {"Only the declared name may begin a comment.", "// Of those, b.\nfunc b() {}", []string{"of which", "Of, Where, What"}},
		"Riddle":       {"These phrases name no actor.", "// a is that which comes to b.\nvar a int", []string{"is that", "comes to"}},
		"Message":      {"Messages are checked.", `var a = "it is that of nobody"`, []string{"nobody", "is that"}},
		"Key":          {"A single word is not a message.", `var a = "nobody"`, nil},
		"Quotation":    {"Quotations are not checked.", "// a is \"nobody\" or `whoever`.\nvar a int", nil},
		"Example":      {"Code is not checked.", "// a is b:\n//\n//\tnobody\nvar a int", nil},
		"Tag":          {"Struct tags are not checked.", "type a struct {\n\tb int `json:\"nobody is there\"`\n}", nil},
		"Plain":        {"Plain English has no matches.", "// a reports whether the user changed the field.\nvar a bool", nil},
	} {
		all, err := proseOf("p.go", []byte("package p\n\n"+tc.source+"\n"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, turn := range turns {
			for _, p := range all {
				if turn.found.MatchString(p.text) {
					got = append(got, turn.name)
				}
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %s %s = %q, want %q", name, tc.reason, tc.source, got, tc.want)
		}
	}
}

package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWhenTestsRun checks the comments that say when tests run. `make test` reads them, too. A line above the package clause is of all tests
// of a package, and a line above a test is of that test.
func TestWhenTestsRun(t *testing.T) {
	marks, packages := marksOf(t), parsedFiles(t)
	programs := startersOfPrograms(packages["fixtures"].code)
	for pkg, in := range packages {
		has := func(word string) bool { return slices.Contains(marks[pkg], word) }
		concurrent := slices.ContainsFunc(in.code, startsGoroutines)
		forTests := covers([]string{"fixtures/...", "examples/..."}, pkg)
		if concurrent && !forTests && !has("raced") {
			t.Errorf("%s starts goroutines: write //test:package raced above the package clause of one of its test files", pkg)
		}
		if has("raced") && !concurrent && !slices.ContainsFunc(in.tests, startsGoroutines) && !slices.ContainsFunc(in.code, locks) {
			t.Errorf("%s is raced, and neither it nor its tests start goroutines or lock", pkg)
		}
		starts := func(file *ast.File) bool { return programs.in(file, path.Base(pkg)) }
		if serves := slices.ContainsFunc(in.tests, starts); serves != has("served") {
			t.Errorf("%s: its tests start programs of bin: %t; its line //test:package: %v", pkg, serves, marks[pkg])
		}
	}
}

// The words that the Makefile reads: of a package, and of a test. A number of minutes is a word as well.
var (
	wordsOfPackages = []string{"raced", "served", "suite", "minutes"}
	wordsOfTests    = []string{"long", "unraced", "story"}
)

// marksOf returns the words of each package's line. It checks that each line stands where the Makefile finds it.
func marksOf(t *testing.T) map[string][]string {
	t.Helper()
	mark := regexp.MustCompile(`(?m)^//test:(package )?(.*)\n(\w* *\w*)`)
	used, marks := map[string]bool{}, map[string][]string{}
	type marked struct{ path, pkg, word string }
	var tests []marked
	for _, f := range readSources(t) {
		for _, m := range mark.FindAllStringSubmatch(readFile(t, f.path), -1) {
			switch ofPackage, words, below := m[1] != "", m[2], m[3]; {
			case !f.test:
				t.Errorf("%s: the Makefile reads //test: only in tests", f.path)
			case ofPackage && !strings.HasPrefix(below, "package "):
				t.Errorf("%s: //test:package %s does not stand above the package clause", f.path, words)
			case ofPackage && marks[f.pkg] != nil:
				t.Errorf("%s: another file of %s has a line //test:package", f.path, f.pkg)
			case ofPackage:
				marks[f.pkg] = strings.Fields(words)
			case !strings.HasPrefix(below, "func Test"):
				t.Errorf("%s: //test:%s does not stand above a test", f.path, words)
			default:
				for word := range strings.SplitSeq(words, ",") {
					tests = append(tests, marked{f.path, f.pkg, word})
				}
			}
		}
	}
	for pkg, words := range marks {
		for _, word := range words {
			kind, _, _ := strings.Cut(word, "=")
			used[kind] = true
			if !slices.Contains(wordsOfPackages, kind) || (kind == "minutes") != regexp.MustCompile(`=[1-9]\d*$`).MatchString(word) {
				t.Errorf("%s: //test:package %s: the Makefile knows only %v", pkg, word, wordsOfPackages)
			}
		}
		if slices.Contains(words, "suite") && (slices.Contains(words, "raced") || !slices.Contains(words, "served")) {
			t.Errorf("%s: a suite starts the program, so it is served, and the detector sees nothing of it", pkg)
		}
	}
	for _, test := range tests {
		used[test.word] = true
		if !slices.Contains(wordsOfTests, test.word) {
			t.Errorf("%s: //test:%s: the Makefile knows only %v", test.path, test.word, wordsOfTests)
		}
		if test.word == "unraced" && !slices.Contains(marks[test.pkg], "raced") {
			t.Errorf("%s: %s is no raced package, so //test:unraced would make its test run twice", test.path, test.pkg)
		}
		if test.word == "story" && !slices.Contains(marks[test.pkg], "suite") {
			t.Errorf("%s: %s is no suite, so //test:story would make its test run twice", test.path, test.pkg)
		}
	}
	for _, word := range slices.Concat(wordsOfPackages, wordsOfTests) {
		if !used[word] {
			t.Errorf("no test has the mark %s", word)
		}
	}
	return marks
}

// The tests that read the repository run apart from all others, so no other test may have the name of one.
func TestNamesOfReadingTests(t *testing.T) {
	packages := map[string][]string{} // by test
	var reading []string              // which make finds like this
	declared := regexp.MustCompile(`(?m)^func (Test\w*)`)
	for _, f := range readSources(t) {
		if !f.test {
			continue
		}
		source := readFile(t, f.path)
		for _, test := range declared.FindAllStringSubmatch(source, -1) {
			packages[test[1]] = append(packages[test[1]], f.pkg)
			if f.pkg == "cmd/headgate" && strings.Contains(source, "root(t)") {
				reading = append(reading, test[1])
			}
		}
	}
	for _, name := range reading {
		if others := packages[name][1:]; len(others) > 0 {
			t.Errorf("%s of cmd/headgate runs apart from all other tests, so %v need another name for theirs", name, others)
		}
	}
}

func TestStartsGoroutines(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		source string
		want   bool
	}{
		"Go":        {"A go statement starts a goroutine.", "go f()", true},
		"Group":     {"The method Go of WaitGroup and errgroup.Group starts a goroutine.", "g.Go(f)", true},
		"Call":      {"A call starts no goroutine.", "f()", false},
		"OtherName": {"A method with another name starts no goroutine.", "g.Gone(f)", false},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), name, "package p\nfunc _() { "+tc.source+" }", 0)
		if err != nil || startsGoroutines(file) != tc.want {
			t.Errorf("%s startsGoroutines(%s) = %t, %v", tc.reason, tc.source, !tc.want, err)
		}
	}
}

// startsGoroutines reports whether a file has a go statement or calls a method named Go.
func startsGoroutines(file *ast.File) (found bool) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			method, ok := n.Fun.(*ast.SelectorExpr)
			found = found || ok && method.Sel.Name == "Go"
		}
		return !found
	})
	return found
}

// locks reports whether a file imports sync or sync/atomic: callers use the package from many goroutines.
func locks(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
		return slices.Contains([]string{"sync", "sync/atomic"}, unquote(spec.Path))
	})
}

// starters are the functions of package fixtures that start a program of bin, as a test writes them: fixtures.StartGitea.
type starters map[string]bool

// startersOfPrograms follows the calls of package fixtures to the functions that run make where a program is missing.
func startersOfPrograms(code []*ast.File) starters {
	found, before := starters{}, -1
	for before < len(found) {
		before = len(found)
		for _, file := range code {
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && found.in(f, "fixtures") {
					found["fixtures."+f.Name.Name] = true
				}
			}
		}
	}
	return found
}

// in reports whether code of a package uses one of the functions, or runs make.
func (s starters) in(code ast.Node, pkg string) (found bool) {
	ast.Inspect(code, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.CallExpr:
			found = found || types.ExprString(n.Fun) == "exec.Command" && types.ExprString(n.Args[0]) == `"make"`
		case *ast.SelectorExpr:
			found = found || s[types.ExprString(n)]
		case *ast.Ident:
			found = found || s[pkg+"."+n.Name]
		}
		return !found
	})
	return found
}

// files are the parsed files of a package.
type files struct {
	code, tests []*ast.File
}

func parsedFiles(t *testing.T) map[string]*files {
	t.Helper()
	packages := map[string]*files{}
	for _, f := range readSources(t) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), f.path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if packages[f.pkg] == nil {
			packages[f.pkg] = &files{}
		}
		if in := packages[f.pkg]; f.test {
			in.tests = append(in.tests, file)
		} else {
			in.code = append(in.code, file)
		}
	}
	return packages
}

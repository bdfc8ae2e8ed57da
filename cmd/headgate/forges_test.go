package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/forge"
)

// forgesMayBeNamed lists the files that may name forges, in addition to each forge's own file: the list of forges, the values of
// the API, the table of their options, and the domains of the tools that read labels.
var forgesMayBeNamed = []string{"reconcile/forge/forges.go", "reconcile/api/v1alpha1/sync.go", "reconcile/target/options.go", "reconcile/impact/keys.go"}

// notForges matches names that only look like forges: URLs, import paths and API groups.
var notForges = regexp.MustCompile(`github\.com[/:]|(\w\.)+github\.com`)

// A forge is one file: to add or change one, no other code has to know its name.
func TestForgeIsOneFile(t *testing.T) {
	names := forgeNames()
	files := map[string]string{} // the files that contain the names of a forge
	for _, f := range readSources(t) {
		if f.forTests() || slices.Contains(forgesMayBeNamed, f.path) {
			continue
		}
		mentions, err := mentionsOf(names, filepath.Join(root(t), filepath.FromSlash(f.path)), nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, line := range mentions {
			at := fmt.Sprintf("%s:%d", f.path, line)
			if path.Dir(f.path) != "reconcile/forge" {
				t.Errorf("%s: it names the forge %s; move what depends on the forge to its file in reconcile/forge", at, name)
				continue
			}
			if files[name] != "" {
				t.Errorf("%s: it names the forge %s, and so does %s; a forge is one file", at, name, files[name])
			}
			files[name] = at
		}
	}
	for _, name := range names {
		if files[name] == "" {
			t.Errorf("no file in reconcile/forge names %s", name)
		}
	}
}

func TestMentions(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		source string
		want   bool
	}{
		"Case":       {"The code depends on one forge.", "switch kind { case KindGitea: }", true},
		"Text":       {"A message names a forge.", `_ = "not on Gitea"`, true},
		"Identifier": {"The name of an identifier contains a forge.", "giteaProves()", true},
		"Comment":    {"A comment may name a forge.", "// unlike Gitea", false},
		"Other":      {"Most code names no forge.", "forge.All()", false},
	} {
		got, err := mentionsOf([]string{"gitea"}, "x.go", "package p\nfunc _() {\n"+tc.source+"\n}")
		if err != nil || (len(got) > 0) != tc.want {
			t.Errorf("%s: %s mentionsOf(%s) = %v, %v", name, tc.reason, tc.source, got, err)
		}
	}
}

// forgeNames returns the names of all forges and the first word of each, in lower case and letters only. A longer name comes before
// the names that it contains.
func forgeNames() []string {
	var names []string
	for _, f := range forge.All() {
		first, _, _ := strings.Cut(string(f.Kind), "-")
		names = append(names, letters(string(f.Kind)), letters(f.Name), letters(f.Also), letters(first))
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	return slices.DeleteFunc(slices.Compact(slices.Clip(unique(names))), func(s string) bool { return s == "" })
}

func unique(names []string) (all []string) {
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// mentionsOf returns, for each name, the first line of a Go file with an identifier or text that contains the name.
func mentionsOf(names []string, file string, source any) (map[string]int, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, 0)
	if err != nil {
		return nil, err
	}
	lines := map[string]int{}
	look := func(text string, at token.Pos) {
		text = letters(notForges.ReplaceAllString(text, ""))
		for _, name := range names {
			if strings.Contains(text, name) {
				text = strings.ReplaceAll(text, name, "")
				if lines[name] == 0 {
					lines[name] = set.Position(at).Line
				}
			}
		}
	}
	ast.Inspect(tree, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Ident:
			look(n.Name, n.Pos())
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil {
				look(text, n.Pos())
			}
		}
		return true
	})
	return lines, nil
}

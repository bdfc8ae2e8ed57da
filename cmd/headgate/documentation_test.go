package main_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/golden"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/guard"
)

// TestREADME checks that the README contains what a new reader needs to decide.
func TestREADME(t *testing.T) {
	const most = 900
	if words := len(strings.Fields(readFile(t, "README.md"))); words > most {
		t.Errorf("README.md has %d words, at most %d are read; move the rest to the README of its directory", words, most)
	}
	for name := range markdown(t) {
		if filepath.Base(name) == "README.md" && strings.Contains(readFile(t, name), "/adr/0") && !strings.Contains(name, "adr/") {
			t.Errorf("%s sends users to an ADR; explain it in place", name)
		}
	}
}

// TestLinksInDocuments proves that every relative link in the documentation leads to a file, and to a heading where it names one.
func TestLinksInDocuments(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	all := markdown(t)
	for name := range all {
		for _, m := range link.FindAllStringSubmatch(outsideCode(readFile(t, name)), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			to := name
			if target != "" {
				to = filepath.Join(filepath.Dir(name), target)
			}
			info, err := os.Stat(filepath.Join(root(t), to))
			if err != nil {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
				continue
			}
			if anchor == "" {
				continue
			}
			if info.IsDir() {
				to = filepath.Join(to, "README.md")
			}
			if !slices.Contains(headings(readFile(t, to)), anchor) {
				t.Errorf("%s links to %s, and %s has no such heading", name, m[1], to)
			}
		}
	}
}

// TestGuardsInSituations compares the example on the page of each guard with the output of a situation. With -update it rewrites the
// example.
func TestGuardsInSituations(t *testing.T) {
	const begin, end = "<!-- begin: example -->\n", "<!-- end: example -->"
	held := regexp.MustCompile(`(?m)^(! hold .+)\n(    .*held by guard "([^"]+)": .+)$`)
	outputs, err := filepath.Glob(filepath.Join(root(t), "fixtures/situations/*/want/sync.txt"))
	if err != nil || len(outputs) == 0 {
		t.Fatalf("no situations: %v", err)
	}
	shown := map[string]string{} // by page
	for _, file := range outputs {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range held.FindAllStringSubmatch(string(data), -1) {
			page := pageOfGuard(m[3])
			if text := fmt.Sprintf("%s\n%s\n", m[1], wrapped(m[2], "      ")); shown[page] == "" || len(text) < len(shown[page]) {
				shown[page] = text
			}
		}
	}
	for page, text := range shown {
		before, rest, _ := strings.Cut(readFile(t, page), begin)
		_, after, ok := strings.Cut(rest, end)
		if !ok {
			t.Errorf("%s lacks %q and %q", page, begin, end)
			continue
		}
		golden.Compare(t, filepath.Join(root(t), page), before+begin+"```text\n"+text+"```\n"+end+after)
	}
	pages, err := filepath.Glob(filepath.Join(root(t), "reconcile/manual/guards/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range pages {
		page := "reconcile/manual/guards/" + filepath.Base(name)
		if strings.Contains(readFile(t, page), begin) && shown[page] == "" {
			t.Errorf("%s has a place for an example, and no situation shows one", page)
		}
	}
}

// pageOfGuard returns the page about a guard.
func pageOfGuard(name string) string {
	return "reconcile/manual/guards/" + strings.ReplaceAll(name, " ", "-") + ".md"
}

// TestGuardsAreDocumented proves that users can look up each guard that a report names, and whether they can approve what it holds.
func TestGuardsAreDocumented(t *testing.T) {
	may := map[string]string{} // whether a user can approve what a guard holds
	for _, of := range (guard.Guarding{}).Guards() {
		switch name := string(of.Name); {
		case of.Phase == draft.Merge, of.Phase == draft.MergeEffects: // reports do not name them
		case of.Approvable:
			may[name] = "yes"
		case may[name] == "":
			may[name] = "no"
		}
	}
	const overview = "reconcile/manual/guards.md"
	table := readFile(t, overview)
	for name, can := range may {
		row := `(?m)^\| \[` + name + `\]\(guards/` + strings.ReplaceAll(name, " ", "-") + `\.md\) \| .* \| ` + can + ` \|$`
		if !regexp.MustCompile(row).MatchString(table) {
			t.Errorf("the guard %s has no row in the table of %s that links to its page and says %s to approvals", name, overview, can)
		}
		sentence := map[string]string{"yes": "You can [approve](../approvals.md) what it holds.", "no": "You cannot approve what it holds."}[can]
		if page := readFile(t, pageOfGuard(name)); !strings.Contains(page, sentence) && !strings.Contains(page, "This guard holds nothing.") {
			t.Errorf("%s does not contain %q", pageOfGuard(name), sentence)
		}
	}
}

// TestSite proves that every page of the site comes from a file that exists, and that each page of the manual is in the menu.
// `make site` checks the rest.
func TestSite(t *testing.T) {
	menu := readFile(t, ".site/pages.mjs")
	for _, m := range regexp.MustCompile(`from: '([^']+\.md)'`).FindAllStringSubmatch(menu, -1) {
		if _, err := os.Stat(filepath.Join(root(t), m[1])); err != nil {
			t.Errorf(".site/pages.mjs: %v", err)
		}
	}
	for name := range markdown(t) {
		if page, is := strings.CutPrefix(name, "reconcile/manual/"); is && !strings.Contains(page, "/") && !strings.Contains(menu, ", '"+strings.TrimSuffix(page, ".md")+"')") {
			t.Errorf("%s is not in the menu of .site/pages.mjs", name)
		}
	}
}

// mostWords is the maximum length of a page. A longer one answers more than one question.
const mostWords = 2500

// TestPagesAreShort proves that every page of the documentation can be read in one sitting.
func TestPagesAreShort(t *testing.T) {
	long := []string{"CHANGELOG.md", "reconcile/api/v1alpha1/README.md"} // lists, of changes and of fields
	for name := range markdown(t) {
		if words := len(strings.Fields(readFile(t, name))); words > mostWords && !slices.Contains(long, name) {
			t.Errorf("%s has %d words, at most %d are read; let each page answer one question", name, words, mostWords)
		}
	}
}

// wrapped breaks a line so that a page shows all of it. indent begins the further lines.
func wrapped(line, indent string) string {
	const width = 84
	var b strings.Builder
	for len(line) > width {
		n := strings.LastIndex(line[:width], " ")
		if n <= len(indent) {
			break
		}
		fmt.Fprintln(&b, line[:n])
		line = indent + line[n+1:]
	}
	b.WriteString(line)
	return b.String()
}

// markdown returns the names of all documentation files below the root, without downloaded or built files.
func markdown(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root(t), path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "node_modules" || d.Name() == ".build" || d.Name() == "testdata" || d.Name() == "situations"):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(name, ".md"):
			all[name] = true
		}
		return nil
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("no documentation: %v", err)
	}
	return all
}

// outsideCode returns the text without code, because brackets in code are not links.
func outsideCode(text string) string {
	text = regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(text, "")
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(text, "code")
}

// headings returns the anchors of the headings of a file, as forges make them.
func headings(text string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		anchor := strings.ToLower(strings.ReplaceAll(m[1], " ", "-"))
		all = append(all, regexp.MustCompile(`[^\p{L}\p{N}_-]`).ReplaceAllString(anchor, ""))
	}
	return all
}

// TestRulesAreDocumented proves that users can look up the rule of every finding.
func TestRulesAreDocumented(t *testing.T) {
	declared := []*regexp.Regexp{regexp.MustCompile(`\b[Rr]ule[A-Z]\w*\s*=\s*"([a-z-]+)"`), regexp.MustCompile(`Rule:\s+"([a-z-]+)",\s*Severity:`)}
	table := readFile(t, "render/findings.md")
	rules := map[string]bool{}
	for _, f := range readSources(t) {
		if f.forTests() {
			continue
		}
		source := readFile(t, f.path)
		for _, pattern := range declared {
			for _, m := range pattern.FindAllStringSubmatch(source, -1) {
				rules[m[1]] = true
				if !strings.Contains(table, "\n| `"+m[1]+"` |") {
					t.Errorf("%s: the rule %s is not in the table of render/findings.md", f.path, m[1])
				}
			}
		}
	}
	if len(rules) < 40 {
		t.Errorf("only %d rules were found", len(rules))
	}
}

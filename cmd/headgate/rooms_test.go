package main_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/golden"
)

const contributing = ".github/CONTRIBUTING.md"

// TestRooms compares the picture of the rooms in CONTRIBUTING with mayImport. With -update it draws the picture.
func TestRooms(t *testing.T) {
	text := readFile(t, contributing)
	drawn := regexp.MustCompile(`(?s)(<!-- rooms -->\n)(.*)(<!-- /rooms -->)`)
	if !drawn.MatchString(text) {
		t.Fatalf("%s has no place between <!-- rooms --> and <!-- /rooms -->", contributing)
	}
	golden.Compare(t, filepath.Join(root(t), contributing), drawn.ReplaceAllString(text, "${1}```text\n"+rooms()+"```\n${3}"))
}

// rooms returns the packages in lines. A package imports only packages in lines below its own.
func rooms() string {
	lines, known := map[int][]string{}, map[string]int{} // by height
	for pkg := range mayImport {
		h := height(pkg, known)
		lines[h] = append(lines[h], pkg)
	}
	var b strings.Builder
	for _, h := range slices.Backward(slices.Sorted(maps.Keys(lines))) {
		slices.Sort(lines[h])
		for _, line := range inLines(lines[h], 110) {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// height returns the length of the longest chain of imports below a package. It adds the heights to known, because chains are many.
// TestArrowsFormNoCycle finds circles.
func height(pkg string, known map[string]int) int {
	if h, ok := known[pkg]; ok {
		return h
	}
	highest := 0
	for other := range mayImport {
		if other != pkg && covers(mayImport[pkg], other) {
			highest = max(highest, height(other, known)+1)
		}
	}
	known[pkg] = highest
	return highest
}

// inLines returns names in lines of limited width. All but the first are indented.
func inLines(names []string, width int) (lines []string) {
	line := ""
	for _, name := range names {
		if line != "" && len(line)+len(name)+2 > width {
			lines, line = append(lines, line), "  "
		}
		if line != "" {
			line += "  "
		}
		line += name
	}
	return append(lines, line)
}

// What CONTRIBUTING tells people to type exists: targets of make, directories and tests.
func TestCommandsOfContributing(t *testing.T) {
	text, makefile := readFile(t, contributing), readFile(t, "Makefile")
	for _, m := range regexp.MustCompile("(?m)(?:^    |`)make ([a-z-]+)").FindAllStringSubmatch(text, -1) {
		if !strings.Contains(makefile, "\n"+m[1]+":") && !regexp.MustCompile(`(?m)^\.PHONY:.* `+m[1]+`\b`).MatchString(makefile) {
			t.Errorf("make %s is no target", m[1])
		}
	}
	commands := regexp.MustCompile(`go (?:test|run|doc|vet) (?:-[^ ]+ )*\./([\w/]+)(?:.* -run '?(Test\w+))?`).FindAllStringSubmatch(text, -1)
	if len(commands) < 5 {
		t.Errorf("found only %d commands of go", len(commands))
	}
	for _, m := range commands {
		sources, err := filepath.Glob(filepath.Join(root(t), m[1], "*.go"))
		if err != nil || len(sources) == 0 {
			t.Errorf("%s: there is no such package", m[0])
		}
		declares := func(file string) bool {
			source, err := os.ReadFile(file)
			return err == nil && regexp.MustCompile(`(?m)^func `+m[2]+`\w*\(`).Match(source)
		}
		if m[2] != "" && !slices.ContainsFunc(sources, declares) {
			t.Errorf("%s: there is no such test", m[0])
		}
	}
	for _, m := range regexp.MustCompile("`((?:reconcile|render|fixtures|cmd|examples)/[\\w./-]*)`").FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(root(t), m[1])); err != nil && !strings.Contains(m[1], "NAME") {
			t.Errorf("%s: %v", contributing, err)
		}
	}
}

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	shownCommand = regexp.MustCompile(`(?m)^(?:\$ |    |  )?(?:bin/)?headgate ([a-z].*)$`)
	quotedWord   = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

// A command in the documentation or in --help must be one that the program takes.
func TestShownCommandsParse(t *testing.T) {
	top := filepath.Join("..", "..")
	texts := map[string]string{}
	err := filepath.WalkDir(top, func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && (e.Name() == ".git" || e.Name() == "bin") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".md") && !strings.Contains(name, "/adr/") {
			data, err := os.ReadFile(name)
			texts[name] = string(data)
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range verbs() {
		texts["--help of "+verb.Name()] = verb.Example
	}
	shown := 0
	for name, text := range texts {
		for _, m := range shownCommand.FindAllStringSubmatch(text, -1) {
			shown++
			if err := parses(wordsOf(m[1])); err != nil {
				t.Errorf("%s shows 'headgate %s': %v", name, m[1], err)
			}
		}
	}
	if shown < 50 {
		t.Errorf("only %d commands were found", shown)
	}
}

// wordsOf splits a command line as a shell does, up to a comment or another program.
func wordsOf(line string) []string {
	words := strings.Fields(quotedWord.ReplaceAllString(line, "quoted"))
	if end := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w[:1], "#|>;&") }); end >= 0 {
		words = words[:end]
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "\\" })
}

// parses returns an error unless the program takes a command line.
func parses(args []string) error {
	root := newRoot(newTerminal(os.Stdout, os.Stderr, func(string) string { return "" }))
	verb, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	verb.InitDefaultHelpFlag()
	if err := verb.ParseFlags(rest); err != nil {
		return wrongFlag(verb, err)
	}
	return verb.ValidateArgs(verb.Flags().Args())
}

// A write that a guard would hold has a line in the audit log, whichever verb makes it: every verb that announces what it changes has the flag.
func TestVerbsThatWriteHaveAnAuditLog(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") || !strings.Contains(string(text), "t.announce") {
			continue
		}
		found++
		if !strings.Contains(string(text), "addAudit(") {
			t.Errorf("%s: a verb that writes to a cluster has no --audit-log", file)
		}
	}
	if found < 5 {
		t.Errorf("only %d files have verbs that write", found)
	}
}

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The workflow runs what a contributor runs, with actions that cannot move, and with no right but to read.
func TestCheckWorkflow(t *testing.T) {
	var w struct {
		Permissions map[string]string
		Jobs        map[string]struct {
			Permissions map[string]string
			Steps       []struct{ Uses, Run string }
		}
	}
	if err := yaml.Unmarshal([]byte(readFile(t, ".github/workflows/check.yaml")), &w); err != nil {
		t.Fatal(err)
	}
	if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
		t.Errorf("the workflow has the rights %v, want contents: read", w.Permissions)
	}
	runs := ""
	for name, job := range w.Jobs {
		if job.Permissions != nil {
			t.Errorf("%s has rights of its own: %v", name, job.Permissions)
		}
		for _, s := range job.Steps {
			runs += s.Run + "\n"
			if s.Uses != "" && !regexp.MustCompile(`@[0-9a-f]{40}$`).MatchString(s.Uses) {
				t.Errorf("%s is not pinned", s.Uses)
			}
		}
	}
	for _, command := range []string{".ci/run", "make site"} {
		if !strings.Contains(runs, command) {
			t.Errorf("no job runs %s", command)
		}
	}
}

// A path that no file has would leave a part of the repository without owners, or without updates.
func TestPathsOfHabits(t *testing.T) {
	exists := func(file, pattern string) {
		name, _, _ := strings.Cut(strings.TrimPrefix(pattern, "/"), "*")
		if _, err := os.Stat(filepath.Join(root(t), name)); err != nil && !strings.HasPrefix(pattern, "**") {
			t.Errorf("%s: %v", file, err)
		}
	}
	for line := range strings.SplitSeq(readFile(t, ".github/CODEOWNERS"), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && !strings.HasPrefix(line, "#") {
			exists("CODEOWNERS", fields[0])
		}
	}
	var renovate struct {
		IgnorePaths  []string
		PackageRules []struct {
			Description    string
			MatchFileNames []string
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, ".github/renovate.json")), &renovate); err != nil {
		t.Fatal(err)
	}
	for _, path := range renovate.IgnorePaths {
		exists("renovate.json", path)
	}
	for _, rule := range renovate.PackageRules {
		if rule.Description == "" {
			t.Errorf("renovate.json has a rule without a reason: %+v", rule)
		}
		for _, path := range rule.MatchFileNames {
			exists("renovate.json", path)
		}
	}
}

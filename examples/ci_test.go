package examples

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// commands returns the lines of a workflow's steps, or of a pipeline's jobs, that run headgate.
func commands(t *testing.T, file string) []string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var parsed map[string]any
	if err := yaml.UnmarshalStrict(raw, &parsed); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var all []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, below := range v {
				walk(below)
			}
		case []any:
			for _, below := range v {
				walk(below)
			}
		case string:
			for line := range strings.SplitSeq(v, "\n") {
				if strings.HasPrefix(line, "headgate ") {
					all = append(all, line)
				}
			}
		}
	}
	walk(parsed)
	slices.Sort(all)
	return all
}

// pullRequest returns a clone whose HEAD widens a policy of origin/main, and the commit of origin/main.
func pullRequest(t *testing.T) (clone, base string) {
	t.Helper()
	clone = t.TempDir()
	git := func(args ...string) string {
		c := exec.Command("git", append([]string{"-C", clone, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	copied := os.DirFS("quickstart/repository")
	production := filepath.Join(clone, "clusters", "production")
	if err := os.CopyFS(production, copied); err != nil {
		t.Fatal(err)
	}
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-qm", "main")
	base = git("rev-parse", "HEAD")
	git("update-ref", "refs/remotes/origin/main", "HEAD")
	wider, err := os.ReadFile("quickstart/demo/policy-wider.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(production, "policies", "storage.yaml"), wider, 0o600); err != nil {
		t.Fatal(err)
	}
	git("commit", "-qam", "wider")
	return clone, base
}

func replaceIn(t *testing.T, file, from, to string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(data), from, to, 1)
	if edited == string(data) {
		t.Fatalf("%s has no %s", file, from)
	}
	if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
}

func basic(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// pinned reports whether a step uses a commit of an action.
func pinned(uses, action string) bool {
	of, commit, _ := strings.Cut(uses, "@")
	return of == action && regexp.MustCompile("^[0-9a-f]{40}$").MatchString(commit)
}

// A tag of an action or of an image can move, and these jobs have a token that may write.
func TestExamplesPinWhatTheyRun(t *testing.T) {
	line := regexp.MustCompile(`(?m)^\s*-? ?(uses|image): (\S+)`)
	digest := regexp.MustCompile(`@([0-9a-f]{40}|sha256:[0-9a-f]{64})$`)
	found := 0
	for _, file := range []string{"github-actions/headgate.yaml", "gitea-actions/headgate.yaml", "renovate/headgate.yaml", actionFile, gitLabFile} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		if m := regexp.MustCompile(`default: (golang:\S+)`).FindStringSubmatch(text); m != nil {
			text = strings.ReplaceAll(text, "$[[ inputs.image ]]", m[1])
		}
		for _, m := range line.FindAllStringSubmatch(text, -1) {
			found++
			if !digest.MatchString(m[2]) {
				t.Errorf("%s: %s is not pinned", file, m[2])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d actions and images are found", found)
	}
}

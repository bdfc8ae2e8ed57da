package examples

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
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

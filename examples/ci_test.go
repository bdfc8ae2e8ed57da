package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"headgate.dev/headgate/fixtures"
)

// commands are the lines of the steps of a workflow, or of the jobs of a pipeline, that run
// headgate.
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

// TestPipelines runs what the example for GitLab runs, in a clone with a merge request, as far as that goes without a forge: what needs
// a token or a cluster reports this, and nothing else. TestGiteaActions and TestGitHubActions run the other examples.
func TestPipelines(t *testing.T) {
	headgate := fixtures.Headgate(t)
	clone, base := pullRequest(t)
	const file = "gitlab-ci/.gitlab-ci.yml"
	says := map[string]string{"-o gitlab": "the environment has no token of the forge", "--pull": "the environment has no token of the forge", "sync": "kubeconfig"} // by a part of a command
	all := commands(t, file)
	if len(all) != len(says) {
		t.Errorf("%s runs %q", file, all)
	}
	for _, line := range all {
		line, _, _ = strings.Cut(line, " > ")
		c := exec.Command("sh", "-c", line)
		c.Dir = clone
		c.Env = []string{
			"PATH=" + filepath.Dir(headgate) + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "HEADGATE_PATH=clusters/production", "HEADGATE_NAME=platform",
			"KUBECONFIG_FILE=/nowhere/kubeconfig", "PULL=7", "CI_PROJECT_URL=https://gitlab.example.org/acme/platform",
			"GITLAB_CI=true", "CI_SERVER_URL=https://gitlab.example.org", "CI_PROJECT_PATH=acme/infra/platform", "CI_MERGE_REQUEST_IID=7", "CI_MERGE_REQUEST_DIFF_BASE_SHA=" + base,
		}
		out, _ := c.CombinedOutput() // what it ends with depends on what it is about
		said := false
		for part, says := range says {
			said = said || strings.Contains(line, part) && strings.Contains(string(out), says)
		}
		if !said {
			t.Errorf("%s: %s:\n%s", file, line, out)
		}
	}
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

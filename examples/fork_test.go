package examples

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
)

// The workflow of a pull request from a fork has a token that can only read. The check follows the verdict all the same, and the
// comment is on the page of the run: a copied workflow that is red for every contributor is switched off.
func TestPreviewOfAFork(t *testing.T) {
	headgate := fixtures.Headgate(t)
	clone, _ := pullRequest(t)
	for name, tc := range map[string]struct {
		reason   string
		fork     int // the repository of the head
		own      string
		exitCode int
	}{
		"Fork":     {"The forge refuses what the token may not do.", 2, "", 0},
		"Own":      {"In the repository itself, a token without rights is a mistake.", 1, "", 2},
		"OwnToken": {"A token that was given for this must be right.", 2, "given", 2},
	} {
		t.Run(name, func(t *testing.T) {
			forge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case req.Method != http.MethodGet:
					w.WriteHeader(http.StatusForbidden)
					fmt.Fprint(w, `{"message": "Resource not accessible by integration"}`)
				case strings.HasSuffix(req.URL.Path, "/pulls/7"):
					fmt.Fprintf(w, `{"number": 7, "head": {"sha": "0123456789012345678901234567890123456789", "repo": {"id": %d}}, "base": {"ref": "main", "repo": {"id": 1}}}`, tc.fork)
				case strings.HasSuffix(req.URL.Path, "/comments"):
					fmt.Fprint(w, `[]`)
				default:
					fmt.Fprint(w, `{}`)
				}
			}))
			defer forge.Close()
			summary := filepath.Join(t.TempDir(), "summary.md")
			c := exec.Command(headgate, "preview", "--comment", "--status")
			c.Dir = clone
			c.Env = []string{
				"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "HEADGATE_PATH=clusters/production", "HEADGATE_NAME=platform", "HEADGATE_FORGE_TOKEN=" + tc.own,
				"GITHUB_ACTIONS=true", "GITHUB_SERVER_URL=" + forge.URL, "GITHUB_REPOSITORY=acme/platform", "GITHUB_REF=refs/pull/7/merge", "GITHUB_BASE_REF=main",
				"GITHUB_TOKEN=read-only", "GITHUB_STEP_SUMMARY=" + summary,
			}
			out, _ := c.CombinedOutput()
			if got := c.ProcessState.ExitCode(); got != tc.exitCode {
				t.Errorf("%s\nexit code %d, want %d:\n%s", tc.reason, got, tc.exitCode, out)
			}
			page, err := os.ReadFile(summary)
			if err != nil || !strings.HasPrefix(string(page), "### 👀 Look: activates 1 definition") {
				t.Errorf("the page of the run does not have the comment: %v\n%s", err, page)
			}
		})
	}
}

package forge

import (
	"net/url"
	"strings"
	"testing"
)

// fileURLs holds a repository of each kind, and the URLs of a file in it.
var fileURLs = map[Kind]struct {
	at        Repository
	want      string // of clusters/prod/a.yaml:31
	wantWhole string // of the file
}{
	KindGitHub:              {Repository{Base: "https://github.com", Owner: "acme", Name: "platform"}, "https://github.com/acme/platform/blob/COMMIT/clusters/prod/a.yaml#L31", "https://github.com/acme/platform/blob/COMMIT/clusters/prod/a.yaml"},
	KindGitLab:              {Repository{Base: "https://gitlab.com", Owner: "acme/team", Name: "platform"}, "https://gitlab.com/acme/team/platform/-/blob/COMMIT/clusters/prod/a.yaml#L31", "https://gitlab.com/acme/team/platform/-/blob/COMMIT/clusters/prod/a.yaml"},
	KindGitea:               {Repository{Base: "https://git.example.org/git", Owner: "acme", Name: "platform"}, "https://git.example.org/git/acme/platform/src/commit/COMMIT/clusters/prod/a.yaml#L31", "https://git.example.org/git/acme/platform/src/commit/COMMIT/clusters/prod/a.yaml"},
	KindBitbucket:           {Repository{Base: "https://bitbucket.org", Owner: "acme", Name: "platform"}, "https://bitbucket.org/acme/platform/src/COMMIT/clusters/prod/a.yaml#lines-31", "https://bitbucket.org/acme/platform/src/COMMIT/clusters/prod/a.yaml"},
	KindBitbucketDataCenter: {Repository{Base: "https://git.example.org", Owner: "ACME", Name: "platform"}, "https://git.example.org/projects/ACME/repos/platform/browse/clusters/prod/a.yaml?at=COMMIT#31", "https://git.example.org/projects/ACME/repos/platform/browse/clusters/prod/a.yaml?at=COMMIT"},
	KindAzureDevOps:         {Repository{Base: "https://dev.azure.com", Owner: "acme/my project", Name: "platform"}, "https://dev.azure.com/acme/my%20project/_git/platform?path=/clusters/prod/a.yaml&version=GCCOMMIT&line=31&lineEnd=32&lineStartColumn=1&lineEndColumn=1", "https://dev.azure.com/acme/my%20project/_git/platform?path=/clusters/prod/a.yaml&version=GCCOMMIT"},
}

func TestFileURL(t *testing.T) {
	for kind, tc := range fileURLs {
		at := tc.at
		at.Kind = kind
		for line, want := range map[int]string{31: tc.want, 0: tc.wantWhole} {
			if got := at.fileURL(commit, "clusters/prod/a.yaml", line); got != strings.ReplaceAll(want, "COMMIT", commit) {
				t.Errorf("%s: line %d is at %s", kind, line, got)
			}
		}
		for _, none := range []string{"", "/a", "a//b", "../a", "a/./b", "a/.."} {
			if got := at.fileURL(commit, none, 1); got != "" {
				t.Errorf("%s: %q is at %s", kind, none, got)
			}
		}
		if got := at.fileURL("main", "a", 1); got != "" {
			t.Errorf("%s: without a commit: %s", kind, got)
		}
	}
	if got := (Repository{}).fileURL(commit, "a", 1); got != "" {
		t.Errorf("a forge that is not known: %s", got)
	}
}

// A path comes from a commit. The link must lead to that file and nowhere else.
func FuzzFileURL(f *testing.F) {
	for _, path := range []string{"a b/ü.yaml", "a)](https://evil.example.org", "a?at=x&version=y#z", "a\n\x00%2e%2e/b", "a+b=c&d'e\"f<g>"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		for _, kind := range kinds {
			at := Repository{Kind: kind, Base: "https://git.example.org", Owner: "acme", Name: "platform"}
			got := at.fileURL(commit, path, 3)
			if got == "" {
				continue
			}
			if strings.ContainsAny(got, " ()<>\"\n\\`") {
				t.Errorf("%s: %q ends a link in Markdown", kind, got)
			}
			u, err := url.Parse(got)
			if err != nil || u.Host != "git.example.org" {
				t.Fatalf("%s: %q: %v", kind, got, err)
			}
			if kind == KindAzureDevOps {
				if u.Query().Get("path") != "/"+path {
					t.Errorf("%s: %q is for %q", kind, got, u.Query().Get("path"))
				}
			} else if !strings.HasSuffix(u.Path, "/"+path) {
				t.Errorf("%s: %q is for %q", kind, got, u.Path)
			}
		}
	})
}

func TestRunOfWorkflow(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		want string
	}{
		"GitHub":    {map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "acme/platform", "GITHUB_RUN_ID": "77", "GITHUB_RUN_NUMBER": "5"}, "https://github.com/acme/platform/actions/runs/77"},
		"Gitea":     {map[string]string{"GITEA_ACTIONS": "true", "GITHUB_ACTIONS": "true", "GITHUB_SERVER_URL": "https://git.example.org", "GITHUB_REPOSITORY": "acme/platform", "GITHUB_RUN_ID": "77", "GITHUB_RUN_NUMBER": "5"}, "https://git.example.org/acme/platform/actions/runs/5?by_index=1"},
		"GitLab":    {map[string]string{"GITLAB_CI": "true", "CI_JOB_URL": "https://gitlab.com/acme/platform/-/jobs/7"}, "https://gitlab.com/acme/platform/-/jobs/7"},
		"Bitbucket": {map[string]string{"BITBUCKET_BUILD_NUMBER": "7", "BITBUCKET_REPO_FULL_NAME": "acme/platform"}, "https://bitbucket.org/acme/platform/pipelines/results/7"},
		"Azure":     {map[string]string{"TF_BUILD": "True", "BUILD_REPOSITORY_PROVIDER": "TfsGit", "SYSTEM_COLLECTIONURI": "https://dev.azure.com/acme/", "SYSTEM_TEAMPROJECT": "my project", "BUILD_BUILDID": "7"}, "https://dev.azure.com/acme/my%20project/_build/results?buildId=7"},
		"None":      {nil, ""},
	} {
		if got := WorkflowOf(func(key string) string { return tc.env[key] }).Run; got != tc.want {
			t.Errorf("%s: the run is at %q, want %q", name, got, tc.want)
		}
	}
}

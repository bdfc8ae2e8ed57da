package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/git"
)

// In a CI pipeline, preview detects the pull request and the forge without flags.
func TestWorkflow(t *testing.T) {
	type want struct {
		at          forge.Repository
		pull        int
		base, token string
	}
	cases := map[string]struct {
		env  map[string]string
		want want
	}{
		"GitHub": {
			map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "acme/platform", "GITHUB_REF": "refs/pull/7/merge", "GITHUB_BASE_REF": "main", "GITHUB_TOKEN": "t"},
			want{forge.Repository{Kind: forge.KindGitHub, Base: "https://github.com", Owner: "acme", Name: "platform"}, 7, "origin/main", "t"},
		},
		"Forgejo": {
			map[string]string{"GITHUB_ACTIONS": "true", "FORGEJO_ACTIONS": "true", "GITHUB_SERVER_URL": "https://git.example.org/forge", "GITHUB_REPOSITORY": "acme/platform", "GITHUB_REF": "refs/pull/7/head", "GITHUB_TOKEN": "t", "GITEA_TOKEN": "u"},
			want{forge.Repository{Kind: forge.KindGitea, Base: "https://git.example.org/forge", Owner: "acme", Name: "platform"}, 7, "", "u"},
		},
		"GitLab": {
			map[string]string{
				"GITLAB_CI": "true", "CI_SERVER_URL": "https://example.org/gitlab", "CI_PROJECT_PATH": "acme/infra/platform", "CI_MERGE_REQUEST_IID": "7",
				"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_MERGE_REQUEST_DIFF_BASE_SHA": "0123456789abcdef", "GITLAB_TOKEN": "t",
			},
			want{forge.Repository{Kind: forge.KindGitLab, Base: "https://example.org/gitlab", Owner: "acme/infra", Name: "platform"}, 7, "0123456789abcdef", "t"},
		},
		"Bitbucket": {
			map[string]string{"BITBUCKET_BUILD_NUMBER": "3", "BITBUCKET_REPO_FULL_NAME": "acme/platform", "BITBUCKET_PR_ID": "7", "BITBUCKET_PR_DESTINATION_BRANCH": "main", "BITBUCKET_TOKEN": "t"},
			want{forge.Repository{Kind: forge.KindBitbucket, Base: "https://bitbucket.org", Owner: "acme", Name: "platform"}, 7, "origin/main", "t"},
		},
		"AzureDevOps": {
			map[string]string{
				"TF_BUILD": "True", "BUILD_REPOSITORY_PROVIDER": "TfsGit", "SYSTEM_COLLECTIONURI": "https://dev.azure.com/acme/", "SYSTEM_TEAMPROJECT": "My Shop", "BUILD_REPOSITORY_NAME": "platform",
				"SYSTEM_PULLREQUEST_PULLREQUESTID": "7", "SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main", "SYSTEM_ACCESSTOKEN": "t",
			},
			want{forge.Repository{Kind: forge.KindAzureDevOps, Base: "https://dev.azure.com", Owner: "acme/My Shop", Name: "platform"}, 7, "origin/main", "t"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := forge.WorkflowOf(func(name string) string { return tc.env[name] })
			at, err := (&forgeFlags{kind: oneOf("auto")}).repository(w, &git.Repository{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, want{at, w.Pull, w.Base, w.Token}, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("the pull request (-want +got):\n%s", diff)
			}
		})
	}
}

// Flags take precedence over the URL and the pipeline.
func TestForgeIsSaid(t *testing.T) {
	in := forge.Workflow{Kind: forge.KindGitLab, Server: "https://git.example.org", Name: "acme/infra/platform"}
	cases := map[string]struct {
		kind, repo string
		want       forge.Repository // the zero value means that an error is expected
	}{
		"Pipeline":  {"auto", "https://git.example.org/other/infra/platform", forge.Repository{Kind: forge.KindGitLab, Base: "https://git.example.org", Owner: "other/infra", Name: "platform"}},
		"URL":       {"auto", "https://github.com/acme/platform", forge.Repository{Kind: forge.KindGitHub, Base: "https://github.com", Owner: "acme", Name: "platform"}},
		"Flag":      {"gitea", "https://gitlab.example.org/git/acme/platform", forge.Repository{Kind: forge.KindGitea, Base: "https://gitlab.example.org/git", Owner: "acme", Name: "platform"}},
		"FlagAlone": {"gitea", "", forge.Repository{Kind: forge.KindGitea, Base: "https://git.example.org/acme", Owner: "infra", Name: "platform"}},
		"Path":      {"auto", "/srv/git/platform", forge.Repository{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := (&forgeFlags{kind: choice{value: tc.kind}, repo: tc.repo}).repository(in, &git.Repository{})
			if err != nil {
				got = forge.Repository{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("repository(...) (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

package forge

import (
	"os"
	"path/filepath"
	"testing"
)

// The workflow of a fork has no secrets. Only the event reveals why the token is missing.
func TestForkOfWorkflow(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, event, ref string
		want               bool
	}{
		"Own":       {"The pull request is between branches of the same repository.", `{"pull_request": {"head": {"repo": {"id": 1}}, "base": {"repo": {"id": 1}}}}`, "refs/pull/7/merge", false},
		"Fork":      {"The head of the pull request is in another repository.", `{"pull_request": {"head": {"repo": {"id": 2}}, "base": {"repo": {"id": 1}}}}`, "refs/pull/7/merge", true},
		"Gone":      {"The fork of the pull request was deleted.", `{"pull_request": {"head": {"repo": null}, "base": {"repo": {"id": 1}}}}`, "refs/pull/7/head", true},
		"Push":      {"The event is not about a pull request.", `{"ref": "refs/heads/main"}`, "refs/heads/main", false},
		"Comment":   {"A job for a comment runs on the default branch, with secrets.", `{"issue": {"number": 7}, "is_pull": true}`, "refs/heads/main", false},
		"Malformed": {"An event that cannot be read does not count as a fork, so a missing token stays an error.", `{"pull_request": `, "refs/pull/7/merge", false},
		"OtherType": {"An event with a wrong type does not count as a fork, so a missing token stays an error.", `{"pull_request": {"head": [], "base": {"repo": {"id": 1}}}}`, "refs/pull/7/merge", false},
		"Empty":     {"An event without a head does not count as a fork, so a missing token stays an error.", `{"pull_request": {}}`, "refs/pull/7/merge", false},
		"NoFile":    {"An absent event does not count as a fork, so a missing token stays an error.", "", "refs/pull/7/merge", false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "event.json")
			if tc.event != "" {
				if err := os.WriteFile(file, []byte(tc.event), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, more := range []string{"", "GITEA_ACTIONS"} {
				env := map[string]string{"GITHUB_ACTIONS": "true", more: "true", "GITHUB_EVENT_PATH": file, "GITHUB_REF": tc.ref}
				if got := WorkflowOf(func(key string) string { return env[key] }).Fork; got != tc.want {
					t.Errorf("%s\nFork is %t, want %t", tc.reason, got, tc.want)
				}
			}
		})
	}
}

// A late or repeated run must not post its verdict on a commit that it did not see.
func TestSuperseded(t *testing.T) {
	const older, newer, merge = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222", "3333333333333333333333333333333333333333"
	event := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(event, []byte(`{"pull_request": {"head": {"sha": "`+older+`", "repo": {"id": 1}}, "base": {"repo": {"id": 1}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string]map[string]string{
		"GitHub":       {"GITHUB_ACTIONS": "true", "GITHUB_REF": "refs/pull/7/merge", "GITHUB_EVENT_PATH": event},
		"Gitea":        {"GITHUB_ACTIONS": "true", "GITEA_ACTIONS": "true", "GITHUB_REF": "refs/pull/7/head", "GITHUB_EVENT_PATH": event},
		"GitLab":       {"GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "7", "CI_COMMIT_SHA": older},
		"GitLabMerged": {"GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "7", "CI_COMMIT_SHA": merge, "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": older},
		"Bitbucket":    {"BITBUCKET_BUILD_NUMBER": "3", "BITBUCKET_PR_ID": "7", "BITBUCKET_COMMIT": older[:12]},
		"AzureDevOps":  {"TF_BUILD": "True", "BUILD_REPOSITORY_PROVIDER": "TfsGit", "SYSTEM_PULLREQUEST_PULLREQUESTID": "7", "SYSTEM_PULLREQUEST_SOURCECOMMITID": older},
	} {
		w := WorkflowOf(func(key string) string { return env[key] })
		for _, tc := range []struct {
			reason, now, clone string
			want               bool
		}{
			{"The head is unchanged: the forge made a merge commit of it for the run.", older, merge, false},
			{"A newer commit was pushed after the run began.", newer, merge, true},
			{"An old run must not report on a new commit whose message begins like the old one.", newer, older, true},
			{"The run pushed a commit and checked it out.", newer, newer, false},
		} {
			if got := w.Superseded(Pull{Number: 7, Head: tc.now}, tc.clone); got != tc.want {
				t.Errorf("%s: %s\nSuperseded(%.4s, %.4s) = %t, want %t", name, tc.reason, tc.now, tc.clone, got, tc.want)
			}
		}
	}
	for name, env := range map[string]map[string]string{
		"GitHub":      {"GITHUB_ACTIONS": "true", "GITHUB_REF": "refs/pull/7/merge", "GITHUB_BASE_REF": "main"},
		"GitLab":      {"GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "7", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"},
		"Bitbucket":   {"BITBUCKET_BUILD_NUMBER": "3", "BITBUCKET_PR_ID": "7", "BITBUCKET_PR_DESTINATION_BRANCH": "main"},
		"AzureDevOps": {"TF_BUILD": "True", "BUILD_REPOSITORY_PROVIDER": "TfsGit", "SYSTEM_PULLREQUEST_PULLREQUESTID": "7", "SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main"},
	} {
		w := WorkflowOf(func(key string) string { return env[key] })
		if w.Superseded(Pull{Number: 7, Head: older, Target: "main"}, older) || !w.Superseded(Pull{Number: 7, Head: older, Target: "staging"}, older) {
			t.Errorf("%s: a run for another target than that of the pull request must not report", name)
		}
	}
	if (Workflow{}).Superseded(Pull{Head: newer}, older) {
		t.Error("outside of a run, the user decides")
	}
}

// The event of a merge queue names the commit to preview, its base and its target.
func TestQueuedWorkflow(t *testing.T) {
	const head, base = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	for name, tc := range map[string]struct {
		event string
		want  Workflow
	}{
		"Queued": {
			`{"merge_group": {"head_sha": "` + head + `", "head_ref": "refs/heads/gh-readonly-queue/release/1/pr-7-` + base + `", "base_sha": "` + base + `", "base_ref": "refs/heads/release/1"}}`,
			Workflow{Kind: KindGitHub, Queued: true, Pull: 7, Head: head, Base: base, Target: "release/1"},
		},
		"OtherName": {`{"merge_group": {"head_sha": "` + head + `", "head_ref": "refs/heads/pr-7", "base_sha": "` + base + `", "base_ref": "refs/heads/main"}}`, Workflow{Kind: KindGitHub, Queued: true, Head: head, Base: base, Target: "main"}},
		"NoCommit":  {`{"merge_group": {"head_sha": "main"}}`, Workflow{Kind: KindGitHub}},
		"Malformed": {`{"merge_group": [`, Workflow{Kind: KindGitHub}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "event.json")
			if err := os.WriteFile(file, []byte(tc.event), 0o600); err != nil {
				t.Fatal(err)
			}
			env := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "merge_group", "GITHUB_EVENT_PATH": file}
			if got := WorkflowOf(func(key string) string { return env[key] }); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// The pipeline of a merge train is for a commit that is no head of a merge request. A merged results pipeline is for such a head.
func TestTrainWorkflow(t *testing.T) {
	const source, train, ahead = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222", "3333333333333333333333333333333333333333"
	env := map[string]string{
		"GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "7", "CI_COMMIT_SHA": train, "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": source,
		"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_MERGE_REQUEST_TARGET_BRANCH_SHA": ahead,
	}
	for event, want := range map[string]Workflow{
		"merge_train":   {Kind: KindGitLab, Pull: 7, Queued: true, Head: train, Base: ahead, Target: "main"},
		"merged_result": {Kind: KindGitLab, Pull: 7, Head: source, Base: "origin/main", Target: "main"},
		"detached":      {Kind: KindGitLab, Pull: 7, Head: source, Base: "origin/main", Target: "main"},
	} {
		env["CI_MERGE_REQUEST_EVENT_TYPE"] = event
		if got := WorkflowOf(func(key string) string { return env[key] }); got != want {
			t.Errorf("%s: got %+v, want %+v", event, got, want)
		}
	}
}

// After a merge, only the event names the pull request that was closed.
func TestClosedWorkflow(t *testing.T) {
	for event, want := range map[string]Workflow{
		`{"action": "closed", "number": 7}`:   {Kind: KindGitHub, Pull: 7, Closed: true, Base: "origin/main", Target: "main"},
		`{"action": "reopened", "number": 7}`: {Kind: KindGitHub, Base: "origin/main", Target: "main"},
		`{"action": "closed"}`:                {Kind: KindGitHub, Base: "origin/main", Target: "main"},
		`{"action": `:                         {Kind: KindGitHub, Base: "origin/main", Target: "main"},
	} {
		file := filepath.Join(t.TempDir(), "event.json")
		if err := os.WriteFile(file, []byte(event), 0o600); err != nil {
			t.Fatal(err)
		}
		env := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": file, "GITHUB_REF": "refs/heads/main", "GITHUB_BASE_REF": "main"}
		if got := WorkflowOf(func(key string) string { return env[key] }); got != want {
			t.Errorf("%s: got %+v, want %+v", event, got, want)
		}
	}
}

package examples

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	lab "gitlab.com/gitlab-org/api/client-go/v2"
	"go.yaml.in/yaml/v3"

	"headgate.dev/headgate/fixtures"
)

// A pipelineJob is a GitLab job with all fields that the example uses.
type pipelineJob struct {
	Image         string
	Extends       string
	Before        []string `yaml:"before_script"`
	Rules         []struct{ If string }
	ResourceGroup string `yaml:"resource_group"`
	Variables     map[string]string
	Script        []string
	Cache         struct {
		Key   string
		Paths []string
	}
	Artifacts struct {
		When    string
		Reports struct{ CodeQuality string }
	}
}

// readPipeline reads the template, with some of its inputs, and rejects unknown fields.
func readPipeline(t *testing.T, with map[string]string) map[string]pipelineJob {
	t.Helper()
	data, err := os.ReadFile(gitLabFile)
	if err != nil {
		t.Fatal(err)
	}
	header, body, two := strings.Cut(string(data), "\n---\n")
	if !two {
		t.Fatal("the template has no header")
	}
	var head struct {
		Spec struct {
			Inputs map[string]struct{ Description, Default string }
		}
	}
	decode := func(text string, into any) {
		t.Helper()
		decoder := yaml.NewDecoder(strings.NewReader(text))
		decoder.KnownFields(true)
		if err := decoder.Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	decode(header, &head)
	inputs := map[string]string{}
	for name, input := range head.Spec.Inputs {
		inputs[name] = input.Default
	}
	for name, value := range with {
		if _, has := inputs[name]; !has {
			t.Fatalf("the template has no input %s", name)
		}
		inputs[name] = value
	}
	for name, value := range inputs {
		body = strings.ReplaceAll(body, "$[[ inputs."+name+" ]]", value)
	}
	if strings.Contains(body, "$[[") {
		t.Errorf("an input does not exist:\n%s", body)
	}
	var jobs map[string]pipelineJob
	decode(body, &jobs)
	return jobs
}

// rules maps each rule of the example to a function that evaluates it.
var rules = map[string]func(ci map[string]string) bool{
	`$CI_PIPELINE_SOURCE == "merge_request_event"`: func(ci map[string]string) bool { return ci["CI_PIPELINE_SOURCE"] == "merge_request_event" },
	`$CI_PIPELINE_SOURCE == "trigger" && $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH`: func(ci map[string]string) bool {
		return ci["CI_PIPELINE_SOURCE"] == "trigger" && ci["CI_COMMIT_BRANCH"] == ci["CI_DEFAULT_BRANCH"]
	},
	`$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH && $CI_PIPELINE_SOURCE != "trigger"`: func(ci map[string]string) bool {
		return ci["CI_COMMIT_BRANCH"] == ci["CI_DEFAULT_BRANCH"] && ci["CI_PIPELINE_SOURCE"] != "trigger"
	},
}

// pipeline runs the jobs of the example in new directories, like GitLab's runner with the variables of a pipeline. It returns the
// exit code of each job whose rules match, the output, and the Code Quality file.
func pipeline(t *testing.T, headgate, url string, ci map[string]string) (codes map[string]int, output, quality string) {
	t.Helper()
	jobs := readPipeline(t, nil)
	codes = map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(jobs)) {
		job := jobs[name]
		if strings.HasPrefix(name, ".") {
			continue
		}
		if len(job.Rules) != 1 || rules[job.Rules[0].If] == nil {
			t.Fatalf("%s: the test cannot evaluate %+v", name, job.Rules)
		}
		if !rules[job.Rules[0].If](ci) {
			continue
		}
		dir, env := t.TempDir(), map[string]string{"PATH": headgate + ":" + os.Getenv("PATH"), "HOME": t.TempDir()}
		maps.Copy(env, ci)
		env["CI_PROJECT_DIR"] = dir
		for _, of := range []map[string]string{jobs[job.Extends].Variables, job.Variables} {
			for key, value := range of {
				env[key] = os.Expand(value, func(name string) string { return env[name] })
			}
		}
		switch {
		case env["GIT_STRATEGY"] == "none":
		case env["GIT_STRATEGY"] == "" && env["GIT_DEPTH"] == "0":
			for _, args := range [][]string{{"init", "-q"}, {"fetch", "-q", url + "/acme/platform.git", "+" + ci["CI_COMMIT_SHA"] + ":refs/pipelines/5"}, {"checkout", "-q", "--detach", "refs/pipelines/5"}} {
				c := exec.CommandContext(t.Context(), "git", append([]string{"-c", "http.extraheader=Authorization: Basic " + basic("oauth2", "project-token")}, args...)...)
				c.Dir = dir
				if out, err := c.CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
			}
		default:
			t.Fatalf("%s: the test knows no checkout with %q and %q", name, env["GIT_STRATEGY"], env["GIT_DEPTH"])
		}
		// PATH already holds the program under test, which TestAction installs.
		c := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", strings.Join(job.Script, "\n"))
		c.Dir = dir
		for _, key := range slices.Sorted(maps.Keys(env)) {
			c.Env = append(c.Env, key+"="+env[key])
		}
		out, err := c.CombinedOutput()
		if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
			t.Fatal(err)
		}
		codes[name], output = c.ProcessState.ExitCode(), output+string(out)
		if report := job.Artifacts.Reports.CodeQuality; report != "" {
			data, err := os.ReadFile(filepath.Join(dir, report))
			if err != nil {
				t.Error(err)
			}
			quality = string(data)
		}
	}
	return codes, output, quality
}

// gitLab creates recorded answers of GitLab with the types of its Go client.
type gitLab struct {
	platform

	number string
}

func (g gitLab) at(method, below string) string {
	return method + " /api/v4/projects/acme%2Fplatform" + below
}

func (g gitLab) request() exchange {
	return exchange{request: g.at("GET", "/merge_requests/"+g.number), answer: lab.MergeRequest{BasicMergeRequest: lab.BasicMergeRequest{
		IID: int64(g.number[0] - '0'), ProjectID: 1, SourceProjectID: 1, TargetProjectID: 1, SHA: g.head[g.number], TargetBranch: "main", State: "opened", Author: &lab.BasicUser{ID: 1, Username: "alice"},
	}}}
}

func (g gitLab) status(state string, at time.Time) *lab.CommitStatus {
	return &lab.CommitStatus{ID: at.Unix(), SHA: g.head[g.number], Status: state, Name: "headgate/platform/preview", Description: "of an earlier run; into main", CreatedAt: &at, Author: lab.Author{ID: 9, Username: "project_1_bot"}}
}

// statuses returns the exchange that lists the newest status of each name, or all statuses.
func (g gitLab) statuses(all bool, of ...*lab.CommitStatus) exchange {
	query := "?"
	if all {
		query = "?all=true&"
	}
	return exchange{request: g.at("GET", "/repository/commits/"+g.head[g.number]+"/statuses"+query+"page=1&per_page=100"), answer: append([]*lab.CommitStatus{}, of...)}
}

func (g gitLab) posts(state, description string) exchange {
	return exchange{
		request: g.at("POST", "/statuses/"+g.head[g.number]), status: http.StatusCreated, answer: g.status(state, time.Now()),
		sends: fmt.Sprintf(`{"state":%q,"name":"headgate/platform/preview","description":%q}`, state, description),
	}
}

func (g gitLab) notes(of ...*lab.Note) exchange {
	return exchange{request: g.at("GET", "/merge_requests/"+g.number+"/notes?order_by=created_at&page=1&per_page=100&sort=asc"), answer: append([]*lab.Note{}, of...)}
}

// newest returns the exchange that lists notes, newest first.
func (g gitLab) newest(of ...*lab.Note) exchange {
	e := g.notes(of...)
	e.request = strings.Replace(e.request, "sort=asc", "sort=desc", 1)
	return e
}

// versions returns the exchange that lists the pushes to the merge request.
func (g gitLab) versions(at time.Time) exchange {
	return exchange{request: g.at("GET", "/merge_requests/"+g.number+"/versions?per_page=100"), answer: []*lab.MergeRequestDiffVersion{{ID: 1, HeadCommitSHA: g.head[g.number], CreatedAt: &at}}}
}

func (g gitLab) self() exchange {
	return exchange{request: "GET /api/v4/user", answer: lab.User{ID: 9, Username: "project_1_bot", State: "active"}}
}

// lets returns the exchange that reports a user's access level.
func (g gitLab) lets(user int64, level lab.AccessLevelValue) exchange {
	return exchange{request: g.at("GET", fmt.Sprintf("/members/all/%d", user)), answer: lab.ProjectMember{ID: user, State: "active", AccessLevel: level}}
}

// commits returns the exchange that lists the commits of the merge request. Only GraphQL returns the users of their authors.
func (g gitLab) commits() exchange {
	node := map[string]any{"sha": g.head[g.number], "message": "broken", "authorEmail": "alice@example.org", "committerEmail": "alice@example.org", "author": map[string]any{"username": "alice"}}
	all := map[string]any{"pageInfo": map[string]any{"hasNextPage": false, "endCursor": ""}, "nodes": []any{node}}
	return exchange{request: "POST /api/graphql", sends: "commits", answer: map[string]any{"data": map[string]any{"project": map[string]any{"mergeRequest": map[string]any{"commits": all}}}}}
}

func (g gitLab) edits(id int, part string) exchange {
	return exchange{request: g.at("PUT", fmt.Sprintf("/merge_requests/%s/notes/%d", g.number, id)), sends: part, answer: g.note(int64(id), 9, "project_1_bot", part, time.Now())}
}

func (g gitLab) note(id, by int64, name, body string, at time.Time) *lab.Note {
	return &lab.Note{ID: id, Body: body, Author: lab.NoteAuthor{ID: by, Username: name}, CreatedAt: &at, UpdatedAt: &at}
}

func (g gitLab) says(part string) exchange {
	return exchange{request: g.at("POST", "/merge_requests/"+g.number+"/notes"), sends: part, status: http.StatusCreated, answer: g.note(99, 9, "project_1_bot", "", time.Now())}
}

// The example pipeline for GitLab runs line by line, in fresh clones, and sends exactly the recorded requests. A merge request from
// a fork has no token and posts nothing.
func TestGitLabPipeline(t *testing.T) {
	headgate, p := filepath.Dir(fixtures.Headgate(t)), newPlatform(t)
	own, broken := gitLab{p, "7"}, gitLab{p, "8"}
	hourAgo := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	play := func(t *testing.T, record []exchange, ci map[string]string) (codes map[string]int, output, quality string, bodies []string) {
		t.Helper()
		r := replay(t, p.root, "oauth2", "project-token")
		r.record = record
		env := map[string]string{
			"GITLAB_CI": "true", "CI_SERVER_URL": r.URL, "CI_PROJECT_PATH": "acme/platform", "CI_PROJECT_URL": r.URL + "/acme/platform", "CI_DEFAULT_BRANCH": "main", "GITLAB_TOKEN": "project-token",
		}
		maps.Copy(env, ci)
		codes, output, quality = pipeline(t, headgate, r.URL, env)
		if strings.Contains(output+quality, "project-token") {
			t.Errorf("the token is in the log:\n%s", output)
		}
		return codes, output, quality, r.bodies
	}
	of := func(g gitLab, project string) map[string]string {
		return map[string]string{
			"CI_PIPELINE_SOURCE": "merge_request_event", "CI_MERGE_REQUEST_IID": g.number, "CI_COMMIT_SHA": p.head[g.number], "CI_MERGE_REQUEST_DIFF_BASE_SHA": p.main,
			"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_MERGE_REQUEST_PROJECT_ID": "1", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": project,
		}
	}
	payload := func(t *testing.T, text string) map[string]string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "payload")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return map[string]string{"CI_PIPELINE_SOURCE": "trigger", "CI_COMMIT_BRANCH": "main", "CI_COMMIT_SHA": p.main, "TRIGGER_PAYLOAD": file}
	}
	wants := func(t *testing.T, want, got map[string]int, output string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("exit codes (-want +got):\n%s\n%s", diff, output)
		}
	}

	t.Run("Opened", func(t *testing.T) {
		codes, output, quality, _ := play(t, flat(own.request(), own.statuses(false), own.posts("pending", making), own.statuses(true, own.status("pending", hourAgo)), own.notes(), own.request(), own.notes(),
			own.says("### 👀 Look: activates by a wildcard bucketpolicies"), own.posts("success", lookInFull)), of(own, "1"))
		wants(t, map[string]int{"headgate preview": 0}, codes, output)
		if !strings.Contains(quality, `"path": "clusters/production/policies/storage.yaml"`) {
			t.Errorf("Code Quality has no place:\n%s", quality)
		}
	})
	t.Run("Fork", func(t *testing.T) {
		ci := of(own, "2")
		ci["GITLAB_TOKEN"] = ""
		codes, output, _, _ := play(t, nil, ci)
		wants(t, map[string]int{"headgate preview": 0}, codes, output)
		if !strings.Contains(output, "warning: the pipeline of a fork has no token") {
			t.Errorf("the preview of a fork says:\n%s", output)
		}
	})
	t.Run("Merged", func(t *testing.T) {
		// TestGiteaActions applies a merge to a cluster. This test only checks that the job finds its kubeconfig.
		codes, output, _, _ := play(t, nil, map[string]string{"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "main", "CI_COMMIT_SHA": p.main, "KUBECONFIG_FILE": "/nowhere/kubeconfig"})
		wants(t, map[string]int{"headgate sync": 1}, codes, output)
		if !strings.Contains(output, "/nowhere/kubeconfig") {
			t.Errorf("the sync says:\n%s", output)
		}
	})
	t.Run("OtherComment", func(t *testing.T) {
		codes, output, _, _ := play(t, nil, payload(t, `{"object_kind": "note", "issue": {"iid": 3}, "object_attributes": {"note": "/headgate approve"}}`))
		wants(t, map[string]int{"headgate commands": 0}, codes, output)
	})
	t.Run("Approved", func(t *testing.T) {
		codes, output, _, bodies := play(t, flat(broken.request(), broken.statuses(false), broken.posts("pending", making), broken.statuses(true, broken.status("pending", hourAgo)), broken.notes(), broken.request(), broken.notes(),
			broken.says("### ⛔ Blocked: breaks 1 schema"), broken.posts("failed", "Blocked: breaks 1 schema; 3 active, 6 inactive; into main")), of(broken, "1"))
		wants(t, map[string]int{"headgate preview": 1}, codes, output)
		command := regexp.MustCompile("/headgate approve [0-9a-f]{32} [0-9a-f]{7}").FindString(strings.Join(bodies, ""))
		if command == "" {
			t.Fatalf("the comment shows no command: %q", bodies)
		}
		shown := broken.note(5, 9, "project_1_bot", "<!-- headgate/platform -->\n<!-- headgate/verdict/blocked -->\n### Blocked\n"+command, hourAgo)
		asked := broken.note(6, 2, "bob", command, hourAgo.Add(time.Minute))
		heard := []exchange{broken.statuses(true, broken.status("failed", hourAgo)), broken.versions(hourAgo.Add(-time.Hour)), broken.newest(asked, shown), broken.self(), broken.lets(2, lab.DeveloperPermissions)}
		codes, output, _, _ = play(t, flat(broken.request(), heard, broken.statuses(false, broken.status("failed", hourAgo)), broken.statuses(true, broken.status("failed", hourAgo)), broken.versions(hourAgo.Add(-time.Hour)), broken.newest(asked, shown),
			broken.self(), broken.lets(2, lab.DeveloperPermissions), broken.request(), broken.commits(), broken.request(), broken.notes(shown, asked), broken.self(), broken.edits(5, "### 👀 Look: approved by"), broken.posts("success", "Look: approved by @bob, breaks 1 schema; 3 active, 6 inactive; into main"),
			broken.notes(shown, asked), broken.says("Approved: `"), broken.notes(shown, asked)),
			payload(t, `{"object_kind": "note", "merge_request": {"iid": 8}, "object_attributes": {"note": "/headgate approve"}}`))
		wants(t, map[string]int{"headgate commands": 0}, codes, output)

		// Everybody can comment, and a person who may not write causes no preview.
		codes, output, _, _ = play(t, flat(broken.request(), heard[:4], broken.lets(2, lab.ReporterPermissions)), payload(t, `{"object_kind": "note", "merge_request": {"iid": 8}}`))
		wants(t, map[string]int{"headgate commands": 0}, codes, output)
		if !strings.Contains(output, "nothing is previewed or posted") {
			t.Errorf("a command of a person who may not write prints:\n%s", output)
		}
	})
}

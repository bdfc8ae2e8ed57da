package examples

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v88/github"

	"headgate.dev/headgate/fixtures"
)

// An exchange is a request to a forge and its answer.
type exchange struct {
	request string // method and path
	sends   string // a part of the request body
	status  int    // 0 is 200
	answer  any    // in JSON
}

// A recording is a forge that answers recorded requests in order and serves a repository to Git. The test fails if another request
// comes, or if a recorded one does not.
type recording struct {
	*testing.T
	*httptest.Server

	user, token string // credentials of Git
	git         http.Handler

	mu     sync.Mutex
	record []exchange
	bodies []string // that were sent
}

// replay starts a forge. root holds the bare repository acme/platform.git.
func replay(t *testing.T, root, user, token string) *recording {
	t.Helper()
	r := &recording{T: t, user: user, token: token, git: fixtures.GitBackend(t, root)}
	r.Server = httptest.NewServer(r)
	t.Cleanup(func() {
		r.Close()
		for _, e := range r.record {
			t.Errorf("nothing sent %s", e.request)
		}
	})
	return r
}

func (r *recording) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if path, isGit := strings.CutPrefix(req.URL.Path, "/acme/platform"); isGit {
		if user, password, _ := req.BasicAuth(); user != r.user || password != r.token {
			w.Header().Set("WWW-Authenticate", `Basic realm="forge"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		req.URL.Path = "/acme/platform.git" + strings.TrimPrefix(path, ".git") // GitHub accepts URLs with and without .git
		r.git.ServeHTTP(w, req)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.Error(err)
	}
	r.bodies = append(r.bodies, string(body))
	got := req.Method + " " + req.URL.RequestURI()
	if len(r.record) == 0 || r.record[0].request != got || !strings.Contains(string(body), r.record[0].sends) {
		r.Errorf("not in the record here: %s %s\nthe record goes on with %+v", got, body, r.record[:min(1, len(r.record))])
		w.WriteHeader(http.StatusNotFound)
		return
	}
	e := r.record[0]
	r.record = r.record[1:]
	answer, err := json.Marshal(e.answer)
	if err != nil {
		r.Error(err)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(max(e.status, http.StatusOK))
	_, _ = w.Write(answer)
}

// A platform is a bare repository with two pull requests, like one on a forge.
type platform struct {
	root   string
	main   string
	head   map[string]string // by pull request number
	merged map[string]string
}

func newPlatform(t *testing.T) platform {
	t.Helper()
	clone, base := pullRequest(t)
	p := platform{root: t.TempDir(), main: base, head: map[string]string{}, merged: map[string]string{}}
	bare := filepath.Join(p.root, "acme", "platform.git")
	git := func(args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "git", append([]string{"-C", clone, "-c", "user.name=alice", "-c", "user.email=alice@example.org"}, args...)...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "--bare", bare)
	git("branch", "-q", "wider")
	git("checkout", "-q", "-b", "broken", base)
	const buckets = "clusters/production/provider-tidewater/crds/storage.tidewater.m.example.org_buckets.yaml"
	replaceIn(t, filepath.Join(clone, buckets), "keyName:", "keyId:")
	git("commit", "-qam", "broken")
	git("push", "-q", bare, base+":refs/heads/main")
	for number, branch := range map[string]string{"7": "wider", "8": "broken"} {
		p.head[number] = git("rev-parse", branch)
		git("checkout", "-q", "--detach", base)
		git("merge", "-q", "--no-ff", "-m", "merge", branch)
		p.merged[number] = git("rev-parse", "HEAD")
		git("push", "-q", bare, branch, p.head[number]+":refs/pull/"+number+"/head", "HEAD:refs/pull/"+number+"/merge", "HEAD:refs/heads/gh-readonly-queue/main/pr-"+number+"-"+base, p.head[number]+":refs/merge-requests/"+number+"/head", "HEAD:refs/merge-requests/"+number+"/merge")
	}
	return p
}

// gitHub creates recorded answers of GitHub with the types of its Go client.
type gitHub struct {
	platform

	number string
	fork   bool
	queued bool
	closed float64 // the number of a pull request with this head that was merged, which started the run
}

// into returns the exchange that reads the pull request after its author retargeted it.
func (g gitHub) into(branch string) exchange {
	e := g.pull()
	pull, _ := e.answer.(github.PullRequest)
	pull.Base = &github.PullRequestBranch{Ref: &branch, Repo: pull.Base.Repo}
	e.answer = pull
	return e
}

func (g gitHub) pull() exchange {
	from := int64(1)
	if g.fork {
		from = 2
	}
	number := int(g.number[0] - '0')
	return exchange{request: "GET /api/v3/repos/acme/platform/pulls/" + g.number, answer: github.PullRequest{
		Number: &number, State: new("open"), User: &github.User{Login: new("alice"), Type: new("User")},
		Head: &github.PullRequestBranch{SHA: new(g.head[g.number]), Repo: &github.Repository{ID: &from}},
		Base: &github.PullRequestBranch{Ref: new("main"), SHA: &g.main, Repo: &github.Repository{ID: new(int64(1))}},
	}}
}

// combined returns the exchange that lists the newest status of each context.
func (g gitHub) combined(of ...*github.RepoStatus) exchange {
	return exchange{request: "GET /api/v3/repos/acme/platform/commits/" + g.head[g.number] + "/status?page=1&per_page=100", answer: github.CombinedStatus{
		State: new("pending"), SHA: new(g.head[g.number]), TotalCount: new(len(of)), Statuses: of,
	}}
}

func (g gitHub) statuses(of ...*github.RepoStatus) exchange {
	return exchange{request: "GET /api/v3/repos/acme/platform/commits/" + g.head[g.number] + "/statuses?page=1&per_page=100", answer: append([]*github.RepoStatus{}, of...)}
}

func (g gitHub) status(state string, at time.Time) *github.RepoStatus {
	return &github.RepoStatus{
		ID: new(at.Unix()), State: &state, Context: new("headgate/platform/preview"), Description: new("of an earlier run; into main"),
		CreatedAt: &github.Timestamp{Time: at}, Creator: &github.User{Login: new("github-actions[bot]"), Type: new("Bot")},
	}
}

func (g gitHub) posts(state, description string) exchange {
	return exchange{
		request: "POST /api/v3/repos/acme/platform/statuses/" + g.head[g.number], status: http.StatusCreated,
		sends: fmt.Sprintf(`{"state":%q,"description":%q,"context":"headgate/platform/preview"}`, state, description), answer: g.status(state, time.Now()),
	}
}

func (g gitHub) comments(of ...*github.IssueComment) exchange {
	return exchange{request: "GET /api/v3/repos/acme/platform/issues/" + g.number + "/comments?page=1&per_page=100", answer: append([]*github.IssueComment{}, of...)}
}

// commentsSince returns the exchange that lists the comments changed since a time.
func (g gitHub) commentsSince(at time.Time, of ...*github.IssueComment) exchange {
	e := g.comments(of...)
	e.request += "&since=" + url.QueryEscape(at.UTC().Format(time.RFC3339))
	return e
}

// lets returns the exchange that reports bob's permission.
func (g gitHub) lets(permission string) exchange {
	user := "bob"
	return exchange{request: "GET /api/v3/repos/acme/platform/collaborators/" + user + "/permission", answer: github.RepositoryPermissionLevel{Permission: &permission, User: &github.User{Login: &user}}}
}

// commits returns the exchange that lists the commits of the pull request.
func (g gitHub) commits() exchange {
	author := &github.CommitAuthor{Name: new("alice"), Email: new("alice@example.org")}
	return exchange{request: "GET /api/v3/repos/acme/platform/pulls/" + g.number + "/commits?page=1&per_page=100", answer: []*github.RepositoryCommit{{
		SHA: new(g.head[g.number]), Author: &github.User{Login: new("alice")}, Committer: &github.User{Login: new("alice")}, Commit: &github.Commit{Message: new("broken"), Author: author, Committer: author},
	}}}
}

// edits returns the exchange that edits a Headgate comment.
func (g gitHub) edits(id int, part string) exchange {
	return exchange{request: fmt.Sprintf("PATCH /api/v3/repos/acme/platform/issues/comments/%d", id), sends: part, answer: g.comment(int64(id), "github-actions[bot]", part, time.Now())}
}

func (g gitHub) comment(id int64, by, body string, at time.Time) *github.IssueComment {
	kind := "User"
	if strings.HasSuffix(by, "[bot]") {
		kind = "Bot"
	}
	return &github.IssueComment{
		ID: &id, NodeID: new(fmt.Sprintf("IC_%d", id)), Body: &body, User: &github.User{Login: &by, Type: &kind}, CreatedAt: &github.Timestamp{Time: at}, UpdatedAt: &github.Timestamp{Time: at},
	}
}

func (g gitHub) says(part string) exchange {
	return exchange{
		request: "POST /api/v3/repos/acme/platform/issues/" + g.number + "/comments", sends: part,
		status: http.StatusCreated, answer: g.comment(99, "github-actions[bot]", "", time.Now()),
	}
}

// self returns the exchanges that identify the owner of a workflow's token. The owner is not a user, so only GraphQL answers.
func (g gitHub) self() []exchange {
	return []exchange{
		{request: "GET /api/v3/user", status: http.StatusForbidden, answer: github.ErrorResponse{Message: "Resource not accessible by integration"}},
		{request: "POST /api/graphql", sends: "viewer", answer: map[string]any{"data": map[string]any{"viewer": map[string]any{"login": "github-actions[bot]"}}}},
	}
}

const making = "the preview is being made; into main"

// look is the description of pull request 7, and lookInFull where a forge shows more than 140 characters of it.
const (
	lookInFull = "Look: activates by a wildcard bucketpolicies.storage.tidewater.m.example.org, adds *.storage.tidewater.m.example.org to policy storage, activates instances.database.tidewater.m.example.org; 5 active (+2), 4 inactive; into main"

	look = "Look: activates by a wildcard bucketpolicies.storage.tidewater.m.example.org, adds *.storage.tidewater.m.example.org to policy s…; into main"
)

func flat(parts ...any) (all []exchange) {
	for _, p := range parts {
		switch p := p.(type) {
		case exchange:
			all = append(all, p)
		case []exchange:
			all = append(all, p...)
		}
	}
	return all
}

// refuses returns the exchange with a forbidden answer, as for a read-only token.
func refuses(e exchange) exchange {
	e.status, e.answer = http.StatusForbidden, github.ErrorResponse{Message: "Resource not accessible by integration", DocumentationURL: "https://docs.github.com/rest"}
	return e
}

// playing runs the jobs of the example in a test.
type playing struct {
	*testing.T

	headgate string
	example  workflow
}

// play runs the jobs of an event in fresh clones and returns their output and the bodies of their requests. An empty comment makes
// it the event of a pull request. token is a token that a user configured.
func (p playing) play(of gitHub, comment, token string, record []exchange, want map[string]string) (output string, bodies []string) {
	p.Helper()
	r := replay(p.T, of.root, "x-access-token", "workflow-token")
	r.record = record
	from := 1.0
	if of.fork {
		from = 2
	}
	side := func(sha string, id float64) map[string]any {
		return map[string]any{"sha": sha, "repo": map[string]any{"id": id}}
	}
	context := map[string]any{
		"event_name": "pull_request", "ref": "refs/pull/" + of.number + "/merge", "sha": of.merged[of.number], "base_ref": "main", "head_ref": "change",
		"event": map[string]any{"pull_request": map[string]any{"head": side(of.head[of.number], from), "base": side(of.main, 1)}},
	}
	if of.queued {
		context = map[string]any{
			"event_name": "merge_group", "ref": "refs/heads/gh-readonly-queue/main/pr-" + of.number + "-" + of.main, "sha": of.head[of.number],
			"event": map[string]any{"merge_group": map[string]any{
				"head_sha": of.head[of.number], "head_ref": "refs/heads/gh-readonly-queue/main/pr-" + of.number + "-" + of.main, "base_sha": of.main, "base_ref": "refs/heads/main",
			}},
		}
	}
	if of.closed != 0 {
		context["ref"], context["event"] = "refs/heads/main", map[string]any{"action": "closed", "number": of.closed}
	}
	if comment != "" {
		context = map[string]any{
			"event_name": "issue_comment", "ref": "refs/heads/main", "sha": of.main,
			"event": map[string]any{"comment": map[string]any{"body": comment, "user": map[string]any{"login": "bob"}}, "issue": map[string]any{"number": float64(of.number[0] - '0'), "pull_request": map[string]any{}}},
		}
	}
	maps.Copy(context, map[string]any{"token": "workflow-token", "server_url": r.URL, "api_url": r.URL + "/api/v3", "repository": "acme/platform", "run_id": "77", "run_number": "5"})
	run := &runner{T: p.T, headgate: p.headgate, github: context, sets: []string{"HEADGATE_FORGE_TOKEN=" + token}}
	results := map[string]string{"sync": "SKIPPED"}
	for _, job := range []string{"preview", "author", "commands"} {
		result, text := run.job(p.example, job)
		results[job], output = result, output+text
	}
	want["sync"] = "SKIPPED"
	if diff := cmp.Diff(want, results); diff != "" {
		p.Errorf("results (-want +got):\n%s\n%s", diff, output)
	}
	if strings.Contains(output, "workflow-token") {
		p.Errorf("the token is in the log:\n%s", output)
	}
	return output, r.bodies
}

// The example workflow for GitHub runs step by step, in fresh clones of a private repository, and sends exactly the recorded
// requests.
func TestGitHubActions(t *testing.T) {
	headgate, example := filepath.Dir(fixtures.Headgate(t)), readWorkflow(t, "github-actions/headgate.yaml")
	onGitea := readWorkflow(t, giteaExample).Jobs["sync"].Steps
	for i := range onGitea { // which runs an action of another forge by its address
		onGitea[i].Uses = strings.TrimPrefix(onGitea[i].Uses, "https://github.com/")
	}
	if diff := cmp.Diff(onGitea, example.Jobs["sync"].Steps); diff != "" {
		t.Errorf("TestGiteaActions runs the steps of the job sync (-Gitea +GitHub):\n%s", diff)
	}
	p := newPlatform(t)
	own, fork, broken := gitHub{p, "7", false, false, 0}, gitHub{p, "7", true, false, 0}, gitHub{p, "8", false, false, 0}
	hourAgo := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	previewed := map[string]string{"preview": "SUCCESS", "author": "SKIPPED", "commands": "SKIPPED"}
	failed := map[string]string{"preview": "FAILURE", "author": "SKIPPED", "commands": "SKIPPED"}

	t.Run("Opened", func(t *testing.T) {
		record := flat(own.pull(), own.combined(), own.posts("pending", making), own.statuses(own.status("pending", hourAgo)), own.comments(), own.pull(), own.comments(),
			own.says("### 👀 Look: activates by a wildcard bucketpolicies"), own.posts("success", look))
		playing{t, headgate, example}.play(own, "", "", record, previewed)
	})
	t.Run("Worse", func(t *testing.T) {
		// The earlier commit had a better verdict, so a new comment notifies people.
		before := own.comment(5, "github-actions[bot]", "<!-- headgate/platform -->\n<!-- headgate/verdict/safe -->\n### Safe", hourAgo)
		copied := own.comment(4, "mallory", *before.Body, hourAgo)
		after := own.comment(99, "github-actions[bot]", "<!-- headgate/platform -->\n<!-- headgate/verdict/look -->\n### Look", hourAgo.Add(time.Hour))
		record := flat(own.pull(), own.combined(), own.posts("pending", making), own.statuses(own.status("pending", hourAgo)), own.comments(copied, before), own.pull(), own.comments(copied, before), own.self(),
			own.says("### 👀 Look"), own.comments(copied, before, after),
			exchange{request: "POST /api/graphql", sends: `"id":"IC_5"`, answer: map[string]any{"data": map[string]any{"minimizeComment": map[string]any{"minimizedComment": map[string]any{"isMinimized": true}}}}},
			own.edits(5, "headgate/platform/outdated"), own.posts("success", look))
		playing{t, headgate, example}.play(own, "", "", record, previewed)
	})

	// The token of a fork can only read. The check still follows the verdict, because users switch off a workflow that fails for
	// every contributor. In the repository itself, or with a token that a user configured, a read-only token is a mistake.
	readOnly := func(of gitHub) []exchange {
		return flat(of.pull(), of.combined(), refuses(of.posts("pending", making)), of.statuses(), of.comments(), of.pull(), of.comments(), refuses(of.says("### 👀 Look")), of.combined(), refuses(of.posts("success", look)))
	}
	for name, tc := range map[string]struct {
		of    gitHub
		token string
		want  map[string]string
	}{
		"Fork":     {fork, "", previewed},
		"Own":      {own, "", failed},
		"OwnToken": {fork, "given", failed},
	} {
		t.Run(name, func(t *testing.T) {
			output, _ := playing{t, headgate, example}.play(tc.of, "", tc.token, readOnly(tc.of), tc.want)
			if !strings.Contains(output, "### 👀 Look: activates by a wildcard bucketpolicies") {
				t.Errorf("the page of the run does not have the comment:\n%s", output)
			}
		})
	}

	// A comment of another person turns a blocked pull request green.
	t.Run("Approved", func(t *testing.T) {
		play := playing{t, headgate, example}
		const blocked = "Blocked: breaks 1 schema; 3 active, 6 inactive; into main"
		_, bodies := play.play(broken, "", "", flat(broken.pull(), broken.combined(), broken.posts("pending", making), broken.statuses(broken.status("pending", hourAgo)), broken.comments(), broken.pull(), broken.comments(),
			broken.says("### ⛔ Blocked: breaks 1 schema"), broken.posts("failure", blocked)), failed)
		command := regexp.MustCompile("/headgate approve [0-9a-f]{32} [0-9a-f]{7}").FindString(strings.Join(bodies, ""))
		if command == "" {
			t.Fatalf("the comment shows no command: %q", bodies)
		}
		shown := broken.comment(5, "github-actions[bot]", "<!-- headgate/platform -->\n<!-- headgate/verdict/blocked -->\n### Blocked\n"+command, hourAgo)
		asked := broken.comment(6, "bob", command, hourAgo.Add(time.Minute))
		counted := flat(broken.statuses(broken.status("failure", hourAgo)), broken.commentsSince(hourAgo.Add(-10*time.Minute), shown, asked), broken.self(), broken.lets("write"), broken.pull(), broken.commits())
		play.play(broken, command, "", flat(broken.lets("write"), broken.pull(), broken.combined(broken.status("failure", hourAgo)), broken.statuses(broken.status("failure", hourAgo)), broken.commentsSince(hourAgo.Add(-10*time.Minute), shown, asked), broken.self(),
			broken.lets("write"), broken.pull(), broken.commits(), broken.pull(), broken.comments(shown, asked), broken.self(), broken.edits(5, "### 👀 Look: approved by"), broken.posts("success", "Look: approved by @bob, breaks 1 schema; 3 active, 6 inactive; into main"),
			broken.comments(shown, asked), broken.says("Approved: `"), broken.comments(shown, asked)), map[string]string{"preview": "SKIPPED", "author": "SUCCESS", "commands": "SUCCESS"})

		// The commit of a merge queue gets the status, and the approvals of its pull request count for it.
		queued := broken
		queued.queued, queued.head = true, map[string]string{"8": broken.merged["8"]}
		play.play(queued, "", "", flat(queued.combined(), queued.posts("pending", making), broken.pull(), counted, queued.posts("success", "Look: approved by @bob, breaks 1 schema; 3 active, 6 inactive; into main")), previewed)
		play.play(queued, "", "", flat(queued.combined(), queued.posts("pending", making), broken.pull(), broken.statuses(), broken.comments(), queued.posts("failure", blocked)), failed)
	})

	// The status belongs to a commit and a target. The author of a pull request chooses the target, also while a preview is made.
	t.Run("OtherTarget", func(t *testing.T) {
		record := flat(own.into("evil"), exchange{request: "GET /api/v3/repos/acme/platform/pulls?direction=desc&page=1&per_page=100&sort=created&state=open", answer: []any{}},
			own.combined(own.status("failure", hourAgo)), own.posts("error", "not previewed: the pull request is into evil, and only those into main are previewed; into evil"))
		playing{t, headgate, example}.play(own, "/headgate preview", "", append([]exchange{own.lets("write")}, record...), map[string]string{"preview": "SKIPPED", "author": "SUCCESS", "commands": "FAILURE"})
	})
	// Only open pull requests decide the status of their head.
	t.Run("Closed", func(t *testing.T) {
		left := own
		left.closed = 9
		merged := own
		merged.number, merged.head = "9", map[string]string{"9": own.head["7"]}
		open := exchange{request: "GET /api/v3/repos/acme/platform/pulls?direction=desc&page=1&per_page=100&sort=created&state=open", answer: []any{own.pull().answer}}
		playing{t, headgate, example}.play(left, "", "", flat(merged.pull(), open, own.combined(own.status("failure", hourAgo)), own.statuses(own.status("failure", hourAgo)), own.commentsSince(hourAgo.Add(-10*time.Minute)), own.pull(), own.comments(),
			own.says("### 👀 Look: activates by a wildcard bucketpolicies"), own.posts("success", look)), previewed)
		open.answer = []any{}
		output, _ := playing{t, headgate, example}.play(left, "", "", flat(merged.pull(), open), previewed)
		if !strings.Contains(output, "no other has its head, so nothing is previewed or posted") {
			t.Errorf("a run for a closed pull request prints:\n%s", output)
		}
	})
	t.Run("Retargeted", func(t *testing.T) {
		output, _ := playing{t, headgate, example}.play(own, "", "", []exchange{own.into("staging")}, previewed)
		if !strings.Contains(output, "into staging now, so nothing is posted") {
			t.Errorf("a run for an earlier target prints:\n%s", output)
		}
	})
	t.Run("RetargetedMeanwhile", func(t *testing.T) {
		output, _ := playing{t, headgate, example}.play(own, "", "", flat(own.pull(), own.combined(own.status("success", hourAgo)), own.statuses(own.status("success", hourAgo)),
			own.commentsSince(hourAgo.Add(-10*time.Minute)), own.into("staging")), previewed)
		if !strings.Contains(output, "another head or target now, so nothing is posted") {
			t.Errorf("a run whose pull request is retargeted meanwhile prints:\n%s", output)
		}
	})
	t.Run("OfAnotherTarget", func(t *testing.T) {
		before := own.status("success", hourAgo)
		before.Description = new("Safe; into staging")
		record := flat(own.pull(), own.combined(before), own.posts("pending", making), own.statuses(before), own.commentsSince(hourAgo.Add(-10*time.Minute)), own.pull(), own.comments(),
			own.says("### 👀 Look: activates by a wildcard bucketpolicies"), own.posts("success", look))
		playing{t, headgate, example}.play(own, "", "", record, previewed)
	})

	// Everybody can comment, and no job with a token that can write starts for a person who may not write.
	for name, answer := range map[string]exchange{
		"Reader":   broken.lets("read"),
		"Stranger": broken.lets("none"),
		"Unknown":  {request: broken.lets("").request, status: http.StatusNotFound, answer: github.ErrorResponse{Message: "Not Found"}},
	} {
		t.Run(name, func(t *testing.T) {
			none := map[string]string{"preview": "SKIPPED", "author": "SUCCESS", "commands": "SKIPPED"}
			playing{t, headgate, example}.play(broken, "/headgate preview", "", []exchange{answer}, none)
		})
	}
	if author := example.Jobs["author"]; author.Permissions == nil || len(author.Permissions) > 0 || example.Jobs["commands"].Needs != "author" {
		t.Errorf("the job author has the permissions %v, and commands needs %q", author.Permissions, example.Jobs["commands"].Needs)
	}
}

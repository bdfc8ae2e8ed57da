package examples

import (
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

	"headgate.dev/headgate/fixtures"
)

// A gitea is a real Gitea with a repository whose Actions run the example.
type gitea struct {
	*testing.T
	*fixtures.Gitea

	runner   *fixtures.Runner
	headgate string
	cluster  string // kubeconfig
	people   map[string]string
	last     string // output of the last job
	run      string // ID of the last run
}

const giteaExample = "gitea-actions/headgate.yaml"

// workflowPath is the path to which the example is copied.
const workflowPath = ".gitea/workflows/headgate.yaml"

func newGitea(t *testing.T) *gitea {
	t.Helper()
	g := &gitea{T: t, Gitea: fixtures.StartGitea(t, "actions"), headgate: filepath.Dir(fixtures.Headgate(t)), people: map[string]string{}}
	config, err := os.ReadFile(fixtures.OwnKubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	g.cluster = string(config)
	// README.md asks for these scopes.
	g.people["robot"] = g.User(t, "robot", "write:repository,write:issue,read:user")
	g.Call(t, http.MethodPost, "/user/repos", map[string]any{"name": "platform", "private": true, "default_branch": "main"}, nil)
	for _, person := range []string{"alice", "bob"} {
		g.people[person] = g.User(t, person, "all")
		g.Call(t, http.MethodPut, g.path("/collaborators/"+person), map[string]string{"permission": "write"}, nil)
	}
	g.people["carol"] = g.User(t, "carol", "all")
	g.Call(t, http.MethodPut, g.path("/collaborators/carol"), map[string]string{"permission": "read"}, nil)
	g.Call(t, http.MethodPut, g.path("/collaborators/robot"), map[string]string{"permission": "admin"}, nil)
	for name, value := range map[string]string{"HEADGATE_TOKEN": g.people["robot"], "KUBECONFIG": g.cluster} {
		g.Call(t, http.MethodPut, g.path("/actions/secrets/"+name), map[string]string{"data": value}, nil)
	}
	g.runner = g.NewRunner(t, g.Owner, "platform", "ubuntu-latest")
	return g
}

func (g *gitea) path(below string) string { return "/repos/" + g.Owner + "/platform" + below }

// event runs the three jobs of an event and returns their results by name. Headgate's own comments are events too, but start no
// jobs.
func (g *gitea) event(name string) map[string]string {
	g.Helper()
	results := map[string]string{}
	example := readWorkflow(g.T, giteaExample)
	for len(results) < len(example.Jobs) {
		job := g.runner.Next(g.T)
		is := workflowOf(g.T, job.Workflow)
		own := job.GitHub["actor"] == "robot"
		if !own && job.GitHub["event_name"] != name || len(is.Jobs) != 1 {
			g.Fatalf("the job is of %v, want %s:\n%s", job.GitHub["event_name"], name, job.Workflow)
		}
		id, _ := job.GitHub["job"].(string)
		want := example.Jobs[id]
		want.Name = id // which Gitea adds
		if diff := cmp.Diff(want, is.Jobs[id]); diff != "" {
			g.Errorf("Gitea does not give the job of the example (-want +got):\n%s", diff)
		}
		// Gitea's own runner sets it, too.
		job.GitHub["server_url"] = g.URL
		if !own {
			g.run, _ = job.GitHub["run_id"].(string)
		}
		r := &runner{T: g.T, headgate: g.headgate, github: job.GitHub, secrets: job.Secrets}
		result, output := r.job(is, id)
		g.runner.End(g.T, job, result)
		switch {
		case !own:
			results[id] = result
		case result != "SKIPPED":
			g.Errorf("Headgate's own comment started %s:\n%s", id, output)
		}
		if result != "SKIPPED" {
			g.last = output
		}
		for _, secret := range job.Secrets {
			if strings.Contains(output, secret) {
				g.Errorf("a secret is in the log of %s:\n%s", id, output)
			}
		}
	}
	return results
}

// wants fails unless the given job has the given result and all other jobs of the event were skipped.
func (g *gitea) wants(event, job, result string) {
	g.Helper()
	want := map[string]string{"preview": "SKIPPED", "commands": "SKIPPED", "sync": "SKIPPED"}
	if job != "" {
		want[job] = result
	}
	if diff := cmp.Diff(want, g.event(event)); diff != "" {
		g.Fatalf("results of %s (-want +got):\n%s\n%s", event, diff, g.last)
	}
}

// push commits files to a branch as a user, and returns the commit.
func (g *gitea) push(person, repository, from, branch string, files map[string]string) string {
	g.Helper()
	dir := g.TempDir()
	git := func(args ...string) string {
		g.Helper()
		c := exec.CommandContext(g.Context(), "git", append([]string{"-C", dir, "-c", "user.name=" + person, "-c", "user.email=" + person + "@example.org"}, args...)...)
		out, err := c.CombinedOutput()
		if err != nil {
			g.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	token := g.people[person]
	if person == g.Owner {
		token = g.Token
	}
	url := strings.Replace(g.URL, "://", "://"+person+":"+token+"@", 1) + "/" + repository + ".git"
	if from == "" {
		git("init", "-q", "-b", branch)
	} else {
		git("clone", "-q", "-b", from, url, ".")
		git("checkout", "-q", "-B", branch)
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			g.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			g.Fatal(err)
		}
	}
	git("add", ".")
	git("commit", "-qm", "change")
	git("push", "-q", url, "HEAD:refs/heads/"+branch)
	return git("rev-parse", "HEAD")
}

// status returns the newest Headgate status of a commit.
func (g *gitea) status(commit string) string {
	g.Helper()
	var all []struct {
		ID                           int64
		Context, Status, Description string
		Creator                      struct{ Login string }
	}
	g.Call(g.T, http.MethodGet, g.path("/commits/"+commit+"/statuses?limit=50"), nil, &all)
	newest, says := int64(0), ""
	for _, s := range all {
		if strings.HasPrefix(s.Context, "headgate/") && s.ID > newest {
			newest, says = s.ID, s.Creator.Login+" "+s.Context+" "+s.Status+": "+s.Description
		}
	}
	return says
}

type posted struct {
	Body string
	User struct{ Login string }
}

func (g *gitea) comments(pull string) (all []posted) {
	g.Helper()
	g.Call(g.T, http.MethodGet, g.path("/issues/"+pull+"/comments"), nil, &all)
	return all
}

func (g *gitea) open(person, head string) {
	g.Helper()
	g.CallAs(g.T, g.people[person], http.MethodPost, g.path("/pulls"), map[string]any{"head": head, "base": "main", "title": head}, nil)
}

// says posts a comment on the first pull request as a user. It waits for the next full second first, because Gitea's timestamps have no fractions.
func (g *gitea) says(person, body string) {
	g.Helper()
	for began := time.Now().Unix(); time.Now().Unix() == began; {
		time.Sleep(5 * time.Millisecond)
	}
	g.CallAs(g.T, g.people[person], http.MethodPost, g.path("/issues/1/comments"), map[string]string{"body": body}, nil)
}

// A real Gitea decides which jobs of the example run, and with which event, token and secrets. The repository holds the workflow as
// a user copies it.
//
//test:long
func TestGiteaActions(t *testing.T) {
	g := newGitea(t)
	example, err := os.ReadFile(giteaExample)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{workflowPath: string(example)}
	for name, file := range treeOf(t, "quickstart/repository") {
		files[name] = string(file.Data)
	}
	g.push(g.Owner, g.Owner+"/platform", "", "main", files)
	g.wants("push", "sync", "SUCCESS")
	if !strings.Contains(g.last, "3 active (+3), 6 inactive") {
		t.Errorf("the sync says:\n%s", g.last)
	}

	// A pull request breaks a schema, and Headgate cannot know whether objects use it.
	const buckets = "provider-tidewater/crds/storage.tidewater.m.example.org_buckets.yaml"
	breaking := strings.Replace(files[buckets], "keyName:", "keyId:", 1)
	if breaking == files[buckets] {
		t.Fatal("the buckets have no keyName")
	}
	head := g.push("alice", g.Owner+"/platform", "main", "change", map[string]string{"README.md": "Buckets and more.\n"})
	g.open("alice", "change")
	g.wants("pull_request", "preview", "SUCCESS")
	if want, got := "robot headgate/platform/preview success: Safe", g.status(head); !strings.HasPrefix(got, want) {
		t.Errorf("the status is %q, want %q\n%s", got, want, g.last)
	}
	harmless := g.run
	head = g.push("alice", g.Owner+"/platform", "change", "change", map[string]string{buckets: breaking})
	g.wants("pull_request", "preview", "FAILURE")
	if want, got := "robot headgate/platform/preview failure: Blocked: breaks 1 schema", g.status(head); !strings.HasPrefix(got, want) {
		t.Errorf("the status is %q, want %q\n%s", got, want, g.last)
	}
	all := g.comments("1")
	if len(all) != 1 || all[0].User.Login != "robot" || !strings.Contains(all[0].Body, "### ⛔ Blocked: breaks 1 schema\n") {
		t.Fatalf("comments: %+v", all)
	}

	// The author reruns the workflow of the earlier, harmless commit.
	g.CallAs(t, g.people["alice"], http.MethodPost, g.path("/actions/runs/"+harmless+"/rerun"), nil, nil)
	g.wants("pull_request", "preview", "SUCCESS")
	if got := g.status(head); !strings.HasPrefix(got, "robot headgate/platform/preview failure") || !strings.Contains(g.last, "nothing is posted") {
		t.Errorf("after an old run was repeated, the status is %q:\n%s", got, g.last)
	}
	if diff := cmp.Diff(all, g.comments("1")); diff != "" {
		t.Errorf("comments after an old run was repeated (-want +got):\n%s", diff)
	}

	// Headgate ignores comments that are not commands.
	g.says("bob", "looks odd")
	g.wants("issue_comment", "", "")
	// Everybody who can read can comment, and gets no preview for it.
	before := g.status(head)
	g.says("carol", "/headgate preview")
	g.wants("issue_comment", "commands", "SUCCESS")
	if !strings.Contains(g.last, "nothing is previewed or posted") || g.status(head) != before || len(g.comments("1")) != 3 {
		t.Errorf("a command of a person who may not write: %q, %+v\n%s", g.status(head), g.comments("1"), g.last)
	}
	command := regexp.MustCompile("/headgate approve [0-9a-f]{32} [0-9a-f]{7}").FindString(all[0].Body)
	g.says("alice", command)
	g.wants("issue_comment", "commands", "FAILURE")
	g.says("bob", command)
	g.wants("issue_comment", "commands", "SUCCESS")
	if want, got := "robot headgate/platform/preview success: Look: approved by @bob", g.status(head); !strings.HasPrefix(got, want) {
		t.Errorf("the status is %q, want %q\n%s", got, want, g.last)
	}
	if all := g.comments("1"); !slices.ContainsFunc(all, func(c posted) bool { return c.User.Login == "robot" && strings.Contains(c.Body, "Approved: `") }) {
		t.Errorf("nothing answers bob: %+v", all)
	}

	// A pull request from a fork has no secrets, and its token can only read.
	g.CallAs(t, g.people["bob"], http.MethodPost, g.path("/forks"), map[string]string{}, nil)
	wider, err := os.ReadFile("quickstart/demo/policy-wider.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fork := g.push("bob", "bob/platform", "main", "wider", map[string]string{"policies/storage.yaml": string(wider)})
	g.open("bob", "bob:wider")
	g.wants("pull_request", "preview", "SUCCESS")
	if !strings.Contains(g.last, "5 active (+2)") || !strings.Contains(g.last, "warning: the pipeline of a fork has no token") {
		t.Errorf("the preview of a fork says:\n%s", g.last)
	}
	if got, all := g.status(fork), g.comments("2"); got != "" || len(all) != 0 {
		t.Errorf("on a fork: %q, %+v", got, all)
	}
	worse := g.push("bob", "bob/platform", "wider", "wider", map[string]string{buckets: breaking})
	g.wants("pull_request", "preview", "FAILURE")
	if !strings.Contains(g.last, "exit code 1\n") {
		t.Errorf("the preview of a break from a fork, at %s, prints:\n%s", worse, g.last)
	}

	// The merge is applied. No bucket exists, so nothing holds it.
	for begun, merged := time.Now(), false; !merged; time.Sleep(50 * time.Millisecond) {
		err := g.TryCall(http.MethodPost, g.path("/pulls/1/merge"), map[string]string{"Do": "merge"}, nil) // Gitea first checks whether the merge is possible.
		if merged = err == nil; time.Since(begun) > fixtures.Patience {
			t.Fatal(err)
		}
	}
	g.wants("push", "sync", "SUCCESS")
	if !strings.Contains(g.last, "1 updated") {
		t.Errorf("the sync of the merge says:\n%s", g.last)
	}
}

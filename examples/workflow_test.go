package examples

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A workflow is a GitHub Actions file, also for compatible forges, with all fields that the examples use.
type workflow struct {
	Name string
	On   map[string]any
	Env  map[string]string
	Jobs map[string]struct {
		Name        string
		If          string
		RunsOn      string `yaml:"runs-on"`
		Permissions map[string]string
		Needs       string
		Outputs     map[string]string
		Concurrency string
		Steps       []step
	}
}

type step struct {
	ID, Name, Uses, Run string
	With                map[string]string
	Env                 map[string]string
}

// workflowOf parses a workflow and rejects unknown fields.
func workflowOf(t *testing.T, data []byte) workflow {
	t.Helper()
	var w workflow
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&w); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return w
}

func readWorkflow(t *testing.T, file string) workflow {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return workflowOf(t, data)
}

// A runner runs the jobs of workflows unchanged. It expands expressions like the forge, and replaces two actions:
//
//   - actions/checkout runs the same Git commands as that action,
//   - Headgate's own action only runs its last step, because PATH holds the program under test. TestAction runs the others.
//
// Any other action and any unknown expression or condition ends the test.
type runner struct {
	*testing.T

	headgate string         // directory of the headgate program
	github   map[string]any // the github context
	secrets  map[string]string
	sets     []string          // environment variables that only this forge sets
	outputs  map[string]string // of steps and of jobs that others need, by their dotted names
}

// conditions maps each condition of the examples' jobs to a function that evaluates it.
var conditions = map[string]func(r *runner) bool{
	"github.event_name == 'pull_request'": func(r *runner) bool { return r.value("github.event_name") == "pull_request" },
	"github.event_name == 'pull_request' || github.event_name == 'merge_group'": func(r *runner) bool {
		return slices.Contains([]string{"pull_request", "merge_group"}, r.value("github.event_name"))
	},
	"github.event_name == 'push'": func(r *runner) bool { return r.value("github.event_name") == "push" },
	"github.event_name == 'issue_comment' && github.event.issue.pull_request && startsWith(github.event.comment.body, '/headgate ')": func(r *runner) bool {
		return r.value("github.event_name") == "issue_comment" && r.lookUp("github.event.issue.pull_request") != nil && r.commands()
	},
	"needs.author.outputs.permission == 'admin' || needs.author.outputs.permission == 'write'": func(r *runner) bool {
		return slices.Contains([]string{"admin", "write"}, r.value("needs.author.outputs.permission"))
	},
	"github.event_name == 'issue_comment' && github.event.is_pull && startsWith(github.event.comment.body, '/headgate ')": func(r *runner) bool {
		return r.value("github.event_name") == "issue_comment" && r.lookUp("github.event.is_pull") == true && r.commands()
	},
}

func (r *runner) commands() bool {
	return strings.HasPrefix(r.value("github.event.comment.body"), "/headgate ")
}

// lookUp returns the value at a dotted path, or nil.
func (r *runner) lookUp(name string) any {
	first, rest, _ := strings.Cut(name, ".")
	switch first {
	case "github":
		var at any = r.github
		for key := range strings.SplitSeq(rest, ".") {
			below, _ := at.(map[string]any)
			at = below[key]
		}
		return at
	case "secrets":
		return r.secrets[rest]
	case "steps", "needs":
		return r.outputs[name]
	}
	r.Fatalf("no runner knows %s", name)
	return nil
}

func (r *runner) value(name string) string {
	switch v := r.lookUp(name).(type) {
	case nil:
		return ""
	case float64: // JSON numbers are float64
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprint(v)
	}
}

var (
	expression = regexp.MustCompile(`\$\{\{(.*?)\}\}`)
	dotted     = regexp.MustCompile(`^[a-z]+(\.[A-Za-z_]+)+$`)
)

// expand returns a text with its expressions evaluated.
func (r *runner) expand(text string) string {
	return expression.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.TrimSpace(expression.FindStringSubmatch(found)[1])
		if !dotted.MatchString(name) {
			r.Fatalf("the test cannot evaluate %s", found)
		}
		return r.value(name)
	})
}

// job runs a job in a new directory. It returns the result in Gitea's words, and the output of its steps, including the step
// summary.
func (r *runner) job(w workflow, name string) (result, output string) {
	r.Helper()
	job, has := w.Jobs[name]
	if !has {
		r.Fatalf("there is no job %s", name)
	}
	holds, known := conditions[job.If]
	switch {
	case !known:
		r.Fatalf("job %s: the test cannot evaluate %q", name, job.If)
	case !holds(r):
		return "SKIPPED", ""
	}
	temp := r.TempDir()
	at := map[string]string{"workspace": "", "home": "", "runner": ""}
	for dir := range at {
		at[dir] = filepath.Join(temp, dir)
		if err := os.Mkdir(at[dir], 0o700); err != nil {
			r.Fatal(err)
		}
	}
	event, err := json.Marshal(r.github["event"])
	if err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at["runner"], "event.json"), event, 0o600); err != nil {
		r.Fatal(err)
	}
	env := map[string]string{
		"PATH": r.headgate + ":" + os.Getenv("PATH"), "HOME": at["home"], "CI": "true", "GITHUB_ACTIONS": "true", "RUNNER_TEMP": at["runner"],
		"GITHUB_WORKSPACE": at["workspace"], "GITHUB_EVENT_PATH": filepath.Join(at["runner"], "event.json"), "GITHUB_JOB": name,
		"GITHUB_STEP_SUMMARY": filepath.Join(at["runner"], "summary.md"), "GITHUB_OUTPUT": filepath.Join(at["runner"], "output"),
	}
	for _, key := range []string{"actor", "repository", "repository_owner", "event_name", "sha", "ref", "ref_name", "base_ref", "head_ref", "server_url", "api_url", "run_id", "run_number", "workflow"} {
		env["GITHUB_"+strings.ToUpper(key)] = r.value("github." + key)
	}
	for _, pair := range r.sets {
		key, value, _ := strings.Cut(pair, "=")
		env[key] = value
	}
	var all strings.Builder
	defer func() {
		page, _ := os.ReadFile(env["GITHUB_STEP_SUMMARY"]) // missing if the job wrote no summary
		output = all.String() + string(page)
	}()
	for _, s := range r.steps(job.Steps) {
		switch {
		case pinned(s.Uses, "actions/checkout"):
			r.checkout(s.With, at["workspace"])
		case s.Uses == "" && s.Run != "":
			run := exec.CommandContext(r.Context(), "bash", "-e", "-c", r.expand(s.Run))
			run.Dir = at["workspace"]
			own := maps.Clone(env)
			for _, more := range []map[string]string{w.Env, s.Env} {
				for key, value := range more {
					own[key] = r.expand(value)
				}
			}
			for _, key := range slices.Sorted(maps.Keys(own)) {
				run.Env = append(run.Env, key+"="+own[key])
			}
			body, err := run.CombinedOutput()
			all.Write(body)
			if failed, ok := errors.AsType[*exec.ExitError](err); ok {
				fmt.Fprintf(&all, "exit code %d\n", failed.ExitCode())
				return "FAILURE", all.String()
			} else if err != nil {
				r.Fatal(err)
			}
			r.keep("steps."+s.ID+".outputs.", env["GITHUB_OUTPUT"])
		default:
			r.Fatalf("job %s: the test knows no step such as %+v", name, s)
		}
	}
	for key, value := range job.Outputs {
		r.outputs["needs."+name+".outputs."+key] = r.expand(value)
	}
	return "SUCCESS", all.String()
}

// steps returns the steps of a job with the last step of Headgate's action in place of the action, if it has arguments to run.
func (r *runner) steps(all []step) []step {
	r.Helper()
	var own []step
	for _, s := range all {
		if !pinned(strings.TrimPrefix(s.Uses, "https://github.com/"), ownAction) {
			own = append(own, s)
			continue
		}
		inputs, steps := readAction(r.T, s.With)
		if inputs["args"] != "" {
			own = append(own, steps[len(steps)-1])
		}
	}
	return own
}

// keep keeps the outputs that a step has written to a file.
func (r *runner) keep(prefix, file string) {
	r.Helper()
	written, err := os.ReadFile(file)
	if err != nil { // the step has none
		return
	}
	if r.outputs == nil {
		r.outputs = map[string]string{}
	}
	for line := range strings.Lines(string(written)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		r.outputs[prefix+key] = value
	}
}

// checkout checks out the commit of the event, like actions/checkout.
func (r *runner) checkout(with map[string]string, dir string) {
	r.Helper()
	for key := range with {
		if key != "fetch-depth" {
			r.Fatalf("the test knows no %s of a checkout", key)
		}
	}
	credentials := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + r.value("github.token")))
	git := func(args ...string) {
		r.Helper()
		c := exec.CommandContext(r.Context(), "git", append([]string{"-c", "http.extraheader=Authorization: basic " + credentials, "-c", "advice.detachedHead=false"}, args...)...)
		c.Dir, c.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_TERMINAL_PROMPT=0"}
		if out, err := c.CombinedOutput(); err != nil {
			r.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	ref, sha := r.value("github.ref"), r.value("github.sha")
	local, isPull := strings.CutPrefix(ref, "refs/pull/")
	local = "refs/remotes/pull/" + local
	if !isPull {
		local = "refs/remotes/origin/" + strings.TrimPrefix(ref, "refs/heads/")
	}
	git("init", "-q")
	git("remote", "add", "origin", strings.TrimSuffix(r.value("github.server_url"), "/")+"/"+r.value("github.repository"))
	switch with["fetch-depth"] {
	case "":
		git("fetch", "-q", "--no-tags", "--depth=1", "origin", "+"+sha+":"+local)
	case "0":
		refs := []string{"fetch", "-q", "--prune", "origin", "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"}
		if isPull {
			refs = append(refs, "+"+sha+":"+local)
		}
		git(refs...)
	default:
		r.Fatalf("the test knows no checkout with %v", with)
	}
	if isPull {
		git("checkout", "-q", "--force", local)
		return
	}
	git("checkout", "-q", "--force", "-B", strings.TrimPrefix(ref, "refs/heads/"), local)
}

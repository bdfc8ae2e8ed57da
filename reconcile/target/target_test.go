//test:package raced served minutes=8
package target

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/fixtures/traffic"
	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) { os.Exit(fixtures.WithControlPlane(m)) }

// decode returns a Sync that is named after the test, because the tests share a control plane.
func decode(t *testing.T, spec string) v1alpha1.Sync {
	t.Helper()
	syncs, err := api.Decode([]byte("apiVersion: headgate.dev/v1alpha1\nkind: Sync\nmetadata: {name: " + syncOf(t) + ", namespace: team}\nspec:\n" + spec))
	if err != nil {
		t.Fatal(err)
	}
	return syncs[0]
}

func syncOf(t *testing.T) string {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	return strings.ToLower(strings.TrimPrefix(name, "Test"))
}

func TestSettings(t *testing.T) {
	team := inventory.Sync{Namespace: "team", Name: syncOf(t)}
	cases := map[string]struct {
		reason string
		spec   string
		want   reconcile.Reconciler
	}{
		"Defaults": {
			reason: "An empty Sync has the same settings as a command line without flags.",
			spec:   "  source: {repo: a}\n",
			want:   reconcile.Reconciler{Sync: team, Options: render.Options{Owner: render.OwnerAuto, Others: catalogue.SkipOthers}, Timeout: 5 * time.Minute},
		},
		"Everything": {
			reason: "Every field of a Sync has an effect.",
			spec: `  source: {repo: a}
  crdOwner: Headgate
  catalogue: Live
  instances: Prune
  others: Refuse
  limits: {fileSize: 1Mi, totalSize: 1G, documents: 7, depth: 9, nodes: 10, totalNodes: 11}
  drift: Report
  maxPrunes: 3
  maxActivations: 5
  timeout: 1m
  crossplaneVersion: v2.1.0
  packages: [{path: vendor/aws, name: provider-aws, safeStart: true}]
  conversion: {strategy: Inject, service: {namespace: a, name: b, port: 1}, caBundle: pem}
`,
			want: reconcile.Reconciler{
				Sync: team, Live: true, Timeout: time.Minute,
				Guarding: guard.Guarding{MaxPrunes: 3, MaxActivations: 5, PruneInstances: true, ReportDrift: true, OwnerIsSet: true},
				Options: render.Options{
					Owner:      render.OwnerHeadgate,
					Others:     catalogue.RefuseOthers,
					Limits:     manifest.Limits{FileBytes: 1 << 20, TotalBytes: 1_000_000_000, Documents: 7, Depth: 9, Nodes: 10, TotalNodes: 11},
					Conversion: render.Conversion{Strategy: render.ConversionInject, Namespace: "a", Service: "b", Port: 1, CABundle: []byte("pem")},

					CrossplaneVersion: "v2.1.0",
					Packages:          []catalogue.Declared{{Path: "vendor/aws", Name: "provider-aws", SafeStart: true}},
				},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := settingsOf(decode(t, tc.spec)).Reconciler
			if diff := cmp.Diff(approval.Given{inventory.OnSync: approval.Typed()}, got.Approvals()); diff != "" {
				t.Errorf("The Sync is read, and approves nothing (-want +got):\n%s", diff)
			}
			got.Approvals = nil
			if len(got.Options.Conversion.CABundle) == 0 {
				got.Options.Conversion.CABundle = nil
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreUnexported(reconcile.Reconciler{})); diff != "" {
				t.Errorf("%s\nsettingsOf(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRepositoryOf(t *testing.T) {
	cases := map[string]struct {
		reason, spec string
		want         forge.Repository // the zero value means that an error is expected
	}{
		"GitHub":     {"The host determines the forge.", "  source: {repo: https://github.com/a/b.git}\n  statuses: {}\n", forge.Repository{Kind: forge.KindGitHub, Base: "https://github.com", Owner: "a", Name: "b"}},
		"Unknown":    {"The forge of an unknown host must be specified.", "  source: {repo: https://git.example.org/a/b}\n  statuses: {}\n", forge.Repository{}},
		"Told":       {"Forgejo has the same API as Gitea.", "  source: {repo: https://git.example.org/a/b}\n  statuses: {forge: Forgejo}\n", forge.Repository{Kind: forge.KindGitea, Base: "https://git.example.org", Owner: "a", Name: "b"}},
		"Local":      {"A local path belongs to no forge.", "  source: {repo: ./a}\n  statuses: {forge: Gitea}\n", forge.Repository{}},
		"Elsewhere":  {"For a local path, the repository on the forge may be specified.", "  source: {repo: ./a}\n  statuses: {forge: Gitea, url: 'http://127.0.0.1:3000/', repository: c/d}\n", forge.Repository{Kind: forge.KindGitea, Base: "http://127.0.0.1:3000", Owner: "c", Name: "d"}},
		"Mirror":     {"The source may be a mirror of the repository.", "  source: {repo: https://mirror.example.org/x/y/b.git}\n  statuses: {url: https://github.com, repository: a/b}\n", forge.Repository{Kind: forge.KindGitHub, Base: "https://github.com", Owner: "a", Name: "b"}},
		"OtherName":  {"The source may be a fork of the repository.", "  source: {repo: https://codeberg.org/fork/b}\n  statuses: {repository: a/b}\n", forge.Repository{Kind: forge.KindGitea, Base: "https://codeberg.org", Owner: "a", Name: "b"}},
		"Groups":     {"A GitLab repository may be in nested groups.", "  source: {repo: https://git.example.org/a/b/c}\n  statuses: {forge: GitLab}\n", forge.Repository{Kind: forge.KindGitLab, Base: "https://git.example.org", Owner: "a/b", Name: "c"}},
		"GitLabPath": {"GitLab may be served below a path.", "  source: {repo: https://git.example.org/a/b/c.git}\n  statuses: {forge: GitLab, url: 'https://example.org/gitlab', repository: a/b/c}\n", forge.Repository{Kind: forge.KindGitLab, Base: "https://example.org/gitlab", Owner: "a/b", Name: "c"}},
		"DataCenter": {"The form of the URL determines the forge.", "  source: {repo: https://git.example.org/scm/a/b.git}\n  statuses: {repository: c/d}\n", forge.Repository{Kind: forge.KindBitbucketDataCenter, Base: "https://git.example.org", Owner: "c", Name: "d"}},
		"Azure":      {"The host determines the forge.", "  source: {repo: https://dev.azure.com/acme/shop/_git/b}\n  statuses: {}\n", forge.Repository{Kind: forge.KindAzureDevOps, Base: "https://dev.azure.com", Owner: "acme/shop", Name: "b"}},
		"BelowAPath": {"Gitea may be served below a path.", "  source: {repo: https://example.org/git/a/b}\n  statuses: {forge: Gitea, repository: c/d}\n", forge.Repository{Kind: forge.KindGitea, Base: "https://example.org/git", Owner: "c", Name: "d"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := repositoryOf(decode(t, tc.spec+"  clusterName: c\n").Spec)
			if err != nil {
				got = forge.Repository{}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreUnexported(reconcile.Reconciler{})); diff != "" {
				t.Errorf("%s\nrepositoryOf(...) (-want +got):\n%s\n%v", tc.reason, diff, err)
			}
		})
	}
}

func TestSecrets(t *testing.T) {
	env := map[string]string{"GIT": "hunter2", "HEADGATE_FORGE_TOKEN": "hunter3\n", "HEADGATE_WEBHOOK_SECRET": "hunter4"}
	s := decode(t, "  source: {repo: https://github.com/a/b, credentialsFrom: {env: {password: GIT}}, webhook: {}}\n  clusterName: c\n  statuses: {}\n")
	got := Secrets(s, func(name string) string { return env[name] })
	if diff := cmp.Diff([]string{"hunter2", "hunter3", "hunter4"}, got); diff != "" {
		t.Errorf("Secrets(...) (-want +got):\n%s", diff)
	}
	target, err := New(s, Surroundings{Cluster: &rest.Config{}, Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range got {
		if text := fmt.Sprintf("%v %+v", target.repository, target.outbox); strings.Contains(text, secret) {
			t.Errorf("%s is printed: %s", secret, text)
		}
	}
}

// A repo is a Git repository to which the test pushes.
type repo struct {
	dir  string
	tree *gogit.Worktree
}

func newRepo(t *testing.T) repo {
	t.Helper()
	dir := t.TempDir()
	r, err := gogit.PlainInit(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := r.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	return repo{dir, tree}
}

func (r repo) push(t *testing.T, file, content string) string {
	t.Helper()
	return r.pushAll(t, map[string]string{file: content})
}

// pushAll commits several files in one commit.
func (r repo) pushAll(t *testing.T, files map[string]string) string {
	t.Helper()
	for file, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(r.dir, file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := r.tree.Add(file); err != nil {
			t.Fatal(err)
		}
	}
	id, err := r.tree.Commit("a commit", &gogit.CommitOptions{Author: &object.Signature{Name: "somebody", Email: "a@example.org", When: time.Now()}})
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}

// A statusServer is a forge that stores statuses.
type statusServer struct {
	*httptest.Server

	mu     sync.Mutex
	posted []string // "commit context state: description"
	at     []time.Time
	down   bool
}

func newStatusServer(t *testing.T) *statusServer {
	t.Helper()
	b := &statusServer{}
	b.Server = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(b.Close)
	return b
}

func (b *statusServer) serve(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	if r.Method == http.MethodGet {
		_, _ = w.Write([]byte("[]"))
		return
	}
	var s struct{ Context, State, Description string }
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil || r.Header.Get("Authorization") != "token sesame" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	commit := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	b.posted = append(b.posted, fmt.Sprintf("%.7s %s %s: %s", commit, s.Context, s.State, s.Description))
	b.at = append(b.at, time.Now())
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte("{}"))
}

// has waits until exactly these statuses were posted, in the order of their contexts, and clears them. It returns the time of the
// last one.
func (b *statusServer) has(t *testing.T, want ...string) time.Time {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		b.mu.Lock()
		got := slices.Clone(b.posted)
		if len(got) >= len(want) {
			last := b.at[len(b.at)-1]
			b.posted, b.at = nil, nil
			b.mu.Unlock()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("posted (-want +got):\n%s", diff)
			}
			return last
		}
		b.mu.Unlock()
		if time.Since(begun) > fixtures.Patience {
			t.Fatalf("after %s there is %q, want %q", fixtures.Patience, got, want)
		}
	}
}

// made returns a target and the events of its passes.
func made(t *testing.T, s v1alpha1.Sync, config *rest.Config) (*Target, <-chan reconcile.Event) {
	t.Helper()
	passes := make(chan reconcile.Event, 100)
	target, err := New(s, Surroundings{
		Cluster: config, Cache: t.TempDir(),
		Getenv: func(name string) string { return map[string]string{"TOKEN": "sesame", "HOOK": canary}[name] },
		Event: func(e reconcile.Event) {
			if e.Kind == reconcile.Passed {
				passes <- e
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return target, passes
}

// running runs a target until the test ends.
func running(t *testing.T, target *Target) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		target.Run(t.Context())
	}()
	t.Cleanup(func() {
		<-ended
		if err := target.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestTarget(t *testing.T) {
	repository, board := newRepo(t), newStatusServer(t)
	s := decode(t, fmt.Sprintf(`  source: {repo: %q, interval: 1s}
  interval: 1h
  crdOwner: Headgate
  clusterName: east
  statuses: {forge: Gitea, url: %q, repository: a/b, tokenFrom: {env: TOKEN}}
`, repository.dir, board.URL))
	config := fixtures.Config(t)
	requests := &traffic.Requests{}
	config.Wrap(requests.Wrap)
	const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: target, namespace: default}\ndata: {key: %q}\n"
	first := repository.push(t, "settings.yaml", fmt.Sprintf(settings, "1"))
	of := func(commit string, states ...string) []string {
		var all []string
		for _, state := range states {
			activation, drift, _ := strings.Cut(state, " | ")
			all = append(all, fmt.Sprintf("%.7s headgate/east/team/target/activation %s", commit, activation),
				fmt.Sprintf("%.7s headgate/east/team/target/drift %s", commit, drift))
		}
		return all
	}
	const pending = "pending: seen; the pass has not ended | pending: seen; the pass has not ended"
	target, _ := made(t, s, config)
	running(t, target)
	board.has(t, of(first, pending, "success: 1 object | success: no drift")...)

	second := repository.push(t, "settings.yaml", fmt.Sprintf(settings, "2"))
	board.has(t, of(second, pending, "success: 1 object | success: no drift")...)
	time.Sleep(time.Second) // the watch follows

	live, err := dynamic.NewForConfig(fixtures.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	at := live.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	edit := func(body string) {
		if _, err := at.Patch(t.Context(), "target", types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
			t.Fatal(err)
		}
	}
	requests.Reset()
	edited := time.Now()
	edit(`{"data":{"key":"3"}}`)
	when := board.has(t, of(second, "success: 1 object | success: 1 corrected")[1])
	t.Logf("from a hand edit to the status: %s, %v", when.Sub(edited), requests.Counts())

	// Reports during an outage of the forge are published later.
	board.mu.Lock()
	board.down = true
	board.mu.Unlock()
	third := repository.push(t, "settings.yaml", "kind: [\n")
	time.Sleep(3 * time.Second)
	board.mu.Lock()
	board.down = false
	board.mu.Unlock()
	for begun := time.Now(); board.count() < 2 && time.Since(begun) < fixtures.Patience; {
		time.Sleep(50 * time.Millisecond)
	}
	board.mu.Lock()
	defer board.mu.Unlock()
	if len(board.posted) != 2 || !strings.HasPrefix(board.posted[0], fmt.Sprintf("%.7s headgate/east/team/target/activation error: settings.yaml:", third)) {
		t.Errorf("of a commit that cannot be rendered: %q", board.posted)
	}
}

// While the API server is unavailable, Headgate retries less and less often and posts that on the commit. Drift from that time is
// corrected as soon as the API server is back.
func TestTargetOutlivesAnOutage(t *testing.T) {
	repository, board := newRepo(t), newStatusServer(t)
	s := decode(t, fmt.Sprintf(`  source: {repo: %q}
  interval: 1s
  crdOwner: Headgate
  clusterName: north
  statuses: {forge: Gitea, url: %q, repository: a/b, tokenFrom: {env: TOKEN}}
`, repository.dir, board.URL))
	line := &fixtures.Line{}
	config := fixtures.Config(t)
	config.Dial = line.Dial
	repository.push(t, "a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: outage, namespace: default}\ndata: {key: right}\n")
	target, passes := made(t, s, config)
	running(t, target)
	if e := <-passes; e.Err != nil {
		t.Fatal(e.Err)
	}
	line.Cut(true)
	live, err := dynamic.NewForConfig(fixtures.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	at := live.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	if err := at.Delete(t.Context(), "outage", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var pauses []time.Duration
	for e := range passes {
		if e.Err == nil {
			continue // the status was already being sent
		}
		if pauses = append(pauses, e.Next); len(pauses) == 3 {
			break
		}
	}
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if off := pauses[i].Seconds() / want.Seconds(); off < 0.85 || off > 1.15 {
			t.Errorf("The pauses are %s", pauses)
			break
		}
	}
	line.Cut(false)
	for e := range passes {
		if e.Err != nil {
			continue
		}
		if e.Report.Summary.Created != 1 {
			t.Errorf("The first pass after it makes again what was deleted: %s", e.Report.Line())
		}
		break
	}
	if e := <-passes; e.Err != nil || e.Next > 1200*time.Millisecond {
		t.Errorf("And then it is as usual: next in %s (%v)", e.Next, e.Err)
	}
	board.mu.Lock()
	defer board.mu.Unlock()
	var output []string
	for _, p := range board.posted {
		if _, state, ok := strings.Cut(p, "/activation "); ok {
			output = append(output, state)
		}
	}
	if len(output) != 4 || !strings.HasPrefix(output[2], "error: cannot reach the API server at ") {
		t.Errorf("status of activation: %q", output)
	}
}

// If drift is only reported, a status shows it until it is gone, and Headgate writes nothing.
func TestTargetReportsDrift(t *testing.T) {
	repository, board := newRepo(t), newStatusServer(t)
	s := decode(t, fmt.Sprintf(`  source: {repo: %q, interval: 1s}
  interval: 1h
  crdOwner: Headgate
  drift: Report
  clusterName: west
  statuses: {forge: Gitea, url: %q, repository: a/b, tokenFrom: {env: TOKEN}}
`, repository.dir, board.URL))
	config := fixtures.Config(t)
	requests := &traffic.Requests{}
	config.Wrap(requests.Wrap)
	repository.push(t, "a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: reports, namespace: default}\ndata: {key: right}\n")
	target, passes := made(t, s, config)
	running(t, target)
	<-passes
	time.Sleep(time.Second) // the watch follows
	live, err := dynamic.NewForConfig(fixtures.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	at := live.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	for _, step := range []struct {
		value, drift string
		exit         int
	}{
		{"wrong", "failure: 1 drifted: reports by somebody", 3},
		{"right", "success: 1 corrected", 0}, // the manager that owns the field
	} {
		requests.Reset()
		if _, err := at.Patch(t.Context(), "reports", types.MergePatchType, []byte(`{"data":{"key":"`+step.value+`"}}`), metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
			t.Fatal(err)
		}
		e := <-passes
		got := e.Report.Verdict
		if output := fmt.Sprintf("%s: %s", got.Drift.State, got.Drift.Description); output != step.drift || got.ExitCode != step.exit {
			t.Errorf("after an edit to %s: %s, exit code %d", step.value, output, got.ExitCode)
		}
		if step.value == "wrong" {
			// The pass has a new result, so the history is written.
			if n := requests.Writes(); n > 1 || requests.Counts()["PUT"] != n {
				t.Errorf("it wrote: %q", requests.Log())
			}
			if changes := cmp.Diff([]diff.Change{{Path: "data.key", From: `"wrong"`, To: `"right"`, By: "somebody"}}, e.Report.Steps[0].Changes); changes != "" || !slices.Equal(e.Report.Steps[0].TakesFrom, []string{"somebody"}) {
				t.Errorf("what it says (-want +got):\n%s\nby %v", changes, e.Report.Steps[0].TakesFrom)
			}
		}
		select {
		case e := <-passes:
			t.Errorf("what is reported is not looked at again and again: %v", e.Because)
		case <-time.After(2 * time.Second):
		}
	}
}

// A push triggers a pass immediately, although the next poll is an hour away.
//
//test:long
func TestTargetIsTold(t *testing.T) {
	g := fixtures.StartGitea(t)
	cloned := g.CreateRepo(t, "platform")
	const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: told, namespace: default}\ndata: {key: %q}\n"
	g.Commit(t, "platform", "settings.yaml", fmt.Sprintf(settings, "0"))
	s := decode(t, fmt.Sprintf("  source: {repo: %q, ref: main, webhook: {secretFrom: {env: HOOK}}}\n  interval: 1h\n  crdOwner: Headgate\n", cloned))
	target, passes := made(t, s, fixtures.Config(t))
	subscriber, err := target.Subscriber()
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan forge.Handled, 100)
	hooks := httptest.NewServer(&forge.Webhooks{Subscribers: []forge.Subscriber{*subscriber}, Log: func(h forge.Handled) { heard <- h }})
	t.Cleanup(hooks.Close)
	running(t, target)
	if e := <-passes; e.Err != nil {
		t.Fatal(e.Err)
	}
	for i, hook := range []struct {
		kind, secret string
		code         int
	}{
		{"json", "guess", http.StatusUnauthorized},
		{"json", canary, http.StatusAccepted},
		{"form", canary, http.StatusAccepted},
	} {
		var made struct{ ID int }
		at := "/repos/" + g.Owner + "/platform/hooks"
		g.Call(t, http.MethodPost, at, map[string]any{
			"type": "gitea", "active": true, "events": []string{"push"},
			"config": map[string]string{"url": hooks.URL, "content_type": hook.kind, "secret": hook.secret},
		}, &made)
		begun := time.Now()
		commit := g.Commit(t, "platform", "settings.yaml", fmt.Sprintf(settings, fmt.Sprint(i+1)))
		// Gitea sends the webhook a moment after the push, so it may belong to the previous push.
		h := <-heard
		for h.Code == http.StatusUnauthorized && hook.code != h.Code {
			h = <-heard
		}
		if h.Code != hook.code || h.Forge != "Gitea" {
			t.Fatalf("%s with the secret %s: %+v", hook.kind, hook.secret, h)
		}
		for hook.code == http.StatusAccepted {
			e := <-passes
			if e.Err != nil || e.Because != reconcile.Commit {
				t.Errorf("a pass because of %s: %v", e.Because, e.Err)
			}
			if e.Revision == commit {
				t.Logf("from before the push to the end of the pass: %s, of which the pass %s", time.Since(begun), e.Took)
				break
			}
		}
		g.Call(t, http.MethodDelete, fmt.Sprintf("%s/%d", at, made.ID), nil, nil)
	}
}

func (b *statusServer) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.posted)
}

// If another writer immediately reverts a correction, Headgate detects it, names the writer, and pauses for a while.
func TestTargetFights(t *testing.T) {
	repository, board := newRepo(t), newStatusServer(t)
	s := decode(t, fmt.Sprintf(`  source: {repo: %q, interval: 1s}
  interval: 1h
  crdOwner: Headgate
  clusterName: north
  statuses: {forge: Gitea, url: %q, repository: a/b, tokenFrom: {env: TOKEN}}
`, repository.dir, board.URL))
	config := fixtures.Config(t)
	requests := &traffic.Requests{}
	config.Wrap(requests.Wrap)
	repository.push(t, "a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fights}\ndata: {key: ours}\n") // the report shows the remembered fight
	target, passes := made(t, s, config)
	running(t, target)
	<-passes
	live, err := dynamic.NewForConfig(fixtures.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	at := live.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	var rival sync.WaitGroup
	t.Cleanup(rival.Wait)
	rival.Go(func() {
		for ctx := t.Context(); ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
			u, err := at.Get(ctx, "fights", metav1.GetOptions{})
			if err != nil {
				continue
			}
			if value, _, _ := unstructured.NestedString(u.Object, "data", "key"); value == "ours" {
				_, _ = at.Patch(ctx, "fights", types.MergePatchType, []byte(`{"data":{"key":"theirs"}}`), metav1.PatchOptions{FieldManager: "rival"})
			}
		}
	})
	for {
		e := <-passes
		v := e.Report.Verdict
		if len(e.Report.Fights) == 0 {
			if v.Drift.State != report.Success {
				t.Fatalf("before it is a fight: %v", v)
			}
			continue
		}
		if want := []facts.Fight{{ID: manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: "fights"}, Path: "data.key", Manager: "rival", Times: 3, Rests: true}}; !slices.Equal(want, e.Report.Fights) {
			t.Errorf("the fight is %v, want %v", e.Report.Fights, want)
		}
		if v.Drift.State != report.Failure || v.Drift.Description != "fight over fights: rival changed data.key again 3 times after Headgate corrected it" || v.ExitCode != report.ExitHeld {
			t.Errorf("the verdict: %+v", v)
		}
		break
	}
	e := <-passes // the rival changed the value once more
	if s := e.Report.Steps; len(s) != 1 || s[0].Action != plan.Keep || s[0].Guard != "fight" {
		t.Errorf("A contested object is left alone: %+v", s)
	}
	wrote := 0
	for _, request := range requests.Log() {
		if strings.HasPrefix(request, "PATCH ") && strings.Contains(request, "/configmaps/fights?") {
			wrote++
		}
	}
	if wrote != 5 { // the object was created, and corrected four times
		t.Errorf("it was written %d times, want 5", wrote)
	}
}

package forge

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode"
	"unicode/utf8"

	"headgate.dev/headgate/fixtures/bombs"
	"headgate.dev/headgate/reconcile/legible"

	"github.com/google/go-cmp/cmp"
)

const (
	hookSecret = "c4n4ry-webhook"
	signingKey = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
)

// A hook is a documented webhook of a forge.
type hook struct {
	secret string // hookSecret if empty
	header map[string]string
	event  [2]string // the header that names the event, and the name of an unrelated event; empty if the body names it
	push   string    // body of a push with the placeholders OWNER, NAME and BRANCH
	pull   [2]string // name of the pull request event in the header, and its body
	prove  func(h http.Header, body, secret string)
	form   bool
}

func hexSum(secret, content string) string {
	return hex.EncodeToString(sum([]byte(secret), []byte(content)))
}

func hub(header string) func(http.Header, string, string) {
	return func(h http.Header, body, secret string) { h.Set(header, "sha256="+hexSum(secret, body)) }
}

func gitLabSigns(h http.Header, body, secret string) {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	at := strconv.FormatInt(time.Now().Unix(), 10)
	h.Set("Webhook-Timestamp", at)
	h.Set("Webhook-Signature", "v1,b2xk v1,"+base64.StdEncoding.EncodeToString(sum(key, []byte(h.Get("Webhook-Id")+"."+at+"."+body))))
}

const (
	gitHubBody = `{"ref":"refs/heads/BRANCH","before":"0000","after":"4b17","deleted":false,"repository":{"id":1,"name":"NAME",` +
		`"full_name":"OWNER/NAME","clone_url":"https://git.example.org/OWNER/NAME.git","default_branch":"main"},"commits":[]}`
	gitLabBody = `{"object_kind":"push","event_name":"push","before":"0000","after":"4b17","ref":"refs/heads/BRANCH",` +
		`"project":{"id":15,"name":"NAME","path_with_namespace":"OWNER/NAME","default_branch":"main"},"total_commits_count":0}`
)

const (
	gitHubPullBody = `{"action":"synchronize","number":7,"pull_request":{"number":7,"head":{"sha":"4b17","repo":{"full_name":"fork/NAME"}}},` +
		`"repository":{"id":1,"name":"NAME","full_name":"OWNER/NAME","default_branch":"main"}}`
	gitLabPullBody = `{"object_kind":"merge_request","event_type":"merge_request","project":{"id":15,"path_with_namespace":"OWNER/NAME"},` +
		`"object_attributes":{"iid":7,"action":"update","source":{"path_with_namespace":"fork/NAME"},"last_commit":{"id":"4b17"}}}`
)

var hooks = map[string]hook{
	"GitHub": {
		header: map[string]string{"X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958", "X-GitHub-Event": "push"},
		event:  [2]string{"X-GitHub-Event", "ping"}, push: gitHubBody, pull: [2]string{"pull_request", gitHubPullBody}, prove: hub("X-Hub-Signature-256"),
	},
	"GitHubForm": {
		header: map[string]string{"X-GitHub-Event": "push"}, form: true,
		event: [2]string{"X-GitHub-Event", "ping"}, push: gitHubBody, pull: [2]string{"pull_request", gitHubPullBody}, prove: hub("X-Hub-Signature-256"),
	},
	"Gitea": {
		header: map[string]string{"X-Gitea-Delivery": "f6266f16-1bf3-46a5-9ea4-602e06ead473", "X-Gitea-Event": "push", "X-GitHub-Event": "push"},
		event:  [2]string{"X-Gitea-Event", "release"}, push: gitHubBody, pull: [2]string{"pull_request", gitHubPullBody},
		prove: func(h http.Header, body, secret string) { h.Set("X-Gitea-Signature", hexSum(secret, body)) },
	},
	"GiteaForm": {
		header: map[string]string{"X-Gitea-Event": "push"}, form: true,
		event: [2]string{"X-Gitea-Event", "issues"}, push: gitHubBody, pull: [2]string{"pull_request", gitHubPullBody},
		prove: func(h http.Header, body, secret string) {
			form, _ := url.ParseQuery(body)
			h.Set("X-Gitea-Signature", hexSum(secret, form.Get("payload")))
		},
	},
	"GitLabToken": {
		header: map[string]string{"X-Gitlab-Event": "Push Hook", "Idempotency-Key": "f5e5f430-f57b-4e6e-9fac-d9128cd7232f"}, push: gitLabBody, pull: [2]string{"", gitLabPullBody},
		prove: func(h http.Header, _, secret string) { h.Set("X-Gitlab-Token", secret) },
	},
	"GitLabBefore17": {
		header: map[string]string{"X-Gitlab-Event": "Push Hook"}, push: gitLabBody, pull: [2]string{"", gitLabPullBody},
		prove: func(h http.Header, _, secret string) { h.Set("X-Gitlab-Token", secret) },
	},
	"GitLabSigned": {
		secret: signingKey, header: map[string]string{"X-Gitlab-Event": "System Hook", "Webhook-Id": "f5e5f430"}, push: gitLabBody, pull: [2]string{"", gitLabPullBody}, prove: gitLabSigns,
	},
	"BitbucketCloud": {
		header: map[string]string{"X-Event-Key": "repo:push", "X-Request-UUID": "a1"}, event: [2]string{"X-Event-Key", "pullrequest:approved"},
		push: `{"push":{"changes":[{"old":{"type":"branch","name":"gone"},"new":null},{"old":null,"new":{"type":"branch","name":"BRANCH","target":{"hash":"4b17"}}}]},` +
			`"repository":{"type":"repository","full_name":"OWNER/NAME"},"actor":{}}`,
		pull: [2]string{"pullrequest:fulfilled", `{"pullrequest":{"id":7,"state":"MERGED","source":{"repository":{"full_name":"fork/NAME"}}},` +
			`"repository":{"type":"repository","full_name":"OWNER/NAME"},"actor":{}}`},
		prove: hub("X-Hub-Signature"),
	},
	"BitbucketDataCenter": {
		header: map[string]string{"X-Event-Key": "repo:refs_changed", "X-Request-Id": "a1"}, event: [2]string{"X-Event-Key", "diagnostics:ping"},
		push: `{"eventKey":"repo:refs_changed","date":"2026-11-21T10:00:00+0000","repository":{"slug":"NAME","id":84,"project":{"key":"OWNER","id":1}},` +
			`"changes":[{"ref":{"id":"refs/heads/BRANCH","displayId":"BRANCH","type":"BRANCH"},"refId":"refs/heads/BRANCH","toHash":"4b17","type":"UPDATE"}]}`,
		pull: [2]string{"pr:from_ref_updated", `{"eventKey":"pr:from_ref_updated","pullRequest":{"id":7,"fromRef":{"id":"refs/heads/x","latestCommit":"4b17",` +
			`"repository":{"slug":"NAME","project":{"key":"~fork"}}},"toRef":{"id":"refs/heads/main","repository":{"slug":"NAME","project":{"key":"OWNER"}}}}}`},
		prove: hub("X-Hub-Signature"),
	},
	"AzureDevOps": {
		header: map[string]string{},
		push: `{"id":"03c164c2-8912-4d5e-8009-3707d5f83734","eventType":"git.push","publisherId":"tfs","resource":{"refUpdates":[{"name":"refs/heads/BRANCH",` +
			`"newObjectId":"4b17"}],"repository":{"id":"278d","name":"NAME","project":{"id":"6ce9","name":"OWNER"},"defaultBranch":"refs/heads/main",` +
			`"remoteUrl":"https://dev.azure.com/fabrikam/OWNER/_git/NAME"}}}`,
		pull: [2]string{"", `{"id":"2ab4e3d3","eventType":"git.pullrequest.updated","publisherId":"tfs","resource":{"pullRequestId":7,"status":"active","repository":` +
			`{"id":"278d","name":"NAME","project":{"id":"6ce9","name":"OWNER"},"remoteUrl":"https://dev.azure.com/fabrikam/OWNER/_git/NAME"}}}`},
		prove: func(h http.Header, _, secret string) {
			h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("anybody:"+secret)))
		},
	},
}

// known returns the shared secret.
func (k hook) known() string {
	if k.secret == "" {
		return hookSecret
	}
	return k.secret
}

// pulled returns the hook with an event of a pull request.
func (k hook) pulled() hook {
	k.header, k.push = maps.Clone(k.header), k.pull[1]
	if k.event[0] != "" {
		k.header[k.event[0]] = k.pull[0]
	}
	return k
}

// body returns the body of a push.
func (k hook) body(owner, name, branch string) string {
	body := strings.NewReplacer("OWNER", owner, "NAME", name, "BRANCH", branch).Replace(k.push)
	if k.form {
		return url.Values{"payload": {body}}.Encode()
	}
	return body
}

// request returns a request of the forge, signed with a secret.
func (k hook) request(body, secret string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/webhook", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	if k.form {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range k.header {
		r.Header.Set(name, value)
	}
	k.prove(r.Header, body, secret)
	return r
}

// An ear counts the webhooks that wake a subscriber to main.
type ear struct {
	Webhooks

	woken int
	heard []Handled
}

func listening(secret, repository string) *ear {
	e := &ear{}
	e.Subscribers = []Subscriber{{Secret: Token(secret), Repositories: []string{repository}, Ref: "main", Wake: func() { e.woken++ }}}
	e.Log = func(h Handled) { e.heard = append(e.heard, h) }
	return e
}

// answers returns the response to a request, such as "202 looking".
func (e *ear) answers(r *http.Request) string {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return fmt.Sprintf("%d %s", w.Code, strings.TrimSpace(w.Body.String()))
}

const (
	looking     = "202 looking"
	unproven    = "401 no configured secret proves the request"
	seenBefore  = "200 nothing to do: seen before"
	notFollowed = "200 nothing to do: no subscriber follows this ref"
	noPush      = "200 nothing to do: the event concerns neither a push nor a pull request"
	noPulls     = "200 nothing to do: no subscriber follows pull requests"
	notFound    = "404 404 page not found"
)

// hookedTo returns the URL from which acme/platform is cloned.
func hookedTo(name string) string {
	switch name {
	case "BitbucketDataCenter":
		return "https://internal.example.org:7990/scm/acme/platform.git"
	case "AzureDevOps":
		return "https://dev.azure.com/fabrikam/Acme/_git/platform"
	}
	return "https://git.internal/Acme/platform.git"
}

// Every forge signs its webhooks in its own way, but the result must be the same.
func TestWebhooks(t *testing.T) {
	for name, k := range hooks {
		t.Run(name, func(t *testing.T) {
			secret := k.known()
			e := listening(secret, hookedTo(name))
			body := k.body("acme", "platform", "main")
			expect := func(reason, want string, r *http.Request, woken int) {
				t.Helper()
				if got := e.answers(r); got != want || e.woken != woken {
					t.Errorf("%s\nit answers %q and has woken %d, want %q and %d", reason, got, e.woken, want, woken)
				}
			}
			expect("A delivery with a wrong secret is refused.", unproven, k.request(body, "guess"), 0)
			expect("A delivery with an empty secret is refused.", unproven, k.request(body, ""), 0)
			expect("An event of another repository starts no sync.", notFound, k.request(k.body("acme", "platform2", "main"), secret), 0)
			expect("The name of the repository must match as a whole.", notFound, k.request(k.body("me", "platform", "main"), secret), 0)
			if k.event[0] != "" {
				other := k.request(body, secret)
				other.Header.Set(k.event[0], k.event[1])
				expect("Another kind of event is accepted, but has no effect.", noPush, other, 0)
			}
			expect("A push starts a sync.", looking, k.request(body, secret), 1)
			expect("A repeated delivery has no effect.", seenBefore, k.request(body, secret), 1)
			if k.id() == "" {
				again := k.request(body, secret)
				for name := range k.header {
					if strings.HasSuffix(name, "-Delivery") || strings.HasPrefix(name, "X-Request") {
						again.Header.Set(name, "another")
					}
				}
				expect("A repeated delivery with another, unsigned ID has no effect.", seenBefore, again, 1)
			}
			next := k
			next.header = maps.Clone(k.header)
			if k.id() != "" {
				next.header[k.id()] = "another"
			}
			expect("A push to another branch has no effect.", notFollowed, next.request(k.body("acme", "platform", "topic"), secret), 1)
			if k.id() != "" {
				next.header[k.id()] = "a third"
			}
			r := next.request(strings.Replace(body, "4b17", "9c2e", 1), secret)
			expect("The next push starts a sync again.", looking, r, 2)
			for _, h := range e.heard {
				if text := fmt.Sprint(h); strings.Contains(text, secret) {
					t.Errorf("the secret is in %s", text)
				}
			}
		})
	}
}

// A preview loop gets every event of pull requests and every push. A push may have moved a target branch, or a head if the forge
// sends no events of pull requests. An applying loop gets only pushes.
func TestPullWebhooks(t *testing.T) {
	for name, k := range hooks {
		t.Run(name, func(t *testing.T) {
			secret := k.known()
			e, deaf := listening(secret, hookedTo(name)), listening(secret, hookedTo(name))
			pulls := 0
			e.Subscribers[0].WakePulls = func() { pulls++ }
			p := k.pulled()
			body := p.body("acme", "platform", "main")
			expect := func(reason, want string, r *http.Request, heard int) {
				t.Helper()
				if got := e.answers(r); got != want || pulls != heard || e.woken != 0 {
					t.Errorf("%s\nit answers %q, %d heard of pull requests and %d of pushes, want %q, %d and 0", reason, got, pulls, e.woken, want, heard)
				}
			}
			expect("A delivery with a wrong secret is refused.", unproven, p.request(body, "guess"), 0)
			expect("An event of another repository starts no sync.", notFound, p.request(p.body("fork", "platform", "main"), secret), 0)
			expect("An event of a pull request starts previews.", looking, p.request(body, secret), 1)
			expect("A repeated delivery has no effect.", seenBefore, p.request(body, secret), 1)
			if id := k.id(); id != "" {
				k.header = maps.Clone(k.header)
				k.header[id] = "another"
			}
			expect("A push to a branch may change a pull request, so it starts previews.", looking, k.request(k.body("acme", "platform", "topic"), secret), 2)
			if k.event[0] == "X-GitHub-Event" || k.event[0] == "X-Gitea-Event" {
				req := k.request(k.body("acme", "platform", "talk"), secret)
				req.Header.Set(k.event[0], "issue_comment")
				expect("A comment may contain a command, so it starts previews.", looking, req, 3)
			}
			switch name {
			case "BitbucketCloud", "BitbucketDataCenter":
				req := p.request(strings.Replace(body, ":7,", ":8,", 1), secret)
				req.Header.Set("X-Event-Key", map[string]string{"BitbucketCloud": "pullrequest:comment_created", "BitbucketDataCenter": "pr:comment:added"}[name])
				expect("A comment may contain a command, so it starts previews.", looking, req, 3)
			case "AzureDevOps":
				body := strings.NewReplacer("git.pullrequest.updated", "ms.vss-code.git-pullrequest-comment-event", `"resource":`, `"resource":{"comment":{"id":1},"pullRequest":`, `/NAME"}}}`, `/NAME"}}}}`).Replace(p.push)
				p.push = body
				expect("A comment may contain a command, so it starts previews.", looking, p.request(p.body("acme", "platform", "main"), secret), 3)
			}
			if got := deaf.answers(p.request(body, secret)); got != noPulls || deaf.woken != 0 {
				t.Errorf("Who follows none is left alone: %q, and %d woken", got, deaf.woken)
			}
		})
	}
}

// id returns the header with the delivery ID, if deliveries with the same content need one.
func (k hook) id() string {
	for _, name := range []string{"Webhook-Id", "Idempotency-Key"} {
		if k.header[name] != "" {
			return name
		}
	}
	return ""
}

// A delivery without a valid signature wakes no loop, whatever sender it names.
func TestForgedWebhooks(t *testing.T) {
	body := hooks["GitHub"].body("acme", "platform", "main")
	lab := hooks["GitLabSigned"].body("acme", "platform", "main")
	signedAt := func(at time.Time) func(http.Header) {
		return func(h http.Header) {
			gitLabSigns(h, lab, signingKey)
			sent := strconv.FormatInt(at.Unix(), 10)
			key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(signingKey, "whsec_"))
			h.Set("Webhook-Timestamp", sent)
			h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sum(key, []byte(h.Get("Webhook-Id")+"."+sent+"."+lab))))
		}
	}
	cases := map[string]struct {
		reason string
		secret string
		from   string
		body   string
		change func(h http.Header)
		want   string
	}{
		"OtherContent":  {"A signature is valid for one content only.", hookSecret, "GitHub", strings.Replace(body, "main", "Main", 1), func(h http.Header) { h.Set("X-Hub-Signature-256", "sha256="+hexSum(hookSecret, body)) }, unproven},
		"SHA1":          {"SHA-1 is not secure enough.", hookSecret, "GitHub", body, func(h http.Header) { h.Del("X-Hub-Signature-256"); h.Set("X-Hub-Signature", "sha1=0000") }, unproven},
		"NoSignature":   {"A forge without a secret sends no signature.", hookSecret, "GitHub", body, func(h http.Header) { h.Del("X-Hub-Signature-256") }, unproven},
		"NoHex":         {"An incomplete signature is not valid.", hookSecret, "GitHub", body, func(h http.Header) { h.Set("X-Hub-Signature-256", "sha256=zz") }, unproven},
		"SaysItIsGitea": {"The headers choose the scheme, and every scheme needs the secret.", hookSecret, "GitHub", body, func(h http.Header) { h.Set("X-Gitea-Event", "push") }, unproven},
		"NoForge":       {"No known forge sends these headers.", hookSecret, "GitHub", body, func(h http.Header) { clear(h) }, "401 the request is not from a supported forge"},
		"Old":           {"An old delivery is refused.", signingKey, "GitLabSigned", lab, signedAt(time.Now().Add(-6 * time.Minute)), unproven},
		"Early":         {"A delivery from the future is refused.", signingKey, "GitLabSigned", lab, signedAt(time.Now().Add(6 * time.Minute)), unproven},
		"OtherID":       {"A replay must not choose a new ID.", signingKey, "GitLabSigned", lab, func(h http.Header) { h.Set("Webhook-Id", "other") }, unproven},
		"NoID": {"A replay must not omit the ID.", signingKey, "GitLabSigned", lab, func(h http.Header) {
			h.Del("Webhook-Id")
			gitLabSigns(h, lab, signingKey)
		}, unproven},
		"Downgrade":    {"A signing key must not be accepted as a token.", signingKey, "GitLabToken", lab, func(h http.Header) { h.Set("X-Gitlab-Token", signingKey) }, unproven},
		"BadKey":       {"An invalid key signs nothing.", "whsec_", "GitLabSigned", lab, nil, unproven},
		"Bearer":       {"Only the Basic scheme contains a password.", hookSecret, "AzureDevOps", body, func(h http.Header) { h.Set("Authorization", "Bearer "+hookSecret) }, unproven},
		"NoSecret":     {"Without a secret, every delivery is refused, even one signed with an empty key.", "", "GitHub", body, nil, unproven},
		"NotJSON":      {"A delivery with a valid signature may be invalid JSON.", hookSecret, "GitHub", "[", nil, "400 cannot read the event: unexpected end of JSON input"},
		"NoRepository": {"A delivery may not name its repository.", hookSecret, "GitHub", `{"ref":"refs/heads/main"}`, nil, "400 the event does not name its repository"},
		"NoRef":        {"A delivery may not name its ref.", hookSecret, "GitHub", `{"repository":{"full_name":"acme/platform"}}`, nil, "400 the event names an invalid ref"},
		"Null":         {"JSON may contain null anywhere.", hookSecret, "BitbucketCloud", `{"push":{"changes":[null]},"repository":null}`, nil, "400 the event does not name its repository"},
		"NoChanges":    {"A delivery may contain no changes.", hookSecret, "AzureDevOps", `{"eventType":"git.push","resource":{"repository":{"name":"a","project":{"name":"b"}}}}`, nil, noPush},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := listening(tc.secret, "https://git.example.org/acme/platform")
			r := hooks[tc.from].request(tc.body, tc.secret)
			if tc.change != nil {
				tc.change(r.Header)
			}
			if got := e.answers(r); got != tc.want || e.woken != 0 {
				t.Errorf("%s\nit answers %q and has woken %d, want %q", tc.reason, got, e.woken, tc.want)
			}
		})
	}
	t.Run("SecretAway", func(t *testing.T) {
		e := listening(hookSecret, "https://git.example.org/acme/platform")
		e.Subscribers[0].Secret = func(context.Context) (string, error) { return hookSecret, errors.New("boom") }
		if got := e.answers(hooks["GitHub"].request(body, hookSecret)); got != unproven || e.woken != 0 {
			t.Errorf("A secret that cannot be read proves nothing: %s", got)
		}
	})
	if got := (&ear{}).answers(hooks["GitHub"].request(body, hookSecret)); got != unproven {
		t.Errorf("Without subscribers everything is refused: %s", got)
	}
}

// The size of a body is limited before it is parsed.
func TestWebhookSize(t *testing.T) {
	k := hooks["GitHub"]
	e := listening(hookSecret, hookedTo("GitHub"))
	large := strings.Repeat(" ", maxWebhook) + k.body("acme", "platform", "main")
	req := k.request(large, hookSecret)
	chunked := k.request(large, hookSecret)
	chunked.ContentLength = -1
	endless := k.request("", hookSecret)
	endless.ContentLength, endless.Body = -1, io.NopCloser(bombs.Zeros{})
	for name, r := range map[string]*http.Request{"Said": req, "Chunked": chunked, "Endless": endless} {
		if got, want := e.answers(r), fmt.Sprintf("413 more than %d bytes", maxWebhook); got != want || e.woken != 0 {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	fits := strings.Repeat(" ", 1<<20) + k.body("acme", "platform", "main")
	if got := e.answers(k.request(fits, hookSecret)); got != looking {
		t.Errorf("A large push is heard: %s", got)
	}
}

// Slow senders must not keep the forge from sending, whether they have one address, as all have behind a proxy, or a thousand.
func TestSlowSenders(t *testing.T) {
	k := hooks["GitHub"]
	e := listening(hookSecret, hookedTo("GitHub"))
	e.Log = nil
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	type sender struct {
		*io.PipeWriter

		code chan int
	}
	start := func(size int) sender {
		body, w := io.Pipe()
		s := sender{w, make(chan int, 1)}
		r := k.request("", hookSecret)
		r.URL, _ = url.Parse(server.URL)
		r.RequestURI, r.ContentLength, r.Body = "", -1, body
		go func() {
			resp, err := server.Client().Do(r)
			if err != nil {
				s.code <- 0 // the server closed the connection
				return
			}
			_ = resp.Body.Close()
			s.code <- resp.StatusCode
		}()
		for left := size; left > 0; left -= 1 << 20 {
			_, _ = w.Write(bytes.Repeat([]byte(" "), min(left, 1<<20)))
		}
		return s
	}
	held := func(want int64) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); e.reading.total() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d bytes are held, want %d", e.reading.total(), want)
			}
		}
	}
	var slow, large []sender
	for range 100 {
		slow = append(slow, start(1))
	}
	held(100)
	if got := e.answers(k.request(k.body("acme", "platform", "main"), hookSecret)); got != looking {
		t.Errorf("Beside slow senders: %s", got)
	}
	for range 15 {
		large = append(large, start(maxWebhook))
	}
	held(100 + 15*maxWebhook)
	rest := start(maxWebhook - 100 - 10)
	held(maxHeld - 10)
	if got := e.answers(k.request(k.body("acme", "platform", "main")+" ", hookSecret)); got != looking {
		t.Errorf("Beside senders that use all memory: %s", got)
	}
	if code := <-slow[0].code; code != http.StatusServiceUnavailable && code != 0 {
		t.Errorf("The oldest connection ends: %d", code)
	}
	_ = rest.Close()
	if code := <-rest.code; code != http.StatusUnauthorized {
		t.Errorf("The newest goes on: %d", code)
	}
	for _, s := range append(slow[1:], large...) {
		_ = s.CloseWithError(io.ErrUnexpectedEOF)
		<-s.code
	}
	held(0)
}

func (r *readers) total() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// Several syncs share one address. A secret is valid only for the syncs that have it.
func TestSubscribers(t *testing.T) {
	var woken []string
	h := &Webhooks{}
	for _, s := range []struct{ name, secret, repository, ref string }{
		{"platform", hookSecret, "https://git.example.org/acme/platform.git", "main"},
		{"other ref", hookSecret, "https://git.example.org/acme/platform.git", "release"},
		{"other secret", "other", "https://git.example.org/acme/platform.git", "main"},
		{"default", hookSecret, "http://10.0.0.7:3000/ACME/Platform", ""},
		{"mirror", hookSecret, "git@git.example.org:acme/platform.git", "refs/heads/main"},
		{"before", hookSecret, "https://git.example.org/sub/path/acme/platform/", "main~1"},
		{"other repository", hookSecret, "https://git.example.org/team/apps.git", "main"},
		{"commit", hookSecret, "https://git.example.org/acme/platform.git", "4b17aa"},
		{"range", hookSecret, "https://git.example.org/acme/platform.git", "semver:~1.2"},
	} {
		h.Subscribers = append(h.Subscribers, Subscriber{
			Name: s.name, Secret: Token(s.secret), Repositories: []string{s.repository}, Ref: s.ref, Wake: func() { woken = append(woken, s.name) },
		})
	}
	k := hooks["GitHub"]
	send := func(body, secret string) []string {
		woken = nil
		h.ServeHTTP(httptest.NewRecorder(), k.request(body, secret))
		return woken
	}
	if diff := cmp.Diff([]string{"platform", "default", "mirror", "before"}, send(k.body("acme", "platform", "main"), hookSecret)); diff != "" {
		t.Errorf("All who follow the branch (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"other secret"}, send(k.body("acme", "platform", "main"), "other")); diff != "" {
		t.Errorf("Two webhooks may send the same, each with its secret (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"other ref"}, send(k.body("acme", "platform", "release"), hookSecret)); diff != "" {
		t.Errorf("Another branch (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"range"}, send(strings.ReplaceAll(k.body("acme", "platform", "v1.2.3"), "refs/heads/", "refs/tags/"), hookSecret)); diff != "" {
		t.Errorf("Every tag may be in a range (-want +got):\n%s", diff)
	}
	if got := send(k.body("team", "apps", "main"), "other"); got != nil {
		t.Errorf("One secret says nothing about the repository of another: %q", got)
	}
}

// In a cluster, each namespace has a path and secrets of its own. A sender without a secret costs others nothing, and little where many
// Syncs share a secret.
func TestPlaces(t *testing.T) {
	h := &Webhooks{}
	asked, woken := map[string]int{}, map[string]int{}
	leave := map[string]func(){}
	for _, s := range []struct{ name, secret, shared string }{{"a/1", hookSecret, "a"}, {"a/2", hookSecret, "a"}, {"a/3", "other", "x"}, {"b/1", hookSecret, ""}} {
		place, _, _ := strings.Cut(s.name, "/")
		leave[s.name] = h.Join(Subscriber{
			Name: s.name, Place: place, Shared: s.shared, Repositories: []string{"https://git.example.org/acme/platform.git"}, Ref: "main", Wake: func() { woken[s.name]++ },
			Secret: func(context.Context) (string, error) {
				asked[s.name]++
				return s.secret, nil
			},
		})
	}
	k := hooks["GitHub"]
	send := func(place, secret string, body io.Reader) int {
		clear(asked)
		clear(woken)
		r := k.request(k.body("acme", "platform", "main"), secret)
		r.SetPathValue(PlaceOfWebhooks, place)
		if body != nil {
			r.Body = io.NopCloser(body)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	if code := send("a", "guess", nil); code != http.StatusUnauthorized || asked["a/1"] != 1 || asked["a/2"] != 0 || asked["a/3"] != 1 || asked["b/1"] != 0 {
		t.Errorf("each secret of the namespace is asked for once: %d, %v", code, asked)
	}
	for _, place := range []string{"c", ""} {
		if code := send(place, hookSecret, iotest.ErrReader(errors.New("read"))); code != http.StatusUnauthorized || len(asked) > 0 {
			t.Errorf("where nobody listens, nothing is read: %d, %v", code, asked)
		}
	}
	if code := send("a", hookSecret, nil); code != http.StatusAccepted || !maps.Equal(woken, map[string]int{"a/1": 1, "a/2": 1}) {
		t.Errorf("who has the secret is woken: %d, %v", code, woken)
	}
	leave["a/1"]()
	leave["a/3"]()
	if code := send("a", "other", nil); code != http.StatusUnauthorized || len(woken) > 0 || asked["a/1"]+asked["a/3"] > 0 {
		t.Errorf("who has left is not asked: %d, %v", code, asked)
	}
}

// The memory of deliveries is limited and keeps the newest ones.
func TestMemory(t *testing.T) {
	var m deliveries
	for i := range 3 * maxSeen {
		if !m.add(strconv.Itoa(i)) || m.add(strconv.Itoa(i)) {
			t.Fatalf("%d is new once", i)
		}
	}
	if len(m.known) != maxSeen || len(m.order) != maxSeen {
		t.Errorf("it holds %d and %d, want %d", len(m.known), len(m.order), maxSeen)
	}
	if m.add(strconv.Itoa(2 * maxSeen)) {
		t.Error("the oldest that it should remember is forgotten")
	}
}

// A client without the secret cannot wake a loop, whatever it sends. A client with the secret gets a response, and a valid push
// names one repository and its refs.
func FuzzWebhook(f *testing.F) {
	for _, k := range hooks {
		for i := range forges {
			f.Add(uint8(i), k.header[k.event[0]], []byte(k.body("acme", "platform", "main")), "sha256=00", k.form)
			p := k.pulled()
			f.Add(uint8(i), p.header[k.event[0]], []byte(p.body("acme", "platform", "main")), "sha256=00", k.form)
		}
	}
	f.Add(uint8(2), "repo:push", []byte(`{"push":{"changes":[null,{"new":null,"old":null}]}}`), "", false)
	f.Add(uint8(5), "", []byte(`{"eventType":"git.push","resource":{"refUpdates":null,"repository":{"name":"/","remoteUrl":"://"}}}`), "Basic Og==", false)
	f.Add(uint8(1), "pr:merged", []byte(`{"pullRequest":{"toRef":null}}`), "", false)
	f.Add(uint8(0), "", []byte(`{"object_kind":"merge_request","project":{"path_with_namespace":"/"}}`), "", false)
	f.Add(uint8(5), "", []byte(`{"eventType":"git.pullrequest.merged","resource":null}`), "Basic Og==", false)
	f.Add(uint8(4), "push", []byte(`{"ref":"refs/heads/\u202e","repository":{"full_name":"../.."}}`), "", false)
	f.Add(uint8(4), "push", []byte(`payload=%zz&payload=`), "", true)
	f.Fuzz(func(t *testing.T, which uint8, event string, body []byte, proof string, form bool) {
		if strings.ContainsAny(event+proof, "\r\n\x00") {
			return
		}
		s := forges[int(which)%len(forges)]
		request := func() *http.Request {
			r := httptest.NewRequest(http.MethodPost, "/webhook", bytes.NewReader(body))
			if form {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			r.Header.Set(s.webhook.header, event)
			return r
		}
		strange := request()
		for _, header := range []string{"X-Hub-Signature-256", "X-Hub-Signature", "X-Gitea-Signature", "X-Gitlab-Token", "Webhook-Signature", "Webhook-Id", "Authorization"} {
			strange.Header.Set(header, proof)
		}
		secret := rnd()
		e := listening(secret, "https://git.example.org/acme/platform")
		e.Subscribers[0].Repositories = append(e.Subscribers[0].Repositories, "https://dev.azure.com/fabrikam/acme/_git/platform")
		pulls := 0
		e.Subscribers[0].WakePulls = func() { pulls++ }
		if got := e.answers(strange); e.woken+pulls != 0 || !strings.HasPrefix(got, "4") {
			t.Errorf("a stranger gets %q and wakes %d", got, e.woken+pulls)
		}

		proven := request()
		switch s.Name {
		case "Gitea":
			d, err := read(request().Body, request().Header)
			if err != nil {
				return
			}
			proven.Header.Set("X-Gitea-Signature", hexSum(secret, string(d.payload)))
		case "GitLab":
			proven.Header.Set("X-Gitlab-Token", secret)
		case "Azure DevOps":
			hooks["AzureDevOps"].prove(proven.Header, "", secret)
		default:
			hub("X-Hub-Signature")(proven.Header, string(body), secret)
			hub("X-Hub-Signature-256")(proven.Header, string(body), secret)
		}
		if proven.Header.Get(s.webhook.header) == "" {
			return // the kind is unknown
		}
		got := e.answers(proven)
		if !slices.ContainsFunc([]string{looking, noPush, notFound, "400 "}, func(want string) bool { return strings.HasPrefix(got, want) }) {
			t.Errorf("who knows the secret gets %q", got)
		}
		p := e.heard[len(e.heard)-1].Event
		if woke := pulls == 1; woke != (got == looking) || e.woken > 0 && len(p.Refs) == 0 {
			t.Errorf("it answers %q and has woken %d, and %d for %v", got, pulls, e.woken, p)
		}
		for _, ref := range p.Refs {
			if !strings.HasPrefix(ref, "refs/") || odd(ref) {
				t.Errorf("the ref %q", ref)
			}
		}
		for _, r := range p.Repositories {
			if !strings.Contains(r, "/") || strings.HasPrefix(r, "/") || strings.HasSuffix(r, "/") || strings.ContainsFunc(r, legible.Invisible) {
				t.Errorf("the repository %q", r)
			}
		}
		if (len(p.Refs) > 0 || p.Pull) && len(p.Repositories) == 0 || len(p.Refs) > 0 && p.Pull {
			t.Errorf("an event of no repository, or of two kinds: %v", p)
		}
	})
}

// odd reports whether a text is not a valid ref or part of a ref.
func odd(ref string) bool {
	return !utf8.ValidString(ref) || ref == "" || strings.HasSuffix(ref, "/") || strings.ContainsFunc(ref, legible.Invisible) || strings.ContainsFunc(ref, unicode.IsSpace)
}

// rnd returns a secret that no fuzzer can guess.
func rnd() string { return "s" + strconv.FormatInt(time.Now().UnixNano(), 36) }

// Pushes and pull request events are parsed correctly in the format of every forge.
func FuzzEvent(f *testing.F) {
	f.Add("acme", "platform", "main")
	f.Add("a", "b.c", "feature/x")
	f.Add("acme", "platform", "#1 %2F\\ü")
	f.Fuzz(func(t *testing.T, owner, name, branch string) {
		owner, name = strings.ToLower(owner), strings.ToLower(name)
		if !segment.MatchString(owner) || !segment.MatchString(name) || strings.HasSuffix(name, ".git") || odd(branch) {
			return
		}
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(branch)
		for from, k := range hooks {
			body := k.body(owner, name, quoted)
			r := k.request(body, hookSecret)
			d, err := read(r.Body, r.Header)
			if err != nil {
				t.Fatal(err)
			}
			got, err := senderOf(r.Header).webhook.event(d)
			if err != nil {
				t.Fatalf("%s: %v\n%s", from, err, body)
			}
			repository := owner + "/" + name
			if from == "AzureDevOps" {
				repository = owner + "/_git/" + name
			}
			if got.Repositories[0] != repository || !slices.Contains(got.Refs, "refs/heads/"+branch) {
				t.Errorf("%s: %v, want %s and %s", from, got, repository, branch)
			}
			p := k.pulled()
			r = p.request(p.body(owner, name, quoted), hookSecret)
			if d, err = read(r.Body, r.Header); err != nil {
				t.Fatal(err)
			}
			if got, err := senderOf(r.Header).webhook.event(d); err != nil || !got.Pull || len(got.Refs) > 0 || got.Repositories[0] != repository {
				t.Errorf("%s: a pull request: %v, %v, want %s", from, got, err, repository)
			}
		}
	})
}

package forge

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/reconcile/report"
)

// fakePulls is a forge with pull request 7 of acme/platform and the API of its kind.
type fakePulls struct {
	kind     Kind
	self     string // user of the token; "" for the token of a GitHub workflow or of a repository
	comments []comment
	refuse   string // a verb that returns 403
	wrote    []string
}

// pullPaths holds the paths of pull requests. In edit, COMMENT stands for the ID of a comment.
var pullPaths = map[Kind]struct{ me, pull, list, edit, verb string }{
	KindGitHub:              {"/api/v3/user", "/api/v3/repos/acme/platform/pulls/7", "/api/v3/repos/acme/platform/issues/7/comments", "/api/v3/repos/acme/platform/issues/comments/COMMENT", http.MethodPatch},
	KindGitLab:              {"/api/v4/user", "/api/v4/projects/acme%2Fplatform/merge_requests/7", "/api/v4/projects/acme%2Fplatform/merge_requests/7/notes", "/api/v4/projects/acme%2Fplatform/merge_requests/7/notes/COMMENT", http.MethodPut},
	KindGitea:               {"/api/v1/user", "/api/v1/repos/acme/platform/pulls/7", "/api/v1/repos/acme/platform/issues/7/comments", "/api/v1/repos/acme/platform/issues/comments/COMMENT", http.MethodPatch},
	KindBitbucket:           {"/2.0/user", "/2.0/repositories/acme/platform/pullrequests/7", "/2.0/repositories/acme/platform/pullrequests/7/comments", "/2.0/repositories/acme/platform/pullrequests/7/comments/COMMENT", http.MethodPut},
	KindBitbucketDataCenter: {"/rest/api/latest/projects/acme/repos/platform", "/rest/api/latest/projects/acme/repos/platform/pull-requests/7", "/rest/api/latest/projects/acme/repos/platform/pull-requests/7/activities", "/rest/api/latest/projects/acme/repos/platform/pull-requests/7/comments/COMMENT", http.MethodPut},
	KindAzureDevOps:         {"/_apis/connectionData", "/acme/_apis/git/repositories/platform/pullRequests/7", "/acme/_apis/git/repositories/platform/pullRequests/7/threads", "/acme/_apis/git/repositories/platform/pullRequests/7/threads/COMMENT/comments/1", http.MethodPatch},
}

type object = map[string]any

// encoded returns a comment in the format of the forge.
func (d *fakePulls) encoded(c comment) object {
	body := strings.ReplaceAll(c.body, "\n", "\r\n")
	switch d.kind {
	case KindGitLab:
		return object{"id": c.id, "body": body, "system": false, "author": object{"username": c.author}}
	case KindBitbucket:
		return object{"id": c.id, "content": object{"raw": body, "markup": "markdown"}, "user": object{"uuid": c.author}, "deleted": false}
	case KindBitbucketDataCenter:
		return object{"id": 100 + c.id, "action": "COMMENTED", "comment": object{"id": c.id, "version": 5, "text": body, "author": object{"name": c.author}}}
	case KindAzureDevOps:
		return object{"id": c.id, "status": "closed", "comments": []any{object{"id": 1, "content": body, "author": object{"id": c.author}}, object{"id": 2, "content": "an answer"}}}
	}
	return object{"id": c.id, "body": body, "user": object{"login": c.author}}
}

// one returns a page of the list, with one pull request.
func (d *fakePulls) one(w http.ResponseWriter, r *http.Request) any {
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	page = max(page, 1)
	if start, _ := strconv.Atoi(r.URL.Query().Get("start")); d.kind == KindBitbucketDataCenter {
		page = start + 1
	}
	more := page < len(d.comments)
	some := []any{}
	if page <= len(d.comments) {
		some = append(some, d.encoded(d.comments[page-1]))
	}
	switch d.kind {
	case KindGitLab:
		if more {
			w.Header().Set("X-Next-Page", strconv.Itoa(page+1))
		}
	case KindBitbucket:
		of := object{"values": some}
		if more {
			of["next"] = "https://elsewhere.example.org/"
		}
		return of
	case KindBitbucketDataCenter:
		some = append(some, object{"id": 9, "action": "OPENED"})
		return object{"values": some, "isLastPage": !more, "nextPageStart": page}
	case KindAzureDevOps: // it does not page this list
		some = []any{object{"id": 99, "comments": []any{}}, object{"id": 98, "isDeleted": true, "comments": []any{object{"id": 1, "content": "gone"}}}}
		for _, c := range d.comments {
			some = append(some, d.encoded(c))
		}
		return object{"value": some, "count": len(some)}
	default:
		if more {
			w.Header().Set("Link", fmt.Sprintf("<http://%s%s?page=%d>; rel=\"next\"", r.Host, r.URL.Path, page+1))
		}
	}
	return some
}

// pull returns pull request 7 in the format of the forge.
func (d *fakePulls) pull() object {
	switch d.kind {
	case KindGitLab:
		return object{"iid": 7, "sha": commit, "target_branch": "main", "source_project_id": 1, "target_project_id": 1}
	case KindBitbucket: // twelve digits
		of := object{"full_name": "acme/platform"}
		return object{"id": 7, "source": object{"commit": object{"hash": commit[:12]}, "repository": of}, "destination": object{"branch": object{"name": "main"}, "repository": of}}
	case KindBitbucketDataCenter:
		of := object{"id": 1, "slug": "platform"}
		return object{"id": 7, "fromRef": object{"latestCommit": commit, "repository": of}, "toRef": object{"id": "refs/heads/main", "displayId": "main", "repository": of}}
	case KindAzureDevOps:
		return object{"pullRequestId": 7, "targetRefName": "refs/heads/main", "lastMergeSourceCommit": object{"commitId": commit}}
	}
	of := object{"id": 1}
	return object{"number": 7, "head": object{"sha": commit, "repo_id": 1, "repo": of}, "base": object{"ref": "main", "repo_id": 1, "repo": of}}
}

// sent returns the text of the comment in a request, and its version.
func sent(r *http.Request) (string, int) {
	var body struct {
		Body, Text string
		Version    int
		Content    json.RawMessage // an object in Bitbucket, a string in Azure DevOps
		Comments   []struct{ Content string }
	}
	if raw, _ := io.ReadAll(r.Body); len(raw) > 0 {
		_ = json.Unmarshal(raw, &body)
	}
	var content struct{ Raw string }
	if json.Unmarshal(body.Content, &content) != nil {
		_ = json.Unmarshal(body.Content, &content.Raw)
	}
	output := body.Body + body.Text + content.Raw
	for _, c := range body.Comments {
		output += c.Content
	}
	return output, body.Version
}

func (d *fakePulls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, path := pullPaths[d.kind], r.URL.EscapedPath()
	answer := func(code int, v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		answerJSON(w, code, string(raw))
	}
	if d.kind == KindBitbucketDataCenter && d.self != "" {
		w.Header().Set("X-Ausername", d.self)
	}
	text, version := sent(r)
	switch {
	case r.Method == d.refuse:
		answer(http.StatusForbidden, object{"message": "not with " + canary})
	case path == "/api/graphql" && d.kind == KindGitHub && d.self != "":
		answer(http.StatusOK, object{"data": object{"viewer": object{"login": d.self}}})
	case path == at.me && (d.self == "" || strings.HasSuffix(d.self, "[bot]")) && d.kind != KindBitbucketDataCenter:
		answer(http.StatusForbidden, object{"message": "Resource not accessible by integration"})
	case path == at.me:
		answer(http.StatusOK, object{"login": d.self, "username": d.self, "uuid": d.self, "authenticatedUser": object{"id": d.self}})
	case path == at.pull:
		answer(http.StatusOK, d.pull())
	case path == at.pull+"/commits":
		answer(http.StatusOK, object{"values": []any{object{"hash": strings.Repeat("e", 40)}, object{"hash": commit}}})
	case path == at.list && r.Method == http.MethodGet:
		answer(http.StatusOK, d.one(w, r))
	case path == strings.Replace(at.list, "activities", "comments", 1) && r.Method == http.MethodPost:
		d.wrote = append(d.wrote, "new "+text)
		answer(http.StatusCreated, d.encoded(comment{id: 9, body: text}))
	default:
		for _, c := range d.comments {
			switch {
			case path != strings.Replace(at.edit, "COMMENT", strconv.FormatInt(c.id, 10), 1) || r.Method != at.verb:
				continue
			case d.self == "" && c.author == "mallory":
				answer(http.StatusForbidden, object{"message": "you may not edit this comment"})
			case d.kind == KindBitbucketDataCenter && version != 5:
				answer(http.StatusConflict, object{"message": "out of date"})
			default:
				d.wrote = append(d.wrote, fmt.Sprintf("%d %s", c.id, text))
				answer(http.StatusOK, d.encoded(comment{id: c.id, body: text}))
			}
			return
		}
		answer(http.StatusNotFound, object{"message": "Not Found: " + r.URL.Path})
	}
}

func pullsOn(t *testing.T, d *fakePulls) *Pulls {
	t.Helper()
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	p, err := Account{Repository: Repository{Kind: d.kind, Base: server.URL, Owner: "acme", Name: "platform"}, Token: Token(canary)}.Pulls()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSticky(t *testing.T) {
	const mark = "MARK\n" // the hidden mark of the key, as on this forge
	ours := comment{id: 3, author: "Headgate", body: mark + "old"}
	copied := comment{id: 2, author: "mallory", body: mark + "old"}
	chat := comment{id: 1, author: "headgate", body: "a word of our own, which quotes " + mark}
	bot := []comment{copied, {id: 4, author: "github-actions[bot]", body: mark}}
	cases := map[string]struct {
		reason string
		only   []Kind
		self   string
		has    []comment
		body   string
		want   []string
	}{
		"First":     {"The pull request has no Headgate comment yet.", kinds, "headgate", nil, "new", []string{"new " + mark + "new"}},
		"Again":     {"Headgate edits its comment instead of adding another one.", kinds, "headgate", []comment{chat, copied, ours}, "new", []string{"3 " + mark + "new"}},
		"Same":      {"Users do not want a notification of an edit without changes; forges change line breaks.", kinds, "headgate", []comment{ours}, "old", nil},
		"Copied":    {"If a user copies the mark, that comment stays, and Headgate writes its own.", kinds, "headgate", []comment{copied}, "new", []string{"new " + mark + "new"}},
		"Workflow":  {"The token of a GitHub workflow cannot read its own user.", []Kind{KindGitHub}, "", bot, "new", []string{"4 " + mark + "new"}},
		"App":       {"Another App cannot read its own user either, but learns it in another way.", []Kind{KindGitHub}, "the-app[bot]", []comment{copied, {id: 4, author: "github-actions[bot]", body: mark}, {id: 5, author: "the-app[bot]", body: mark}}, "new", []string{"5 " + mark + "new"}},
		"NoUser":    {"The token of a Bitbucket repository has no user, and Bitbucket lets only authors edit.", []Kind{KindBitbucket, KindBitbucketDataCenter}, "", bot, "new", []string{"4 " + mark + "new"}},
		"NoUserNew": {"If Headgate can edit none of the comments, it adds a new one.", []Kind{KindBitbucket, KindBitbucketDataCenter}, "", bot[:1], "new", []string{"new " + mark + "new"}},
		"WithToken": {"A comment must not contain our token, even if a commit does.", kinds, "headgate", nil, "a " + canary + " b", []string{"new " + mark + "a *** b"}},
	}
	for name, tc := range cases {
		for _, kind := range kinds {
			if !slices.Contains(tc.only, kind) {
				continue
			}
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				marked := func(s string) string {
					return strings.ReplaceAll(s, mark, kind.forge().dialect.Mark("headgate/platform"))
				}
				d := &fakePulls{kind: kind, self: tc.self}
				for _, c := range tc.has {
					c.body = marked(c.body)
					d.comments = append(d.comments, c)
				}
				var want []string
				for _, w := range tc.want {
					want = append(want, marked(w))
				}
				if err := pullsOn(t, d).Comment(t.Context(), 7, "headgate/platform", tc.body); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, d.wrote); diff != "" {
					t.Errorf("%s\nwritten (-want +got):\n%s", tc.reason, diff)
				}
			})
		}
	}
}

func TestPullRefused(t *testing.T) {
	for _, kind := range kinds {
		for _, verb := range []string{http.MethodGet, http.MethodPost, pullPaths[kind].verb} {
			d := &fakePulls{kind: kind, self: "headgate", refuse: verb}
			if verb == pullPaths[kind].verb {
				d.comments = []comment{{id: 3, author: "headgate", body: kind.forge().dialect.Mark("k")}}
			}
			err := pullsOn(t, d).Comment(t.Context(), 7, "k", "new")
			if err == nil || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), "may not comment on pull requests of acme/platform (403)") {
				t.Errorf("%s: %s refused: %v", kind, verb, err)
			}
		}
		pull, err := pullsOn(t, &fakePulls{kind: kind}).Pull(t.Context(), 7)
		if diff := cmp.Diff(Pull{Number: 7, Head: commit, Target: "main", Merge: kind.forge().mergeOf(7)}, pull); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", kind, err, diff)
		}
		if _, err := pullsOn(t, &fakePulls{kind: kind}).Pull(t.Context(), 8); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("%s: a pull request that is not there: %v", kind, err)
		}
	}
}

func TestMarks(t *testing.T) {
	for kind, want := range map[Kind]string{KindGitHub: "<!-- headgate/a-b-script- -->\n", KindBitbucket: "[//]: # (headgate/a-b-script-)\n\n"} {
		if got := kind.forge().dialect.Mark("headgate/a-->b<script>)\n"); got != want {
			t.Errorf("%s: Mark(...) = %q, want %q: a name must not end the mark", kind, got, want)
		}
	}
}

// Bitbucket does not interpret HTML tags.
func TestDialect(t *testing.T) {
	const body = "a\n\n<details><summary>updated <code>x &lt;details&gt;</code></summary>\n\n```diff\n+<details><summary>mine</summary>\n```\n\n</details>\nb\n"
	if got := KindGitLab.forge().dialect.Render(body); got != body {
		t.Errorf("GitLab folds: %q", got)
	}
	const want = "a\n\n**updated x &lt;details&gt;**\n\n```diff\n+<details><summary>mine</summary>\n```\n\nb\n"
	if got := KindBitbucketDataCenter.forge().dialect.Render(body); got != want {
		t.Errorf("Render(...) = %q, want %q", got, want)
	}
}

// Headgate refuses a comment that is too long instead of returning the forge's error. Previews are shortened before.
func TestTooLong(t *testing.T) {
	for _, kind := range kinds {
		d := &fakePulls{kind: kind, self: "headgate"}
		p := pullsOn(t, d)
		if err := p.Publish(t.Context(), 7, Current{Key: "k", Body: strings.Repeat("x", p.room("k")+1), Verdict: report.Blocked}); err == nil || len(d.wrote) > 0 {
			t.Errorf("%s: a comment that is too long: %v, and %d written", kind, err, len(d.wrote))
		}
		if err := p.Publish(t.Context(), 7, Current{Key: "k", Body: strings.Repeat("x", p.room("k")), Verdict: report.Blocked}); err != nil || len(d.wrote) != 1 {
			t.Errorf("%s: a comment that just fits: %v, and %d written", kind, err, len(d.wrote))
		}
	}
}

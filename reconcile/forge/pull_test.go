package forge

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// desktop is a forge that has pull request 7 of acme/platform, in the shape of either API.
type desktop struct {
	kind     Kind
	self     string // who the token is of; "" is a workflow of GitHub
	comments []comment
	refuse   string // a verb that is answered with 403
	wrote    []string
}

func (d *desktop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	api := map[Kind]string{KindGitHub: "/api/v3", KindGitea: "/api/v1"}[d.kind]
	path := strings.TrimPrefix(r.URL.Path, api)
	said := func(c comment) map[string]any {
		return map[string]any{"id": c.id, "body": strings.ReplaceAll(c.body, "\n", "\r\n"), "user": map[string]any{"login": c.author}}
	}
	answer := func(code int, v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		answerJSON(w, code, string(raw))
	}
	var body struct{ Body string }
	if raw, _ := io.ReadAll(r.Body); len(raw) > 0 {
		_ = json.Unmarshal(raw, &body)
	}
	switch {
	case r.Method == d.refuse:
		answer(http.StatusForbidden, map[string]string{"message": "not with " + canary})
	case path == "/user" && d.self == "":
		answer(http.StatusForbidden, map[string]string{"message": "Resource not accessible by integration"})
	case path == "/user":
		answer(http.StatusOK, map[string]any{"login": d.self})
	case path == "/repos/acme/platform/pulls/7":
		answer(http.StatusOK, map[string]any{"number": 7, "head": map[string]any{"sha": commit}, "base": map[string]any{"ref": "main"}})
	case path == "/repos/acme/platform/issues/7/comments" && r.Method == http.MethodGet:
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		if page = max(page, 1); page < len(d.comments) { // one a page
			w.Header().Set("Link", fmt.Sprintf("<http://%s%s?page=%d>; rel=\"next\"", r.Host, r.URL.Path, page+1))
		}
		var some []any
		if page <= len(d.comments) {
			some = append(some, said(d.comments[page-1]))
		}
		answer(http.StatusOK, some)
	case path == "/repos/acme/platform/issues/7/comments" && r.Method == http.MethodPost:
		d.wrote = append(d.wrote, "new "+body.Body)
		answer(http.StatusCreated, said(comment{id: 9, body: body.Body}))
	case strings.HasPrefix(path, "/repos/acme/platform/issues/comments/") && r.Method == http.MethodPatch:
		d.wrote = append(d.wrote, strings.TrimPrefix(path, "/repos/acme/platform/issues/comments/")+" "+body.Body)
		answer(http.StatusOK, said(comment{id: 1, body: body.Body}))
	default:
		answer(http.StatusNotFound, map[string]string{"message": "Not Found: " + r.URL.Path})
	}
}

func pullsOn(t *testing.T, d *desktop) *Pulls {
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
	const mark = "<!-- headgate/platform -->"
	ours := comment{id: 3, author: "Headgate", body: mark + "\nold"}
	copied := comment{id: 2, author: "mallory", body: mark + "\nold"}
	chat := comment{id: 1, author: "headgate", body: "a word of our own, which quotes " + mark}
	cases := map[string]struct {
		reason string
		only   Kind
		self   string
		has    []comment
		body   string
		want   []string
	}{
		"First":     {"There is none yet.", "", "headgate", nil, "new", []string{"new " + mark + "\nnew"}},
		"Again":     {"One comment, not two.", "", "headgate", []comment{chat, copied, ours}, "new", []string{"3 " + mark + "\nnew"}},
		"Same":      {"Nobody wants to be told of an edit that is none; forges write line breaks otherwise.", "", "headgate", []comment{ours}, "old", nil},
		"Copied":    {"Whoever copies the mark keeps their comment, and we write our own.", "", "headgate", []comment{copied}, "new", []string{"new " + mark + "\nnew"}},
		"Workflow":  {"A workflow of GitHub cannot ask who it is.", KindGitHub, "", []comment{copied, {id: 4, author: "github-actions[bot]", body: mark}}, "new", []string{"4 " + mark + "\nnew"}},
		"WithToken": {"A commit may hold our token; a comment does not.", "", "headgate", nil, "a " + canary + " b", []string{"new " + mark + "\na *** b"}},
	}
	for name, tc := range cases {
		for _, kind := range kinds {
			if tc.only != "" && tc.only != kind {
				continue
			}
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				d := &desktop{kind: kind, self: tc.self, comments: tc.has}
				if err := pullsOn(t, d).Comment(t.Context(), 7, "headgate/platform", tc.body); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, d.wrote); diff != "" {
					t.Errorf("%s\nwritten (-want +got):\n%s", tc.reason, diff)
				}
			})
		}
	}
}

func TestPullRefused(t *testing.T) {
	for _, kind := range kinds {
		for _, verb := range []string{http.MethodGet, http.MethodPost, http.MethodPatch} {
			d := &desktop{kind: kind, self: "headgate", refuse: verb}
			if verb == http.MethodPatch {
				d.comments = []comment{{id: 3, author: "headgate", body: "<!-- k -->"}}
			}
			err := pullsOn(t, d).Comment(t.Context(), 7, "k", "new")
			if err == nil || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), "may not comment on pull requests of acme/platform (403)") {
				t.Errorf("%s: %s refused: %v", kind, verb, err)
			}
		}
		pull, err := pullsOn(t, &desktop{kind: kind}).Pull(t.Context(), 7)
		if diff := cmp.Diff(Pull{Number: 7, Head: commit, Target: "main"}, pull); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", kind, err, diff)
		}
		if _, err := pullsOn(t, &desktop{kind: kind}).Pull(t.Context(), 8); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("%s: a pull request that is not there: %v", kind, err)
		}
	}
}

func TestMarks(t *testing.T) {
	if got, want := markOf("headgate/a-->b<script>\n"), "<!-- headgate/a-b-script- -->"; got != want {
		t.Errorf("markOf(...) = %q, want %q: a name must not end the mark", got, want)
	}
}

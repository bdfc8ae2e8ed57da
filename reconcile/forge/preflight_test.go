package forge_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/preflight"
	"headgate.dev/headgate/reconcile/report"
)

func inspectorOf(t *testing.T, kind forge.Kind, base, path, token string) *forge.Inspector {
	t.Helper()
	at, err := forge.RepositoryAt(base, path, kind)
	if err != nil {
		t.Fatal(err)
	}
	i, err := forge.Account{Repository: at, Token: forge.Token(token)}.Inspector()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// A real Gitea shows the scopes of a token when it refuses a request, and the protection of a branch to every reader.
func TestGiteaBeforeTheFirstPass(t *testing.T) {
	g := fixtures.StartGitea(t)
	cloned := g.CreateRepo(t, "platform")
	commit := g.Commit(t, "platform", "a.yaml", "a: 1\n")
	path := "/repos/" + g.Owner + "/platform"
	of := func(token string) *forge.Inspector {
		return inspectorOf(t, forge.KindGitea, g.URL, g.Owner+"/platform", token)
	}

	for name, tc := range map[string]struct {
		reason, scopes, permission string
		want                       preflight.Status
		says                       string
	}{
		"Writes":  {"It has the scope, and its user the access.", "write:repository", "write", preflight.OK, "write:repository"},
		"Reads":   {"A token that only reads cannot post.", "read:repository", "write", preflight.Failed, "read:repository"},
		"Reader":  {"Its user may only read.", "write:repository,read:user", "read", preflight.Failed, "not write"},
		"Nothing": {"It has other scopes only.", "read:user", "write", preflight.Failed, "read:user"},
		"All":     {"Gitea refuses nothing, so it shows no scopes.", "all", "write", preflight.Unknown, "does not report its scopes"},
	} {
		t.Run(name, func(t *testing.T) {
			token := g.User(t, strings.ToLower(name), tc.scopes)
			g.Call(t, http.MethodPut, path+"/collaborators/"+strings.ToLower(name), map[string]string{"permission": tc.permission}, nil)
			found, err := of(token).Token(t.Context())
			got := found.Judge()
			if err != nil || got.Status != tc.want || !strings.Contains(got.Message, tc.says) || strings.Contains(got.Message, token) {
				t.Errorf("%s\n%s: %s (%v), want %s with %q", tc.reason, got.Status, got.Message, err, tc.want, tc.says)
			}
		})
	}
	if _, err := of("0123456789012345678901234567890123456789").Token(t.Context()); err == nil || !strings.Contains(err.Error(), "not accepted") {
		t.Errorf("a token that does not exist: %v", err)
	}

	required := func(want ...string) {
		t.Helper()
		for _, branch := range []string{"main", ""} {
			found, err := of(g.Token).Protection(t.Context(), branch)
			if err != nil || found.Branch != "main" || !slices.Equal(found.Required, want) {
				t.Errorf("the branch %q requires %q (%v), want %q", branch, found.Required, err, want)
			}
		}
	}
	required()
	g.Call(t, http.MethodPost, path+"/branch_protections", map[string]any{"rule_name": "main", "enable_status_check": true, "status_check_contexts": []string{"headgate/*/preview", "build"}}, nil)
	required("build", "headgate/*/preview")
	g.Call(t, http.MethodPatch, path+"/branch_protections/main", map[string]any{"enable_status_check": false}, nil)
	required()
	if _, err := of(g.Token).Protection(t.Context(), "nowhere"); err == nil {
		t.Error("a branch that does not exist")
	}

	// Two clusters post under one name.
	contexts := forge.Statuses{Cluster: "prod", Home: "headgate-system"}
	sync := inventory.Sync{Namespace: "headgate-system", Name: "platform"}
	activation, _ := contexts.Contexts(sync)
	bob := g.User(t, "bob", "write:repository")
	g.Call(t, http.MethodPut, path+"/collaborators/bob", map[string]string{"permission": "write"}, nil)
	for n, token := range []string{g.Token, bob} {
		at, err := forge.RepositoryOf(cloned, forge.KindGitea)
		if err != nil {
			t.Fatal(err)
		}
		record, err := forge.Account{Repository: at, Token: forge.Token(token)}.Poster()
		if err != nil {
			t.Fatal(err)
		}
		status := forge.Status{Commit: commit, Context: activation, State: report.Success, Description: strings.Repeat("x", n+1)}
		if err := record.Post(t.Context(), status); err != nil {
			t.Fatal(err)
		}
		by, err := of(g.Token).PostedBy(t.Context(), commit, activation)
		if want := []string{"bob", g.Owner}[1-n:]; err != nil || !slices.Equal(by, want) {
			t.Errorf("%s was posted by %q (%v), want %q", activation, by, err, want)
		}
	}
}

// The other forges are read as their documentation describes.
func TestForgesBeforeTheFirstPass(t *testing.T) {
	const token = "canary-of-the-token"
	answers := map[string]string{
		"/api/v3/repos/a/b":                     `{"private":true,"default_branch":"main","permissions":{"push":true,"pull":true}}`,
		"/api/v3/repos/a/b/branches/main":       `{"name":"main","protected":true,"protection":{"enabled":true,"required_status_checks":{"enforcement_level":"everyone","contexts":["build"],"checks":[{"context":"build","app_id":null}]}}}`,
		"/api/v3/repos/a/b/rules/branches/main": `[{"type":"required_status_checks","ruleset_source_type":"Repository","ruleset_source":"a/b","ruleset_id":1,"parameters":{"required_status_checks":[{"context":"headgate/prod/preview"}]}}]`,
		"/api/v4/personal_access_tokens/self":   `{"id":1,"active":true,"scopes":["read_api"],"expires_at":"2020-01-02"}`,
		"/api/v4/projects/a%2Fb":                `{"default_branch":"main","only_allow_merge_if_pipeline_succeeds":true,"permissions":{"project_access":{"access_level":30}}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, known := answers[r.URL.EscapedPath()]
		if r.Method != http.MethodGet || !known {
			t.Errorf("a request that nothing documents: %s %s", r.Method, r.URL.EscapedPath())
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Oauth-Scopes", "read:org, repo:status")
		w.Header().Set("Github-Authentication-Token-Expiration", "2020-01-02 03:04:05 UTC")
		_, _ = io.WriteString(w, text)
	}))
	defer server.Close()
	for kind, want := range map[forge.Kind]struct {
		token, expiry preflight.Status
		required      []string
		pipeline      bool
	}{
		forge.KindGitHub: {preflight.OK, preflight.Failed, []string{"build", "headgate/prod/preview"}, false},
		forge.KindGitLab: {preflight.Failed, preflight.Failed, nil, true},
	} {
		for _, branch := range []string{"main", ""} {
			i := inspectorOf(t, kind, server.URL, "a/b", token)
			found, err := i.Token(t.Context())
			if err != nil || found.Judge().Status != want.token || found.Expiry.Judge().Status != want.expiry {
				t.Errorf("%s: the token: %+v, %v", kind, found, err)
			}
			protects, err := i.Protection(t.Context(), branch)
			if err != nil || protects.Branch != "main" || !slices.Equal(protects.Required, want.required) || protects.Pipeline != want.pipeline {
				t.Errorf("%s: the branch: %+v, %v", kind, protects, err)
			}
		}
	}
}

// A forge, or a proxy before it, may answer with anything. Nothing of it, and no token, is in an error.
func TestForgesAnswerAnything(t *testing.T) {
	const token = "canary-of-the-token"
	for name, answer := range map[string]string{"Page": "<html>" + token + "</html>", "Null": "null", "List": "[null]", "Nulls": `{"permissions":null,"protection":null,"scopes":null}`, "Empty": ""} {
		for _, code := range []int{http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusInternalServerError} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				_, _ = io.WriteString(w, answer)
			}))
			for _, f := range forge.All() {
				path := "a/b"
				if f.Kind == "azure" {
					path = "a/b/c"
				}
				at, err := forge.RepositoryAt(server.URL, path, f.Kind)
				if err != nil {
					continue // a forge with another kind of path
				}
				i, err := forge.Account{Repository: at, Token: forge.Token(token)}.Inspector()
				if err != nil {
					continue
				}
				_, one := i.Token(context.Background())
				_, two := i.Protection(context.Background(), "main")
				_, three := i.PostedBy(context.Background(), strings.Repeat("a", 40), "x")
				for _, err := range []error{one, two, three} {
					if err != nil && strings.Contains(err.Error(), token) {
						t.Errorf("%s, %d, %s: the token is in the error: %v", name, code, f.Kind, err)
					}
					if err == nil && code != http.StatusOK && one == nil {
						t.Errorf("%s, %d, %s: no error", name, code, f.Kind)
					}
				}
			}
			server.Close()
		}
	}
}

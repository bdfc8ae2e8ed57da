package forge

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A listing is a documented list of open pull requests: the first page has 12 from a fork, the second page has 7 from a branch and
// one without a head.
type listing struct {
	path   string
	asks   []string  // parts of the query for the first page
	pages  [2]string // bodies; HEAD stands for a commit
	second string    // part of the query for the second page
	next   func(w http.ResponseWriter, r *http.Request)
}

func linked(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?page=2>; rel="next"`, r.Host, r.URL.Path))
}

const hubPulls = `[{"number":12,"state":"open","head":{"ref":"topic","sha":"HEAD","repo_id":9,"repo":{"id":9,"full_name":"fork/platform"}},` +
	`"base":{"ref":"main","repo_id":1,"repo":{"id":1,"full_name":"acme/platform"}}}]`

var hubRest = `[{"number":7,"head":{"sha":"HEAD","repo_id":1,"repo":{"id":1}},"base":{"ref":"release/1","repo_id":1,"repo":{"id":1}}},null,` +
	`{"number":5,"head":{"sha":"","repo":null},"base":{"ref":"main","repo":{"id":1}}}]`

var listings = map[Kind]listing{
	KindGitHub: {
		"/api/v3/repos/acme/platform/pulls", []string{"state=open", "per_page=100"}, [2]string{hubPulls, hubRest}, "page=2", linked,
	},
	KindGitea: {
		"/api/v1/repos/acme/platform/pulls", []string{"state=open", "limit=50"}, [2]string{hubPulls, hubRest}, "page=2", linked,
	},
	KindGitLab: {
		"/api/v4/projects/acme%2Fplatform/merge_requests", []string{"state=opened", "per_page=100"}, [2]string{
			`[{"id":112,"iid":12,"state":"opened","sha":"HEAD","target_branch":"main","source_project_id":9,"target_project_id":1}]`,
			`[{"iid":7,"sha":"HEAD","target_branch":"release/1","source_project_id":1,"target_project_id":1},{"iid":5,"sha":null}]`,
		}, "page=2", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Next-Page", "2") },
	},
	KindBitbucket: { // Bitbucket shortens heads to twelve digits, and lists at most 50 per page
		"/2.0/repositories/acme/platform/pullrequests", []string{"pagelen=50"}, [2]string{
			`{"values":[{"id":12,"state":"OPEN","source":{"commit":{"hash":"SHORT"},"repository":{"full_name":"fork/platform"}},` +
				`"destination":{"branch":{"name":"main"},"repository":{"full_name":"acme/platform"}}}],"next":"https://elsewhere.example.org/"}`,
			`{"values":[{"id":7,"source":{"commit":{"hash":"SHORT"},"repository":{"full_name":"acme/platform"}},` +
				`"destination":{"branch":{"name":"release/1"},"repository":{"full_name":"acme/platform"}}},null,{"id":5,"source":{"commit":null}}]}`,
		}, "page=2", nil,
	},
	KindBitbucketDataCenter: {
		"/rest/api/latest/projects/acme/repos/platform/pull-requests", []string{"limit=100", "start=0"}, [2]string{
			`{"values":[{"id":12,"state":"OPEN","fromRef":{"id":"refs/heads/x","latestCommit":"HEAD","repository":{"id":9}},` +
				`"toRef":{"id":"refs/heads/main","repository":{"id":1}}}],"isLastPage":false,"nextPageStart":25}`,
			`{"values":[{"id":7,"fromRef":{"latestCommit":"HEAD","repository":{"id":1}},"toRef":{"id":"refs/heads/release/1","repository":{"id":1}}},` +
				`null,{"id":5,"fromRef":null}],"isLastPage":true}`,
		}, "start=25", nil,
	},
	KindAzureDevOps: {
		"/acme/_apis/git/repositories/platform/pullRequests", []string{"searchCriteria.status=active", "$top=100", "api-version="}, [2]string{
			`{"value":[{"pullRequestId":12,"status":"active","targetRefName":"refs/heads/main","lastMergeSourceCommit":{"commitId":"HEAD"},"forkSource":{"repository":{"id":"9"}}}` +
				strings.Repeat(`,null`, 99) + `],"count":100}`,
			`{"value":[{"pullRequestId":7,"targetRefName":"refs/heads/release/1","lastMergeSourceCommit":{"commitId":"HEAD"}},{"pullRequestId":5}]}`,
		}, "$skip=100", nil,
	},
}

func (l listing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := strings.ReplaceAll(r.URL.RawQuery, "%24", "$")
	body := l.pages[0]
	switch {
	case r.URL.EscapedPath() == l.path+"/12" || r.URL.EscapedPath() == l.path+"/7": // of Bitbucket
		_, body, _ = strings.Cut(l.pages[0], "[")
		body, _, _ = strings.Cut(body, `],"next"`)
	case strings.HasSuffix(r.URL.Path, "/commits"):
		body = `{"values":[{"hash":"` + commit + `"}]}`
	case r.URL.EscapedPath() != l.path:
		answerJSON(w, http.StatusNotFound, `{}`)
		return
	case strings.Contains(query, l.second):
		body = l.pages[1]
	case !slices.ContainsFunc(l.asks, func(q string) bool { return !strings.Contains(query, q) }):
		if l.next != nil {
			l.next(w, r)
		}
	default:
		answerJSON(w, http.StatusBadRequest, `{"message":"`+query+`"}`)
		return
	}
	answerJSON(w, http.StatusOK, strings.NewReplacer("HEAD", commit, "SHORT", commit[:12]).Replace(body))
}

func accountOn(t *testing.T, kind Kind, h http.Handler) Account {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return Account{Repository: Repository{Kind: kind, Base: server.URL, Owner: "acme", Name: "platform"}, Token: Token(canary)}
}

func TestOpen(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			requests := 0
			p, err := accountOn(t, kind, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests++
				listings[kind].ServeHTTP(w, r)
			})).Pulls()
			if err != nil {
				t.Fatal(err)
			}
			want := []Pull{{Number: 12, Head: commit, Target: "main", Fork: true, Merge: kind.forge().mergeOf(12)}, {Number: 7, Head: commit, Target: "release/1", Merge: kind.forge().mergeOf(7)}}
			for range 2 {
				requests = 0
				got, err := p.Open(t.Context())
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Fatalf("%v (-want +got):\n%s", err, diff)
				}
			}
			if requests != 2 {
				t.Errorf("%d requests where nothing is new, want one for each page", requests)
			}
		})
	}
}

// A maintainer has not reviewed the head in a fork. If the forge does not name the head's repository, it counts as a fork.
func TestForkUnlessKnown(t *testing.T) {
	for _, kind := range kinds {
		if kind == KindAzureDevOps { // it names the repository only for forks
			continue
		}
		gone := strings.NewReplacer(`"repo_id":9,"repo":{"id":9,"full_name":"fork/platform"}`, `"repo":null`, `"source_project_id":9`, `"source_project_id":null`,
			`"repository":{"full_name":"fork/platform"}`, `"repository":null`, `"repository":{"id":9}`, `"repository":null`)
		l := listings[kind]
		l.pages[0] = gone.Replace(l.pages[0])
		p, err := accountOn(t, kind, l).Pulls()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Open(t.Context()); err != nil || len(got) != 2 || !got[0].Fork || got[1].Fork {
			t.Errorf("%s: %v, %v", kind, got, err)
		}
	}
}

// The error response of the forge decides whether Headgate retries, and which advice the user gets.
func TestOpenRefused(t *testing.T) {
	for _, kind := range kinds {
		for code, want := range map[int]struct {
			says  string
			later bool
			after time.Duration
		}{
			401: {says: "the token is not accepted (401)"},
			403: {says: "requests of acme/platform (403): it needs the "},
			404: {says: "no repository acme/platform"},
			429: {says: "", later: true, after: 2 * time.Minute},
			500: {says: "", later: true},
			503: {says: "", later: true, after: 2 * time.Minute},
		} {
			p, err := accountOn(t, kind, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if code == 429 || code == 503 {
					w.Header().Set("Retry-After", "120")
				}
				answerJSON(w, code, `{"message":"you sent `+r.Header.Get("Authorization")+`"}`)
			})).Pulls()
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Open(t.Context())
			later, passes := errors.AsType[*Later](err)
			if err == nil || passes != want.later || !strings.Contains(err.Error(), want.says) || strings.Contains(err.Error(), canary) {
				t.Errorf("%s: %d: %v", kind, code, err)
			}
			if passes && later.After < want.after-time.Second {
				t.Errorf("%s: %d: again after %s, want %s", kind, code, later.After, want.after)
			}
		}
	}
}

// Branch rules require the status for the commits of a merge queue, too. Without the right to read branches, pull requests are
// previewed as before.
func TestQueued(t *testing.T) {
	ref := func(name, sha string) string {
		return `{"ref":"refs/heads/gh-readonly-queue/` + name + `","object":{"sha":"` + sha + `"}}`
	}
	for name, tc := range map[string]struct {
		code   int
		answer string
		want   []Pull
		fails  bool
	}{
		"Queue": {
			http.StatusOK, `[` + ref("main/pr-7-"+commit, commit) + `,` + ref("release/1/pr-12-"+commit, commit) + `,` + ref("main/other", commit) + `,` + ref("main/pr-8-"+commit, "short") + `,null]`,
			[]Pull{{Number: 7, Head: commit, Target: "main", Queued: true}, {Number: 12, Head: commit, Target: "release/1", Queued: true}}, false,
		},
		"None":    {http.StatusOK, `[]`, nil, false},
		"Refused": {http.StatusForbidden, `{"message":"Resource not accessible by personal access token"}`, nil, false},
		"Hidden":  {http.StatusNotFound, `{"message":"Not Found"}`, nil, false},
		"Empty":   {http.StatusConflict, `{"message":"Git Repository is empty."}`, nil, false},
		"Away":    {http.StatusBadGateway, `{}`, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := accountOn(t, KindGitHub, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if want := "/api/v3/repos/acme/platform/git/matching-refs/heads/gh-readonly-queue/"; r.URL.Path != want {
					t.Errorf("GET %s, want %s", r.URL.Path, want)
				}
				answerJSON(w, tc.code, tc.answer)
			})).Pulls()
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Queued(t.Context())
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" || (err != nil) != tc.fails {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	p, err := accountOn(t, KindGitea, http.NotFoundHandler()).Pulls()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Queued(t.Context()); err != nil || got != nil {
		t.Errorf("a forge without queues: %v, %v", got, err)
	}
}

// The commits of merge trains get the status, too, if GitLab has them.
func TestTrains(t *testing.T) {
	car := func(number, sha string) string {
		return `{"id":1,"merge_request":{"iid":` + number + `},"pipeline":{"sha":"` + sha + `","ref":"refs/merge-requests/` + number + `/train"},"target_branch":"main","status":"fresh"}`
	}
	for name, tc := range map[string]struct {
		code   int
		answer string
		want   []Pull
		fails  bool
	}{
		"Train":   {http.StatusOK, `[` + car("7", commit) + `,` + car("8", "short") + `,{"merge_request":{"iid":9},"target_branch":"main","status":"idle"},null]`, []Pull{{Number: 7, Head: commit, Target: "main", Queued: true}}, false},
		"None":    {http.StatusOK, `[]`, nil, false},
		"Refused": {http.StatusForbidden, `{"message":"403 Forbidden"}`, nil, false},
		"Hidden":  {http.StatusNotFound, `{"message":"404 Not found"}`, nil, false},
		"Away":    {http.StatusBadGateway, `{}`, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := accountOn(t, KindGitLab, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if want := "/api/v4/projects/acme%2Fplatform/merge_trains"; r.URL.EscapedPath() != want || r.URL.Query().Get("scope") != "active" {
					t.Errorf("GET %s, want %s", r.URL, want)
				}
				answerJSON(w, tc.code, tc.answer)
			})).Pulls()
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Queued(t.Context())
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" || (err != nil) != tc.fails {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

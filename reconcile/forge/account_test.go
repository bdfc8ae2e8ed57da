package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/reconcile/report"
)

// canary is the token. It must not appear in any output.
const canary = "ghp_canary7Q2xXnotToBeSeen"

// fake is a forge that stores statuses of acme/platform, with the API of its kind.
type fake struct {
	kind Kind
	page int // statuses per page; 0 for all on one page

	// instead may answer a request in place of the forge. It reports whether it did.
	instead func(w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	statuses []Status // oldest first
	requests []string // verb and path, as in "GET /list"
}

func (f *fake) start(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return server
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r.Method+" "+r.URL.Path)
	if f.instead != nil && f.instead(w, r) {
		return
	}
	at := statusPaths[f.kind]
	switch {
	case r.Header.Get("Authorization") != f.kind.forge().header(canary):
		answerJSON(w, http.StatusUnauthorized, `{"message":"Bad credentials"}`)
	case r.Method == http.MethodGet && r.URL.EscapedPath() == at.list:
		f.list(w, r)
	case r.Method == http.MethodPost && r.URL.EscapedPath() == at.create:
		f.create(w, r)
	default:
		answerJSON(w, http.StatusNotFound, `{"message":"Not Found"}`)
	}
}

// statusPaths holds the paths that list and create statuses.
var statusPaths = map[Kind]struct{ list, create string }{
	KindGitHub:              {"/api/v3/repos/acme/platform/commits/" + commit + "/status", "/api/v3/repos/acme/platform/statuses/" + commit},
	KindGitLab:              {"/api/v4/projects/acme%2Fplatform/repository/commits/" + commit + "/statuses", "/api/v4/projects/acme%2Fplatform/statuses/" + commit},
	KindGitea:               {"/api/v1/repos/acme/platform/commits/" + commit + "/statuses", "/api/v1/repos/acme/platform/statuses/" + commit},
	KindBitbucket:           {"/2.0/repositories/acme/platform/commit/" + commit + "/statuses", "/2.0/repositories/acme/platform/commit/" + commit + "/statuses/build"},
	KindBitbucketDataCenter: {"/rest/build-status/latest/commits/" + commit, "/rest/api/latest/projects/acme/repos/platform/commits/" + commit + "/builds"},
	KindAzureDevOps:         {"/acme/_apis/git/repositories/platform/commits/" + commit + "/statuses", "/acme/_apis/git/repositories/platform/commits/" + commit + "/statuses"},
}

// item returns a status in the format of the forge.
func (f *fake) item(id int, s Status) map[string]any {
	genre, name, _ := strings.Cut(s.Context, "/")
	switch f.kind {
	case KindGitHub:
		return map[string]any{"id": id, "state": s.State, "context": s.Context, "description": s.Description, "target_url": s.TargetURL}
	case KindGitLab:
		return map[string]any{"id": id, "sha": commit, "status": s.State, "name": s.Context, "description": s.Description, "target_url": s.TargetURL, "author": map[string]any{"username": "headgate"}}
	case KindBitbucket, KindBitbucketDataCenter:
		return map[string]any{"key": buildKey(s.Context), "name": s.Context, "state": s.State, "description": s.Description, "url": s.TargetURL}
	case KindAzureDevOps:
		return map[string]any{"id": id, "state": s.State, "description": s.Description, "targetUrl": s.TargetURL, "context": map[string]any{"genre": genre, "name": name}}
	}
	return map[string]any{"id": id, "status": s.State, "context": s.Context, "description": s.Description, "target_url": s.TargetURL}
}

func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	items, seen := []any{}, map[string]bool{}
	for i := range f.statuses {
		// Gitea lists all statuses, and those of the same second in any order; here in the wrong order. All other forges list only
		// the newest of each context.
		at := i
		if f.kind != KindGitea {
			at = len(f.statuses) - 1 - i
			if seen[f.statuses[at].Context] {
				continue
			}
			seen[f.statuses[at].Context] = true
		}
		items = append(items, f.item(at+1, f.statuses[at]))
	}
	query, more := r.URL.Query(), 0
	if f.page > 0 && f.kind != KindAzureDevOps { // the client requests a thousand per page
		page, _ := strconv.Atoi(query.Get("page"))
		if f.kind == KindBitbucketDataCenter {
			start, _ := strconv.Atoi(query.Get("start"))
			page = start/f.page + 1
		}
		from, to := min((page-1)*f.page, len(items)), min(page*f.page, len(items))
		if to < len(items) {
			more = page + 1
		}
		items = items[from:to]
	}
	var out any = items
	switch f.kind {
	case KindGitHub:
		out = map[string]any{"state": "pending", "statuses": items}
	case KindGitLab:
		if more > 0 {
			w.Header().Set("X-Next-Page", strconv.Itoa(more))
		}
	case KindBitbucket:
		of := map[string]any{"pagelen": 100, "values": items}
		if more > 0 {
			of["next"] = "https://elsewhere.example.org/?page=2" // the client must not request this address
		}
		out = of
	case KindBitbucketDataCenter:
		of := map[string]any{"limit": 100, "values": items, "isLastPage": more == 0, "nextPageStart": nil}
		if more > 0 {
			of["nextPageStart"] = (more - 1) * f.page
		}
		out = of
	case KindAzureDevOps:
		out = map[string]any{"count": len(items), "value": items}
	}
	if more > 0 && (f.kind == KindGitHub || f.kind == KindGitea) {
		w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?page=%d>; rel="next"`, r.Host, r.URL.Path, more))
	}
	data, err := json.Marshal(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answerJSON(w, http.StatusOK, string(data))
}

func (f *fake) create(w http.ResponseWriter, r *http.Request) {
	var body struct {
		State, Name, Key, Description, URL string

		Target  string          `json:"target_url"`
		Azure   string          `json:"targetUrl"`
		Context json.RawMessage // a string or an object
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		answerJSON(w, http.StatusBadRequest, `{"message":"Problems parsing JSON"}`)
		return
	}
	s := Status{Commit: commit, Context: body.Name, State: report.State(body.State), Description: body.Description, TargetURL: body.Target + body.Azure + body.URL}
	code := http.StatusCreated
	switch f.kind {
	case KindGitHub, KindGitea:
		_ = json.Unmarshal(body.Context, &s.Context)
		if f.kind == KindGitHub && utf8.RuneCountInString(body.Description) > 140 {
			answerJSON(w, http.StatusUnprocessableEntity, `{"message":"Validation Failed","errors":[{"resource":"Status","code":"custom","field":"description","message":"description is too long (maximum is 140 characters)"}]}`)
			return
		}
	case KindGitLab:
		if utf8.RuneCountInString(body.Description) > 255 {
			answerJSON(w, http.StatusBadRequest, `{"message":{"description":["is too long (maximum is 255 characters)"]}}`)
			return
		}
		for i, is := range f.statuses {
			if is.Context == s.Context && is.State == "pending" {
				if s.State == "pending" {
					answerJSON(w, http.StatusBadRequest, `{"message":"Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via \"enqueue\")"}`)
					return
				}
				f.statuses[i] = s // GitLab updates a job until it has ended
				answerJSON(w, code, `{"id":1}`)
				return
			}
		}
	case KindBitbucket, KindBitbucketDataCenter:
		if len(body.Key) > 40 || body.URL == "" || len(body.Name) > 255 {
			answerJSON(w, http.StatusBadRequest, `{"type":"error","error":{"message":"Bad request","fields":{"url":["required"]}},"errors":[{"message":"url: required"}]}`)
			return
		}
		if f.kind == KindBitbucketDataCenter {
			code = http.StatusNoContent
		}
	case KindAzureDevOps:
		var in struct{ Genre, Name string }
		_ = json.Unmarshal(body.Context, &in)
		s.Context = in.Genre + "/" + in.Name
		code = http.StatusOK
	}
	f.statuses = append(f.statuses, s)
	if code == http.StatusNoContent {
		w.WriteHeader(code)
		return
	}
	answerJSON(w, code, `{"id":1}`)
}

// took returns the number of requests and writes since the previous call.
func (f *fake) took() (all, writes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if strings.HasPrefix(r, http.MethodPost) {
			writes++
		}
	}
	all, f.requests = len(f.requests), nil
	return all, writes
}

func answerJSON(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(body))
}

// statusesOn returns a publisher without any memory, as after a restart.
func statusesOn(t *testing.T, kind Kind, base string) Statuses {
	t.Helper()
	p, err := Account{Repository: Repository{Kind: kind, Base: base, Owner: "acme", Name: "platform"}, Token: Token(canary)}.Poster()
	if err != nil {
		t.Fatal(err)
	}
	return Statuses{Poster: p, Cluster: "production", Home: "headgate-system"}
}

// kinds are all kinds of forges. Most tests run once for each.
var kinds = func() (all []Kind) {
	for _, f := range All() {
		all = append(all, f.Kind)
	}
	return all
}()

// A forge that the fakes do not know is not tested. So each fake has a row for every forge.
func TestEveryForgeIsFaked(t *testing.T) {
	want := slices.Sorted(slices.Values(kinds))
	for name, known := range map[string][]Kind{
		"statuses": slices.Sorted(maps.Keys(statusPaths)), "comments": slices.Sorted(maps.Keys(pullPaths)), "open pull requests": slices.Sorted(maps.Keys(listings)),
		"links": slices.Sorted(maps.Keys(fileURLs)),
	} {
		if !slices.Equal(want, known) {
			t.Errorf("%s: the fakes know %s, and the forges are %s", name, known, want)
		}
	}
}

func TestNothingIsSaidTwice(t *testing.T) {
	red := reported(report.Status{State: report.Failure, Description: "1 failed: x"}, report.Status{State: report.Success, Description: "no drift"})
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			f := &fake{kind: kind, page: 3}
			server := f.start(t)
			s := statusesOn(t, kind, server.URL)
			expect := func(what string, r report.Report, requests, writes int) {
				t.Helper()
				if err := s.Publish(t.Context(), r); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if all, wrote := f.took(); all != requests || wrote != writes {
					t.Errorf("%s: %d requests, %d of them write; want %d and %d", what, all, wrote, requests, writes)
				}
			}
			expect("the first report lists the existing statuses once", report.Seen(green.Sync, green.Revision), 3, 2)
			expect("the second report uses the remembered statuses", green, 2, 2)
			expect("the next pass has the same result, so nothing is sent", green, 0, 0)
			expect("only the status that changed is posted", red, 1, 1)
			expect("the status changes back", green, 1, 1)
			s = statusesOn(t, kind, server.URL)
			pages := 1
			if kind == KindGitea {
				pages = 2 // six statuses, three per page
			}
			expect("after a restart, the existing statuses are read", green, pages, 0)
			s.TargetURL = "https://status.example.org/"
			expect("a new target URL is posted", green, 2, 2)
		})
	}
}

func TestLimits(t *testing.T) {
	long := report.Status{State: report.Failure, Description: "2 held: " + strings.Repeat("🚪", 300)}
	for kind, most := range map[Kind]int{KindGitHub: 140, KindGitLab: 255, KindGitea: 255, KindBitbucket: 255, KindBitbucketDataCenter: 255, KindAzureDevOps: 255} {
		f := &fake{kind: kind}
		server := f.start(t)
		for range 2 { // the second publisher finds the truncated description of the first
			if err := statusesOn(t, kind, server.URL).Publish(t.Context(), reported(long, long)); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
		}
		if len(f.statuses) != 2 {
			t.Errorf("%s: %d statuses, want 2", kind, len(f.statuses))
		}
		for _, s := range f.statuses {
			if n := utf8.RuneCountInString(s.Description); n != most || !strings.HasSuffix(s.Description, "🚪…") {
				t.Errorf("%s: a description of %d characters, want %d: %q", kind, n, most, s.Description)
			}
		}
	}
}

// A token is removed from a description before it is posted, however it got there.
func TestTokenInDescription(t *testing.T) {
	for _, kind := range kinds {
		f := &fake{kind: kind}
		leaky := report.Status{State: report.Error, Description: "cannot fetch: " + canary + " is not accepted by https://u:" + canary + "@example.org"}
		if err := statusesOn(t, kind, f.start(t).URL).Publish(t.Context(), reported(leaky, leaky)); err != nil {
			t.Fatal(err)
		}
		for _, s := range f.statuses {
			if strings.Contains(s.Description, canary) {
				t.Errorf("%s: the status says %q", kind, s.Description)
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	const echo = ` (you sent Authorization: token ` + canary + `)`
	type want struct {
		later bool
		after time.Duration
		says  []string // what a user needs to know in order to act
		never string   // part of the response body that the error must not quote
	}
	cases := map[string]struct {
		reason string
		only   Kind // empty is all
		code   int
		header map[string]string
		body   string
		want   want
	}{
		"Unauthorized": {
			reason: "An expired token stays invalid.",
			code:   401, body: `{"message":"Bad credentials` + echo + `"}`,
			want: want{says: []string{"401", "expired"}},
		},
		"ForbiddenGitHub": {
			reason: "The message names the permission in GitHub's words.",
			only:   KindGitHub, code: 403, body: `{"message":"Resource not accessible by personal access token` + echo + `"}`,
			want: want{says: []string{"403", "acme/platform", "Commit statuses: read and write", "repo:status"}, never: "Resource not accessible"},
		},
		"SingleSignOn": {
			reason: "The token has the permission, but the organization requires single sign-on.",
			only:   KindGitHub, code: 403, header: map[string]string{"X-GitHub-SSO": "required; url=https://github.com/orgs/acme/sso?authorization_request=x"},
			body: `{"message":"Resource protected by organization SAML enforcement."}`,
			want: want{says: []string{"403", "single sign-on"}},
		},
		"ForbiddenGitea": {
			reason: "The message names the permission in Gitea's words.",
			only:   KindGitea, code: 403, body: `{"message":"token does not have at least one of required scope(s): [write:repository]` + echo + `"}`,
			want: want{says: []string{"403", "acme/platform", "write:repository"}},
		},
		"ForbiddenGitLab": {
			reason: "The message names the permission in GitLab's words.",
			only:   KindGitLab, code: 403, body: `{"error":"insufficient_scope","error_description":"The request requires higher privileges` + echo + `","scope":"api"}`,
			want: want{says: []string{"403", "acme/platform", "the scope api"}, never: "insufficient_scope"},
		},
		"ForbiddenBitbucket": {
			reason: "The message names the permission in Bitbucket's words.",
			only:   KindBitbucket, code: 403, body: `{"type":"error","error":{"message":"Your credentials lack one or more required privilege scopes.","detail":{"required":["repository:write"]}}}`,
			want: want{says: []string{"403", "acme/platform", "the scope repository"}, never: "lack one or more"},
		},
		"ForbiddenDataCenter": {
			reason: "The message names the permission in Data Center's words.",
			only:   KindBitbucketDataCenter, code: 403, body: `{"errors":[{"context":null,"message":"You are not permitted to access this resource` + echo + `","exceptionName":"x"}]}`,
			want: want{says: []string{"403", "acme/platform", "Repository read"}, never: "not permitted"},
		},
		"ForbiddenAzure": {
			reason: "The message names the permission in Azure DevOps' words.",
			only:   KindAzureDevOps, code: 403, body: `{"$id":"1","message":"TF401027: You need the Git 'GenericContribute' permission to perform this action.` + echo + `","typeKey":"GitNeedsPermissionException"}`,
			want: want{says: []string{"403", "acme/platform", "Code (status)"}, never: "TF401027"},
		},
		"SignIn": {
			reason: "Azure DevOps shows unauthenticated clients a sign-in page with a successful status code.",
			only:   KindAzureDevOps, code: 203, body: `<html>Sign in` + echo + `</html>`,
			want: want{says: []string{"401", "expired"}},
		},
		"SignInElsewhere": {
			reason: "Azure DevOps may also redirect unauthenticated clients to a sign-in page.",
			only:   KindAzureDevOps, code: 302, header: map[string]string{"Location": "https://login.example.org/_signin?x=1"},
			want: want{says: []string{"401", "expired"}},
		},
		"TooManyJobs": {
			reason: "GitLab's limit of jobs in a pipeline is permanent.",
			only:   KindGitLab, code: 422, body: `{"message":"422 Unprocessable Entity: the limit of jobs was exceeded"}`,
			want: want{says: []string{"422"}, never: "limit of jobs"},
		},
		"SecondaryRateLimit": {
			reason: "GitHub returns 403 for a rate limit.",
			only:   KindGitHub, code: 403, header: map[string]string{"Retry-After": "40"},
			body: `{"message":"You have exceeded a secondary rate limit","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`,
			want: want{later: true, after: 40 * time.Second},
		},
		"SecondaryRateLimitWithoutTime": {
			reason: "Without Retry-After, GitHub's documentation asks for a minute.",
			only:   KindGitHub, code: 403,
			body: `{"message":"You have exceeded a secondary rate limit","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`,
			want: want{later: true, after: time.Minute},
		},
		"PrimaryRateLimit": {
			reason: "GitHub names the time at which the hourly limit is reset.",
			only:   KindGitHub, code: 403,
			header: map[string]string{"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "SOON"},
			body:   `{"message":"API rate limit exceeded for user ID 1."}`,
			want:   want{later: true, after: 90 * time.Second},
		},
		"ForbiddenWithRetryAfter": {
			reason: "A Retry-After means a rate limit instead of a missing permission, whatever the body is.",
			code:   403, header: map[string]string{"Retry-After": "7"}, body: `{"message":"slow down` + echo + `"}`,
			want: want{later: true, after: 7 * time.Second},
		},
		"NotFound": {
			reason: "Forges return 404 for a private repository that the token cannot see.",
			code:   404, body: `{"message":"Not Found"}`,
			want: want{says: []string{"404", "acme/platform", "cannot see"}},
		},
		"NoSuchCommitOnGitHub": {
			reason: "The commit was never pushed to the forge.",
			only:   KindGitHub, code: 422, body: `{"message":"No commit found for SHA: ` + commit + `"}`,
			want: want{says: []string{"422", "push it first"}, never: "No commit found"},
		},
		"TooManyStatuses": {
			reason: "GitHub allows 1000 statuses per context and commit, so this error is permanent.",
			only:   KindGitHub, code: 422, body: `{"message":"Validation Failed","errors":[{"resource":"Status","code":"custom","message":"This SHA and context has reached the maximum number of statuses."}]}`,
			want: want{says: []string{"422", "as many statuses of this context as the forge allows"}, never: "maximum number of statuses"},
		},
		"Unprocessable": {
			reason: "The same request would fail again.",
			only:   KindGitea, code: 422, body: `{"message":"[State]: unsupported"}`,
			want: want{says: []string{"422"}, never: "unsupported"},
		},
		"TooManyRequests": {
			reason: "Proxies in front of Gitea use this status code.",
			code:   429, header: map[string]string{"Retry-After": "120"}, body: `slow down`,
			want: want{later: true, after: 2 * time.Minute},
		},
		"TooManyRequestsByDate": {
			reason: "Retry-After may be a date.",
			code:   429, header: map[string]string{"Retry-After": "SOON, AS A DATE"},
			want: want{later: true, after: 90 * time.Second},
		},
		"TooManyRequestsWithoutTime": {
			reason: "Without Retry-After, Headgate chooses the delay.",
			code:   429, body: `{"message":"slow down` + echo + `"}`,
			want: want{later: true},
		},
		"InternalError": {
			reason: "The next attempt may reach another server.", code: 500, body: `{"message":"database is locked` + echo + `"}`,
			want: want{later: true},
		},
		"RetryAfterAYear": {
			reason: "A wrong Retry-After must not stop Headgate's statuses.",
			code:   429, header: map[string]string{"Retry-After": "31536000"},
			want: want{later: true, after: 2 * time.Hour},
		},
		"BadGateway": {
			reason: "The response comes from a proxy instead of the forge.", code: 502, body: `<html>` + echo + `</html>`,
			want: want{later: true},
		},
		"Maintenance": {
			reason: "The forge says when to retry.", code: 503, header: map[string]string{"Retry-After": "300"},
			want: want{later: true, after: 5 * time.Minute},
		},
		"CaptivePortal": {
			reason: "Another server responded, so a later request may succeed.", code: 200, body: `<html>Log in to the WiFi` + echo + `</html>`,
			want: want{later: true},
		},
		"Gone": {
			reason: "The repository is blocked or deleted.", code: 410, body: `{"message":"Repository access blocked"}`,
			want: want{says: []string{"410"}, never: "blocked"},
		},
	}
	for name, tc := range cases {
		for _, kind := range kinds {
			for _, verb := range []string{http.MethodGet, http.MethodPost} {
				if tc.only != "" && tc.only != kind {
					continue
				}
				t.Run(name+"/"+string(kind)+"/"+verb, func(t *testing.T) {
					f := &fake{kind: kind}
					f.instead = func(w http.ResponseWriter, r *http.Request) bool {
						if r.Method != verb {
							return false
						}
						soon := time.Now().Add(90 * time.Second) // counted from the response, because a busy machine may have started the test long before
						inWords := strings.NewReplacer("SOON, AS A DATE", soon.UTC().Format(http.TimeFormat), "SOON", strconv.FormatInt(soon.Unix(), 10))
						for k, v := range tc.header {
							w.Header().Set(k, inWords.Replace(v))
						}
						answerJSON(w, tc.code, tc.body)
						return true
					}
					base := f.start(t).URL
					err := statusesOn(t, kind, base).Publish(t.Context(), green)
					if err == nil {
						t.Fatalf("%s\nPublish(...): no error", tc.reason)
					}
					if strings.Contains(err.Error(), canary) {
						t.Errorf("the error has the token in it: %v", err)
					}
					later, ok := errors.AsType[*Later](err)
					if ok != tc.want.later {
						t.Fatalf("%s\nPublish(...): %v: passes: %t, want %t", tc.reason, err, ok, tc.want.later)
					}
					if ok && (later.After > tc.want.after || later.After < tc.want.after-3*time.Second) {
						t.Errorf("%s\nPublish(...): again after %s, want %s", tc.reason, later.After, tc.want.after)
					}
					if tc.want.never != "" && strings.Contains(err.Error(), tc.want.never) {
						t.Errorf("%s\nPublish(...): %v: quotes %q of the answer", tc.reason, err, tc.want.never)
					}
					for _, says := range tc.want.says {
						if !strings.Contains(err.Error(), says) {
							t.Errorf("%s\nPublish(...): %v: does not say %q", tc.reason, err, says)
						}
					}
					// Once the forge works again, everything is posted, whatever failed before.
					f.mu.Lock()
					f.instead = nil
					f.mu.Unlock()
					if err := statusesOn(t, kind, base).Publish(t.Context(), green); err != nil {
						t.Errorf("%s\nPublish(...) after it: %v", tc.reason, err)
					}
					if diff := cmp.Diff(2, len(f.statuses)); diff != "" {
						t.Errorf("%s\nstatuses after it (-want +got):\n%s", tc.reason, diff)
					}
				})
			}
		}
	}
}

func TestUnreachable(t *testing.T) {
	for _, kind := range kinds {
		gone := (&fake{kind: kind}).start(t)
		gone.Close()
		err := statusesOn(t, kind, gone.URL).Publish(t.Context(), green)
		if _, ok := errors.AsType[*Later](err); !ok {
			t.Errorf("%s: %v: want a *Later", kind, err)
		}

		f := &fake{kind: kind}
		f.instead = func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		err = statusesOn(t, kind, f.start(t).URL).Publish(ctx, green)
		cancel()
		if _, ok := errors.AsType[*Later](err); !ok || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v: want a *Later for a deadline", kind, err)
		}
	}
}

func TestRedirects(t *testing.T) {
	cases := map[string]struct {
		reason string
		verb   string
		code   int
		away   bool // to another host
		fails  bool
	}{
		"Renamed":         {"A renamed repository is still found.", http.MethodGet, http.StatusMovedPermanently, false, false},
		"RenamedPost":     {"Statuses can be posted to a renamed repository.", http.MethodPost, http.StatusTemporaryRedirect, false, false},
		"PostBecomesGet":  {"If a redirect turns POST into GET, its response must not count as a posted status.", http.MethodPost, http.StatusMovedPermanently, false, true},
		"OtherHost":       {"The token is for one host only.", http.MethodGet, http.StatusFound, true, true},
		"OtherHostPost":   {"The token is for one host only.", http.MethodPost, http.StatusTemporaryRedirect, true, true},
		"OtherHostMoved":  {"The token is for one host only.", http.MethodGet, http.StatusPermanentRedirect, true, true},
		"OtherHostMoved2": {"The token is for one host only.", http.MethodPost, http.StatusPermanentRedirect, true, true},
	}
	for name, tc := range cases {
		for _, kind := range kinds {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				var reached []string
				other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					reached = append(reached, r.Header.Get("Authorization"))
					answerJSON(w, 201, `{}`)
				}))
				defer other.Close()
				f := &fake{kind: kind}
				server := f.start(t)
				f.instead = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method != tc.verb || r.URL.Query().Has("again") {
						return false
					}
					to := server.URL
					if tc.away {
						to = other.URL
					}
					w.Header().Set("Location", to+r.URL.EscapedPath()+"?again=1")
					answerJSON(w, tc.code, `{"message":"Moved"}`)
					return true
				}
				err := statusesOn(t, kind, server.URL).Publish(t.Context(), green)
				if (err != nil) != tc.fails {
					t.Errorf("%s\nPublish(...) = %v, want an error: %t", tc.reason, err, tc.fails)
				}
				if len(reached) > 0 {
					t.Errorf("%s\nthe other host was asked, with %q", tc.reason, reached)
				}
				if _, later := errors.AsType[*Later](err); later {
					t.Errorf("%s\nPublish(...) = %v: trying again leads to the same place", tc.reason, err)
				}
				if tc.fails == (len(f.statuses) == 2) {
					t.Errorf("%s\n%d statuses", tc.reason, len(f.statuses))
				}
			})
		}
	}
}

func TestTokens(t *testing.T) {
	cases := map[string]struct {
		reason string
		token  func(context.Context) (string, error)
		ok     bool
		later  bool
	}{
		"FromAFile": {"Editors end a file with a line break.", Token(canary + "\n"), true, false},
		"Empty":     {"A file that was not mounted is empty.", Token(" \n"), false, false},
		"NotOne":    {"A token with other text is refused here, because net/http would quote it.", Token(canary + " and more"), false, false},
		"Away":      {"Fetching an App's token may fail.", func(context.Context) (string, error) { return "", errBoom }, false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fake{kind: KindGitea}
			p, err := Account{Repository: Repository{Kind: KindGitea, Base: f.start(t).URL, Owner: "acme", Name: "platform"}, Token: tc.token}.Poster()
			if err != nil {
				t.Fatal(err)
			}
			err = Statuses{Poster: p, Cluster: "production", Home: "headgate-system"}.Publish(t.Context(), green)
			if (err == nil) != tc.ok {
				t.Errorf("%s\nPublish(...) = %v, want success: %t", tc.reason, err, tc.ok)
			}
			if _, later := errors.AsType[*Later](err); later != tc.later || strings.Contains(errText(err), canary) {
				t.Errorf("%s\nPublish(...) = %v, passes: %t, want %t", tc.reason, err, later, tc.later)
			}
		})
	}
}

func TestPosterRefuses(t *testing.T) {
	whole := Repository{Kind: KindGitea, Base: "https://git.example.org", Owner: "acme", Name: "platform"}
	nobody, outside, kindless := whole, whole, whole
	nobody.Owner, outside.Base, kindless.Kind = "", "ftp://git.example.org", ""
	for reason, a := range map[string]Account{
		"no owner":     {Repository: nobody, Token: Token(canary)},
		"no forge":     {Repository: outside, Token: Token(canary)},
		"unknown kind": {Repository: kindless, Token: Token(canary)},
		"no token":     {Repository: whole},
	} {
		if _, err := a.Poster(); err == nil {
			t.Errorf("%s: Poster() has no error", reason)
		}
	}
}

// Forges have their own words for the four states, or use the worse one for two states.
func TestStates(t *testing.T) {
	of := map[Kind][4]string{ // in the order pending, success, failure, error
		KindGitHub:              {"pending", "success", "failure", "error"},
		KindGitLab:              {"pending", "success", "failed", "failed"},
		KindGitea:               {"pending", "success", "failure", "error"},
		KindBitbucket:           {"INPROGRESS", "SUCCESSFUL", "FAILED", "FAILED"},
		KindBitbucketDataCenter: {"INPROGRESS", "SUCCESSFUL", "FAILED", "FAILED"},
		KindAzureDevOps:         {"pending", "succeeded", "failed", "error"},
	}
	for kind, words := range of {
		for i, state := range []report.State{report.Pending, report.Success, report.Failure, report.Error} {
			f := &fake{kind: kind}
			base := f.start(t).URL
			status := report.Status{State: state, Description: "said"}
			for range 2 { // a second process finds what the first one posted
				if err := statusesOn(t, kind, base).Publish(t.Context(), reported(status, status)); err != nil {
					t.Fatalf("%s: %s: %v", kind, state, err)
				}
			}
			if len(f.statuses) != 2 || string(f.statuses[0].State) != words[i] {
				t.Errorf("%s: %s is %+v, want twice %q", kind, state, f.statuses, words[i])
			}
			page := map[Kind]string{KindBitbucket: base + "/acme/platform/commits/" + commit, KindBitbucketDataCenter: base + "/projects/acme/repos/platform/commits/" + commit}[kind]
			if got := f.statuses[0].TargetURL; got != page {
				t.Errorf("%s: a status links to %q, want %q", kind, got, page)
			}
		}
	}
}

// GitLab refuses to post a pending status again. This is not an error, because the status is already pending.
func TestPendingTwice(t *testing.T) {
	f := &fake{kind: KindGitLab}
	p := statusesOn(t, KindGitLab, f.start(t).URL).Poster
	for _, output := range []string{"seen", "waits for an approval"} {
		if err := p.Post(t.Context(), Status{Commit: commit, Context: "a", State: report.Pending, Description: output}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Post(t.Context(), Status{Commit: commit, Context: "a", State: report.Success, Description: "done"}); err != nil {
		t.Fatal(err)
	}
	if len(f.statuses) != 1 || f.statuses[0].State != "success" {
		t.Errorf("it stands at %+v", f.statuses)
	}
}

// Branch policies of Azure DevOps use the statuses of a pull request, so a status of an older push must not count for the newest
// one.
func TestStatusOfPullRequest(t *testing.T) {
	for commitOf, want := range map[string]string{commit: `"iterationId":2`, strings.Repeat("f", 40): ""} {
		var posted []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/pullRequests/7/iterations") {
				answerJSON(w, http.StatusOK, `{"value":[{"id":1,"sourceRefCommit":{"commitId":"`+strings.Repeat("e", 40)+`"}},{"id":2,"sourceRefCommit":{"commitId":"`+commit+`"}}]}`)
				return
			}
			if r.Method == http.MethodPost {
				raw, _ := io.ReadAll(r.Body)
				posted = append(posted, r.URL.Path+" "+string(raw))
			}
			answerJSON(w, http.StatusOK, `{"value":[]}`)
		}))
		p := statusesOn(t, KindAzureDevOps, server.URL).Poster
		for range 2 { // and not again
			if err := p.Post(t.Context(), Status{Commit: commitOf, Context: "headgate/platform/preview", State: report.Success, Description: "ok", Pull: 7}); err != nil {
				t.Fatal(err)
			}
		}
		server.Close()
		switch {
		case want == "" && (len(posted) != 1 || !strings.Contains(posted[0], "/commits/")):
			t.Errorf("a commit that is the head no longer: %q", posted)
		case want != "" && (len(posted) != 2 || !strings.Contains(posted[0], "/pullRequests/7/statuses ") || !strings.Contains(posted[0], want) || !strings.Contains(posted[0], `{"genre":"headgate","name":"platform/preview"}`)):
			t.Errorf("posted %q", posted)
		}
	}
}

// A server may return parts of a request, which must not leak the token in another encoding.
func TestAuthorization(t *testing.T) {
	const user, jwt = "me@example.org:" + canary, "eyJ" + canary + ".a.b"
	cases := map[string]struct {
		kind  Kind
		token string
		want  string
	}{
		"GitHub":       {KindGitHub, canary, "token " + canary},
		"Gitea":        {KindGitea, canary, "token " + canary},
		"GitLab":       {KindGitLab, canary, "Bearer " + canary},
		"AccessToken":  {KindBitbucket, canary, "Bearer " + canary},
		"APIToken":     {KindBitbucket, user, "Basic bWVAZXhhbXBsZS5vcmc6Z2hwX2NhbmFyeTdRMnhYbm90VG9CZVNlZW4="},
		"HTTPToken":    {KindBitbucketDataCenter, canary, "Bearer " + canary},
		"AzurePAT":     {KindAzureDevOps, canary, "Basic OmdocF9jYW5hcnk3UTJ4WG5vdFRvQmVTZWVu"},
		"AzureEntraID": {KindAzureDevOps, jwt, "Bearer " + jwt},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r.Header.Get("Authorization")
				_, password, _ := strings.Cut(tc.token, ":")
				answerJSON(w, http.StatusBadRequest, `{"message":"you sent `+got+`, which is `+tc.token+` or `+password+`"}`)
			}))
			defer server.Close()
			p, err := Account{Repository: Repository{Kind: tc.kind, Base: server.URL, Owner: "acme", Name: "platform"}, Token: Token(tc.token)}.Poster()
			if err != nil {
				t.Fatal(err)
			}
			err = p.Post(t.Context(), Status{Commit: commit, Context: "a", State: report.Success})
			if got != tc.want {
				t.Errorf("Authorization: %q, want %q", got, tc.want)
			}
			_, sent, _ := strings.Cut(tc.want, " ")
			if says := errText(err); says == "" || strings.Contains(says, sent) || strings.Contains(says, canary) {
				t.Errorf("the error is %q: want one without what was sent", says)
			}
		})
	}
}
